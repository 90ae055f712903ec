"""Checks of lesson 03: collectives and their cost."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

import mtfcore as mtf
from mtfcore import schedules
from mtfcore.functions import Function
from mtfcore.steps import Step
from mtfcore.tensor import Tensor
from widgets.learning.exercises import Case, asked, at_most, equal, holds

from . import draw
from .book import exercise

KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")
N_CLAIMS = 6
Hop = tuple[int, int, int, int]


# ---- exercise 1 ----------------------------------------------------------------------------------------------------


@exercise(
    "03 mistakes",
    task="Find the numbers of the wrong claims.",
    hint="Put small numbers in: a mesh rows:2 cols:3, groups of 4 and 8, an array of 16 elements.",
    bigger_hint="A group differs only along the axes of the collective. n_bytes is what one device holds, in bytes. "
    "(g − 1)/g hardly changes with g. On a line all blocks but one enter the last device over one link.",
)
def mistakes(answer: set[int], rng: Random) -> Iterator[Case]:
    numbers = set(answer) <= set(range(1, N_CLAIMS + 1))
    yield holds("the answer is a set of claims", numbers, f"a set of numbers from 1 to {N_CLAIMS}", repr(answer))
    for number, (about, right) in enumerate(claims(rng), 1):
        verdict = ("right" if right else "wrong", "wrong" if number in answer else "right")
        yield equal(f"claim {number} ({about}) is", *verdict)


def claims(rng: Random) -> Iterator[tuple[str, bool]]:
    """For each claim of the lesson: figures that decide it, and whether it is right."""
    mesh = draw.mesh(rng, "rows cols", (2, 3, 4))
    step = moved(mesh, "b:rows partialsum:cols", "b:rows", f"b:{mesh.size}")
    devices = schedules.of_step(step, mesh).devices
    same_column = len({mesh.coordinates(device)["cols"] for device in devices}) == 1
    yield f"on {mesh} the devices {devices} sum together", same_column
    group, n_bytes = rng.choice((4, 8, 16)), 64 * rng.randrange(1, 9)
    scatter, reduce = (bytes_of(kind, group, n_bytes) for kind in ("reduce_scatter", "all_reduce"))
    yield f"{scatter:,} and {reduce:,} bytes in a group of {group}", 2 * scatter == reduce
    cut, whole = bytes_of("all_reduce", group, n_bytes), bytes_of("all_reduce", group, 4 * n_bytes)
    yield f"{cut:,} bytes cut in 4, {whole:,} bytes whole", cut == whole
    n_bytes_bf16 = mtf.Sharding("a:1024 b:4096").bytes_per_device("x:1", "bf16")
    yield f"{n_bytes_bf16:,} bytes", n_bytes_bf16 == 4 * 2**20
    line, ring = (schedules.schedule("all_gather", group, way, n_bytes).time_bytes for way in ("line", "two_way"))
    yield f"{line:,} and {ring:,} bytes one after another with {group} devices", line == 2 * ring
    doubled = bytes_of("all_reduce", 2 * group, n_bytes)
    yield f"{reduce:,} bytes with {group} devices, {doubled:,} with {2 * group}", doubled > 1.5 * reduce


def bytes_of(kind: str, group: int, n_bytes: int) -> int | Fraction:
    """Bytes that one device sends on a ring."""
    return schedules.schedule(kind, group, "ring", n_bytes).max_sent_bytes


def moved(mesh: mtf.Mesh, before: str, after: str, sizes: str, dtype: str = "f32") -> Step:
    """The one collective that takes a tensor from one sharding to another."""

    def move(t: Tensor) -> Tensor:
        return mtf.reshard(t, after)

    move.__annotations__ = {"t": " ".join(item.split(":")[0] for item in sizes.split())}
    (step,) = mtf.plan(mtf.function(move), mesh, sizes=sizes, place={"t": before}, dtype=dtype).collectives()
    return step


# ---- exercise 2 ----------------------------------------------------------------------------------------------------


@exercise(
    "03 hops",
    task="Write a reduce-scatter on a one-way ring as hops (step, source, target, block).",
    hint="The sum of block b ends on device b. On which device must it start, if it passes through all the others?",
    bigger_hint="It starts on device b + 1 and moves on by one device a step. So in step t device d sends block d − t, "
    "all modulo the group.",
    gives="a list of (step, source, target, block), whole numbers",
)
def hops(answer: Callable[[int], list[Hop]], rng: Random) -> Iterator[Case]:
    for group in rng.sample(range(2, 9), 4):
        given, about = answer(group), f"{group} devices"
        strange = next((hop for hop in given if not _is_hop(hop, group)), None)
        numbers = f"whole numbers, steps from 1, devices and blocks from 0 to {group - 1}"
        yield holds(f"{about}: numbers", strange is None, numbers, repr(strange))
        stray = next((hop for hop in given if hop[2] != (hop[1] + 1) % group), None)
        yield holds(f"{about}: links", stray is None, "that each device sends to the next", f"the hop {stray}")
        plan = written(group, given)
        yield equal(f"{about}: steps", group - 1, plan.steps)
        yield at_most(f"{about}: bytes sent by a device", group - 1, plan.max_sent_bytes, "bytes of blocks of one byte")
        yield replayed(about, plan)


def _is_hop(hop: Hop, group: int) -> bool:
    return hop[0] >= 1 and all(0 <= number < group for number in hop[1:])


def written(group: int, given: list[tuple[int, int, int, int]]) -> schedules.Schedule:
    """A student's hops as a schedule."""
    found = tuple(
        schedules.Hop(step, source, target, (schedules.Piece(block),), 1, schedules.Link(source, target, 0, 1), "add")
        for step, source, target, block in sorted(given)
    )
    return dataclasses.replace(schedules.schedule("reduce_scatter", group, "ring", n_bytes=group), hops=found)


