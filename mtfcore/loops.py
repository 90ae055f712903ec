"""The loop: `mtf.repeat(block, n, stacked, x)` is one scan when run and one entry with a count when planned.

    def block(x, w, v):
        return x + mtf.einsum(mtf.relu(mtf.einsum(x, w, out="batch hidden")), v, out="batch io")

    y = mtf.repeat(block, 118, [ws, vs], x)            # ws: layers io hidden, vs: layers hidden io

So a program of 118 layers plans as fast as one layer. Next file to read: `planning`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from mtfcore.dims import Dim
from mtfcore.errors import LayoutError, refuse, sure
from mtfcore.functions import Function, record_outputs
from mtfcore.notation import as_size, is_name
from mtfcore.ops import apply, common_graph, expect_tensor, flag
from mtfcore.tensor import Graph, Op, Tensor

_recording: ContextVar[Graph | None] = ContextVar("the innermost block being recorded", default=None)

Stacked = Tensor | Sequence[Tensor] | Mapping[str, Tensor]


def repeat(
    block: Callable | Function, n: int, stacked: Stacked = (), *carry: Tensor, over: str = "", reverse: bool = False
) -> Any:
    """Apply `block` n times: one scan when run, one entry with a count when planned.

    `stacked` holds what differs from turn to turn (weights): tensors whose first dimension has size n, as one tensor,
    a sequence or a mapping. Each turn calls `block(*carry, *parts)` (or `**parts`), parts lacking that dimension, and
    hands on what it returns: as many tensors as it carries, then any number of outputs of this turn, which come back
    stacked along a new first dimension `over` (by default named as that of the stack). `reverse` begins at the last
    entry. One carry and no outputs give one tensor, else a tuple. Without a carry it returns a function of them.

    Raises `LayoutError` for stacks of other lengths, or a block that returns another shape than it takes.
    """
    if not callable(getattr(block, "call", block)):
        raise LayoutError(f"repeat: block is {block!r:.200}; expected a function of the carry and the stack's parts")
    if not carry:
        return lambda *x: repeat(block, n, stacked, *x, over=over, reverse=reverse)
    names, tensors = _stack(stacked, block, len(carry))
    _check_stack(n, names, [expect_tensor(t) for t in tensors])
    outer = _around(common_graph([*carry, *tensors]))
    body = Graph(getattr(block, "__name__", "block"), outer.sizes, outer.dtype, parent=outer)
    call = block.call if isinstance(block, Function) else block
    carried = _carry_names(len(carry), names)
    starts = [body.input(name, x.dims, x.dtype) for name, x in zip(carried, carry, strict=True)]
    parts = [body.input(str(name), t.dims[1:], t.dtype) for name, t in zip(names, tensors, strict=True)]
    keywords = dict(zip(names, parts, strict=True)) if isinstance(stacked, Mapping) else {}
    _check_call(call, body.name, len(carry), [str(name) for name in names], keywords)
    inside = _recording.set(body)
    try:
        result = call(*starts, **keywords) if keywords else call(*starts, *parts)
    finally:
        _recording.reset(inside)
    _check_result(result, carry, body)
    record_outputs(body, result)
    dim = _turns(over, tensors, body, len(carry))
    return close_loop(body, [*carry], tensors, Dim(dim, as_size(n)), flag(reverse, "repeat: reverse"))


def _around(graph: Graph) -> Graph:
    """The block that is being recorded inside a graph: a loop in it may read it, wherever its own operands are."""
    now = inner = _recording.get()
    while inner is not None and inner is not graph:
        inner = inner.parent
    return graph if inner is None or now is None else now


def close_loop(
    body: Graph, carry: list[Tensor], tensors: list[Tensor], over: Dim, reverse: bool = False, sums: Sequence[int] = ()
) -> Any:
    """Append the loop of a body that has been recorded, its inputs in the order of carries, stack, and what it reads
    from outside.

    `sums` are carries to which every turn only adds, so that they may wait as partial sums until the loop is done.
    A backward may carry nothing; its first result is then what each turn gave out.
    """
    captured = [Tensor(sure(body.parent), number) for number in body.captured]
    first = body.ops[next(iter(body.outputs.values()))]
    dims = first.dims if carry else (over, *first.dims)
    made = apply(
        "repeat", [*carry, *tensors, *captured], dims, first.dtype, None, body=body, n=over.size, over=over,
        n_carry=len(carry), n_stacked=len(tensors), reverse=reverse, sums=tuple(sums),
    )  # fmt: skip
    results = [made, *[loop_output(made, place) for place in range(1, len(body.outputs))]]
    return made if len(results) == 1 else tuple(results)


def loop_output(made: Tensor, place: int) -> Tensor:
    """A further result of a loop: another carry, or the stack of what every turn returned at that place."""
    op, body = made.op, made.op.params["body"]
    inner = body.ops[list(body.outputs.values())[place]]
    dims = inner.dims if place < op.params["n_carry"] else (op.params["over"], *inner.dims)
    return made.graph.add(Op("repeated", (made.number,), dims, inner.dtype, {"place": place}))


def _carry_names(count: int, taken: Sequence[Any]) -> list[str]:
    names = ["carry"] if count == 1 else [f"carry{number}" for number in range(count)]
    return [f"{name}_" if name in taken else name for name in names]


def _turns(over: str, tensors: Sequence[Tensor], body: Graph, n_carry: int) -> str:
    """The name of the dimension along which outputs of the turns are stacked."""
    name = over or (tensors[0].names[0] if tensors else "turns")
    if not is_name(name):
        raise LayoutError(f"repeat: over is {over!r:.200}; expected the name of one dimension, e.g. over='layers'")
    held = [out for out in [*body.outputs][n_carry:] if name in body.ops[body.outputs[out]].names]
    refuse([f"{out} of each turn has a dimension {name!r} already; give another name with over=" for out in held],
           "repeat")  # fmt: skip
    return name


def _stack(stacked: Stacked, block: Callable | Function, n_carry: int) -> tuple[list[Any], list[Tensor]]:
    if isinstance(stacked, Mapping):
        return list(stacked), list(stacked.values())
    if not isinstance(stacked, (Tensor, list, tuple)):
        raise LayoutError(f"repeat: stacked is {stacked!r:.200}; expected tensors whose first dimension is the turn")
    tensors = [stacked] if isinstance(stacked, Tensor) else list(stacked)
    return _part_names(block, n_carry, len(tensors)), tensors


def _part_names(block: Callable | Function, n_carry: int, count: int) -> list[str]:
    """The block's own names for the parts of the stack, behind that of the carry."""
    try:
        own = list(inspect.signature(getattr(block, "call", block)).parameters)[n_carry:]
    except (TypeError, ValueError):  # a callable without a readable signature
        own = []
    return own if len(own) == count else [f"part{number}" for number in range(count)]


