"""How each operation is drawn, and whole programs of one to six of them.

Every maker appends one operation to a `Draft` and answers whether it could. Weights make rare kinds of step common
enough: a test asserts that each kind stands in at least 2 % of the programs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from core.sweep.drawing import LARGEST, MESHES, WORK, Draft, placed_text
from core.sweep.making_shapes import (
    concat,
    cut,
    dropout,
    few,
    gather,
    index,
    merge,
    noise,
    one_hot,
    pad,
    ranked,
    rename,
    reshape,
    reshard,
    settle,
    split,
    transpose,
    write,
)  # fmt: skip
from core.sweep.making_spatial import conv, overlap_add, shift, windows
from core.sweep.programs import Case, Line
from core.sweep.reference import Ref
from core.sweep.reference_shapes import functions
from core.sweep.repeats import repeat
from hypothesis import strategies as st

TRIES = 4  # some operations need a tensor that is not there
NUMBERS = (2, -1, 3, 0)


def numeric(d: Draft) -> str | None:
    return d.pick(dtypes=(d.dtype, d.dtype, "i32"))


def exact(t: Ref) -> bool:
    return t.exact


# ---- products and elementwise functions ---------------------------------------------------------------------------


def einsum(d: Draft) -> bool:
    operands = [d.pick()]
    for _ in range(d.one_of([1, 1, 1, 0, 2])):
        operands.append(d.partner(*operands))
    sizes = {n: size for name in operands for n, size in d.env[name].sizes.items()}
    if math.prod(sizes.values()) > WORK:
        return False
    kept = d.some(sizes)
    more = {"at": _pins(d, operands, sizes)} if d.chance(4) else {"search": True} if d.chance(8) else {}
    more = {"follow": True} if not more and d.chance(8) else more
    if d.chance(10):
        new = d.fresh(2)
        out = " ".join([*kept, f"{new}:2"]) if d.layout_fits({n: sizes[n] for n in kept} | {new: 2}) else None
    else:
        plain = Line(("t",), "einsum", tuple(operands), (("out", " ".join(kept)),)).evaluate(d.env)["t"]
        out = d.out(plain, mixed=False) or (" ".join(kept) if d.layout_fits(plain.sizes) else None)
    return out is not None and d.add("einsum", *operands, **more, out=out)


def _pins(d: Draft, operands: list[str], sizes: dict[str, int]) -> tuple[str, ...]:
    """One role for each mesh axis: a dimension, which it then cuts in every operand, or none."""
    on: dict[str, list[str]] = {name: [] for name in sizes}
    for axis, parts in d.mesh.items():
        fits = [n for n in sizes if sizes[n] % (parts * math.prod(d.mesh[a] for a in on[n])) == 0]
        if place := d.one_of([None, *fits]):
            on[place].append(axis)
    return tuple(placed_text({n: on[n] for n in d.env[name].names}, []) for name in operands)


def binary(d: Draft) -> bool:
    fn = d.one_of(["add", "multiply", "subtract", "add", "maximum", "minimum"])
    a = numeric(d)
    b = d.one_of(NUMBERS) if d.chance(4) else d.partner(a)
    names = dict.fromkeys([*d.env[a].names, *(d.env[b].names if isinstance(b, str) else ())])
    largest = max(len(d.env[t].names) for t in (a, b) if isinstance(t, str))
    more = {} if len(names) == largest else {"out": " ".join(d.draw(st.permutations(list(names))))}
    return _small(d, a, b) and d.add(fn, a, b, mixed=True, **more)


def _small(d: Draft, *operands: object) -> bool:
    sizes = {n: size for name in operands if isinstance(name, str) for n, size in d.env[name].sizes.items()}
    return math.prod(sizes.values()) <= LARGEST and d.layout_fits(sizes)


def divide(d: Draft) -> bool:
    a = d.pick()
    b = d.one_of([2, 4, d.partner(a, within=True)])
    if isinstance(b, str) and float((np.abs(d.env[b].value) - d.env[b].error).min()) < 0.5:
        b = 3
    return d.add("divide", a, b, mixed=True)


def unary(d: Draft) -> bool:
    name = d.pick()
    lowest, highest = d.env[name].value.min(), d.env[name].value.max()
    fns = functions("any")
    fns += functions("small") if highest <= 6 else []
    fns += functions("above 0") if lowest >= 0.5 else []
    return d.add(d.one_of(fns), name, mixed=True)


def power(d: Draft) -> bool:
    return d.add("power", d.pick(), d.one_of([2, 3]), mixed=True)


def compare(d: Draft) -> bool:
    a = d.pick(exact, (d.dtype, "i32"))
    b = d.partner(a, within=True) if a else None
    b = b if b and d.env[b].exact and not d.chance(3) else d.one_of(NUMBERS)
    return d.add(d.one_of(["less", "greater", "equal"]), a, b, mixed=True)


def logical(d: Draft) -> bool:
    a = d.pick(dtypes=("bool",)) or (compare(d) and d.lines[-1].results[0]) or None
    if not a or d.chance(3):
        return d.add("logical_not", a, mixed=True)
    return d.add(d.one_of(["logical_and", "logical_or"]), a, d.partner(a, within=True), mixed=True)


def where(d: Draft) -> bool:
    condition = d.pick(dtypes=("bool",)) or (compare(d) and d.lines[-1].results[0]) or None
    a = numeric(d)
    if not condition or any(d.env[a].sizes.get(n, s) != s for n, s in d.env[condition].sizes.items()):
        return False
    names = list(dict.fromkeys([*d.env[condition].names, *d.env[a].names]))
    more = {"out": " ".join(names)} if d.chance(2) or len(names) > len(d.env[a].names) else {}
    return _small(d, condition, a) and d.add("where", condition, a, d.one_of([0, 1]), mixed=True, **more)


def cast(d: Draft) -> bool:
    name = d.pick(exact, (d.dtype, "i32", "bool"))
    if name is None:
        return False
    return d.add("cast", name, dtype=d.dtype if d.env[name].dtype != d.dtype else "i32")


# ---- reductions ---------------------------------------------------------------------------------------------------


def reduction(d: Draft) -> bool:
    fn = d.one_of(["sum", "sum", "max", "mean", "min", "logsumexp"])
    name = d.pick(ranked) if fn in ("mean", "logsumexp") else d.pick(ranked, (d.dtype, "i32"))
    return _reduce(d, fn, name)


def any_all(d: Draft) -> bool:
    name = d.pick(ranked, ("bool",)) or (compare(d) and d.lines[-1].results[0]) or None
    return _reduce(d, d.one_of(["any", "all"]), name)


def _reduce(d: Draft, fn: str, name: str | None) -> bool:
    if name is None or not d.env[name].names:
        return False
    return d.add(fn, name, mixed=True, dims=" ".join(d.some(d.env[name].names, least=1)))


def softmax(d: Draft) -> bool:
    name = d.pick(lambda t: ranked(t) and t.reach < 300)
    return name is not None and d.add("softmax", name, d.one_of(d.env[name].names), mixed=True)


def ordered_zeros(d: Draft, name: str) -> bool:
    """JAX's top_k puts -0.0 below 0.0, and which of them a sum gives depends on its order: no ties of zeros then."""
    return name.startswith("a") or d.env[name].dtype == "i32" or np.sum(d.env[name].value == 0) <= 1


