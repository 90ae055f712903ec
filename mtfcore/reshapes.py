"""Operations that change shapes and placements, and the loop: reshape and its kin, slice, pad, concat, reshard, repeat.

    h = mtf.split(hk, "hk", "heads:4 kv")        y = mtf.reshard(t, "B L E:x")        y = mtf.repeat(block, 118, ws, x)

Next file to read: `planning`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mtfcore.dims import Dim, parse_dims, repeated_names, volume
from mtfcore.dtypes import cannot_hold
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.functions import Function, record_outputs
from mtfcore.notation import NAME_RULE, as_size, is_name, parse
from mtfcore.ops import (
    apply,
    apply_out,
    common_graph,
    einsum,
    expect_tensor,
    names_of,
    out_dims,
    plain_number,
    same_dtype,
    same_sizes,
    wanted,
    whole_number,
)
from mtfcore.rules.reshaping import groups
from mtfcore.tensor import LAYOUT, Graph, Op, Tensor


def reshape(t: Tensor, dims: str, out: str | None = None) -> Tensor:
    """The same elements in row-major order under other dimensions: `mtf.reshape(t, "batch hk:64")`.

    Sizes left out are those of `t`, or of `sizes=`. The result lies where the layout says, or as `out` says exactly.
    """
    known = {dim.name: dim for dim in expect_tensor(t).dims}
    after = out_dims(t.graph, dims, known, f"reshape of {t!r}")
    cut = groups(t.dims, after)
    if out is None:
        return apply("reshape", [t], after, t.dtype, LAYOUT, cut=cut)
    return apply_out("reshape", [t], after, t.dtype, out, "reshape", cut=cut)


def rename(t: Tensor, old: str, new: str, out: str | None = None) -> Tensor:
    """The same tensor with one dimension under another name."""
    size = expect_tensor(t).dim(old).size
    return _replaced(t, [old], f"{_one_name(new, 'rename')}:{size}", out, "rename")


def _one_name(name: str, about: str) -> str:
    if not is_name(name):
        raise LayoutError(f"{about}: {name!r:.200} is not one name: {NAME_RULE}")
    return name


def split(t: Tensor, dim: str, into: str, out: str | None = None) -> Tensor:
    """One dimension as several, outer first: `mtf.split(t, "hk", "heads:4 kv")`; one size may be left out."""
    size = expect_tensor(t).dim(dim).size
    parts = [t.graph.size(d) for d in parse_dims(into)]
    known = volume(d for d in parts if d.size is not None)
    if sum(d.size is None for d in parts) == 1 and size % known == 0:
        parts = [d if d.size is not None else Dim(d.name, size // known) for d in parts]
    text = " ".join(map(str, parts))
    if unknown := [d.name for d in parts if d.size is None]:
        why = f"{size} does not divide by {known}" if len(unknown) == 1 else "only one size may be left out"
        raise LayoutError(f"split of {t!r} into '{text}': no size for {', '.join(unknown)}; {why}")
    if volume(parts) != size:
        raise LayoutError(f"split of {t!r}: {dim} has size {size}, but '{text}' makes {volume(parts)}")
    return _replaced(t, [dim], text, out, "split")


def merge(t: Tensor, dims: str, into: str, out: str | None = None) -> Tensor:
    """Neighbouring dimensions as one: `mtf.merge(t, "heads kv", "hk")`; those apart are transposed together first."""
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
    return [Dim(*word.split(":")[:1]) for word in text.split()]


def transpose(t: Tensor, dims: str, out: str | None = None) -> Tensor:
    """The same tensor with its dimensions in another order; costs no communication."""
    order = names_of(dims)
    expect_tensor(t)
    unknown = [name for name in order if name not in t.names]
    faults = [f"{name!r} is not one of its dimensions; {nearest(name, t.names)}" for name in unknown]
    faults += [f"{name!r} is left out" for name in t.names if name not in order]
    refuse(faults, f"transpose of {t!r} to '{dims}'")
    found = tuple(t.dim(name) for name in order)
    return apply_out("pointwise", [t], found, t.dtype, out, "transpose", fn="identity")


def slice(t: Tensor, dim: str, start: int, stop: int, out: str | None = None) -> Tensor:
    """Elements start … stop-1 along one dimension, which is whole during the operation."""
    size = expect_tensor(t).dim(dim).size
    start, stop = whole_number(start, "slice: start"), whole_number(stop, "slice: stop")
    if not 0 <= start < stop <= size:
        raise LayoutError(f"slice of {t!r}: {dim} runs from 0 to {size}, not {start} to {stop}")
    return _resized(t, "window", dim, stop - start, out, start=start)


def pad(t: Tensor, dim: str, size: int, value: float = 0.0, out: str | None = None) -> Tensor:
    """Longer along one dimension: filled up to `size` with `value` behind the elements."""
    if whole_number(size, "pad: size") < expect_tensor(t).dim(dim).size:
        what = f"{dim} has size {t.dim(dim).size} already, more than {size}"
        raise LayoutError(f"pad of {t!r}: {what}; use mtf.slice to cut")
    number = plain_number(value)
    if number is None or cannot_hold(t.dtype, number):
        raise LayoutError(f"pad of {t!r}: value is {value!r:.200}; expected a number that {t.dtype} can hold")
    return _resized(t, "pad", dim, whole_number(size, "pad: size"), out, value=number)


def _resized(t: Tensor, kind: str, dim: str, size: int, out: str | None, **params: Any) -> Tensor:
    dims = tuple(Dim(dim, size) if d.name == dim else d for d in t.dims)
    return apply_out(kind, [t], dims, t.dtype, out, kind, dim=dim, **params)


def concat(tensors: Sequence[Tensor], dim: str, out: str | None = None) -> Tensor:
    """Tensors one behind the other along one dimension; all else must be equal."""
    if not isinstance(tensors, (list, tuple)) or not tensors:
        what = "concat needs a sequence of at least one tensor, e.g. mtf.concat([a, b], 'batch')"
        raise LayoutError(f"{what}, got {type(tensors).__name__} {tensors!r:.200}")
    common_graph(tensors)
    same_sizes(tensors, "concat", skip=dim)
    first = tensors[0]
    faults = [f"{t!r} has other dimensions than {first!r}" for t in tensors if set(t.names) != set(first.names)]
    refuse(faults, f"concat along {dim!r}")
    total = sum(t.dim(dim).size for t in tensors)
    dims = tuple(Dim(dim, total) if d.name == dim else d for d in first.dims)
    return apply_out("concat", list(tensors), dims, same_dtype(tensors, "concat"), out, "concat", dim=dim)


def reshard(t: Tensor, where: str) -> Tensor:
    """The same tensor lying elsewhere from here on: `mtf.reshard(t, "B L E:x")`; names only: as the layout says."""
    parse(where)  # None is no place
    return apply("reshard", [expect_tensor(t)], t.dims, t.dtype, wanted(t.graph, where, t.dims, "reshard"))


Stacked = Tensor | Sequence[Tensor] | Mapping[str, Tensor]


def repeat(block: Callable | Function, n: int, stacked: Stacked = (), *carry: Tensor) -> Any:
    """Apply `block` n times: one scan when run, one entry with a count when planned.

    `stacked` holds what differs from turn to turn (weights): tensors whose first dimension has size n, as one tensor,
    a sequence or a mapping. Each turn calls `block(carry, *parts)` (or `**parts`), parts lacking that dimension, and
    hands its result on. `mtf.repeat(block, n, ws, x)`; without x it returns a function of x.
    """
    if not callable(getattr(block, "call", block)):
        raise LayoutError(f"repeat: block is {block!r:.200}; expected a function of the carry and the stack's parts")
    if not carry:
        return lambda x: repeat(block, n, stacked, x)
    if len(carry) > 1:
        raise LayoutError(f"repeat carries one tensor from turn to turn, got {len(carry)}; concat or stack them first")
    (x,) = carry
    names, tensors = _stack(stacked, block)
    _check_stack(n, names, [expect_tensor(t) for t in tensors])
    outer = common_graph([x, *tensors])
    body = Graph(getattr(block, "__name__", "block"), outer.sizes, outer.dtype, parent=outer)
    call = block.call if isinstance(block, Function) else block
    start = body.input("carry", x.dims, x.dtype)
    parts = [body.input(str(name), t.dims[1:], t.dtype) for name, t in zip(names, tensors, strict=True)]
    keywords = dict(zip(names, parts, strict=True)) if isinstance(stacked, Mapping) else {}
    _check_call(call, body.name, [str(name) for name in names], keywords)
    result = call(start, **keywords) if keywords else call(start, *parts)
    _check_result(result, x, body)
    record_outputs(body, result)
    tensors = _read_by(body, parts, tensors)
    captured = [Tensor(outer, number) for number in body.captured]
    inputs, n = [x, *tensors, *captured], as_size(n)
    return apply("repeat", inputs, x.dims, x.dtype, None, body=body, n=n, n_stacked=len(tensors))


def _read_by(body: Graph, parts: list[Tensor], tensors: list[Tensor]) -> list[Tensor]:
    """The stacked tensors that a turn's result needs; the others are not taken into the loop, nor moved for it."""
    needed = set(body.outputs.values())
    for number in reversed(range(len(body.ops))):
        if number in needed:
            needed.update(body.ops[number].inputs)
    body.inputs = {name: n for name, n in body.inputs.items() if n in needed or all(n != part.number for part in parts)}
    return [t for part, t in zip(parts, tensors, strict=True) if part.number in needed]


