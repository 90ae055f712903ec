"""Checks of lesson 06: gradients, optimizer state, padding, and budgets of a training step."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from random import Random

import numpy as np

import mtfcore as mtf
from mtfcore.costs.pricing.liveness import peak_memory
from mtfcore.functions import Function
from mtfcore.model.optimizers import SGD, Adafactor, Adam
from mtfcore.model.step_function import training_step
from mtfcore.tensor import Tensor
from widgets.learning.exercises import Case, at_most, equal, holds

from . import draw
from .book import exercise

LAYOUTS = ("", "batch:rows", "hidden:cols", "batch:(rows cols)", "hidden:(rows cols)", "batch:rows hidden:cols")
OPTIMIZERS = {"sgd": SGD(learning_rate=0.1), "adam": Adam(learning_rate=0.1), "adafactor": Adafactor()}
CHOICES = [(optimizer, again) for again in (False, True) for optimizer in ("adam", "adafactor")]


@mtf.function
def loss(x: "batch io", w: "io hidden", v: "hidden io", t: "batch io"):
    """Two layers and how far they are from what is wanted."""
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.mean(mtf.square(mtf.einsum(h, v, out="batch io") - t))


@mtf.function
def slopes(x: "batch io", w: "io hidden", v: "hidden io", t: "batch io"):
    """The gradients of the two weights."""
    return mtf.gradients(loss(x, w, v, t), {"w": w, "v": v})


# ---- exercise 1


@exercise(
    "06 backward",
    task="Write the cotangents of x and w of a product y = x·w.",
    hint="Both are einsums of d with the other operand; each must have the dimensions of what it is the cotangent of.",
    gives="two tensors: (cotangent of x, cotangent of w)",
    bigger_hint="The cotangent of x is d and w summed over hidden. That of w is x and d summed over batch.",
)
def backward(answer: Callable[..., tuple[Tensor, Tensor]], rng: Random) -> Iterator[Case]:
    given, wanted = backward_function(answer), backward_function(by_gradients)
    sizes = {"batch": 4, "io": 6, "hidden": 8}
    yield from same_values(given, sizes, rng)
    for layout in ("batch:rows", "hidden:rows", "batch:rows hidden:cols"):
        mesh = draw.mesh(rng, "rows cols", (2, 4))
        text = " ".join(f"{name}:{draw.size(rng, mesh)}" for name in sizes)
        plans = [mtf.plan(fn, mesh, mtf.Layout(layout), sizes=text) for fn in (wanted, given)]
        budget, sent = (plan.link_bytes().total for plan in plans)
        yield at_most(f"{layout}, {text} on {mesh}: bytes sent by a device", budget, sent, "bytes")


def backward_function(answer: Callable[..., tuple[Tensor, Tensor]]) -> Function:
    """The answer as a named function of the operands and the cotangent."""

    @mtf.function
    def cotangents(x: "batch io", w: "io hidden", d: "batch hidden"):
        dx, dw = answer(x, w, d)
        return {"of x": dx, "of w": dw}

    return cotangents


def by_gradients(x: Tensor, w: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    """The same by the library: d is what the loss x·w·d changes by with x·w."""
    return mtf.gradients(mtf.sum(mtf.einsum(x, w, out="batch hidden") * d), (x, w))


def same_values(given: Function, sizes: dict[str, int], rng: Random) -> Iterator[Case]:
    numbers = np.random.default_rng(rng.randrange(2**32))
    shapes = {"x": ("batch", "io"), "w": ("io", "hidden"), "d": ("batch", "hidden")}
    arrays = {name: numbers.integers(-4, 5, [sizes[d] for d in dims]).astype(np.float32)
              for name, dims in shapes.items()}  # fmt: skip
    expected = {"of x": arrays["d"] @ arrays["w"].T, "of w": arrays["x"].T @ arrays["d"]}
    for name, array in given(**arrays).items():
        yield equal(f"cotangent {name}: shape", expected[name].shape, array.shape)
        if array.shape == expected[name].shape:
            wrong = np.argwhere(array != expected[name]).tolist()
            where = f", the first at {tuple(wrong[0])}" if wrong else ""
            yield equal(f"cotangent {name}: elements that differ{where}", 0, len(wrong))


# ---- exercise 2


@exercise(
    "06 state",
    task="Compute the bytes of a matrix and its optimizer state on one device.",
    hint="First the matrix: 4 bytes times rows / row_parts times cols / col_parts. Adam has two more of the same.",
    bigger_hint="Adafactor keeps one f32 for each row and one for each column that the device holds; sgd nothing.",
)
def state(answer: Callable[..., float], rng: Random) -> Iterator[Case]:
    for optimizer in ("sgd", "adam", "adafactor", "adam", "adafactor"):
        mesh = draw.mesh(rng, "rows cols", (2, 4, 8))
        rows, cols = (draw.size(rng, mesh) for _ in range(2))
        given = answer(rows, cols, mesh["rows"], mesh["cols"], optimizer)
        about = f"{optimizer}, {rows} × {cols} in {mesh['rows']} × {mesh['cols']} parts"
        yield equal(about, held_with_state(rows, cols, mesh, optimizer), given, "bytes")


def held_with_state(rows: int, cols: int, mesh: mtf.Mesh, optimizer: str) -> int:
    """As the library declares it and the layout cuts it."""
    layout, dims = mtf.Layout("io:rows hidden:cols"), f"io:{rows} hidden:{cols}"
    slots = OPTIMIZERS[optimizer].state({"w": dims}).values()
    parts = [layout.sharding(dims, mesh), *[layout.sharding(slot.dims, mesh) for slot in slots]]
    return sum(part.bytes_per_device(mesh, "f32") for part in parts)


# ---- exercise 3


@exercise(
    "06 padded",
    task="Pad a size to what divides, and say what share of the work is wasted.",
    hint="Round size / parts up to a whole number, then multiply by parts.",
    gives="(size, share), two numbers",
    bigger_hint="-(-size // parts) * parts is the new size. What is wasted is (new - size) out of new.",
)
def padded(answer: Callable[..., tuple[int, float]], rng: Random) -> Iterator[Case]:
    sizes = [(9, 16), (256, 3), (rng.randrange(5, 60), rng.choice((8, 16))), (48, rng.choice((4, 12))), (3, 64)]
    for size, parts in sizes:
        given = answer(size, parts)
        new = next(n for n in range(size, size + parts) if n % parts == 0)
        yield equal(f"size {size} over {parts} devices", new, given[0])
        close = abs(given[1] - (1 - size / new)) < 1e-4  # the digits that are shown, also where an answer is rounded
        yield holds(f"share wasted of {size} over {parts}", close, f"{1 - size / new:.4f}", f"{given[1]:.4f}")


# ---- exercise 4


@exercise(
    "06 layout_within",
    task="Choose the layout with the fewest FLOPs whose gradients stay within a budget of bytes.",
    hint="Plan `slopes` for each of the six layouts and drop those that send more than the budget.",
    bigger_hint="min(allowed, key=lambda text: (plans[text].flops(), plans[text].link_bytes()))",
)
def layout_within(answer: Callable[..., str], rng: Random) -> Iterator[Case]:
    for mesh, sizes, budget in budgets(rng):
        plans, chosen = planned(mesh, sizes), answer(mesh, sizes, budget)
        best = min(within(plans, budget), key=lambda text: cost(plans[text]))
        about = f"{sizes} on {mesh}, budget {budget:,}"
        yield holds(f"{about}: layout", chosen in LAYOUTS, "one of LAYOUTS", repr(chosen))
        given = plans[chosen]
        yield at_most(f"{about}: traffic", budget, given.link_bytes().total, "bytes sent by a device")
        yield at_most(f"{about}: work", plans[best].flops(), given.flops(), "FLOPs of a device")
        equals = [text for text in LAYOUTS if plans[text].flops() == plans[best].flops()]
        least = min(plans[text].link_bytes().total for text in equals)
        yield at_most(f"{about}: traffic of that work", least, given.link_bytes().total, "bytes sent by a device")


def cost(plan: mtf.Program) -> tuple[int, float]:
    return plan.flops(), plan.link_bytes().total


def within(plans: dict[str, mtf.Program], budget: float) -> list[str]:
    return [text for text in LAYOUTS if plans[text].link_bytes().total <= budget]


@functools.cache
def _planned(mesh: str, sizes: str) -> dict[str, mtf.Program]:
    return {text: mtf.plan(slopes, mesh, mtf.Layout(text), sizes=sizes) for text in LAYOUTS}


def planned(mesh: mtf.Mesh, sizes: str) -> dict[str, mtf.Program]:
    """Every layout's plan; kept, since checks come back to the same few sizes."""
    return _planned(str(mesh), sizes)


