"""Checks of lesson 13: a model's sizes, the cheapest offer, what sets two opinions apart, a product that sends half."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import mtfcore as mtf
from widgets.learning.exercises import Case, WrongAnswer, at_most, equal, holds

from .book import exercise

Offer = dict[str, Any]

# ---- exercise 1: sizes from a configuration ------------------------------------------------------------------------


@exercise(
    "13 sizes_of",
    task="Read parameters and the cache of one token off a configuration.",
    hint="Queries and outputs are d_model × heads · head_dim, keys and values d_model × key heads · head_dim. "
    "The gated feedforward has three matrices.",
    gives="two numbers: parameters, bytes",
    bigger_hint="layer = 2 * d_model * head_dim * (heads + kv) + 3 * d_model * d_ff; a kept token takes keys and "
    "values of all layers, 2 bytes each: layers * 2 * kv * head_dim * 2.",
)
def sizes_of(answer: Callable[..., tuple[int, int]], rng: Random) -> Iterator[Case]:
    for tied in rng.sample((True, False, rng.random() < 0.5), 3):
        said = _said(tied, rng)
        given = answer(dict(said))
        shown = ", ".join(
            f"{name} {said[name]}" for name in ("num_hidden_layers", "hidden_size", "num_key_value_heads")
        )
        what = f"{shown}, {'tied' if tied else 'two tables'}"
        yield equal(f"{what}: parameters", _matrices(said), given[0], "parameters")
        per_token = said["num_hidden_layers"] * said["num_key_value_heads"] * said["head_dim"] * 4
        yield equal(f"{what}: a kept token", per_token, given[1], "bytes")


def _said(tied: bool, rng: Random) -> dict[str, Any]:
    kv = rng.choice((1, 2, 4, 8))
    return {
        "model_type": "llama", "hidden_act": "silu", "num_hidden_layers": rng.choice((3, 12, 40)),
        "hidden_size": rng.choice((512, 1536, 5120)), "intermediate_size": rng.choice((1408, 4096, 13824)),
        "num_attention_heads": kv * rng.choice((3, 5)), "num_key_value_heads": kv,
        "head_dim": rng.choice((64, 96, 128)),
        "vocab_size": rng.choice((32000, 49152)), "max_position_embeddings": 4096, "tie_word_embeddings": tied,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    }  # fmt: skip


def _matrices(said: dict[str, Any]) -> int:
    """What the library reads from the same file, without the norms: two in a layer and one at the end."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(said), encoding="utf-8")
        cfg = mtf.model.config(folder)
    return cfg.n_params - (2 * cfg.layers + 1) * cfg.d_model


# ---- exercise 2: the cheapest that keeps a promise -----------------------------------------------------------------


@exercise(
    "13 choose",
    task="Choose the cheapest offer that fits and keeps a limit of seconds a token.",
    hint="First leave out what does not fit or is too slow. What does a token of the others cost?",
    gives="an offer's name, or 'none'",
    bigger_hint="A token costs price * chips * step_seconds / batch: a step makes one token of each sequence.",
)
def choose(answer: Callable[..., str | None], rng: Random) -> Iterator[Case]:
    for kind in ("one limit", "another day", "a third", "none keeps the limit"):
        offers, limit = _offers(kind, rng)
        best = _cheapest(offers, limit)
        given = answer([dict(offer) for offer in offers], limit)
        found = next((offer for offer in offers if offer["name"] == given), None)
        why = _why(found, limit) if found else "no offer's name" if given != "none" else "no offer"
        yield Case(
            f"{len(offers)} offers, {1e3 * limit:.0f} ms ({kind})",
            given == best,
            _named(best, offers, limit),
            f"{given!r}: {why}",
        )


def _offers(kind: str, rng: Random) -> tuple[list[Offer], float]:
    """Some at random, and four that tempt: too slow, without room, alone on its chip, and one that is hard to beat."""
    made = [
        (rng.choice((2, 4, 8, 16)), rng.choice((1, 8, 32)), rng.uniform(0.005, 0.05), rng.random() < 0.75)
        for _ in range(4)
    ]  # fmt: skip
    made += [
        (4, 512, 0.012, False),
        (4, 256, 0.021, True),
        (1, 1, 0.003, True),
        (4, 64, rng.uniform(0.016, 0.019), True),
    ]
    rng.shuffle(made)
    offers = [
        {"name": f"offer {n}", "chips": chips, "batch": batch, "step_seconds": round(seconds, 4), "fits": fits,
         "price": round(rng.uniform(2, 3), 2)}
        for n, (chips, batch, seconds, fits) in enumerate(made, 1)
    ]  # fmt: skip
    return offers, 0.002 if kind == "none keeps the limit" else 0.02


def _a_token(offer: Offer) -> float:
    return offer["price"] * offer["chips"] * offer["step_seconds"] / offer["batch"]


def _cheapest(offers: Sequence[Offer], limit: float) -> str:
    good = [offer for offer in offers if offer["fits"] and offer["step_seconds"] <= limit]
    return min(good, key=_a_token)["name"] if good else "none"


def _named(best: str, offers: Sequence[Offer], limit: float) -> str:
    """The right answer with its cost; "none" alone."""
    return next((f"{best!r}: {_why(offer, limit)}" for offer in offers if offer["name"] == best), repr(best))


