"""Checks of lesson 11: partitions for two phases, equal tokens, turns of a conversation, a plan under a limit."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

import mtfcore as mtf
from mtfcore.errors import LayoutError
from mtfcore.numbers import count, digits
from widgets.learning.exercises import Case, at_most, equal, holds

from .book import exercise

# ---- exercise 1: two phases, one store -----------------------------------------------------------------------------

FFN = ("ws1d", "ws2d", "wg_x", "wg_xy", "wg_xyz")


@exercise(
    "11 pair",
    task="Choose the partitions of prefill and decode together.",
    hint="There are few pairs: try all. Which of them store the weights alike?",
    gives="(a name for prefill, a name for decode)",
    bigger_hint="Drop pairs of which only one is ws1d; of the rest take the least prefill[p] + tokens * decode[d].",
)
def pair(answer: Callable[..., tuple[str, str]], rng: Random) -> Iterator[Case]:
    for kind in rng.sample(("read", "write", "mixed", "long"), 4):
        prefill, decode, tokens = _times(kind, rng)
        given = answer(dict(prefill), dict(decode), tokens)
        pairs = [(p, d) for p in prefill for d in decode if _stored(p) == _stored(d)]
        what = f"{tokens} tokens, prefill {_listed(prefill)}, decode {_listed(decode)}"
        named = given[0] in prefill and given[1] in decode
        yield holds(f"{what}: the answer", named, "(a name for prefill, a name for decode)", f"{given!r:.60}")
        alike = "weights stored alike: ws1d in both phases or in none"
        what = f"{tokens} tokens, {' and '.join(given)}"
        yield holds(what, _stored(given[0]) == _stored(given[1]), alike, "two stores")
        least = min(prefill[p] + tokens * decode[d] for p, d in pairs)
        took = prefill[given[0]] + tokens * decode[given[1]]
        yield at_most(what, round(1e3 * least), round(1e3 * took), "ms in all")


def _stored(name: str) -> bool:
    return name.startswith("ws1d")


def _listed(times: dict[str, float]) -> str:
    return ", ".join(f"{name} {digits(1e3 * seconds)} ms" for name, seconds in times.items())


def _times(kind: str, rng: Random) -> tuple[dict[str, float], dict[str, float], int]:
    """Times of which the best of each phase, taken alone, stand in different stores; which must give way varies."""
    tokens = {"read": 4, "write": 64, "mixed": 32, "long": 256}[kind]
    middle = rng.sample(FFN[1:], 3)
    prefill = {f"{ffn}-heads": 0.5 + 0.001 * rng.randrange(200) for ffn in ("ws1d", *middle)}
    decode = {f"{ffn}-batch": 0.05 + 0.0001 * rng.randrange(200) for ffn in ("ws1d", *middle)}
    if kind in ("read", "long"):  # one phase is nearly all of the time: the other gives way
        prefill["ws1d-heads"], decode["ws1d-batch"] = 1.2, 0.03
        if kind == "read":
            prefill[f"{middle[0]}-heads"] = 0.1
    else:  # prefill alone would take ws1d, decode another
        prefill["ws1d-heads"], decode[f"{middle[1]}-batch"] = 0.3, 0.02
    order = rng.sample(sorted(prefill), len(prefill))
    return {name: prefill[name] for name in order}, decode, tokens


# ---- exercise 2: the same tokens -----------------------------------------------------------------------------------


@exercise(
    "11 first_difference",
    task="Find the first token in which two runs differ.",
    hint="Go through the prompts in order, then through the positions. What if one answer ends sooner?",
    bigger_hint="Up to the longer one's end compare one[p][n : n + 1] with other[p][n : n + 1]: a slice past "
    "the end is empty, and so differs from a token.",
    gives='(prompt, position) or "same"',
)
def first_difference(answer: Callable[..., tuple[int, int] | str], rng: Random) -> Iterator[Case]:
    for kind in rng.sample(("same", "token", "shorter", "longer", "two", "first"), 6):
        one = [[rng.randrange(96) for _ in range(rng.randrange(3, 9))] for _ in range(rng.randrange(2, 5))]
        other, expected = _changed(one, kind, rng)
        given = answer([list(run) for run in one], other)
        yield equal(f"{one} and {other}", expected, given)


def _changed(one: list[list[int]], kind: str, rng: Random) -> tuple[list[list[int]], Any]:
    other = [list(run) for run in one]
    prompt = len(one) - 1 if kind != "first" else 0
    place = rng.randrange(1, len(one[prompt])) if kind != "first" else 0
    if kind == "same":
        return other, "same"
    if kind == "shorter":
        del other[prompt][place:]
    elif kind == "longer":
        other[prompt].append(7)
        place = len(one[prompt])
    else:
        other[prompt][place] = one[prompt][place] + 1
        if kind == "two" and place + 1 < len(one[prompt]):
            other[prompt][place + 1] += 1
    return other, (prompt, place)


# ---- exercise 3: turns of a conversation ---------------------------------------------------------------------------


@exercise(
    "11 turns_seconds",
    task="Give the seconds of each turn of a conversation whose cache is kept.",
    hint="In each turn only the user's new tokens are read. What is in the cache by then?",
    gives="a list of numbers, the seconds of each turn",
    bigger_hint="prefill(new, kept) + sum(step(kept + new + n) for n in range(answer)); kept grows by new + answer.",
)
def turns_seconds(answer: Callable[..., Sequence[float]], rng: Random) -> Iterator[Case]:
    for n_turns in (1, 2, rng.choice((3, 4))):
        turns = [(rng.randrange(16, 200), rng.randrange(8, 65)) for _ in range(n_turns)]
        prefill, step = _slice(rng)
        right, kept = [], 0
        for new, out in turns:
            right.append(prefill(new, kept) + sum(step(kept + new + n) for n in range(out)))
            kept += new + out
        given = answer(prefill, step, list(turns))
        yield holds(f"turns {turns}: the answer", len(given) == n_turns, count(n_turns, "number"), f"{given!r:.60}")
        for number, (want, have) in enumerate(zip(right, given, strict=True), 1):
            good, shown = math.isclose(want, have, rel_tol=2e-3), f"{digits(1e3 * have)} ms"
            yield holds(f"turns {turns}: turn {number}", good, f"{digits(1e3 * want)} ms", shown)


def _slice(rng: Random) -> tuple[Callable[[float, float], float], Callable[[float], float]]:
    """Times of some slice: what is read, what is in the cache, and what every launch takes."""
    start, token, looked = rng.uniform(0.005, 0.02), rng.uniform(1e-4, 3e-4), rng.uniform(2e-8, 8e-8)
    least, each = rng.uniform(0.01, 0.03), rng.uniform(1e-5, 4e-5)
    return (
        lambda new, cached: start + new * (token + looked * (cached + new / 2)),
        lambda context: least + each * context,
    )


# ---- exercise 4: a plan under a limit ------------------------------------------------------------------------------

SLICES, BATCHES = ["v4:2x2x4", "v4:4x4x4"], [16, 64, 256, 1024]
READ = {"ffn": "ws2d", "attention": "heads"}  # how prompts are read
ASKED = {word: {"prefill": how, "decode": "auto"} for word, how in READ.items()} | {
    "prefill_batch": 1,
    "weights": "int8",
}
LIMITS = ((1024, 0.012), (2048, 0.008), (2048, 0.025), (8192, 0.12))  # tokens of a prompt, seconds of an output token


@exercise(
    "11 configuration",
    task="Pick a slice, a batch and a partition under a limit of latency, at least cost.",
    hint="inference takes arrays: np.array(SLICES)[:, None] with BATCHES gives a table of all plans at once.",
    gives="(slice, batch, partition)",
    bigger_hint="cost = np.where(est.fits & (est.step_seconds <= limit), est.chip_seconds_per_output_token, np.inf). "
    "Its least entry says slice and batch, est.layouts['decode'] the partition there.",
)
def configuration(answer: Callable[..., tuple[str, int, str]], rng: Random) -> Iterator[Case]:
    for tokens, limit in rng.sample(LIMITS, len(LIMITS)):
        given = answer(tokens, limit)
        what = f"prompts of {tokens:,}, {1e3 * limit:.4g} ms"
        est, why = _estimate(tokens, *given)
        plan = f"{what}: {given!r:.60}"
        yield holds(plan, est is not None, "a plan that can be", why)
        yield holds(f"{plan}: memory", est.fits, "fits", "does not fit")
        yield at_most(f"{plan}: latency", _ms(limit), _ms(est.step_seconds), "ms a token (modelled)")
        budget, cost = _ms(_least(tokens, limit)), _ms(est.chip_seconds_per_output_token)
        yield at_most(f"{plan}: cost", budget, cost, "chip-ms a token (modelled)")


def _ms(seconds: float) -> float:
    return round(1e3 * seconds, 3)


@functools.cache
def table(tokens: int) -> Any:
    """All plans that the lesson lists, a row for each slice."""
    return mtf.costs.inference("palm-62b", np.array(SLICES)[:, None], batch=BATCHES, input_tokens=tokens, **ASKED)


def _least(tokens: int, limit: float) -> float:
    """Chip-seconds of an output token under the cheapest plan within a limit."""
    est = table(tokens)
    return float(est.chip_seconds_per_output_token[est.fits & (est.step_seconds <= limit)].min())


def _estimate(tokens: int, slice_: str, batch: int, partition: str) -> tuple[Any, str]:
    """What a plan costs, or None and why it cannot be."""
    if not (partition in mtf.model.partitions and "-" in partition):
        return None, f"{partition!r:.40} is no partition such as 'ws2d-batch'"
    if batch < 1:
        return None, f"a batch of {batch} is no batch"
    return _known_estimate(tokens, slice_, batch, partition)


@functools.cache
def _known_estimate(tokens: int, slice_: str, batch: int, partition: str) -> tuple[Any, str]:
    way = dict(zip(("ffn", "attention"), partition.rsplit("-", 1), strict=True))
    asked = {**ASKED, **{word: {"prefill": READ[word], "decode": how} for word, how in way.items()}}
    try:
        return mtf.costs.inference("palm-62b", slice_, batch=batch, input_tokens=tokens, **asked), ""
    except LayoutError as fault:
        return None, str(fault)
