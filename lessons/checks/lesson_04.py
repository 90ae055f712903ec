"""Checks of lesson 04: the cases of a sharded einsum, reshape, halo."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random

import mtfcore as mtf
from mtfcore.functions import Function
from mtfcore.numbers import count
from mtfcore.tensor import Tensor
from widgets.learning.exercises import Case, at_most, equal, holds

from .book import exercise

EINSUMS = (("b i", "i h", "b h"), ("b i h", "h d", "b i d"), ("b q d", "b k d", "b q k"), ("b i", "b h", "i h"))


@mtf.function
def smooth(image: "height width", kernel: "kh:5 kw:5"):
    """The lesson's convolution: one channel, a 5 x 5 kernel, zeros round the border."""
    return mtf.conv(image, kernel, spatial={"height": "kh", "width": "kw"}, out="height width")


@exercise(
    "04 case",
    task="Name the case that an einsum is in for one mesh axis.",
    hint="Two different dimensions are two roles. One is one role, even if the other operand has it whole.",
    bigger_hint="Collect the names that are not None in a set. Two: a conflict. None: idle. One: is it in out?",
)
def case(answer: Callable[..., str], rng: Random) -> Iterator[Case]:
    for left, right, out in rng.sample(EINSUMS, 3):
        ways = [(a, b) for a in (*left.split(), None) for b in (*right.split(), None)]
        found: dict[str, tuple[str | None, str | None]] = {}
        for a, b in rng.sample(ways, len(ways)):
            found.setdefault(role(left, right, out, a, b), (a, b))
        for wanted, (a, b) in found.items():
            about = f"[{left}] · [{right}] → [{out}], cut on the left: {a}, on the right: {b}; case"
            yield equal(about, wanted, answer(*map(str.split, (left, right, out)), a, b))


def role(left: str, right: str, out: str, on_left: str | None, on_right: str | None) -> str:
    """What the planner makes of it: whether anything moves before the product, and how the product then lies."""

    def product(x: Tensor, w: Tensor) -> Tensor:
        return mtf.einsum(x, w, out=out)

    place = {"x": lying(left.split(), on_left), "w": lying(right.split(), on_right)}
    sizes = dict.fromkeys({*left.split(), *right.split()}, 8)
    program = mtf.plan(Function.of("product", {"x": left, "w": right}, product), "x:4", sizes=sizes, place=place)
    number = next(n for n, step in enumerate(program.steps) if step.kind == "einsum")
    if any(step.is_collective for step in program.steps[:number]):
        return "conflict"
    after = program.steps[number].after
    return "contracted" if after.partial else "kept" if after.used() else "idle"


def lying(names: Iterable[str], cut: str | None) -> str:
    """Dimensions with the axis on one of them, or on none."""
    return " ".join(f"{name}:x" if name == cut else name for name in names)


@exercise(
    "04 cheapest",
    task="Compute the bytes of the cheapest way out of a conflict.",
    hint="Write down what a device holds of x, of w and of the product, then the collectives of each way.",
    bigger_hint="gather w: one all-gather. gather x: an all-gather, then an all-to-all of the product, which lies as "
    "batch hidden:x. both to io: two all-to-alls, then a reduce-scatter of the whole product.",
)
def cheapest(answer: Callable[..., float], rng: Random) -> Iterator[Case]:
    for batch, io, hidden in ((1, 1, 8), (8, 1, 1), (1, 8, 1), (2, 1, 2), (1, 4, 1)):
        g, (itemsize, dtype) = rng.choice((4, 8)), rng.choice(((4, "f32"), (2, "bf16")))
        unit = g * rng.choice((2, 3, 5))
        sizes = {"batch": batch * unit, "io": io * unit, "hidden": hidden * unit}
        about = f"{' '.join(f'{name}:{size}' for name, size in sizes.items())} in {dtype} on {g} devices"
        yield equal(about, conflict(sizes, g, dtype), answer(*sizes.values(), g, itemsize), "bytes")


def conflict(sizes: dict[str, int], g: int, dtype: str) -> float:
    """Bytes sent by the planner's choice."""

    @mtf.function
    def product(x: "batch io", w: "io hidden"):
        return mtf.einsum(x, w, out="batch:x hidden")

    place = {"x": "batch:x io", "w": "io hidden:x"}
    return mtf.plan(product, f"x:{g}", sizes=sizes, place=place, dtype=dtype).link_bytes().total