def _check_stack(n: int, names: list[Any], tensors: list[Tensor]) -> None:
    if as_size(n) is None:
        raise LayoutError(f"repeat: n is {n!r:.200}; expected a whole number of at least 1")
    faults = []
    for name, t in zip(names, tensors, strict=True):
        if not t.dims or t.dims[0].size != n:
            first = str(t.dims[0]) if t.dims else "no dimension"
            faults.append(f"stacked {name} {t!r}: the first dimension must have size {n}, it is {first}")
    refuse(faults, "repeat")


def _check_call(call: Callable, block: str, n_carry: int, names: list[str], keywords: Mapping[str, Tensor]) -> None:
    """Refuse a block that does not take what is carried and the parts of the stack."""
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):  # a callable without a readable signature
        return
    carried = [None] * n_carry
    try:
        signature.bind(*carried, **keywords) if keywords else signature.bind(*carried, *names)
    except TypeError as error:
        parts = f"{len(names)} part{'s' * (len(names) != 1)} of the stack ({', '.join(names) or 'none'})"
        what = "the carry" if n_carry == 1 else f"{n_carry} carries"
        raise LayoutError(f"repeat: {block} is called with {what} and {parts}: {error}") from None


def _check_result(result: Any, carry: Sequence[Tensor], body: Graph) -> None:
    results = result if isinstance(result, (tuple, list)) else [result]
    if len(results) < len(carry):
        raise LayoutError(f"repeat: {body.name} carries {len(carry)} tensors and returns {len(results)}; each turn "
                          "must return what the next one takes")  # fmt: skip
    for x, after in zip(carry, results, strict=False):
        if not isinstance(after, Tensor) or after.dims != x.dims or after.dtype != x.dtype:
            raise LayoutError(
                f"repeat: {body.name} was given {x!r} ({x.dtype}) and returns {after!r}"
                f"{f' ({after.dtype})' if isinstance(after, Tensor) else ''}; each turn must return what the next one "
                f"takes{_mend(after, x)}"
            )


def _mend(result: Any, x: Tensor) -> str:
    """What would make a turn's result like what it was given, where one operation does."""
    if not isinstance(result, Tensor) or set(result.dims) != set(x.dims):
        return ""
    if result.dims != x.dims:
        return f"; use mtf.transpose(t, '{' '.join(x.names)}')"
    return f"; use mtf.cast(t, '{x.dtype}')"