def along(fn: str) -> Callable[[Draft], bool]:
    def maker(d: Draft) -> bool:
        name = d.pick(ranked if fn == "cumsum" else lambda t: ranked(t) and t.exact, (d.dtype, "i32"))
        if name is None:
            return False
        dim = d.one_of(d.env[name].names)
        if fn != "top_k":
            return d.add(fn, name, dim=dim, mixed=fn == "argmax")
        k = d.draw(st.integers(1, d.env[name].sizes[dim]))
        return ordered_zeros(d, name) and d.add(fn, name, results=2, dim=dim, k=k)

    return maker


MAKERS: tuple[Callable[[Draft], bool], ...] = (
    einsum, einsum, einsum, binary, binary, divide, unary, power, compare, logical, where, cast, reduction, reduction,
    any_all, softmax, along("cumsum"), along("cumsum"), along("argmax"), along("top_k"), along("top_k"), one_hot,
    gather, gather, index, reshape, split, merge, rename, transpose, cut, cut, pad, pad, concat, concat, reshard,
    reshard, settle, repeat, repeat, noise, noise, dropout, shift, shift,
    windows, windows, conv, write, overlap_add, overlap_add, windows, windows,
)  # fmt: skip


@st.composite
def programs(draw: Callable) -> Case:
    """A program of one to six operations on a mesh, with layout, places and dtype."""
    d = Draft(draw, draw(st.sampled_from(MESHES)), draw(st.sampled_from(["f32", "f32", "f32", "bf16"])))
    for _ in range(draw(st.integers(1, 3))):
        d.add_input(few(d))
    if d.chance(4):
        d.add_input(few(d), "i32")
    for _ in range(draw(st.sampled_from([1, 2, 3, 4, 5, 6, 4, 5]))):
        any(draw(st.sampled_from(MAKERS))(d) for _ in range(TRIES))
    if not d.lines and not reshard(d):
        d.add("relu", d.pick())
    return d.case(draw(st.integers(0, 9)) == 9)
