"""Checks of lesson 09: copies of keys, the longest context, heads or batch, pins that leave the cache where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

import mtfcore as mtf
from mtfcore.costs.second_paper.cache import cache_bytes_per_device
from mtfcore.costs.serving_memory.cache_bytes import cache
from mtfcore.numbers import count, format_bytes
from widgets.explorers.attention_program import attention_program
from widgets.learning.exercises import Case, at_most, equal, holds

from .book import exercise

# ---- exercise 1 -----------------------------------------------------------------------------------------------------


@exercise(
    "09 copies",
    task="Say on how many devices each kept key lies, by heads.",
    hint="Take the axes one after the other. Either an axis divides the key heads that are left, or it makes copies.",
    bigger_hint="Start with held = 1. For each size: if key_heads % size == 0, key_heads //= size, else held *= size.",
)
def copies(answer: Callable[..., int], rng: Random) -> Iterator[Case]:
    palm = mtf.model.config("palm-540b", heads=256)
    for z, y, x, key_heads in ((4, 4, 4, 1), (4, 4, 4, 8), (8, 4, 2, 8), (2, 8, 2, 4), (4, 2, 4, 256), *_meshes(rng)):
        right = cache(palm.but(kv_heads=key_heads), (x, y, z), attention="heads").copies
        what = f"{count(key_heads, 'key head')} on z:{z} y:{y} x:{x}"
        yield equal(f"{what}: each key", int(right), answer([z, y, x], key_heads), "devices")


def _meshes(rng: Random) -> Iterator[tuple[int, ...]]:
    for _ in range(3):
        yield *(rng.choice((2, 4, 8)) for _ in range(3)), rng.choice((1, 2, 4, 8, 16, 32))


# ---- exercise 2 -----------------------------------------------------------------------------------------------------


@exercise(
    "09 longest",
    task="Find the longest context whose cache stays within the budget of a device.",
    hint="How many bytes does one token of all sequences take, and how many devices share these out?",
    bigger_hint="One token: 2 · layers · key_heads · head_size · itemsize · batch bytes, over min(devices, key_heads) "
    "by heads and min(devices, batch) by batch. The answer is whole: budget // that.",
)
def longest(answer: Callable[..., int], rng: Random) -> Iterator[Case]:
    cases = [
        (1, 512, "heads"),
        (1, 128, "batch"),
        (8, 8, "batch"),
        (64, 16, "heads"),
        (8, 64, "heads"),
        (1, 4, "batch"),
    ]
    for key_heads, batch, by in cases:
        shape = (rng.choice((16, 32, 64)), key_heads, rng.choice((64, 128, 256)))
        devices, itemsize = rng.choice((32, 64)), rng.choice((1, 2))
        one = int(cache_bytes_per_device(*shape, batch, 1, devices, by, itemsize))
        most = rng.randrange(100, 50_000)
        budget = most * one + rng.randrange(1, one)
        given = answer(budget, *shape, batch, devices, by, itemsize)
        what = f"{count(key_heads, 'key head')}, batch {batch}, {devices} devices, by {by}, {format_bytes(budget)}"
        yield holds(f"{what}: an answer", given >= 0, "0 or more tokens", repr(given))
        yield at_most(f"{what}: held with {given:,} tokens", budget, given * one, "bytes on a device")
        yield equal(f"{what}: context", most, given, "tokens")


# ---- exercise 3 -----------------------------------------------------------------------------------------------------


@exercise(
    "09 choose",
    task="Choose attention by heads or by batch for each request.",
    hint="Into how many parts is the cache cut by heads? By batch? Does the context change which has more?",
    gives='a list, "heads" or "batch" for each request',
    bigger_hint="By heads min(devices, key_heads) parts, by batch min(devices, batch). More parts, fewer bytes a "
    "device; as many: heads.",
)
def choose(answer: Callable[..., Sequence[str]], rng: Random) -> Iterator[Case]:
    for key_heads in rng.sample((1, 4, 8, 16, 128), 5):
        devices = rng.choice((16, 32, 64))
        batches = [1, key_heads, max(key_heads // 2, 1), 2 * key_heads, 512, rng.choice((2, 8, 32, 128))]
        rng.shuffle(batches)
        requests = [(batch, 2 ** rng.randrange(7, 17)) for batch in batches]
        given = answer(list(requests), key_heads, devices)
        what = f"{count(key_heads, 'key head')} on {devices} devices"
        many = f'a list of {len(requests)}, "heads" or "batch"'
        yield holds(f"{what}: an answer", len(given) == len(requests), many, f"{given!r:.60}")
        for (batch, context), way in zip(requests, given):
            held = {
                by: cache_bytes_per_device(1, key_heads, 128, batch, context, devices, by) for by in ("heads", "batch")
            }
            least = "batch" if held["batch"] < held["heads"] else "heads"
            yield equal(f"{what}, batch {batch}, context {context:,}", least, way)


# ---- exercise 4 -----------------------------------------------------------------------------------------------------


@exercise(
    "09 pins",
    task="Write the pins with which q moves and the cache does not.",
    hint="The cache stays if its pin is where it lies. Which axes must B of q then have, and in which order?",
    gives="two texts, the places of q and of the cache",
    bigger_hint="B of q has the axes that B of the cache has. H keeps those of its axes that are not among them. "
    "The second pin is the cache's own text.",
)
def pins(answer: Callable[..., tuple[str, str]], rng: Random) -> Iterator[Case]:
    places = [
        ("B:x H:zy D", "B:xzy S D"),
        ("B:x H:zy D", "B:xz S D"),
        ("B H:zyx D", "B:zyx S D"),
        ("B:x H:z D", "B:xz S D"),
    ]
    rng.shuffle(places)
    for q, kept in places:
        mesh = f"x:{rng.choice((2, 4))} y:{rng.choice((2, 4))} z:{rng.choice((2, 4))}"
        sizes = f"B:64 H:64 S:{rng.choice((256, 512))} D:16"
        given = answer(q, kept)
        what = f"q {q}, cache {kept} on {mesh}"
        program = pinned(*given, q, kept, mesh, sizes)
        moved = sum(step.link_bytes for step in program.collectives() if _is_cache(step))
        yield at_most(f"{what}: sent of the cache", 0, moved, "bytes by a device")
        least = pinned(_right(q, kept), kept, q, kept, mesh, sizes).link_bytes().total
        yield at_most(f"{what}: sent of q", least, program.link_bytes().total, "bytes by a device")


def _right(q: str, kept: str) -> str:
    """B as the cache has it, H with what is left."""
    batch, heads = kept.split()[0], q.split()[1].partition(":")[2]
    left = "".join(axis for axis in heads if axis not in batch.partition(":")[2])
    return f"{batch} H:{left} D" if left else f"{batch} H D"


def _is_cache(step: mtf.Step) -> bool:
    return {"S", "D"} <= set(step.before[0].names)


def pinned(q_at: str, cache_at: str, q: str, kept: str, mesh: str, sizes: str) -> mtf.Program:
    """The lesson's attention with these pins."""

    @mtf.function
    def attention(q: "B H D", k: "B S D", v: "B S D"):
        scores = mtf.einsum(q, k, out="B H S", at=[q_at, cache_at], follow=True)
        return mtf.einsum(mtf.softmax(scores, "S"), v, out="B H D", follow=True)

    return mtf.plan(attention, mesh, sizes=sizes, place={"q": q, "k": kept, "v": kept})


