"""Operations that change shapes and placements: reshape and its kin, slice, pad, concat, reshard.

    h = mtf.split(hk, "hk", "heads:4 kv")        y = mtf.reshard(t, "B L E:x")

Source: Mesh-TensorFlow's reshape (arXiv 1811.02084, section 6.1). Next file to read: `loops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtfcore.dims import Dim, parse_dims, repeated_names, volume
from mtfcore.dtypes import cannot_hold
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.notation import NAME_RULE, is_name, parse
from mtfcore.ops import (
    apply,
    apply_out,
    common_graph,
    expect_tensor,
    flag,
    names_of,
    out_dims,
    plain_number,
    same_dtype,
    same_sizes,
    wanted,
    whole_number,
)
from mtfcore.rules.reshaping import groups
from mtfcore.sharding import Sharding
from mtfcore.tensor import LAYOUT, Tensor, Wanted


def reshape(t: Tensor, dims: str, out: str | None = None) -> Tensor:
    """The same elements in row-major order under other dimensions: `mtf.reshape(t, "batch hk:64")`.

    Sizes left out are those of `t`, or of `sizes=`. The result lies where the layout says, or as `out` says exactly.

    `dims`: the names of the result, in order; its elements are as many.

    Raises `LayoutError` for other numbers of elements, or an axis that would straddle a boundary and cannot be moved.

    Source: arXiv 1811.02084, section 6.1.

        >>> mtf.reshape(x, "batch outer:2 inner:2")
        reshape(x)[batch:8, outer:2, inner:2]
    """
    known = {dim.name: dim for dim in expect_tensor(t).dims}
    after = out_dims(t.graph, dims, known, f"reshape of {t!r}")
    cut = groups(t.dims, after)
    if out is None:
        return apply("reshape", [t], after, t.dtype, LAYOUT, cut=cut)
    return apply_out("reshape", [t], after, t.dtype, out, "reshape", cut=cut)


def rename(t: Tensor, old: str, new: str, out: str | None = None) -> Tensor:
    """The same tensor with one dimension under another name.

    `t`: a tensor; `old`: a dimension of it; `new`: the name instead. `out`: its dimensions, and where it lies if that
    is said exactly ("batch:rows io"); otherwise the layout decides.

    Raises `LayoutError` for a name that is taken.

        >>> mtf.rename(x, "io", "io_out")
        reshape(x)[batch:8, io_out:4]
    """
    size = expect_tensor(t).dim(old).size
    return _replaced(t, [old], f"{_one_name(new, 'rename')}:{size}", out, "rename")


def _one_name(name: str, about: str) -> str:
    if not is_name(name):
        raise LayoutError(f"{about}: {name!r:.200} is not one name: {NAME_RULE}")
    return name


def split(t: Tensor, dim: str, into: str, out: str | None = None) -> Tensor:
    """One dimension as several, outer first: `mtf.split(t, "hk", "heads:4 kv")`; one size may be left out.

    `t`: a tensor; `dim`: one of its dimensions; `into`: what it becomes. `out`: its dimensions, and where it lies if
    that is said exactly ("batch:rows io"); otherwise the layout decides.

    Raises `LayoutError` for sizes whose product is another.

        >>> mtf.split(x, "io", "outer:2 inner")
        reshape(x)[batch:8, outer:2, inner:2]
    """
    size = expect_tensor(t).size(dim)
    parts = [t.graph.size(d) for d in parse_dims(into)]
    told = volume(d for d in parts if d.size is not None)
    if sum(d.size is None for d in parts) == 1 and size % told == 0:
        parts = [d if d.size is not None else Dim(d.name, size // told) for d in parts]
    text = " ".join(map(str, parts))
    if unknown := [d.name for d in parts if d.size is None]:
        why = f"{size} does not divide by {told}" if len(unknown) == 1 else "only one size may be left out"
        raise LayoutError(f"split of {t!r} into '{text}': no size for {', '.join(unknown)}; {why}")
    if volume(parts) != size:
        raise LayoutError(
            f"split of {t!r}: {dim} has size {size}, but '{text}' makes {volume(parts)}; leave one size out"
        )
    return _replaced(t, [dim], text, out, "split")


def merge(t: Tensor, dims: str, into: str, out: str | None = None) -> Tensor:
    """Neighbouring dimensions as one: `mtf.merge(t, "heads kv", "hk")`; those apart are transposed together first.

    `t`: a tensor; `dims`: two or more of its names, outer first; `into`: the name of what they become. `out`: its
    dimensions, and where it lies if that is said exactly ("batch:rows io"); otherwise the layout decides.

    Raises `LayoutError` for names that it lacks or that are taken.

    Source: arXiv 1811.02084, section 6.1 (reshape).

        >>> mtf.merge(x, "batch io", "all")
        reshape(x)[all:32]
    """
    names = names_of(dims)
    if not names:
        raise LayoutError(f"merge of {t!r}: no dimensions are named; write e.g. mtf.merge(t, 'heads kv', 'hk')")
    size = volume(expect_tensor(t).dim(name) for name in names)
    _one_name(into, "merge")
    first = min(t.names.index(name) for name in names)
    rest = [name for name in t.names if name not in names]
    order = rest[:first] + names + rest[first:]
    moved = t if tuple(order) == t.names else transpose(t, " ".join(order))
    return _replaced(moved, names, f"{into}:{size}", out, "merge")


def _replaced(t: Tensor, old: Sequence[str], new: str, out: str | None, about: str) -> Tensor:
    words = [new if name == old[0] else str(dim) for name, dim in zip(t.names, t.dims, strict=True)]
    kept = [word for name, word in zip(t.names, words, strict=True) if name not in old[1:]]
    refuse(repeated_names([dim.name for word in kept for dim in _loose(word)]), f"{about} of {t!r}")
    return reshape(t, " ".join(kept), out)


def _loose(text: str) -> list[Dim]:
    return [Dim(word.partition(":")[0]) for word in text.split()]


def transpose(t: Tensor, dims: str, out: str | None = None) -> Tensor:
    """The same tensor with its dimensions in another order; costs no communication.

    `t`: a tensor; `dims`: all its names in the new order. `out`: its dimensions, and where it lies if that is said
    exactly ("batch:rows io"); otherwise the layout decides.

    Raises `LayoutError` for other names.

        >>> mtf.transpose(x, "io batch")
        identity(x)[io:4, batch:8]
    """
    order = names_of(dims)
    expect_tensor(t)
    unknown = [name for name in order if name not in t.names]
    faults = [f"{name!r} is not one of its dimensions; {nearest(name, t.names)}" for name in unknown]
    faults += [f"{name!r} is left out" for name in t.names if name not in order]
    refuse(faults, f"transpose of {t!r} to '{dims}'")
    found = tuple(t.dim(name) for name in order)
    return apply_out("pointwise", [t], found, t.dtype, out, "transpose", fn="identity")


def slice(t: Tensor, dim: str, start: int, stop: int, out: str | None = None) -> Tensor:
    """Elements start … stop-1 along one dimension, which is whole during the operation.

    `t`: a tensor; `dim`: one of its dimensions; 0 <= `start` < `stop` <= its size. `out`: its dimensions, and where
    it lies if that is said exactly ("batch:rows io"); otherwise the layout decides.

    Raises `LayoutError` for bounds beyond that.

        >>> mtf.slice(x, "batch", 0, 2)
        window(x)[batch:2, io:4]
    """
    size = expect_tensor(t).size(dim)
    start, stop = whole_number(start, "slice: start"), whole_number(stop, "slice: stop")
    if not 0 <= start < stop <= size:
        raise LayoutError(f"slice of {t!r}: {dim} runs from 0 to {size}, not {start} to {stop}")
    return _resized(t, "window", dim, stop - start, out, start=start)


def pad(t: Tensor, dim: str, size: int, value: float = 0.0, out: str | None = None) -> Tensor:
    """Longer along one dimension: filled up to `size` with `value` behind the elements.

    `t`: a tensor; `dim`: one of its dimensions. `out`: its dimensions, and where it lies if that is said exactly
    ("batch:rows io"); otherwise the layout decides.

    Raises `LayoutError` for a size below that which it has.

        >>> mtf.pad(x, "io", 6)
        pad(x)[batch:8, io:6]
    """
    if whole_number(size, "pad: size") < expect_tensor(t).size(dim):
        what = f"{dim} has size {t.size(dim)} already, more than {size}"
        raise LayoutError(f"pad of {t!r}: {what}; use mtf.slice to cut")
    number = plain_number(value)
    if number is None or cannot_hold(t.dtype, number):
        raise LayoutError(f"pad of {t!r}: value is {value!r:.200}; expected a number that {t.dtype} can hold")
    return _resized(t, "pad", dim, whole_number(size, "pad: size"), out, value=number)


def _resized(t: Tensor, kind: str, dim: str, size: int, out: str | None, **params: Any) -> Tensor:
    dims = tuple(Dim(dim, size) if d.name == dim else d for d in t.dims)
    return apply_out(kind, [t], dims, t.dtype, out, kind, dim=dim, **params)


def concat(tensors: Sequence[Tensor], dim: str, out: str | None = None) -> Tensor:
    """Tensors one behind the other along one dimension; all else must be equal.

    `tensors`: two or more of one function and dtype; `dim`: the dimension that becomes as long as all together.
    `out`: its dimensions, and where it lies if that is said exactly ("batch:rows io"); otherwise the layout decides.

    Raises `LayoutError` where other dimensions or dtypes differ.

        >>> mtf.concat([x, y], "io")
        concat(x, y)[batch:8, io:8]
    """
    if not isinstance(tensors, (list, tuple)) or not tensors:
        what = "concat needs a sequence of at least one tensor, e.g. mtf.concat([a, b], 'batch')"
        raise LayoutError(f"{what}, got {type(tensors).__name__} {tensors!r:.200}")
    common_graph(tensors)
    same_sizes(tensors, "concat", skip=dim)
    first = tensors[0]
    faults = [f"{t!r} has other dimensions than {first!r}; expected {', '.join(first.names)}"
              for t in tensors if set(t.names) != set(first.names)]  # fmt: skip
    refuse(faults, f"concat along {dim!r}")
    total = sum(t.dim(dim).size for t in tensors)
    dims = tuple(Dim(dim, total) if d.name == dim else d for d in first.dims)
    return apply_out("concat", list(tensors), dims, same_dtype(tensors, "concat"), out, "concat", dim=dim)


def reshard(t: Tensor, where: str | Sharding, *, at_once: bool = False) -> Tensor:
    """The same tensor lying elsewhere from here on: `mtf.reshard(t, "B L E:x")`; names only: as the layout says.

    A `Sharding` is exact even where it names no axis: `mtf.reshard(t, mtf.Sharding("B L E"))` is whole everywhere.
    `at_once` adds up partial sums by one all-reduce first: for small tensors, whose time is that of each collective,
    not of the bytes that more collectives would save.
    """
    dims = expect_tensor(t).dims
    if isinstance(where, Sharding):
        goal: Wanted = Sharding(dims, where.text())
    else:
        parse(where)  # None is no place
        goal = wanted(where, dims, "reshard")
    more = {"at_once": True} if flag(at_once, "reshard: at_once") else {}
    return apply("reshard", [t], dims, t.dtype, goal, **more)