def _stack(stacked: Stacked, block: Callable | Function) -> tuple[list[Any], list[Tensor]]:
    if isinstance(stacked, Mapping):
        return list(stacked), list(stacked.values())
    if not isinstance(stacked, (Tensor, list, tuple)):
        raise LayoutError(f"repeat: stacked is {stacked!r:.200}; expected tensors whose first dimension is the turn")
    tensors = [stacked] if isinstance(stacked, Tensor) else list(stacked)
    return _part_names(block, len(tensors)), tensors


def _part_names(block: Callable | Function, count: int) -> list[str]:
    """The block's own names for the parts of the stack, behind that of the carry."""
    try:
        own = list(inspect.signature(getattr(block, "call", block)).parameters)[1:]
    except (TypeError, ValueError):  # a callable without a readable signature
        own = []
    return own if len(own) == count and "carry" not in own else [f"part{number}" for number in range(count)]


def _check_stack(n: int, names: list[Any], tensors: list[Tensor]) -> None:
    if as_size(n) is None:
        raise LayoutError(f"repeat: n is {n!r:.200}; expected a whole number of at least 1")
    faults = []
    for name, t in zip(names, tensors, strict=True):
        if not t.dims or t.dims[0].size != n:
            first = str(t.dims[0]) if t.dims else "no dimension"
            faults.append(f"stacked {name} {t!r}: the first dimension must have size {n}, it is {first}")
    refuse(faults, "repeat")


