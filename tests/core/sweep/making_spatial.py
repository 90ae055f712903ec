"""How shift, windows and convolutions are drawn. Next file to read: making.py, which draws whole programs."""

from __future__ import annotations

import math

from core.sweep.drawing import WORK, Draft
from core.sweep.making_shapes import ranked
from core.sweep.programs import Line
from hypothesis import strategies as st


def _padding(d: Draft, size: int) -> str | tuple[int, int]:
    return d.one_of(["same", "same", "valid", "causal", (size - 1, d.draw(st.integers(0, size - 1)))])


def shift(d: Draft) -> bool:
    name = d.pick(ranked, (d.dtype, d.dtype, "i32", "bool"))
    if name is None:
        return False
    dim = d.one_of(d.env[name].names)
    size = d.env[name].sizes[dim]
    return d.add("shift", name, mixed=True, dim=dim, by=d.draw(st.integers(-size, size)), wrap=d.draw(st.booleans()))


def windows(d: Draft) -> bool:
    name = d.pick(lambda t: 0 < len(t.names) and t.value.size <= 256)
    if name is None:
        return False
    dim = d.one_of(d.env[name].names)
    size = d.one_of([k for k in (2, 3, 4, 1) if k <= d.env[name].sizes[dim]])
    return d.add("windows", name, dim=dim, size=size, into=d.fresh(size), padding=_padding(d, size))


def overlap_add(d: Draft) -> bool:
    name = d.pick(lambda t: len(t.names) > 1)
    if name is None:
        return False
    dim, into = d.some(d.env[name].names, least=2)[:2]
    size = d.env[name].sizes[into]
    padding = (d.draw(st.integers(0, size - 1)), d.draw(st.integers(0, size - 1))) if d.chance(3) else "same"
    return d.env[name].sizes[dim] >= size and d.add("overlap_add", name, dim=dim, into=into, padding=padding)


def conv(d: Draft) -> bool:
    """One or two dimensions to slide along; the others are kept, summed, or kept with a kernel for each."""
    name = d.pick(lambda t: 0 < len(t.names) <= 4 and t.value.size <= 256)
    if name is None:
        return False
    sizes = d.env[name].sizes
    along = d.some(sizes, least=1)[: d.one_of([1, 2])]
    rest = [n for n in sizes if n not in along]
    shared = d.some(rest)
    summed = d.some(shared)
    kernels = {n: d.one_of([k for k in (3, 2, 1, 4) if k <= sizes[n]]) for n in along}
    spatial = {n: d.fresh(k) for n, k in kernels.items()}
    features = {d.fresh(2): 2} if d.chance(2) else {}
    dims = {spatial[n]: k for n, k in kernels.items()} | {n: sizes[n] for n in shared} | features
    if math.prod({**sizes, **dims}.values()) > WORK:
        return False
    w = d.add_input({n: dims[n] for n in d.draw(st.permutations(list(dims)))})
    padding = _padding(d, min(kernels.values()))
    kept = [n for n in [*sizes, *features] if n not in summed]
    more = {"spatial": spatial, "padding": padding}
    plain = Line(("t",), "conv", (name, w), (*more.items(), ("out", " ".join(kept)))).evaluate(d.env)["t"]
    out = d.out(plain, mixed=True) or (" ".join(plain.names) if d.layout_fits(plain.sizes) else None)
    return out is not None and d.add("conv", name, w, **more, out=out)
