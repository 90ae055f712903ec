"""The loop: `mtf.repeat(block, n, stacked, x)` is one scan when run and one entry with a count when planned.

    def block(x, w, v):
        return x + mtf.einsum(mtf.relu(mtf.einsum(x, w, out="batch hidden")), v, out="batch io")

    y = mtf.repeat(block, 118, [ws, vs], x)            # ws: layers io hidden, vs: layers hidden io

So a program of 118 layers plans as fast as one layer. Next file to read: `planning`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mtfcore.errors import LayoutError, refuse
from mtfcore.functions import Function, record_outputs
from mtfcore.notation import as_size
from mtfcore.ops import apply, common_graph, expect_tensor
from mtfcore.tensor import Graph, Tensor

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
