"""The part of a frame that listens to its picture: a reader may choose a step or a device there.

    def make_picture(self):
        view.observe(lambda change: self.look("step", change.new), "step")

    def paint(self, shown):
        with self.following():                  # what the picture does now, the state has said
            self.view.show(shown.facts, shown.facts["step"])

A picture that cannot go as far as the state says (step 3 of a plan that has two now) stands at its nearest, and that
is no second event. Next file to read: `frame`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from widgets.parts import Part


class Looking(Part):
    """What `Frame` inherits; see the module's text."""

    _following = False

    @contextmanager
    def following(self) -> Iterator[None]:
        """While the picture is set from the state, nobody has looked elsewhere."""
        with self.drawing:
            before, self._following = self._following, True
            try:
                yield
            finally:
                self._following = before

    def look(self, name: str, value: Any) -> None:
        """The reader went elsewhere in the picture: one change of state."""
        with self.drawing:
            if not self._following and value != self.state[name]:
                self.state = {**self.state, name: value}
