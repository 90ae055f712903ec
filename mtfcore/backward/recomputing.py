"""What the backward reads of the forward: the tensors themselves, or the same operations once more.

    block = mtf.recompute(block)          # keep what goes into it, compute the rest again in the backward
    y = mtf.repeat(block, 118, ws, x)     # of each turn only the carry is kept

Source: Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost (arXiv 1604.06174). Next file to read:
`backward/loops`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from mtfcore.errors import LayoutError
from mtfcore.functions import Function
from mtfcore.ops import apply
from mtfcore.tensor import Graph, Op, Tensor

ALWAYS_AGAIN = ("constant", "index")  # cheaper to make than to keep


def recompute(block: Callable | Function) -> Callable:
    """The same block, whose inner values the backward computes again instead of keeping them.

    Raises `LayoutError` where the block is called without a tensor.
    """
    call = block.call if isinstance(block, Function) else block
    if not callable(call):
        raise LayoutError(f"recompute: expected a function of tensors, got {type(block).__name__}: {block!r:.200}")

    @functools.wraps(call)
    def marked(*args: Any, **kwargs: Any) -> Any:
        given = [t for t in (*args, *kwargs.values()) if isinstance(t, Tensor)]
        if not given:
            raise LayoutError(f"recompute: {getattr(call, '__name__', 'block')} is called without a tensor")
        graph = max((t.graph for t in given), key=lambda graph: graph.depth)
        start = len(graph.ops)
        result = call(*args, **kwargs)
        graph.again.append(range(start, len(graph.ops)))
        return result

    return marked


class Primal(Tensor):
    """A tensor of the forward, seen from the backward; it is fetched when an operation really takes it."""

    __slots__ = ("_fetch", "_op")

    def __init__(self, into: Graph, op: Op, fetch: Callable[[], int]) -> None:
        self.graph, self._op, self._fetch = into, op, fetch

    @property
    def number(self) -> int:  # type: ignore[override]  # fetched late: setting it would lose what it stands for
        return self._fetch()

    @property
    def op(self) -> Op:
        return self._op


class Primals:
    """`primals(number)` is a tensor of `graph` as the graph `into` may read it."""

    def __init__(self, graph: Graph, into: Graph) -> None:
        self.graph, self.into = graph, into
        self.known: dict[int, int] = {}
        self.held: dict[int, int] = {}  # what goes into recomputed blocks, behind a barrier

    def __call__(self, number: int) -> Tensor:
        return Primal(self.into, self.graph.ops[number], lambda: self.number(number))

    def number(self, number: int) -> int:
        """The number in `into` of a tensor of the graph."""
        if number not in self.known:
            block = self.block(number)
            self.known[number] = self.fetched(number) if block is None else self.again(number, block)
        return self.known[number]

    def block(self, number: int) -> range | None:
        """The recomputed block in which a tensor was made; for what a loop gives out, that of the loop."""
        op = self.graph.ops[number]
        made = op.inputs[0] if op.kind == "repeated" else number
        return next((block for block in self.graph.again if made in block and op.kind != "input"), None)

    def again(self, number: int, block: range) -> int:
        op = self.graph.ops[number]
        inputs = tuple(self.inside(i, block) for i in op.inputs)
        return self.into.add(dataclasses.replace(op, inputs=inputs)).number

    def inside(self, number: int, block: range) -> int:
        """An operand within a recomputed block; what comes from outside passes a barrier, or XLA would share it."""
        if self.block(number) == block or self.graph.ops[number].kind in ALWAYS_AGAIN:
            return self.number(number)
        if number not in self.held:
            t = Tensor(self.into, self.number(number))
            self.held[number] = apply("pointwise", [t], t.dims, t.dtype, None, fn="barrier").number
        return self.held[number]

    def fetched(self, number: int) -> int:
        """A tensor that is kept; in the same graph it is just there."""
        return number