@exercise(
    "04 merge_bytes",
    task="Compute what a merge of two dimensions makes a device send.",
    hint="Section 4 has all the cases: nothing, an all-gather, or an all-to-all.",
    bigger_hint="Nothing was cut: nothing is sent. heads to hk is carried. kv to hk is an all-to-all, "
    "n_bytes · (g − 1) / g; whatever was cut and shall be whole is gathered, n_bytes · (g − 1).",
)
def merge_bytes(answer: Callable[..., float], rng: Random) -> Iterator[Case]:
    for before in ("heads", "kv", None):
        for after in (True, False):
            g = rng.choice((2, 4, 8))
            sizes = {"batch": rng.choice((2, 3)), "heads": g * rng.choice((1, 2)), "kv": g * rng.choice((2, 3))}
            program = merge(sizes, g, before, after)
            n_bytes = program.inputs[0].sharding.bytes_per_device(program.mesh)
            about = f"{n_bytes:,} bytes held, x on {before or 'nothing'}, then on {'hk' if after else 'nothing'}"
            given = answer(n_bytes, g, before, after)
            yield equal(f"{about}, {g} devices", program.link_bytes().total, given, "bytes")


def merge(sizes: dict[str, int], g: int, before: str | None, after: bool) -> mtf.Program:
    @mtf.function
    def merged(t: "batch heads kv"):
        return mtf.merge(t, "heads kv", "hk")

    return mtf.plan(merged, f"x:{g}", "hk:x" if after else "", sizes=sizes, place={"t": lying(sizes, before)})


@exercise(
    "04 halo_bytes",
    task="Compute the bytes that a halo makes a device with two neighbours send.",
    hint="How many rows does an element of the result reach to both sides together? With one part, who sends?",
    bigger_hint="kernel − 1 rows of row elements each, whatever the height; with one part there is no neighbour.",
)
def halo_bytes(answer: Callable[..., float], rng: Random) -> Iterator[Case]:
    for parts in (4, rng.choice((4, 8)), 1, rng.choice((4, 8))):
        kernel, (itemsize, dtype) = rng.choice((2, 3, 5, 7)), rng.choice(((4, "f32"), (2, "bf16")))
        height, row = parts * rng.choice((8, 12)), rng.choice((6, 10, 25))
        program = strips(height, row, kernel, parts, dtype)
        about = f"height:{height} in {count(parts, 'part')}, rows of {row}, kernel of {kernel}, {dtype}"
        given = answer(height, row, kernel, parts, itemsize)
        yield equal(about, program.link_bytes().total, given, "bytes")


def strips(height: int, row: int, kernel: int, parts: int, dtype: str) -> mtf.Program:
    @mtf.function
    def along(image: "height row", kernel: kh):  # type: ignore[name-defined]  # a dimension, no name of Python
        return mtf.conv(image, kernel, {"height": "kh"}, out="height row")

    return mtf.plan(along, f"x:{parts}", "height:x", sizes=f"height:{height} row:{row} kh:{kernel}", dtype=dtype)


@exercise(
    "04 mesh_within",
    task="Choose the mesh so that a convolution keeps to a budget of bytes.",
    hint="Strips have much border, squares have little. There are few ways to factor the number of devices: try them.",
    gives="(rows, cols), two whole numbers",
    bigger_hint="For each rows from 1 to devices that divides it, plan smooth on f'rows:{rows} cols:{devices // rows}' "
    "and compare .link_bytes() with the budget.",
)
def mesh_within(answer: Callable[..., tuple[int, int]], rng: Random) -> Iterator[Case]:
    for tall, wide in ((1, 1), (16, 1), (1, 16), (rng.choice((1, 4)), rng.choice((1, 4)))):
        devices = rng.choice((16, 32))
        height, width = (devices * side for side in (tall, wide))
        meshes = {rows: devices // rows for rows in range(1, devices + 1) if devices % rows == 0}
        sent = {(rows, cols): smoothed(height, width, rows, cols) for rows, cols in meshes.items()}
        given, about = answer(height, width, devices, min(sent.values())), f"height:{height} width:{width}"
        yield holds(f"{about}: the answer", min(given) > 0, "(rows, cols), both above 0", repr(given))
        yield equal(f"{about}: devices", devices, given[0] * given[1])
        yield at_most(f"{about} on {devices} devices: sent", min(sent.values()), sent[given], "bytes by a device")


def smoothed(height: int, width: int, rows: int, cols: int) -> float:
    """Bytes that one device sends for the lesson's convolution."""
    sizes, layout = f"height:{height} width:{width}", "height:rows width:cols"
    return mtf.plan(smooth, f"rows:{rows} cols:{cols}", layout, sizes=sizes).link_bytes().total
