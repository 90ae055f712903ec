"""The chosen layout's layer in the program explorer, whose copied code makes the same function again.

    >>> print(LayerProgram("ws2d", Layer(18432, 73728), (4, 4, 4)).code.splitlines()[0])
    from mtfcore.costs.second_paper.programs import layer

Next file to read: `program`.
"""

from __future__ import annotations

from typing import Any

from mtfcore.costs.second_paper.programs import layer as layer_function
from mtfcore.costs.second_paper.programs import places
from widgets.explorers.planned import write_place
from widgets.explorers.program import ProgramExplorer
from widgets.figures.feedforward import Layer, Mesh3


class LayerProgram(ProgramExplorer):
    """One layout's steps, with mesh and sizes to move."""

    def __init__(self, layout: str, layer: Layer, mesh: Mesh3) -> None:
        narrow = "i8" if layer.weights == "int8" else ""
        options: dict[str, Any] = {"gated": layer.gated, "weights": narrow}
        self._made = (
            f"layer({', '.join([repr(layout), *(f'{key}={value!r}' for key, value in options.items() if value)])})"
        )
        sizes = f"B:{layer.batch} L:{layer.length} E:{layer.d_model} F:{layer.d_ff}"
        super().__init__(
            layer_function(layout, **options), fn=layout, mesh="x:{} y:{} z:{}".format(*mesh), layout="", sizes=sizes,
            place=write_place(places(layout, layer.gated)), dtype="bf16",
        )  # fmt: skip

    def call_code(self) -> str:
        """The call, with the function made where it is named."""
        text = super().call_code()
        if self.state["fn"] not in self._owned():
            return text
        called = text.replace(f"fn={self.state['fn']}", f"fn={self._made}")
        return f"from mtfcore.costs.second_paper.programs import layer\n{called}"
