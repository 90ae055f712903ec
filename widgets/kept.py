"""The part of a frame that stays in the notebook's file: the still page beside the live view.

    class Doubling(Frame):
        def still(self, shown):                 # the picture as safe HTML, for a file without a kernel
            return f"<style>{STYLE}</style>{drawing(shown.facts)}"
        def svg(self):                          # the same as one <svg>, where it is more than `still` has
            return saved(self.value)

The page is renewed when a hand lets go, at most twice a second. Next file to read: `static`, how the page and the
live view take turns.
"""

from __future__ import annotations

from widgets.cells import adopt, running_cell
from widgets.parts import Part
from widgets.queue import Pacer
from widgets.saved import Sizes, file_name, live_drawings, poster, still_drawings, table_svg
from widgets.shown import Shown
from widgets.static import StillPage, show_live, still_html


class Kept(Part):
    """What `Frame` inherits; see the module's text."""

    def still(self, shown: Shown) -> str:
        """The picture as safe HTML (SVG) with its style; nothing leaves the sentence and the table."""
        return ""

    def svg(self) -> str:
        """The picture as one `<svg>`, for a file; without it, the drawings of `still`, or of the page, or the table."""
        return ""

    def saved(self, kind: str, live: Sizes = ()) -> dict[str, str]:
        """A file for the page to save as "png" or "svg"; `live` has the sizes of what only the page can draw."""
        picture = self._drawing()
        if self._shown is not None:
            picture = picture or live_drawings(live) or table_svg(self._shown.table)
        call = " ".join(self.code.partition("\n")[2].split()).replace("( ", "(").replace(", )", ")")
        text = poster(picture, self.question, call, self.sentence)
        return {"name": f"{file_name(self.call, self.code)}.{kind}", "kind": kind, "text": text}

    def _drawing(self) -> str:
        """The picture as one `<svg>`, where one can be had without the page."""
        return (self.svg() or still_drawings(self.still(self._shown))) if self._shown is not None else ""

    def keep_still(self) -> None:
        """Make the page ready."""
        self._page = StillPage()
        self._renewals = Pacer(lambda _: self._page.refresh(self._still_text()), per_second=2)

    def refresh_still(self) -> None:
        """Bring the page to the newest settings, now or soon."""
        self._renewals.offer(None)

    def _still_text(self) -> str:
        table = self._shown.table if self._shown else ()
        picture = self.still(self._shown) if self._shown else ""
        file = poster(drawing, "", "", "") if (drawing := self._drawing()) else ""
        return still_html(self.question, picture, self.sentence, table, self.code, file)

    def _ipython_display_(self) -> None:
        """First the still page, then the live view, which hides it while alive."""
        adopt(self, running_cell())
        self._page.show(self._still_text())
        show_live(self, self.code)

    def __repr__(self) -> str:
        return self.code
