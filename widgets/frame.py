"""The frame all explorers share: question, controls, picture, one sentence, folded details. You add a picture.

    class Sharing(Frame):
        question = "How much does one device hold?"
        call = "sharing"                                    # the function that copy-as-code names
        start = {"size": 64, "parts": 4}                    # the state: names, types and first values

        def controls(self, state):                          # may depend on the state; asked after each change
            return [IntBox("size", state["size"]), IntBox("parts", state["parts"], high=512)]

        def make_picture(self):                             # any widget, made once
            return PlotView()

        def draw(self, size, parts):                        # cheap and pure: no widget is touched here
            if size % parts:
                raise Refused(f"{size} does not divide by {parts}", [Offer("use 1 part", {"parts": 1})])
            return Shown(f"each device holds {size // parts} [modelled]", facts={...}, table=[("device", "holds"), ...])

        def paint(self, shown):                             # hand the facts to the picture
            self.picture.show(shown.facts)

    frame = Sharing(size=128)        # displays itself
    frame.state = {"parts": 2}       # as if moved by hand, one event; what is left out takes its start value
    frame.value, frame.code          # the facts that draw returned last, and the call that gives this picture

Hooks, all optional: `edit(state, name, value)` where a control is not itself a setting; `still(shown)`, the picture
that stays in the file; `run(settings)`, a generator of `Progress`, gives a Run button; `refine(settings)`, the same,
starts on release; `show_progress` and `show_result` take what they give; `result_part` is greyed when the settings
have moved on. Any `LayoutError` of `draw` lands in the sentence in its own words and dims the picture. Any other
exception is a fault of ours: short in the sentence, full in the details, kept for `frame.check()` to raise; tests set
`Frame.reraise = True` and get it at once. Next file to read: `explorers/slices`.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import ipywidgets
import traitlets as t

from mtfcore.errors import LayoutError
from widgets.closing import close_all
from widgets.controls import Button, Control, find
from widgets.kept import Kept
from widgets.looking import Looking
from widgets.queue import Progress, Result
from widgets.running import Running
from widgets.saying import Saying
from widgets.shown import Offer, Refused, Shown
from widgets.state import State, call_text, check_state, read_state
from widgets.views.controls_view import ControlsView
from widgets.views.status_view import StatusView


@functools.cache
def keep_what_is_loaded() -> None:
    """Once, before the first explorer: modules stay, so the collector need not walk through them while a hand drags.

    With JAX loaded such a walk took a tenth of a second, and every drag met one now and then.
    """
    gc.freeze()


class Frame(Running, Looking, Saying, Kept, ipywidgets.VBox):
    """The shell; subclass it as this module's text shows."""

    question: ClassVar[str] = ""
    call: ClassVar[str] = ""
    start: ClassVar[State] = {}
    always: ClassVar[tuple[str, ...]] = ()  # what the copied call names in any case; nothing: every setting

    state = t.TraitType({})  # of any type to traitlets: whatever is no state is refused in our own words
    code = t.Unicode()
    value = t.Any(None, allow_none=True)
    children: Any  # of ipywidgets, which says no types

    def __init__(self, **settings: Any) -> None:
        keep_what_is_loaded()
        self.top, self.bottom = ControlsView(question=self.question), StatusView()
        self.picture = self.make_picture()
        self.stage = ipywidgets.VBox([self.picture], _dom_classes=("mw-stage",))
        self.queue, self.drawing = self.make_queue(), threading.RLock()
        self._shown: Shown | None = None
        self._controls: list[Control] = []
        self.keep_quiet()
        self._by_hand = False
        self.keep_still()
        parts = [self.top, self.stage, self.bottom]
        super().__init__(parts, state=check_state(settings, self.start), _dom_classes=("mw-explorer",))
        self._redraw()
        self.observe(self._moved, "state")
        self.top.on_edit(self._edited)
        self.bottom.observe(self._asked, "asked")
        self.bottom.observe(self._say, "unfolded")

    # What an explorer gives -------------------------------------------------------------------------------------

    def controls(self, state: State) -> Sequence[Control]:
        """The controls for this state."""
        return ()

    def make_picture(self) -> ipywidgets.Widget:
        """The widget between controls and sentence."""
        raise NotImplementedError

    def draw(self, *_: Any, **state: Any) -> Shown:
        """What is true for these settings, each by its name; cheap, pure."""
        raise NotImplementedError

    def paint(self, shown: Shown) -> None:
        """Hand the facts to the picture."""

    def edit(self, state: State, name: str, value: Any) -> State:
        """The state after a control was moved; by default the control is the setting."""
        return {**state, name: value}

    def pressed(self, name: str) -> None:
        """A button of the explorer's own was pressed."""

    def call_code(self) -> str:
        """The call that gives this picture, as Python text."""
        named = {name: value for name, value in self.state.items() if name in self.always or value != self.start[name]}
        return call_text(self.call, named if self.always else self.state)

    # From hand to picture ---------------------------------------------------------------------------------------

    def _edited(self, values: Mapping[str, Any], released: bool) -> None:
        with self.told():
            state, buttons, self._notes, self._said = dict(self.state), [], [], []
            for name, value in values.items():
                control = find(self._controls, name)
                if isinstance(control, Button):
                    buttons.append(name)
                elif control is not None:
                    value, note = control.clamp(value)
                    self.note(note)
                    state = self._edit(state, name, value)
            self._go(state, released)
            for name in buttons:
                if not self.press_run(name):
                    self.pressed(name)

    def _edit(self, state: State, name: str, value: Any) -> State:
        """An edit that cannot be is answered all the same: the control goes back to what the picture shows."""
        try:
            return self.edit(state, name, value)
        except LayoutError:
            self._show_controls()
            raise

    def _asked(self, change: Any) -> None:
        with self.told():
            if "offer" in change.new:
                self._go({**self.state, **self._line[2][change.new["offer"]].settings}, True)
            elif "state" in change.new:
                self._said = []  # of an earlier edit
                self._go(read_state(change.new["state"], self.start), True)
            elif "save" in change.new:
                self.bottom.saved = {**change.new, **self.saved(str(change.new["save"]), change.new.get("live", ()))}

    def _go(self, state: State, released: bool) -> None:
        """One change of state, one event, one redraw."""
        self._by_hand = True
        try:
            if state == self.state:
                self._redraw()
            self.state = state
        finally:
            self._by_hand = False
        if released:
            self.settle()

    def _moved(self, change: Any) -> None:
        self._redraw()
        if not self._by_hand:  # set from Python: nothing is being dragged
            self.settle()

    def settle(self) -> None:
        """A hand has let go: start the dear part, and leave the newest picture in the file."""
        if self.kind == "ok":
            self.start_refining()
        self.refresh_still()

    @t.validate("state")
    def _checked(self, proposal: Any) -> State:
        return check_state(proposal["value"], self.start)

    def _redraw(self) -> None:
        self.code = self.call_code()
        self._said, self._notes = self._notes, []
        self._true = False
        with self.top.hold_sync(), self.told():  # the row goes last: all in one frame of the page
            self._show_controls()
            self._shown = self.draw(**self.state)
            self.value = self._shown.facts
            self.paint(self._shown)
            self._true = True
            self._line = ("ok", self._shown.sentence, self._shown.offers, "")
            self._say()
        self.age_result()

    def _show_controls(self) -> None:
        try:
            self._controls = list(self.controls(self.state))
        except LayoutError:  # a text that does not parse: draw says so; the controls stay, with what was typed
            self._controls = [
                dataclasses.replace(control, value=self.state.get(control.name, control.value))
                for control in self._controls
                if control.name not in ("run", "stop")
            ]
        self._controls += self.run_buttons()
        self.top.show(self._controls)

    def close(self) -> None:
        """Stop what runs and give up every part."""
        self.queue.stop()
        close_all(self.top, self.picture, self.stage, self.bottom)
        self.layout.close()
        super().close()


__all__ = ["Frame", "Offer", "Progress", "Refused", "Result", "Shown"]
