"""How a loop is drawn: a block of one or two parts that keep the shape, with stacked weights and captured tensors."""

from __future__ import annotations

from collections.abc import Callable

from core.sweep.drawing import Draft
from core.sweep.programs import Line


class Block:
    """The lines of a block being drawn; `carry` is the name of what is handed on."""

    def __init__(self, d: Draft, start: str, n: int) -> None:
        self.d, self.start, self.n, self.carry = d, start, n, "c"
        self.sizes = d.env[start].sizes
        self.lines: list[Line] = []
        self.stacked: list[str] = []
        self.turns = d.fresh(1)
        d.layout.pop(self.turns, None)

    def line(self, call: str, *operands: object, keep: bool = True, **more: object) -> str:
        name = f"t{len(self.lines) + 1}"
        self.lines.append(Line((name,), call, tuple(operands), tuple(more.items())))
        self.carry = name if keep else self.carry
        return name

    def part(self, dims: dict[str, int]) -> str:
        """What one turn sees of a new stacked input."""
        self.stacked.append(self.d.add_input({self.turns: self.n, **dims}))
        return f"p{len(self.stacked) - 1}"


def scaled(b: Block) -> None:
    dims = b.d.some(b.sizes)
    b.line("multiply", b.carry, b.part({name: b.sizes[name] for name in dims}))


def matmul(b: Block) -> None:
    dim = b.d.one_of(b.sizes)
    new = b.d.fresh(1)
    b.d.layout.pop(new, None)
    text = " ".join(new if name == dim else name for name in b.sizes)
    product = b.line("einsum", b.carry, b.part({dim: b.sizes[dim], new: b.sizes[dim]}), keep=False, out=text)
    b.line("tanh", b.line("rename", product, new, dim, keep=False))


def shifted(b: Block) -> None:
    """Reads a tensor from outside of the loop, or adds a number."""
    outer = b.d.partner(b.start, within=True)
    b.line("add", b.carry, outer if outer and not b.d.chance(4) else 1)


def centred(b: Block) -> None:
    total = b.line("max", b.carry, keep=False, dims=b.d.one_of(b.sizes))
    b.line("subtract", b.carry, total)


def squashed(b: Block) -> None:
    b.line("tanh", b.carry)


def shared(b: Block) -> None:
    b.line("softmax", b.carry, b.d.one_of(b.sizes))


PARTS: tuple[Callable[[Block], None], ...] = (matmul, scaled, shifted, centred, squashed, shared)


def repeat(d: Draft) -> bool:
    start = d.pick(lambda t: len(t.names) > 0 and t.value.size <= 256 and t.reach < 100)
    if start is None or not d.layout_fits(d.env[start].sizes):
        return False
    block = Block(d, start, d.one_of([2, 3, 1]))
    for _ in range(d.one_of([1, 2])):
        d.one_of(PARTS)(block)
    arguments = ("c", *[f"p{number}" for number in range(len(block.stacked))])
    line = Line(d.new_names(1), "repeat", (start, block.n, *block.stacked), (), tuple(block.lines), arguments)
    made = d.checked(line)
    if made is None:
        return False
    d.lines.append(line)
    d.env |= made
    return True
