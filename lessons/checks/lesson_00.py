"""Checks of lesson 00: the words, a first named function, and a share of the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import numpy as np

import mtfcore as mtf
from mtfcore.functions import Function
from mtfcore.tensor import Tensor
from widgets.learning.exercises import Case, asked, at_most, equal, holds

from . import draw
from .book import exercise
from .lesson_02 import two_layers


@exercise(
    "00 mesh",
    task="Make a mesh with the axes rows and cols of the sizes given.",
    hint="mtf.Mesh takes a text such as 'rows:4 cols:2'.",
    bigger_hint="Put the sizes into the text with an f-string: f'rows:{rows} …'.",
)
def mesh(answer: Callable[[int, int], mtf.Mesh], rng: Random) -> Iterator[Case]:
    for _ in range(4):
        wanted = draw.mesh(rng, "rows cols", (2, 3, 4, 6, 8))
        given = answer(*wanted.shape.values())
        what = f"sizes {tuple(wanted.shape.values())}"
        yield equal(f"{what}: devices", wanted.size, given.size, "devices")
        yield equal(f"{what}: axes", str(wanted), str(given))
        device = draw.device(rng, wanted)
        yield equal(f"{what}: where device {device} stands", wanted.coordinates(device), given.coordinates(device))


@exercise(
    "00 linear",
    task="Complete the named function so that it returns x · w + b.",
    hint="mtf.einsum(x, w, out='…') multiplies and sums over the dimensions that `out` does not name.",
    gives="a function made with @mtf.function",
    bigger_hint="The product has the dimensions batch and hidden. b has only hidden: adding it takes just a plus.",
)
def linear(answer: Function, rng: Random) -> Iterator[Case]:
    answer = mtf.function(asked(answer.call, Callable[..., Tensor], "a tensor"))
    for _ in range(3):
        wanted = draw.mesh(rng, "rows cols")
        factors = rng.sample((1, 2, 3, 5), 3)  # different sizes: no order is right by chance
        sizes = {name: wanted.size * factor for name, factor in zip(("batch", "io", "hidden"), factors)}
        numbers = np.random.default_rng(rng.randrange(2**32))
        x, w, b = (numbers.integers(-4, 5, shape).astype(np.float32) for shape in _shapes(**sizes))
        given = np.asarray(answer(x=x, w=w, b=b))
        yield from same_array(wanted, sizes, x @ w + b, given)


def _shapes(batch: int, io: int, hidden: int) -> tuple[tuple[int, ...], ...]:
    return (batch, io), (io, hidden), (hidden,)


def same_array(wanted: mtf.Mesh, sizes: dict[str, int], right: np.ndarray, given: np.ndarray) -> Iterator[Case]:
    """The result's shape, then its values, device by device as they would lie on the mesh."""
    what = " ".join(f"{name}:{size}" for name, size in sizes.items())
    yield equal(f"{what}: shape", right.shape, given.shape, "elements")
    lies = mtf.Sharding(f"batch:{sizes['batch']} hidden:{sizes['hidden']}", "batch:rows hidden:cols")
    for device in range(wanted.size):
        held = lies.slices(wanted, device)
        if not np.allclose(given[held], right[held]):
            at = tuple(int(i[0]) for i in np.nonzero(~np.isclose(given, right)))
            where = f"{draw.name(wanted, device)}, slice {draw.ranges(held)}, element {at}"
            yield equal(f"{what}: values", float(right[at]), float(given[at]), where=where)
            return
    yield holds(f"{what}: values", True, f"all {right.size} elements agree with NumPy", "")


@exercise(
    "00 devices_for",
    task="Find the smallest number of devices whose share of the work meets the budget.",
    hint="Two einsums of batch · io · hidden multiply-adds each; a multiply-add is two FLOPs.",
    bigger_hint="Start with one device and double while 2 · 2 · batch · io · hidden / devices is above the budget.",
)
def devices_for(answer: Callable[..., int], rng: Random) -> Iterator[Case]:
    for _ in range(5):
        right = 2 ** rng.randrange(0, 6)
        batch, io, hidden = 64, rng.choice((16, 24)), rng.choice((32, 80))
        flops = _work(batch, io, hidden, right)
        budget = flops + rng.randrange(flops // 2)
        given = answer(batch, io, hidden, budget)
        what = f"batch:{batch} io:{io} hidden:{hidden}, budget {budget:,} FLOPs"
        yield holds(f"{what}: a power of two", given in [2**n for n in range(7)], "1, 2, 4, … 64 devices", repr(given))
        yield at_most(f"{what}: work of one device", budget, _work(batch, io, hidden, given), "FLOPs")
        yield equal(f"{what}: fewest devices", right, given, "devices")


def _work(batch: int, io: int, hidden: int, devices: int) -> int:
    """FLOPs of one device, from the plan."""
    sizes = f"batch:{batch} io:{io} hidden:{hidden}"
    return mtf.plan(two_layers, f"all:{devices}", "batch:all", sizes=sizes).flops()