def replayed(about: str, plan: schedules.Schedule) -> Case:
    """What the hops leave on the devices, against the sum."""
    arrays = [np.arange(1, plan.group + 1) * 10**device for device in range(plan.group)]
    right = np.sum(arrays, axis=0)
    try:
        found = schedules.replay(plan, arrays)
    except schedules.ReplayError as fault:
        return holds(f"{about}: replay", False, "every hop to be possible", str(fault))
    for device, (block,) in enumerate(found):
        if block != right[device]:
            return equal(
                f"{about}: block {device}", int(right[device]), int(block), where=f"device {device}, slice [0:1]"
            )
    return holds(f"{about}: replay", True, "each device ends with its block of the sum", "")


# ---- exercises 3 and 4 -----------------------------------------------------------------------------------------------


@exercise(
    "03 sent",
    task="Compute the bytes that one device sends.",
    hint="First what one device holds: elements · itemsize / parts. Then the formula of the kind.",
    bigger_hint="With n_bytes held: all_gather n_bytes · (g − 1); reduce_scatter and all_to_all n_bytes · (g − 1) / g; "
    "all_reduce twice that.",
)
def sent(answer: Callable[..., float], rng: Random) -> Iterator[Case]:
    for kind in rng.sample(KINDS, 4):
        mesh, (dtype, itemsize) = draw.mesh(rng, "x z", (2, 4, 8)), rng.choice((("f32", 4), ("bf16", 2)))
        a, b, group = draw.size(rng, mesh), draw.size(rng, mesh), mesh["z"]
        before, after = PLACES[kind]
        step = moved(mesh, before, after, f"a:{a} b:{b}", dtype)
        parts = mesh["x"] * (1 if "partialsum" in before else group)
        given = answer(kind, a * b, itemsize, parts, group)
        about = f"{kind} of {a * b:,} elements in {dtype}, {parts} parts, a group of {group}"
        yield equal(f"{about}: sent by a device", step.link_bytes, given, "bytes")


PLACES = {
    "all_gather": ("a:x b:z", "a:x b"), "reduce_scatter": ("a:x b partialsum:z", "a:x b:z"),
    "all_reduce": ("a:x b partialsum:z", "a:x b"), "all_to_all": ("a:(x z) b", "a:x b:z"),
}  # fmt: skip