def _check_call(call: Callable, block: str, names: list[str], keywords: Mapping[str, Tensor]) -> None:
    """Refuse a block that does not take the carry and the parts of the stack."""
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):  # a callable without a readable signature
        return
    try:
        signature.bind(None, **keywords) if keywords else signature.bind(None, *names)
    except TypeError as error:
        parts = f"{len(names)} part{'s' * (len(names) != 1)} of the stack ({', '.join(names) or 'none'})"
        raise LayoutError(f"repeat: {block} is called with the carry and {parts}: {error}") from None


def _check_result(result: Any, x: Tensor, body: Graph) -> None:
    if not isinstance(result, Tensor) or result.dims != x.dims or result.dtype != x.dtype:
        raise LayoutError(
            f"repeat: {body.name} was given {x!r} ({x.dtype}) and returns {result!r}"
            f"{f' ({result.dtype})' if isinstance(result, Tensor) else ''}; each turn must return what the next one "
            f"takes{_mend(result, x)}"
        )


def _mend(result: Any, x: Tensor) -> str:
    """What would make a turn's result like what it was given, where one operation does."""
    if not isinstance(result, Tensor) or set(result.dims) != set(x.dims):
        return ""
    if result.dims != x.dims:
        return f"; use mtf.transpose(t, '{' '.join(x.names)}')"
    return f"; use mtf.cast(t, '{x.dtype}')"


__all__ = [
    "Op",
    "concat",
    "einsum",
    "merge",
    "pad",
    "rename",
    "repeat",
    "reshape",
    "reshard",
    "slice",
    "split",
    "transpose",
]  # fmt: skip
