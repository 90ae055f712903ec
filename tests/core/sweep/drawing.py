"""A `Draft`: a program being drawn, line by line, with the right values of what stands so far.

It knows which shapes, placements and values the next line may have, so that every program drawn is legal, and no
result is so large or so uncertain that a wrong one could pass. Next file to read: making.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from core.sweep.programs import Case, Input, Line
from core.sweep.reference import Ref, names_in
from hypothesis import strategies as st

MESHES = (
    "x:2", "x:4", "x:2 y:2", "x:4 y:2", "x:2 y:4", "x:2 y:3", "rows:2 cols:4", "x:2 y:1 z:2", "x:1 y:4", "x:8",
    "x:2 y:2 z:2", "x:2 y:2 z:2", "y:2 x:2 z:2", "x:4 y:2 z:2", "w:2 x:2 y:2 z:2",
)  # fmt: skip
SIZES = (8, 4, 2, 4, 8, 6, 12, 1, 16, 3)
LARGEST = 1_024  # elements of one tensor
WORK = 20_000  # multiply-adds of one einsum
REACH = {"f32": 1e6, "bf16": 1e4, "i32": 1e6, "bool": 1}
WITHOUT_OUT = ("reshard", "settle", "index", "write")
UNSURE = 0.1  # of the largest value: more rounding than that proves nothing


def axes_text(axes: tuple[str, ...] | list[str]) -> str:
    """Axes as the notation writes them."""
    short = len(axes) == 1 or all(len(axis) == 1 for axis in axes)
    return "".join(axes) if short else f"({' '.join(axes)})"


def placed_text(on: dict[str, list[str]], partial: list[str]) -> str:
    words = [f"{name}:{axes_text(axes)}" if axes else name for name, axes in on.items()]
    return " ".join(words + ([f"partialsum:{axes_text(partial)}"] if partial else []))


def draw_placement(draw: Callable, sizes: dict[str, int], mesh: dict[str, int], partial: bool) -> str:
    """Each mesh axis on a dimension that it divides, in any order, or on none, or summed over."""
    on: dict[str, list[str]] = {name: [] for name in sizes}
    sums: list[str] = []
    for axis in draw(st.permutations(list(mesh))):
        fits = [n for n, axes in on.items() if sizes[n] % (math.prod(mesh[a] for a in axes) * mesh[axis]) == 0]
        place = draw(st.sampled_from([None, *fits, *fits, *fits, *(["partialsum"] if partial else [])]))
        if place == "partialsum":
            sums.append(axis)
        elif place:
            on[place].append(axis)
    return placed_text(on, [axis for axis in mesh if axis in sums])


class Draft:
    """What has been drawn so far; `add` appends a line if its result may be kept."""

    def __init__(self, draw: Callable, mesh: str, dtype: str) -> None:
        self.draw, self.mesh_text, self.dtype = draw, mesh, dtype
        self.mesh = {name: size for name, size in names_in(mesh) if size is not None}
        self.inputs: list[Input] = []
        self.lines: list[Line] = []
        self.env: dict[str, Ref] = {}
        self.layout: dict[str, list[str]] = {}
        self.names_left = list("GHIJKLMNOPQRSTUV")
        self.pool = {name: draw(st.sampled_from(SIZES)) for name in "ABCDE"}
        for name, size in self.pool.items():
            self.lay_out(name, size)

    # ---- choices

    def one_of(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(0, one_in - 1)) == one_in - 1

    def some(self, options: Any, least: int = 0) -> list:
        """A part of the options, in any order."""
        mixed = self.draw(st.permutations(list(options)))
        return mixed[: self.draw(st.integers(min(least, len(mixed)), len(mixed)))]

    def pick(self, good: Callable[[Ref], bool] = lambda t: True, dtypes: tuple[str, ...] | None = None) -> str | None:
        """A tensor that will do, the latest most often; None where there is none."""
        dtypes = dtypes or (self.dtype,)
        found = [name for name, t in reversed(self.env.items()) if t.dtype in dtypes and good(t)]
        return self.one_of([found[0], *found]) if found else None

    def partner(self, *names: str, within: bool = False) -> str | None:
        """Another tensor whose sizes agree with these (and, `within`, that adds no dimension)."""
        sizes = {n: size for name in names for n, size in self.env[name].sizes.items()}

        def agrees(t: Ref) -> bool:
            clash = any(sizes.get(n, size) != size for n, size in t.sizes.items())
            return not clash and (not within or set(t.names) <= set(sizes))

        return self.pick(agrees, (self.env[names[0]].dtype,))

    def fresh(self, size: int) -> str:
        """A new dimension's name, perhaps with a layout rule."""
        name = self.names_left.pop(0)
        self.lay_out(name, size)
        return name

    def lay_out(self, name: str, size: int) -> None:
        taken = {axis for axes in self.layout.values() for axis in axes}
        fits = [axis for axis in self.mesh if axis not in taken and size % self.mesh[axis] == 0]
        axis = self.one_of([None, *fits]) if fits else None
        if axis:
            self.layout[name] = [axis]

    def layout_fits(self, sizes: dict[str, int]) -> bool:
        return all(sizes[n] % math.prod(self.mesh[a] for a in self.layout.get(n, ())) == 0 for n in sizes)

    def placement(self, sizes: dict[str, int], partial: bool = False) -> str:
        return draw_placement(self.draw, sizes, self.mesh, partial)

    def out(self, t: Ref, mixed: bool) -> str | None:
        """Where a result is wanted: as it comes, as the layout says, or exactly; `mixed` allows another order."""
        how = self.one_of(["any", "any", "layout", "exact", "exact"])
        names = self.draw(st.permutations(list(t.names))) if mixed else t.names
        sizes = {name: t.sizes[name] for name in names}
        if how == "layout":
            return " ".join(names) if self.layout_fits(sizes) else None
        return self.wanted(sizes, t.dtype == self.dtype and self.chance(4)) if how == "exact" else None

    def wanted(self, sizes: dict[str, int], partial: bool = False) -> str | None:
        """An exact place; without any axis it would mean the layout's, and be none where that does not divide."""
        text = self.placement(sizes, partial)
        return text if ":" in text or self.layout_fits(sizes) else None

    # ---- lines and inputs

    def add_input(self, dims: dict[str, int], dtype: str | None = None) -> str:
        """Another argument of the function."""
        name = f"a{len(self.inputs)}"
        partial = dtype is None and self.chance(6)
        place = None if self.layout_fits(dims) and self.chance(4) else self.placement(dims, partial)
        given = Input(name, tuple(dims.items()), place, dtype, wide=self.draw(st.booleans()) and self.dtype == "f32")
        self.inputs.append(given)
        self.env[name] = given.ref(self.dtype)
        return name

    def new_names(self, count: int) -> tuple[str, ...]:
        made = sum(len(line.results) for line in self.lines)
        return tuple(f"h{made + n + 1}" for n in range(count))

    def add(self, call: str, *operands: Any, mixed: bool = False, results: int = 1, **more: Any) -> bool:
        """Append a line, its result placed somehow unless `out` is given; `mixed`: `out` may transpose it too."""
        if any(o is None for o in operands):
            return False
        line = Line(self.new_names(results), call, tuple(operands), tuple(more.items()))
        made = self.checked(line)
        if made is None:
            return False
        if call not in WITHOUT_OUT and "out" not in more and (wanted := self.out(next(iter(made.values())), mixed)):
            line = Line(line.results, call, line.operands, (*line.more, ("out", wanted)))
            made = line.evaluate(self.env)
        self.lines.append(line)
        self.env |= made
        return True

    def checked(self, line: Line) -> dict[str, Ref] | None:
        """The results of a line, or None if one would be too large, or too uncertain to prove anything."""
        with np.errstate(all="ignore"):
            made = line.evaluate(self.env)
        return made if all(map(admissible, made.values())) else None

    def case(self, search: bool) -> Case:
        used = {name for t in self.env.values() for name in t.names}
        layout = " ".join(f"{name}:{axes_text(axes)}" for name, axes in self.layout.items() if name in used)
        read = {name for line in self.lines for name in line.reads()}
        outputs = [name for line in self.lines for name in line.results if name not in read]
        inner = [name for name in self.env if name in read and name.startswith("h")]
        if inner and self.chance(3):
            outputs.append(self.one_of(inner))
        return Case(self.mesh_text, tuple(self.inputs), tuple(self.lines), tuple(outputs), layout, self.dtype, search)


def admissible(t: Ref) -> bool:
    value = t.value.astype(float)
    if value.size > LARGEST or not (np.isfinite(value).all() and np.isfinite(t.error).all()):
        return False
    return t.reach <= REACH[t.dtype] and float(t.error.max()) <= UNSURE * max(1.0, float(np.abs(value).max()))