@exercise(
    "03 seconds",
    task="Compute the seconds of an all-gather on a line and on a two-way ring.",
    hint="Count the steps, and ask for each step what the largest message is: a block, or half of one.",
    bigger_hint="A line takes g − 1 steps of one block. A two-way ring takes (g − 1) // 2 steps of one block, and if g "
    "is even one more of half a block. A step lasts max(bytes / rate, hop_seconds).",
)
def seconds(answer: Callable[..., float], rng: Random) -> Iterator[Case]:
    rate, hop = rng.choice((4.5e10, 9e10)), 1e-6
    groups = rng.sample(range(4, 17, 2), 2) + rng.sample(range(3, 16, 2), 1)
    for group in groups:
        for way in ("line", "two_way"):
            for n_bytes in (rng.randrange(64, 4096), int(1.5 * rate * hop), rng.randrange(1, 64) * 2**20):
                right = schedules.schedule("all_gather", group, way, n_bytes).seconds(rate, hop)
                given = answer(n_bytes, group, way, rate, hop)
                good, shown = math.isclose(given, right, rel_tol=1e-6), f"{given * 1e6:.3f} µs"
                what = f"{way} of {group}, {n_bytes:,} bytes held, {rate:.2g} bytes/s: seconds"
                yield holds(what, good, f"{right * 1e6:.3f} µs", shown)


# ---- exercise 5 ----------------------------------------------------------------------------------------------------


@exercise(
    "03 update",
    task="Write the training step within 6·N·(g − 1)/g bytes.",
    hint="An all-reduce is two walks. Between the two, each device could already compute its block of the new w.",
    gives="a function made with @mtf.function",
    bigger_hint='Ask for the gradient with out="io hidden:data", a reduce-scatter in f32. Subtract and cast block by '
    'block; then mtf.reshard(new, "io hidden") gathers bf16, which has half the bytes.',
)
def update(answer: Function, rng: Random) -> Iterator[Case]:
    answer = mtf.function(asked(answer.call, Callable[..., Tensor], "a tensor"))
    for group in rng.sample((2, 4, 8), 3):
        io, hidden = 8 * rng.choice((1, 3)), 8 * rng.choice((2, 4))  # either may be cut into blocks
        mesh, sizes = mtf.Mesh(f"data:{group}"), f"batch:{2 * group} io:{io} hidden:{hidden}"
        program = mtf.plan(answer, mesh, mtf.Layout("batch:data"), sizes=sizes)
        result, about = program.outputs[0], f"{sizes} on {mesh}"
        yield equal(f"{about}: dtype of the result", "bf16", result.dtype)
        yield equal(f"{about}: where it lies", "io hidden", result.sharding.text())
        budget = 6 * io * hidden * (group - 1) // group
        yield at_most(f"{about}: sent by a device", budget, program.link_bytes().total, "bytes")
    yield from same_weights(about, mtf.simulate(program), *training_data(rng, group, io, hidden))  # once: it compiles


def training_data(rng: Random, group: int, io: int, hidden: int) -> tuple[np.ndarray, ...]:
    """x, d and w; the addends of the gradient are large and nearly cancel, so that rounding them shows."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    x, d = numbers.normal(size=(2 * group, io)), numbers.normal(size=(2 * group, hidden))
    x[group:], d[group:] = -x[:group] + numbers.normal(size=(group, io)) / 1000, d[:group]
    scale = 100.0
    return tuple(a.astype(np.float32) for a in (scale * x, scale * d, numbers.normal(size=(io, hidden))))


def same_weights(about: str, run: Any, x: np.ndarray, d: np.ndarray, w: np.ndarray) -> Iterator[Case]:
    """The new weights against NumPy in double precision, as exact as bf16 and f32 sums allow."""
    right = w.astype(float) - 0.1 * (x.astype(float).T @ d.astype(float))
    given = np.asarray(run(x=x, d=d, w=w)).astype(float)
    yield equal(f"{about}: shape", right.shape, given.shape)
    wrong = np.argwhere(~np.isclose(given, right, rtol=2**-7, atol=0.05))
    if len(wrong):
        at = tuple(int(n) for n in wrong[0])
        yield holds(f"{about}: element {at} of the new w", False, f"{right[at]:.4f}", f"{given[at]:.4f}")
    yield holds(f"{about}: values", not len(wrong), f"all {right.size} elements agree with NumPy", "")
