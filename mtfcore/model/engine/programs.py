"""The engine's programs: the model's step on a cache of fixed size, told how much of it each sequence has filled.

    >>> shape = Shape(cfg, mesh, "ws2d-batch", sequences=8, length=1024, weights="f32", cache="f32")
    >>> prog = decoding(shape, turns=1)            # tokens B, length B, live B, parameters, cache → tokens, the cache
    >>> prog.collectives(), mtf.price(prog, "v4:2x2x2")

Sequences differ in what they hold, so three small arrays come in with every launch: `length`, how many tokens of each
are kept; `count` or `live`, how many of those given are real; and, unless the likeliest token is taken, what each draws
with. Layers only read the cache; what all of them made is written behind it in one step, in place where its memory was
donated. A token that is not real is written nowhere. Decoding several tokens in one launch is a loop around the same
step. Source: arXiv 2211.05102, section 2 (phases), 3.3. Next file to read: `moving_caches`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mtfcore as mtf
from mtfcore.dims import Dim
from mtfcore.errors import sure
from mtfcore.functions import Function
from mtfcore.mesh import Mesh
from mtfcore.model.block import full_precision, regrouped
from mtfcore.model.configs import Config
from mtfcore.model.phases import activations, cache_arguments, step
from mtfcore.model.pins import Weights
from mtfcore.model.places import Placement, placement
from mtfcore.model.sampling import pick_each
from mtfcore.model.serving import SERVING
from mtfcore.model.storing import stored_arguments
from mtfcore.planning import plan
from mtfcore.steps import Program
from mtfcore.tensor import Tensor

DRAWING = {"temperature": "f32", "top_k": "i32", "top_p": "f32"}  # options of each sequence, besides its chance


@dataclass(frozen=True)
class Shape:
    """What decides a program, but for how many tokens it takes: model, mesh, partition, sizes and dtypes."""

    cfg: Config
    mesh: Mesh
    partition: str
    sequences: int
    length: int  # tokens that the cache has room for
    weights: str
    cache: str
    n_tokens: int  # ids from there on only pad the vocabulary

    def where(self, phase: str, new_tokens: int = 1) -> Placement:
        """Where everything lies in a phase."""
        return placement(self.cfg, phase, self.mesh, SERVING[self.partition], batch=self.sequences,
                         new_tokens=new_tokens)  # fmt: skip

    @property
    def cache_texts(self) -> dict[str, str]:
        """Name → dimensions, layers first, of each part of the cache."""
        return cache_arguments(self.cfg, self.cache, activations(self.weights))[0]

    @property
    def cache_dtypes(self) -> dict[str, str]:
        """Name → dtype of each part of the cache."""
        return cache_arguments(self.cfg, self.cache, activations(self.weights))[1]


def reading(shape: Shape, new_tokens: int, drawn: bool = False) -> Program:
    """Prefill of one chunk: tokens `B L`, of which `count` are real → the token behind each last one; the cache."""
    where = shape.where("prefill", new_tokens)

    def call(tokens: Tensor, length: Tensor, count: Tensor, **given: Tensor) -> dict[str, Tensor]:
        weights, kept, options = parted(given)
        found = step(shape.cfg, {**weights, **kept}, tokens, where.pins, length, shape.cache, count)
        token = chosen(shape, found["logits"], options)
        return {"token": token, **written(found, kept, length, count)}

    return planned(shape, "prefill", where, call, {"tokens": "B L", "length": "B", "count": "B"}, drawn,
                   f"B:{shape.sequences} L:{new_tokens} S:{shape.length}")  # fmt: skip


def decoding(shape: Shape, turns: int = 1, drawn: bool = False) -> Program:
    """Decode of `turns` tokens of every sequence: the last tokens `B` → `turns B` tokens; the cache.

    A sequence whose `live` is 0 keeps its place and writes nothing.
    """
    where = shape.where("decode")

    def call(tokens: Tensor, length: Tensor, live: Tensor, **given: Tensor) -> dict[str, Tensor]:
        weights, kept, options = parted(given)
        chances = {"chance": options.pop("chance")} if drawn else {}

        def turn(token: Tensor, at: Tensor, *parts: Tensor, chance: Tensor | None = None) -> tuple[Tensor, ...]:
            now = dict(zip(kept, parts, strict=True))
            one = regrouped(token, "B", (token.dim("B"), Dim("L", 1)))
            found = step(shape.cfg, {**weights, **now}, one, where.pins, at, shape.cache)
            drawing = {**options, "chance": sure(chance)} if drawn else {}
            after = chosen(shape, found["logits"], drawing)
            return after, at + live, *written(found, now, at, live).values(), after

        if turns == 1:
            one = {name: regrouped(t, "turns B", (t.dim("B"),)) for name, t in chances.items()}
            _, _, *parts, made = turn(tokens, length, *kept.values(), **one)
            made = regrouped(made, "B", (Dim("turns", 1), made.dim("B")))
        else:
            _, _, *parts, made = mtf.repeat(turn, turns, chances, tokens, length, *kept.values(), over="turns")
        return {"tokens": made, **dict(zip(kept, parts, strict=True))}

    texts = {"tokens": "B", "length": "B", "live": "B"}
    return planned(shape, "decode", where, call, texts, drawn, f"B:{shape.sequences} S:{shape.length} turns:{turns}",
                   "turns B")  # fmt: skip


def planned(
    shape: Shape, name: str, where: Placement, call: Callable[..., Any], small: Mapping[str, str], drawn: bool,
    sizes: str, chance: str = "B",
) -> Program:  # fmt: skip
    """The plan of a step whose `small` inputs, and what it draws with, are whole everywhere."""
    computed = activations(shape.weights)
    texts, dtypes = stored_arguments(shape.cfg, shape.weights, computed)
    more = {"chance": chance, **dict.fromkeys(DRAWING, "B")} if drawn else {}
    texts = {**small, **more, **texts, **shape.cache_texts}
    dtypes = {**dict.fromkeys(small, "i32"), **({"chance": "f32", **DRAWING} if drawn else {}), **dtypes,
              **shape.cache_dtypes}  # fmt: skip
    place = {n: where.place.get(n, "") for n in texts}
    return plan(Function.of(name, texts, call, dtypes), shape.mesh, where.layout, sizes=sizes, place=place,
                dtype=computed)  # fmt: skip


def parted(given: Mapping[str, Tensor]) -> tuple[Weights, dict[str, Tensor], dict[str, Tensor]]:
    """(parameters, the cache's parts, what is drawn with) of a program's inputs."""
    kept = {name: t for name, t in given.items() if name.startswith("cache_")}
    options = {name: t for name, t in given.items() if name == "chance" or name in DRAWING}
    return {name: t for name, t in given.items() if name not in {**kept, **options}}, kept, options


def written(
    found: Mapping[str, Tensor], kept: Mapping[str, Tensor], length: Tensor, count: Tensor
) -> dict[str, Tensor]:
    """The cache with every real token's keys and values behind those of its sequence."""
    k = found["k"]
    here = mtf.index("L", k)
    past_all = kept["cache_k"].dim("S").size  # where nothing is written
    at = mtf.where(mtf.less(here, count, out="B L"), mtf.add(length, here, out="B L"), past_all)
    return {name: mtf.write(t, found[name.removeprefix("cache_")], at, "S") for name, t in kept.items()}


def chosen(shape: Shape, logits: Tensor, drawing: Mapping[str, Tensor]) -> Tensor:
    """The next token of each sequence, i32[B]; the vocabulary stays where it lies."""
    logits = full_precision(logits)
    if drawing:
        chance, temperature, top_k, top_p = (drawing[name] for name in ("chance", *DRAWING))
        return pick_each(logits, chance, temperature, top_k, top_p, n_tokens=shape.n_tokens)
    if shape.n_tokens < logits.size("V"):
        legal = mtf.less(mtf.index("V", logits), shape.n_tokens)
        logits = mtf.where(legal, logits, float("-inf"), out="B V")
    return mtf.argmax(logits, "V")
