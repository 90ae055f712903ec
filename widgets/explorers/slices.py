"""Which slice of each tensor lies on which device, and why.

    from widgets import slices
    slices(dims="batch:64 io:512 hidden:2048", mesh="rows:4 cols:2", layout="batch:rows hidden:cols")

Drag a size or an axis, choose which axis splits which dimension, or type all three in the library's notation; click
a device for its ranges. `show_values` adds what a run put there:

    explorer = slices(tensors="x: batch io", …)
    explorer.show_values(lambda tensor, device: arrays[tensor][device])

The idea is "Mesh-TensorFlow"'s (arXiv 1811.02084, section 4): one layout for all tensors, so whatever lacks a split
dimension is copied. Lessons 00 and 01 use it. Next file to read: `../figures/slices`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mtfcore as mtf
from mtfcore.dims import parse_dims
from mtfcore.dtypes import DTYPES, canonical
from mtfcore.errors import LayoutError
from mtfcore.notation import format_axes
from widgets.controls import Choice, Control, IntBox, TextBox, most
from widgets.explorers.mesh_controls import axis_boxes, moved_axis, moved_size
from widgets.explorers.tensors import Tensors, read_tensors, ways_out, without
from widgets.figures.slices import Facts, facts, mesh_facts, table, why
from widgets.figures.slices_svg import STYLE
from widgets.frame import Frame, Refused, Shown
from widgets.state import State
from widgets.values import preview
from widgets.views.slices_view import SlicesView, saved_svg, still_panels

MOST_DEVICES, MOST_AXES, MOST_TENSORS = 512, 4, 8
LARGEST = 1 << 18  # of a dimension, by slider
START = {
    "dims": "batch:64 io:512 hidden:2048",
    "mesh": "rows:4 cols:2",
    "layout": "batch:rows hidden:cols",
    "dtype": "bf16",
    "tensors": "x: batch io; w: io hidden; h: batch hidden",
}
Values = Callable[[str, int], Any]


class Slices(Frame):
    """The explorer; call `slices(…)`."""

    question = "Which slice of each tensor lies on which device?"
    call = "slices"
    start = START

    def make_picture(self) -> SlicesView:
        view = SlicesView()
        view.observe(self._show_held, ["device", "drawing"])
        return view

    # Controls ---------------------------------------------------------------------------------------------------

    def controls(self, state: State) -> list[Control]:
        mesh, layout, dims = mtf.Mesh(state["mesh"]), mtf.Layout(state["layout"]), parse_dims(state["dims"])
        return [
            TextBox("mesh", state["mesh"], "axes", "Mesh", "names and sizes, e.g. rows:4 cols:2"),
            Choice("n_axes", str(len(mesh.axes)), "number", "Mesh", options=tuple((n, n) for n in _counts(mesh))),
            *axis_boxes(mesh, MOST_DEVICES),
            TextBox("dims", state["dims"], "sizes", "Dimensions", "names and sizes, e.g. batch:64 io:512"),
            TextBox("layout", state["layout"], "layout", "Dimensions", "rules, e.g. batch:rows hidden:cols"),
            *(control for dim in dims for control in self._dim(dim, layout, mesh)),
            TextBox("tensors", state["tensors"], "tensors", "Tensors", "e.g. x: batch io; w: io hidden", wide=True),
            Choice("dtype", state["dtype"], "type", "Tensors", options=tuple((name, name) for name in DTYPES)),
        ]

    def _dim(self, dim: mtf.Dim, layout: mtf.Layout, mesh: mtf.Mesh) -> list[Control]:
        now = format_axes(layout.axes(dim.name)) if layout.axes(dim.name) else ""
        options = {"": "copied", **{axis: f"over {axis}" for axis in mesh.names}}
        options.setdefault(now, f"over {now}")
        over = Choice(f"on.{dim.name}", now, f"{dim.name} is", "Dimensions", options=tuple(options.items()))
        size = dim.size or 1
        return [IntBox(f"size.{dim.name}", size, dim.name, "Dimensions", high=max(LARGEST, size)), over]

    def edit(self, state: State, name: str, value: Any) -> State:
        what, _, which = name.partition(".")
        if what == "axis":
            return {**state, "mesh": moved_axis(state["mesh"], which, value)}
        if what == "size":
            return {**state, "dims": moved_size(state["dims"], which, value)}
        if what == "on":
            rest = without(mtf.Layout(state["layout"]), which)
            return {**state, "layout": f"{rest} {which}:{value}".strip() if value else rest}
        if what == "n_axes":
            return self._with_axes(state, int(value))
        return {**state, name: value}

    def _with_axes(self, state: State, wanted: int) -> State:
        """More axes get a free name and size 2 if there is room; fewer drop the last ones, and the rules on them."""
        mesh, layout = mtf.Mesh(state["mesh"]), mtf.Layout(state["layout"])
        axes = list(mesh.axes[:wanted])
        while len(axes) < wanted:
            axes.append((_free_name(dict(axes)), min(2, most(MOST_DEVICES, *(size for _, size in axes)))))
        gone = {axis for axis, _ in mesh.axes[wanted:]}
        kept = [(name, on) for name, on in layout.rules if not gone & set(on)]
        for name, on in layout.rules:
            if (name, on) not in kept:
                lost = " ".join(axis for axis in on if axis in gone)
                self.note(f"{name} over {' '.join(on)} is not possible without {lost}; {name} is copied now")
        return {**state, "mesh": str(mtf.Mesh(axes)), "layout": str(mtf.Layout(kept))}

    # Picture ----------------------------------------------------------------------------------------------------

    def draw(self, dims: str, mesh: str, layout: str, dtype: str, tensors: str) -> Shown:
        grid, rules, sizes = _small(mtf.Mesh(mesh)), mtf.Layout(layout), parse_dims(dims)
        if missing := [dim.name for dim in sizes if dim.size is None]:
            raise LayoutError(f"the size of {', '.join(missing)} is missing; write e.g. {missing[0]}:64")
        listed, dtype = read_tensors(tensors, sizes), canonical(dtype)
        if len(listed) > MOST_TENSORS:
            raise LayoutError(f"{len(listed)} tensors are listed; this picture shows up to {MOST_TENSORS}")
        placed = _place(listed, rules, grid, sizes)
        drawn = [facts(sharding, grid, dtype, name) for name, sharding in placed.items()]
        names = [dim.name for dim in sizes]
        notes = (*rules.missing_axes(grid), *rules.unknown_dims(names))
        sentence = _sentence(drawn, [(name, axes) for name, axes in rules.rules if name in names], grid)
        return Shown(sentence, {"mesh": mesh_facts(grid), "tensors": drawn}, table(drawn), notes)

    def paint(self, shown: Shown) -> None:
        self.picture.show(shown.facts["mesh"], shown.facts["tensors"])

    def still(self, shown: Shown) -> str:
        return f"<style>{STYLE}</style>{still_panels(shown.facts['mesh'], shown.facts['tensors'])}"

    def svg(self) -> str:
        return saved_svg(self.value["mesh"], self.value["tensors"])

    # Values of a run --------------------------------------------------------------------------------------------

    def show_values(self, values: Values | None) -> Slices:
        """From now on a chosen device also shows `values(tensor, device)`, an array; None takes it away."""
        self._values = values
        self._show_held()
        return self

    _values: Values | None = None

    def _show_held(self, change: Any = None) -> None:
        device = self.picture.device
        if self._values is None or device < 0:
            self.picture.values = {}
            return
        with self.told():
            held = [preview(tensor["name"], self._values(tensor["name"], device)) for tensor in self.value["tensors"]]
            self.picture.values = {"device": device, "tensors": held}


def _counts(mesh: mtf.Mesh) -> list[str]:
    return [str(n) for n in range(1, max(3, len(mesh.axes)) + 1)]


def _free_name(taken: dict[str, int]) -> str:
    letters = all(len(name) == 1 for name in taken)
    return next(name for name in ("xyzw" if letters else ("rows", "cols", "planes", "parts")) if name not in taken)


def _small(mesh: mtf.Mesh) -> mtf.Mesh:
    if mesh.size > MOST_DEVICES or len(mesh.axes) > MOST_AXES:
        raise LayoutError(
            f"mesh '{mesh}' has {mesh.size:,} devices on {len(mesh.axes)} axes; "
            f"this picture draws up to {MOST_DEVICES} devices on up to {MOST_AXES} axes"
        )
    return mesh


def _place(tensors: Tensors, layout: mtf.Layout, mesh: mtf.Mesh, dims: Sequence[mtf.Dim]) -> dict[str, mtf.Sharding]:
    """Every tensor's sharding, or one refusal in the library's words, with ways out."""
    placed, refused = {}, {}
    for name, own in tensors.items():
        try:
            placed[name] = layout.place(own, mesh)
        except LayoutError as fault:
            refused[name] = str(fault)
    if refused:
        first, *others = refused
        also = f"\nRefused too, each in the details: {', '.join(others)}." if others else ""
        full = "\n".join(f"{name}: {words}" for name, words in refused.items())
        raise Refused(f"{first}: {refused[first]}{also}", ways_out(tensors, layout, mesh, dims), full)
    return placed


def _sentence(tensors: Sequence[Facts], rules: Sequence[tuple[str, tuple[str, ...]]], mesh: mtf.Mesh) -> str:
    splits = [(name, [axis for axis in axes if axis in mesh]) for name, axes in rules]
    on_axis = {axis: [name for name, on in splits if axis in on] for axis in mesh.names}
    words = [f"{name} over {' '.join(on)}" for name, on in splits if on]
    head = f"The layout splits {', '.join(words)}." if words else "The layout splits nothing."
    return " ".join([head, *(why(tensor, on_axis) for tensor in tensors)])


def slices(
    dims: str = START["dims"],
    mesh: str = START["mesh"],
    layout: str = START["layout"],
    dtype: str = START["dtype"],
    tensors: str = "",
) -> Slices:
    """Show which slice of each tensor lies on which device.

    Without `tensors`: x, w and h of a layer where the dimensions are batch, io and hidden, else one with all of them.
    """
    state = {"dims": str(dims), "mesh": str(mesh), "layout": str(layout), "dtype": str(dtype)}
    return Slices(**state, tensors=tensors or _usual_tensors(str(dims)))


def _usual_tensors(dims: str) -> str:
    try:
        names = [dim.name for dim in parse_dims(dims)]
    except LayoutError:  # the picture will say so
        return START["tensors"]
    return START["tensors"] if set(names) == {"batch", "io", "hidden"} else f"t: {' '.join(names)}"