# ---- exercise 5 -----------------------------------------------------------------------------------------------------


@exercise(
    "09 exchanged",
    task="Count the bytes that a device sends in the all-to-alls of a layer.",
    hint="Four tensors of batch · head_size numbers a head. How many heads have q, k, v and the result?",
    bigger_hint="(2 · heads + 2) · batch · head_size · itemsize bytes over x · yz devices, times (yz − 1) / yz.",
)
def exchanged(answer: Callable[..., float], rng: Random) -> Iterator[Case]:
    for _ in range(5):
        x, y, z = (rng.choice((2, 4)) for _ in range(3))
        heads, head_size, (itemsize, dtype) = (
            16 * rng.choice((1, 2)),
            rng.choice((64, 128)),
            rng.choice(((2, "bf16"), (4, "f32"))),
        )
        batch = x * y * z * rng.choice((1, 2, 8))
        cfg = mtf.model.config("palm-8b").but(layers=1, d_model=1024, d_ff=1024, heads=heads, head_size=head_size)
        program = attention_program(cfg, f"x:{x} y:{y} z:{z}", batch, 256, "batch", dtype)
        right = sum(step.link_bytes for step in program.collectives() if step.kind == "all_to_all")
        what = f"batch {batch}, {heads} heads of {head_size}, x {x}, yz {y * z}, {itemsize} B a number"
        yield equal(what, right, answer(batch, heads, head_size, x, y * z, itemsize), "bytes")