def _why(offer: Offer, limit: float) -> str:
    if not offer["fits"]:
        return "it does not fit"
    if offer["step_seconds"] > limit:
        return f"it takes {1e3 * offer['step_seconds']:.1f} ms"
    return f"{_a_token(offer) / 3600 * 1e6:.3f} a million tokens"


# ---- exercise 3: what sets two opinions apart ----------------------------------------------------------------------


@exercise(
    "13 explains",
    task="Name the part that explains most of a difference, and its share.",
    hint="Subtract part by part, a missing part being 0, and divide each by the difference of the sums.",
    gives="a part and a share",
    bigger_hint="apart[part] = theirs.get(part, 0) - ours.get(part, 0) for the parts of both; the largest "
    "apart[part] / whole.",
)
def explains(answer: Callable[..., tuple[str, float]], rng: Random) -> Iterator[Case]:
    for number in range(4):
        ours, theirs, part, share = _told_apart(rng, number)
        given = answer(dict(ours), dict(theirs))
        what = f"{_shown(ours)} against {_shown(theirs)}"
        yield equal(f"{what}: the part", part, given[0])
        near = abs(given[1] - share) < 1e-6 * abs(share)
        yield holds(f"{what}: its share", near, f"{share:.4f}", f"{given[1]:.4f}")


def _told_apart(rng: Random, number: int) -> tuple[dict[str, float], dict[str, float], str, float]:
    """Two splits, the part that explains most and its share: no ties, and that part twice in one of them alone."""
    parts = ["weights", "cache", "products", "links", "launches"]
    while True:
        ours = {part: round(rng.uniform(1, 9), 2) for part in rng.sample(parts, 3)}
        theirs = {part: round(rng.uniform(1, 9), 2) for part in rng.sample(parts, 4)}
        theirs |= {parts[number]: round(rng.uniform(12, 20), 2)}
        ours, theirs = (ours, theirs) if number % 2 else (theirs, ours)  # either may be the longer one
        apart = {part: theirs.get(part, 0) - ours.get(part, 0) for part in parts if part in ours or part in theirs}
        whole = sum(theirs.values()) - sum(ours.values())
        if abs(whole) < 1:
            continue
        (share, part), (second, _) = sorted(((gap / whole, name) for name, gap in apart.items()), reverse=True)[:2]
        if share - second > 0.01 and (number > 1 or not (part in ours and part in theirs)):
            return ours, theirs, part, share


def _shown(parts: dict[str, float]) -> str:
    return ", ".join(f"{name} {seconds}" for name, seconds in parts.items())


# ---- exercise 4: send half -----------------------------------------------------------------------------------------


@exercise(
    "13 body",
    task="Write a product for one device that sends half of what a psum sends.",
    hint="Everybody has a part of the sum of every column, and needs all of the sum of a few columns. Which collective "
    "adds up and hands out at once?",
    gives="an array of two dimensions, batch and columns",
    bigger_hint='jax.lax.psum_scatter(x @ w, "x", scatter_dimension=…, tiled=True): columns are dimension 1.',
)
def body(answer: Callable[..., Any], rng: Random) -> Iterator[Case]:
    import jax
    from jax.sharding import AxisType
    from jax.sharding import PartitionSpec as P

    mtf.devices(64)
    numbers = np.random.default_rng(rng.randrange(2**32))
    for devices in rng.sample((2, 4, 8), 2):
        mesh = jax.make_mesh((devices,), ("x",), devices=jax.devices("cpu")[:devices], axis_types=(AxisType.Auto,))
        specs: dict[str, Any] = {"mesh": mesh, "in_specs": (P(None, "x"), P("x", None)), "check_vma": False}
        batch, d_in, d_out = rng.choice((3, 6)), 2 * devices, devices * rng.choice((2, 3))
        x, w = (numbers.integers(-4, 5, shape).astype("f4") for shape in ((batch, d_in), (d_in, d_out)))
        what = f"{devices} devices, {batch} × {d_in} × {d_out}"
        fn = jax.shard_map(functools.partial(_columns, answer, what), out_specs=P(None, "x"), **specs)
        shape = jax.eval_shape(fn, x, w).shape
        yield equal(f"{what}: shape of the whole result", (batch, d_out), shape)
        made, right = np.asarray(jax.block_until_ready(jax.jit(fn)(x, w))), x @ w
        place = tuple(map(int, np.unravel_index(np.abs(made - right).argmax(), right.shape)))
        where = f"device {place[1] * devices // d_out}, its columns" if made[place] != right[place] else ""
        yield Case(
            f"{what}: element {place}", made[place] == right[place], f"{right[place]:g}", f"{made[place]:g}", where
        )
        summed = jax.shard_map(lambda x, w: jax.lax.psum(x @ w, "x"), out_specs=P(), **specs)
        allowed, sent = (mtf.count(each, x, w).link_bytes for each in (summed, fn))
        yield at_most(f"{what}: sent", allowed // 2, sent, "counted bytes sent by a device")


def _columns(answer: Callable[..., Any], what: str, x: Any, w: Any) -> Any:
    """The answer's array on one device, if it is one of two dimensions: JAX's own words on that are hard to read."""
    made = answer(x, w)
    shape = f"of shape {made.shape}" if hasattr(made, "shape") else f"{made!r:.60}"
    if getattr(made, "ndim", 0) != 2:
        raise WrongAnswer(Case(f"{what}: on a device", False, "an array of two dimensions, batch and columns", shape))
    return made
