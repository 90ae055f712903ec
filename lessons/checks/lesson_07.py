"""Checks of lesson 07: counting FLOPs, bytes and seconds; the cache; what fits; layouts; wrong claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from random import Random

from mtfcore.costs import second_paper as forms
from mtfcore.costs.second_paper.feedforward import gathered_weights
from mtfcore.costs.second_paper.serving import faster_by, seconds_at_mfu, weight_seconds
from mtfcore.numbers import count, digits, format_bytes
from widgets.learning.exercises import Case, at_most, equal, holds

from .book import exercise


def _near(what: str, right: float, given: float, unit: str, of: float = 1.0) -> Case:
    """A number within a millionth, shown as so many units of a size."""
    near = math.isclose(given, right, rel_tol=1e-6)
    return holds(what, near, f"{digits(right / of)} {unit}", f"{digits(given / of)} {unit}")


# ---- exercise 1 -----------------------------------------------------------------------------------------------------


@exercise(
    "07 step_seconds",
    task="Give the least time of a decode step from FLOPs and bytes.",
    hint="Two times: all chips computing 2 FLOPs a parameter and token, and all chips reading. Which one counts?",
    bigger_hint="Computing: 2 · n_params · batch / (chips · peak). Reading: every weight once, n_params · weight_size, "
    "and the caches, over chips · hbm. The longer of both.",
)
def step_seconds(answer: Callable[..., float], rng: Random) -> Iterator[Case]:
    cases = [(1, 0.01), (4096, 0.01), (64, 4.0), *((rng.choice((8, 32, 1024)), rng.choice((0.1, 1.0))) for _ in "ab")]
    for batch, share in cases:
        n_params, chips, size = rng.choice((7e9, 62e9, 540e9)), rng.choice((8, 16, 64)), rng.choice((1, 2))
        peak, hbm = rng.choice(((275e12, 1.2e12), (197e12, 8.2e11), (989e12, 3.35e12)))
        cached = float(int(n_params * size * share))
        computing = seconds_at_mfu(n_params, batch, 1.0, chips, peak)
        right = max(computing, weight_seconds(n_params * size + cached, chips, hbm, itemsize=1))
        given = answer(n_params, batch, cached, chips, peak, hbm, size)
        what = f"{n_params / 1e9:.0f}B, batch {batch}, {cached / 1e9:.1f} GB cached, {chips} chips, {size} B a weight"
        yield _near(what, right, given, "ms", of=1e-3)


# ---- exercise 2 -----------------------------------------------------------------------------------------------------


@exercise(
    "07 cache_on_device",
    task="Give the bytes of the key-value cache on one device.",
    hint="First all of it: keys and values, every layer, kv_heads · head_size elements of every cached token.",
    bigger_hint="2 · layers · kv_heads · head_size · itemsize · context · batch, divided by the devices that can share "
    "it: min(devices, kv_heads) by heads, min(devices, batch) by batch.",
)
def cache_on_device(answer: Callable[..., float], rng: Random) -> Iterator[Case]:
    cases = [(1, 512, "heads"), (1, 512, "batch"), (8, 8, "batch"), (64, 8, "heads"), (8, 256, rng.choice(forms.BY))]
    for kv_heads, batch, by in cases:
        shape = (rng.choice((16, 80, 118)), kv_heads, rng.choice((64, 128, 256)))
        context, devices, size = 2 ** rng.randrange(9, 14), rng.choice((16, 32)), rng.choice((1, 2))
        right = forms.cache_bytes_per_device(*shape, batch, context, devices, by, size)
        given = answer(*shape, batch, context, devices, by, size)
        what = f"{shape[0]} layers, {count(kv_heads, 'head')} of {shape[2]}, batch {batch}, {context:,} tokens"
        yield equal(f"{what}, {devices} devices, by {by}", right, given, "bytes")


# ---- exercise 3 -----------------------------------------------------------------------------------------------------


@exercise(
    "07 batch_within",
    task="Find the largest batch with which every device stays within the budget.",
    hint="A device holds weights / devices, and the caches of batch / devices sequences. What is left for these?",
    bigger_hint="(budget - weights / devices) // sequence sequences a device, times devices; at least 0.",
)
def batch_within(answer: Callable[..., int], rng: Random) -> Iterator[Case]:
    for devices, fits in zip(rng.sample((4, 8, 16, 32, 64), 4), (True, True, False, True)):
        sequence = rng.randrange(1, 64) * 2**20
        weights = devices * rng.randrange(1, 20) * 2**30
        room = rng.randrange(3, 40) * sequence + rng.randrange(1, sequence)
        budget = weights // devices + room if fits else weights // devices - rng.randrange(1, 2**20)
        given = answer(budget, devices, weights, sequence)
        what = f"{devices} devices of {format_bytes(budget)}, weights {format_bytes(weights)}, " \
               f"{format_bytes(sequence)} a sequence"  # fmt: skip
        whole = given >= 0 and given % devices == 0
        yield holds(f"{what}: an answer", whole, f"a multiple of {devices}", repr(given))
        held = (weights + given * sequence) // devices if given else 0
        yield at_most(f"{what}: held with batch {given:,}", budget, held, "bytes on a device")
        yield equal(f"{what}: batch", room // sequence * devices if fits else 0, given, "sequences")


# ---- exercise 4 -----------------------------------------------------------------------------------------------------

NAMES = forms.LAYOUTS[1:]


@exercise(
    "07 layout",
    task="Choose the feedforward layout that moves the fewest elements.",
    hint="Section 4 has each layout's elements. Compute the four and take the smallest.",
    bigger_hint="With n = x·y·z: ws2d T·(E/x + F/(y·z)); wg_x and wg_xy E·F·N/n + T·E/N with N = x or x·y; wg_xyz E·F "
    "(all without their common factor 2). Then min(moved, key=moved.get).",
)
def layout(answer: Callable[..., str], rng: Random) -> Iterator[Case]:
    for want in rng.sample((*NAMES, rng.choice(NAMES)), len(NAMES) + 1):
        tokens, sizes, mesh = _where_it_wins(want, rng)
        moved = {name: forms.layout_bytes(name, tokens, *sizes, *mesh) for name in NAMES}
        given = answer(tokens, *sizes, *mesh)
        what = f"{tokens:,} tokens, d_model {sizes[0]:,}, d_ff {sizes[1]:,} on {'x'.join(map(str, mesh))}"
        yield holds(f"{what}: an answer", given in NAMES, f"one of {', '.join(NAMES)}", repr(given))
        yield at_most(f"{what}: moved by {given}", min(moved.values()), moved[given], "bytes a device")


def _where_it_wins(name: str, rng: Random) -> tuple[int, tuple[int, int], tuple[int, int, int]]:
    """Tokens, sizes and a mesh on which this layout moves clearly least: inside its part of the envelope."""
    while True:
        mesh = rng.choice((2, 4, 8)), rng.choice((2, 4, 8)), rng.choice((2, 4, 8))
        sizes = (d_model := 1024 * rng.choice((4, 8, 18)), d_model * rng.choice((3, 4, 8)))
        parts = forms.winners(*sizes, mesh, pinned=mesh)
        for part, after in zip(parts, [*parts[1:], None]):
            end = after.tokens if after else 4 * part.tokens
            if part.layout == name and end > 2 * part.tokens + 64:
                return rng.randrange(int(part.tokens * 5 / 4) + 1, int(end * 4 / 5)), sizes, mesh


# ---- exercise 5 -----------------------------------------------------------------------------------------------------


@exercise(
    "07 repaired_claims",
    task="Give the right values of three formulas that circulate.",
    hint="Compare 4·T·sqrt(E·F/n) with 2·T·E. Ask what part of a matrix X devices hold. Divide the two times.",
    bigger_hint="n = 4·F/E. X devices of n hold X/n of each of two matrices of E·F elements of 2 bytes. Of the serial "
    "time 1 + slower the parallel one takes 1.",
)
def repaired_claims(answer: Callable[..., tuple[float, float, float]], rng: Random) -> Iterator[Case]:
    for ratio in rng.sample((2, 3, 5, 6, 8), 3):
        d_model, x, devices = 1024 * rng.choice((2, 4, 18)), rng.choice((2, 4)), rng.choice((32, 64, 128))
        d_ff, slower = d_model * ratio, rng.choice((0.14, 0.25, 0.4))
        given = answer(d_model, d_ff, x, devices, slower)
        what = f"d_model {d_model:,}, d_ff {d_ff:,}, x {x} of {devices} devices, {slower:.0%} slower"
        yield _near(f"{what}: 2D wins from", forms.devices_from_which_2d_wins(d_model, d_ff), given[0], "devices")
        yield _near(f"{what}: gathered", gathered_weights(d_model, d_ff, x, devices), given[1], "MB of weights", of=1e6)
        yield _near(f"{what}: parallel saves", faster_by(slower), given[2], "%", of=0.01)