def budgets(rng: Random) -> Iterator[tuple[mtf.Mesh, str, float]]:
    """At least four cases, and so many that no single layout is right in all of them."""
    always_right, number = set(LAYOUTS), 0
    while always_right or number < 4:
        mesh, number = mtf.Mesh(rng.choice(("rows:2 cols:4", "rows:4 cols:2"))), number + 1
        sizes = f"batch:{rng.choice((8, 64, 256))} io:16 hidden:{rng.choice((32, 64))}"
        plans = planned(mesh, sizes)
        budget = rng.choice(sorted({plan.link_bytes().total for plan in plans.values()}))
        best = min(cost(plans[text]) for text in within(plans, budget))
        always_right -= {text for text in LAYOUTS if text not in within(plans, budget) or cost(plans[text]) != best}
        yield mesh, sizes, budget


# ---- exercise 5


@exercise(
    "06 choice_within",
    task="Make a training step fit in memory: choose the optimizer, and whether blocks are recomputed.",
    hint="There are four pairs. Try them in the order in which you would rather have them.",
    gives="(the optimizer's name, True or False)",
    bigger_hint="for recompute in (False, True): for optimizer in ('adam', 'adafactor'): return the first that fits.",
)
def choice_within(answer: Callable[..., tuple[str, bool]], rng: Random) -> Iterator[Case]:
    for batch, between in zip(rng.sample((2, 4, 64), 3), rng.sample((1, 2, 2), 3)):  # 2: both with and without fit
        step_bytes = _bytes_of_a_step(batch)
        least, *others = sorted(step_bytes(*choice) for choice in CHOICES)
        for budget in rng.sample((others[-1], others[between - 1], least, least - 1), 4):
            fitting = [choice for choice in CHOICES if step_bytes(*choice) <= budget]
            expected = fitting[0] if fitting else ("none", False)
            given, about = answer(step_bytes, budget), f"batch {batch}, budget {budget:,} bytes"
            if given in CHOICES:
                yield at_most(f"{about}: held with {given}", budget, step_bytes(*given), "bytes of a device")
            yield equal(f"{about}: the pair", expected, given)


def _bytes_of_a_step(batch: int) -> Callable[[str, bool], int]:
    """The exercise's `held`: a plain function of that name, so that a report can name it."""

    def held(optimizer: str, recompute: bool) -> int:
        return step_bytes_held(batch, optimizer, recompute)

    return held


@functools.cache
def step_bytes_held(batch: int, optimizer: str, recompute: bool) -> int:
    """Bytes of one device at the fullest moment of a small language model's step on eight (modelled)."""
    cfg = mtf.model.config("tiny-lm", d_model=32, d_ff=256, heads=8, head_size=8, max_length=16)
    step = training_step(mtf.model.loss(cfg, recompute=recompute), cfg.params, OPTIMIZERS[optimizer])
    layout = mtf.model.partitions["mtf-2d"].layout
    return peak_memory(mtf.plan(step, "rows:2 cols:4", layout, sizes=f"B:{batch} L:16")).total
