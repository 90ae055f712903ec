"""Checks of lesson 05: two layers, five layouts; the shape of the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from mtfcore.costs.first_paper.iteration_space import Blocks, best
from mtfcore.costs.first_paper.memory import memory
from mtfcore.costs.first_paper.two_layers import ROWS, Parts, Sizes, cost
from mtfcore.costs.first_paper.two_layers_printed import printed_ratio
from mtfcore.costs.first_paper.two_layers_programs import planned
from mtfcore.numbers import count
from widgets.learning.exercises import Case, at_most, equal, holds

from .book import exercise

MIXED = ROWS["batch:rows hidden:cols"]
CUBIC = ROWS["batch:rows hidden:cols io:planes"]
DATA = ROWS["batch:all"]


@exercise(
    "05 allreduced",
    task="Count the values that one device all-reduces in a training step.",
    hint="Each cut dimension is summed over by two einsums. Of what size is their result on one device?",
    bigger_hint="Cut batch: dw and dv, tiles of io · hidden / (c · p). Cut hidden: y and dx, tiles of batch · io / "
    "(r · p). Cut io: h and dh, tiles of batch · hidden / (r · c). Leave out those with one part.",
)
def allreduced(answer: Callable[..., int], rng: Random) -> Iterator[Case]:
    cuts = [(8, 1, 1), (1, 8, 1), (1, 1, 1), *(tuple(rng.choices((1, 2, 4), k=3)) for _ in range(3)), (2, 4, 2)]
    for r, c, p in cuts:
        sizes = _sizes(rng, r * c * p)
        program = planned(CUBIC, sizes, r, c, p, dtype="f32")
        values = sum(step.n_bytes for step in program.collectives()) // 4
        given = answer(sizes.batch, sizes.io, sizes.hidden, r, c, p)
        yield equal(f"{sizes} in {r} · {c} · {p} parts", values, given, "values")


def _sizes(rng: Random, devices: int) -> Sizes:
    """Three different sizes that divide over all devices."""
    batch, io, hidden = rng.sample((1, 2, 3, 5, 7), 3)
    return Sizes(batch * devices, io * devices, hidden * devices)


@exercise(
    "05 ratio",
    task="Give the right ratio of communication to computation of pure data parallelism.",
    hint="Compute both for one weight: values of its gradient, and multiply-adds of one einsum on one processor.",
    bigger_hint="The gradient has io · hidden values. The einsum has batch · io · hidden multiply-adds, shared by n.",
)
def ratio(answer: Callable[..., float], rng: Random) -> Iterator[Case]:
    for n in (2, *rng.sample((4, 8, 16, 32, 64), 4)):  # one processor sends nothing: there the closed form is no ratio
        sizes = Sizes(n * rng.choice((2, 3, 16)), rng.choice((8, 16)), rng.choice((32, 64)))
        flops = planned(DATA, sizes, n, passes="forward").flops()
        values, multiply_adds = sizes.io * sizes.hidden, flops // 2 // 2  # two einsums, 2 FLOPs a multiply-add
        about = f"{sizes.batch} examples on {count(n, 'processor')}: values a multiply-add"
        yield equal(about, values / multiply_adds, answer(sizes.batch, n))


@exercise(
    "05 grown",
    task="Grow the network and its mesh so that the ratio stays.",
    hint="The ratio is c/d_h + r/b. Which sizes must grow with which axes, so that both terms stay?",
    bigger_hint="k times the rows on k times the batch, k times the cols on k times the hidden layer.",
)
def grown(answer: Callable[..., tuple[int, int, int, int]], rng: Random) -> Iterator[Case]:
    for k in (2, 3, *rng.sample((4, 5, 8), 2)):
        rows, cols = rng.sample((2, 4, 8), 2)
        batch, hidden = rows * rng.choice((16, 64)), cols * rng.choice((32, 128))
        now = (batch, hidden, rows, cols)
        about = f"k = {k} from batch {batch}, hidden {hidden}, rows {rows}, cols {cols}"
        given = answer(*now, k)
        yield holds(f"{about}: an answer", min(given) > 0, "four whole numbers above 0", repr(given))
        yield equal(f"{about}: devices", rows * cols * k * k, given[2] * given[3])
        before, after = (printed_ratio(MIXED, Sizes(b, 1, h), Parts(r, c)) for b, h, r, c in (now, given))
        yield equal(f"{about}: ratio", float(before), float(after))
        yield at_most(f"{about}: growth of one size", k, max(new / old for new, old in zip(given, now)), "times")


@exercise(
    "05 cut",
    task="Cut the cube of work so that each processor touches the fewest values.",
    hint="With parts (i, j, k) a processor touches u²/(i·k) values of A, u²/(k·j) of B and u²/(i·j) of C.",
    bigger_hint="Try every i and j for which i · j divides processors; k is the rest. Keep the smallest sum.",
)
def cut(answer: Callable[..., tuple[int, int, int]], rng: Random) -> Iterator[Case]:
    for processors in (8, 64, *rng.sample((12, 27, 32, 36, 60, 100), 3)):
        given = answer(processors)
        yield holds(f"{processors} processors: an answer", min(given) > 0, "three whole numbers above 0", repr(given))
        blocks = Blocks(*given)
        yield equal(f"{processors} processors: blocks", processors, blocks.processors)
        fewest, touched = (float(each.touched(60)) for each in (best(processors), blocks))
        yield at_most(f"{processors} processors, u = 60: touched", fewest, touched, "values")


@exercise(
    "05 mesh_within",
    task="Choose the mesh that meets a memory budget and sends the fewest bytes.",
    hint="More cols make weights smaller, more rows activations. List all pairs and keep those within the budget.",
    gives="(rows, cols), two whole numbers",
    bigger_hint="memory(row, sizes, row.parts(rows, cols)).total is what a device holds; cost(...).sent_bytes what it "
    "sends. Take min(..., key=...) of the fitting pairs.",
)
def mesh_within(answer: Callable[..., tuple[int, int]], rng: Random) -> Iterator[Case]:
    for sizes, devices, budget in budgets(rng):
        given, about = answer(sizes, devices, budget), f"{sizes} on {devices} devices"
        yield holds(f"{about}: an answer", min(given) > 0, "(rows, cols), both above 0", repr(given))
        yield equal(f"{about}: devices", devices, given[0] * given[1])
        parts, fewest = MIXED.parts(*given), min(fitting(sizes, devices, budget).values())
        yield at_most(f"{about}: memory", budget, memory(MIXED, sizes, parts).total, "bytes on a device")
        yield at_most(
            f"{about}: traffic", fewest, float(cost(MIXED, sizes, parts).sent_bytes), "bytes sent by a device"
        )


def meshes(devices: int) -> list[tuple[int, int]]:
    """Every (rows, cols) of so many devices."""
    return [(rows, devices // rows) for rows in range(1, devices + 1) if devices % rows == 0]


def fitting(sizes: Sizes, devices: int, budget: int) -> dict[tuple[int, int], float]:
    """Mesh → bytes sent, for those within the budget."""
    parts = {mesh: MIXED.parts(*mesh) for mesh in meshes(devices)}
    legal = {mesh: each for mesh, each in parts.items() if memory(MIXED, sizes, each).total <= budget}
    return {mesh: float(cost(MIXED, sizes, each).sent_bytes) for mesh, each in legal.items()}


def budgets(rng: Random) -> Iterator[tuple[Sizes, int, int]]:
    """At least four cases; in one the fewest bytes of all do not fit, in another they do."""
    for tight in (True, False, True, False):
        devices = rng.choice((16, 36, 64))
        while True:
            sizes = Sizes(*(devices * rng.choice((1, 2, 4, 8, 16)) for _ in range(3)))
            held = {mesh: memory(MIXED, sizes, MIXED.parts(*mesh)).total for mesh in meshes(devices)}
            free = fitting(sizes, devices, max(held.values()))
            least = min(free, key=free.__getitem__)
            if not tight:
                yield sizes, devices, held[least]
                break
            if held[least] > min(held.values()):
                yield sizes, devices, held[least] - 1
                break
