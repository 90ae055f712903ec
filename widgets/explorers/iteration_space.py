"""A matrix product's iteration space cut into slabs, pencils and cubes.

    from widgets import iteration_space
    iteration_space(processors=64, u=1024)

Each point of the cube is one multiply-add; a block is one processor's work, and its faces are what the processor
touches of A, B and C. Change the number of processors: blocks of the same volume, less face. Source: "Mesh-TensorFlow"
(arXiv 1811.02084), Appendix B. Lesson 05 uses it. Next file to read: `../figures/iteration_space`.
"""

from __future__ import annotations

from typing import ClassVar

from widgets.controls import Control, IntBox
from widgets.figures.iteration_space import sentence, spaces, table
from widgets.figures.iteration_space_svg import saved_svg, spaces_html
from widgets.frame import Frame, Offer, Refused, Shown
from widgets.state import State
from widgets.views.picture_view import STYLE, PictureView

MOST_PROCESSORS, LARGEST = 512, 1 << 20


class IterationSpace(Frame):
    """The explorer; call `iteration_space(…)`."""

    question = "C = A B, u × u × u multiply-adds: how do they share out so that processors touch the least?"
    call = "iteration_space"
    start: ClassVar[State] = {"processors": 64, "u": 1024}

    def make_picture(self) -> PictureView:
        return PictureView(label="the iteration space cut into slabs, pencils and cubes")

    def controls(self, state: State) -> list[Control]:
        return [
            IntBox("processors", state["processors"], high=MOST_PROCESSORS),
            IntBox("u", state["u"], "u", hint="the size of all three matrices", high=LARGEST),
        ]

    def draw(self, processors: int, u: int) -> Shown:
        if not (1 <= processors <= MOST_PROCESSORS and 1 <= u <= LARGEST):
            legal = {"processors": min(max(processors, 1), MOST_PROCESSORS), "u": min(max(u, 1), LARGEST)}
            words = f"processors go from 1 to {MOST_PROCESSORS}, u from 1 to {LARGEST:,}: {processors}, {u}"
            raise Refused(words, [Offer(f"use {legal['processors']} and {legal['u']:,}", legal)])
        facts = spaces(processors, u)
        return Shown(sentence(facts), facts, table(facts))

    def paint(self, shown: Shown) -> None:
        self.picture.show(spaces_html(shown.facts))

    def still(self, shown: Shown) -> str:
        return f"<style>{STYLE}</style>{spaces_html(shown.facts)}"

    def svg(self) -> str:
        return saved_svg(self.value)


def iteration_space(processors: int = 64, u: int = 1024) -> IterationSpace:
    """Show the best slabs, pencils and cubes for a u × u × u product on so many processors."""
    return IterationSpace(processors=processors, u=u)
