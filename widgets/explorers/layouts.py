"""The five layouts of two fully connected layers, side by side: time, ratio, memory, and how each grows.

    from widgets import layouts
    layouts()                                                        # the largest mesh of the first paper's TPU v2
    layouts(batch=512, io=1024, hidden=8192, rows=8, cols=2, planes=2, chip="v4", optimizer="adafactor")

Drag a size until a layout no longer divides, or fills its memory; drag rows and cols and see whose ratio stays. The
2D layout takes planes as further cols, so all five use the same devices. Times are those of the first paper's model,
computing at the peak and then sending over one link, and none of them is measured. Source: "Mesh-TensorFlow" (arXiv
1811.02084), section 8 and Table 1. Lesson 05 uses it. Next file to read: `../figures/layouts`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import ipywidgets

import mtfcore as mtf
from mtfcore.chips import chips
from mtfcore.costs.first_paper.memory import OPTIMIZERS
from mtfcore.costs.first_paper.two_layers import PASSES, ROWS, Sizes
from mtfcore.costs.first_paper.two_layers_programs import planned
from mtfcore.dtypes import canonical
from mtfcore.errors import LayoutError, nearest
from widgets.closing import close_all
from widgets.controls import Choice, Control, IntBox, most
from widgets.explorers.on_device import OnDevice, slice_of
from widgets.figures.layouts import compared
from widgets.figures.layouts_charts import growth_chart, memory_chart, ratio_chart, time_chart
from widgets.figures.layouts_words import sentence, table
from widgets.figures.on_device import device_html, device_row, stamped
from widgets.frame import Frame, Offer, Refused, Shown
from widgets.state import State
from widgets.views.picture_view import PictureView
from widgets.views.plot_view import saved_charts, still_charts

MOST_DEVICES, LARGEST = 1 << 12, 1 << 20
START: State = {
    "batch": 8192, "io": 4096, "hidden": 131072, "rows": 16, "cols": 8, "planes": 4, "chip": "v2",
    "optimizer": "adam", "dtype": "bf16", "passes": "training",
}  # fmt: skip
CHARTS = (time_chart, memory_chart, ratio_chart, growth_chart)
OF_A_STEP = ("batch", "io", "hidden", "rows", "cols", "planes", "chip", "optimizer", "dtype", "passes")
ON_A_DEVICE = "The best layout on a device"
CUTS = {"batch": ("rows",), "io": ("planes",), "hidden": ("cols", "planes")}


class Layouts(OnDevice, Frame):
    """The explorer; call `layouts(…)`."""

    question = "Which layout of two layers computes most of the time, and which still fits in memory?"
    call = "layouts"
    start = START
    instead = "the explorer `run` simulates and compiles two layers"

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        top, stage, sentence = self.children
        self.children = [top, stage, self.strip, sentence]

    def make_picture(self) -> PictureView:
        self.strip = ipywidgets.HTML()
        return PictureView(label="charts of time, memory, ratio and growth; the table of the details has their numbers")

    def close(self) -> None:
        close_all(self.strip)
        super().close()

    # Controls ---------------------------------------------------------------------------------------------------

    def controls(self, state: State) -> list[Control]:
        legal = {"chip": chips(), "optimizer": OPTIMIZERS, "dtype": ("bf16", "f32"), "passes": PASSES}
        labels = {"chip": "chip", "optimizer": "optimizer", "dtype": "type", "passes": "pass"}
        return [
            *(IntBox(dim, state[dim], dim, "Sizes", low=_parts(state, dim), high=LARGEST) for dim in CUTS),
            *(IntBox(axis, state[axis], axis, "Mesh", high=_room(state, axis)) for axis in ("rows", "cols", "planes")),
            *(Choice(key, state[key], labels[key], "Training", options=tuple((each, each) for each in names))
              for key, names in legal.items()),
        ]  # fmt: skip

    # Picture ----------------------------------------------------------------------------------------------------

    def draw(self, chip: str, optimizer: str, dtype: str, passes: str, **numbers: int) -> Shown:
        _check(numbers)
        for name, known in ((optimizer, OPTIMIZERS), (passes, PASSES)):
            if name not in known:
                raise LayoutError(f"no {name!r}; {nearest(name, known)}")
        sizes = Sizes(**{dim: numbers[dim] for dim in ("batch", "io", "hidden")})
        mesh = numbers["rows"], numbers["cols"], numbers["planes"]
        facts = compared(sizes, mesh, mtf.chip(chip), canonical(dtype), optimizer, passes)
        facts["device"], rows = self.device_facts(), table(facts)
        rows = [*rows, *device_row(facts["device"], "the best layout, on a device", len(rows[0]))]
        return Shown(sentence(facts), facts, rows)

    # On a device --------------------------------------------------------------------------------------------------

    def device_state(self, state: State) -> State:
        return {name: state[name] for name in OF_A_STEP}

    def device_program(self, settings: State) -> tuple[mtf.Program, str]:
        """The layout that is best here."""
        best = self.value["best"]
        if best is None:
            raise LayoutError("no layout fits in a device's memory here, so none is run; make sizes smaller")
        sizes = Sizes(**{dim: settings[dim] for dim in CUTS})
        row, mesh = ROWS[self.value["rows"][best]["layout"]], (settings["rows"], settings["cols"], settings["planes"])
        program = planned(row, sizes, *mesh, canonical(settings["dtype"]), settings["passes"])
        return program, slice_of(program.mesh.size, settings["chip"])

    def _strip(self, shown: Shown) -> str:
        return device_html(shown.facts["device"], ON_A_DEVICE)

    def paint(self, shown: Shown) -> None:
        self.strip.value = f'<div class="mw">{self._strip(shown)}</div>'
        self.picture.show(_charts(shown))

    def still(self, shown: Shown) -> str:
        return f"{_charts(shown)}{self._strip(shown)}"

    def svg(self) -> str:
        charts = saved_charts(make(self.value) for make in CHARTS)
        return stamped(charts, self.value["device"], ON_A_DEVICE)


def _charts(shown: Shown) -> str:
    """The four charts, drawn in Python: a slider then waits for one message, not for four charts of plotly."""
    return still_charts(make(shown.facts) for make in CHARTS)


def _parts(state: State, dim: str) -> int:
    """Into how many parts the 2D and the 3D layout cut a dimension."""
    found = 1
    for axis in CUTS[dim]:
        found *= max(state[axis], 1)
    return found


def _room(state: State, axis: str) -> int:
    """How large an axis may be, so that every dimension that it cuts has a part for each device."""
    others = [state[other] for other in ("rows", "cols", "planes") if other != axis]
    rooms = [most(state[dim], *(state[a] for a in axes if a != axis)) for dim, axes in CUTS.items() if axis in axes]
    return max(1, min(most(MOST_DEVICES, *others), *rooms))


def _check(numbers: dict[str, int]) -> None:
    """Refuse what is too small, too large or cannot be cut evenly, all at once, with ways out."""
    _check_range(numbers)
    uneven = {dim: _parts(numbers, dim) for dim in CUTS if numbers[dim] % _parts(numbers, dim)}
    if uneven:
        words = (
            f"{dim} {numbers[dim]:,} does not divide over {' · '.join(CUTS[dim])} = {n:,}" for dim, n in uneven.items()
        )
        raise Refused("\n".join(words), list(_ways_out(numbers, uneven)))


def _check_range(numbers: dict[str, int]) -> None:
    """Refuse sizes and meshes beyond what the controls reach."""
    ends = {name: (1, LARGEST if name in CUTS else MOST_DEVICES) for name in numbers}
    outside = {name: (low, high) for name, (low, high) in ends.items() if not low <= numbers[name] <= high}
    if outside:
        words = (f"{name} is {numbers[name]:,}; it goes from 1 to {high:,}" for name, (_, high) in outside.items())
        legal = {name: min(max(numbers[name], low), high) for name, (low, high) in outside.items()}
        label = ", ".join(f"{name} {n:,}" for name, n in legal.items())
        raise Refused("\n".join(words), [Offer(f"use {label}", legal)])
    if (devices := math.prod(numbers[axis] for axis in ("rows", "cols", "planes"))) > MOST_DEVICES:
        many = f"rows · cols · planes = {devices:,} devices; the most here is {MOST_DEVICES:,}"
        fewer = {axis: MOST_DEVICES * numbers[axis] // devices for axis in ("rows", "cols", "planes")}
        offers = [Offer(f"{axis} {n:,}", {axis: n}) for axis, n in fewer.items() if n]
        raise Refused(many, offers or [Offer("one device", dict.fromkeys(fewer, 1))])


def _ways_out(numbers: dict[str, int], uneven: dict[str, int]) -> Iterator[Offer]:
    for dim, n in uneven.items():
        for size in dict.fromkeys((numbers[dim] // n * n, -(-numbers[dim] // n) * n)):
            if size:
                yield Offer(f"{dim} {size:,}", {dim: size})
        axis = CUTS[dim][0]
        rest = n // numbers[axis]
        fits = next((k for k in range(numbers[axis], 0, -1) if numbers[dim] % (k * rest) == 0), 0)
        if fits:
            yield Offer(f"{axis} {fits:,}", {axis: fits})


def layouts(
    batch: int = START["batch"],
    io: int = START["io"],
    hidden: int = START["hidden"],
    rows: int = START["rows"],
    cols: int = START["cols"],
    planes: int = START["planes"],
    chip: str = START["chip"],
    optimizer: str = START["optimizer"],
    dtype: str = START["dtype"],
    passes: str = START["passes"],
) -> Layouts:
    """Compare the five layouts of Table 1 for y = relu(x w) v on rows·cols·planes devices of a chip."""
    return Layouts(
        batch=batch, io=io, hidden=hidden, rows=rows, cols=cols, planes=planes, chip=chip, optimizer=optimizer,
        dtype=dtype, passes=passes,
    )  # fmt: skip
