"""What the parts of a frame use of each other, declared once: for readers, and for a checker of types.

    class Running(Part): ...          # in `running`
    class Looking(Part): ...          # in `looking`
    class Saying(Part): ...           # in `saying`
    class Kept(Part): ...             # in `kept`
    class Frame(Running, Looking, Saying, Kept, ipywidgets.VBox): ...        # makes all that is named here

A part asks for nothing of the frame that is not named here. Next file to read: `frame`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

from widgets.queue import RunQueue
from widgets.shown import Shown
from widgets.state import State
from widgets.views.controls_view import ControlsView


class Part:
    """What every part may use; `Frame` gives it."""

    question: ClassVar[str]
    call: ClassVar[str]
    state: Any  # a State, as a trait: setting it draws anew
    code: Any  # text, as a trait
    top: ControlsView
    queue: RunQueue
    drawing: threading.RLock
    _shown: Shown | None
    close: Callable[[], None]
    _repr_mimebundle_: Callable[..., dict[str, Any]]  # of ipywidgets

    @property
    def sentence(self) -> str:
        """What the line below the picture says."""
        raise NotImplementedError

    def tell(self, fault: BaseException) -> None:
        """Put a fault into that line."""
        raise NotImplementedError

    def _show_controls(self) -> None:
        """Ask for the controls of the state again."""
        raise NotImplementedError

    def run_settings(self) -> State:
        """The settings that a run depends on; leave out those that only say where to look."""
        return dict(self.state)
