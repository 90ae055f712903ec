"""Checks of lesson 10: serial blocks within a budget, int8 and its scales, the order of a looped gather."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

import mtfcore as mtf
from mtfcore.errors import LayoutError, sure
from mtfcore.functions import Function
from mtfcore.tensor import Tensor
from widgets.learning.exercises import Case, at_most, equal, holds

from .book import exercise

# ---- exercise 1: serial blocks -------------------------------------------------------------------------------------

# d_model, d_ff, heads, activation, devices: on each another mesh is best for serial blocks than for parallel ones
SERIAL = (
    (64, 256, 16, "swiglu", 32), (128, 256, 32, "relu", 16), (128, 256, 32, "relu", 64), (256, 256, 16, "relu", 32)
)  # fmt: skip


@exercise(
    "10 mesh_within",
    task="Find a mesh on which a model with serial blocks sends no more than a budget.",
    hint="x and y share the devices: there are only a few meshes. Plan each and see what it sends.",
    gives='a mesh such as "x:2 y:8"',
    bigger_hint="for x in (4, 8, 16): the mesh is f'x:{x} y:{devices // x}'; return it if sent(cfg, mesh) <= budget.",
)
def mesh_within(answer: Callable[..., str | mtf.Mesh], rng: Random) -> Iterator[Case]:
    for d_model, d_ff, heads, activation, devices in rng.sample(SERIAL, 4):
        cfg = _config(d_model, d_ff, heads, activation)
        by_mesh = _sent(cfg, devices)
        budget = min(by_mesh.values())
        given = answer(cfg, devices, budget)
        what = f"d_model {d_model}, d_ff {d_ff}, {activation}, {devices} devices"
        found, why = _mesh(given)
        yield holds(f"{what}: the answer", found is not None, 'a mesh such as "x:2 y:8"', f"{given!r:.60}{why}")
        mesh = sure(found)
        yield equal(f"{what}: devices", devices, mesh.size, "devices")
        known = by_mesh.get((mesh["x"], mesh["y"])) if mesh.names == ("x", "y") else None
        yield holds(f"{what}: axes", known is not None, "x and y, so that heads divide over y", repr(given))
        yield at_most(f"{what}: on {given}", budget, sure(known), "bytes sent by a device")


def _mesh(given: str | mtf.Mesh) -> tuple[mtf.Mesh | None, str]:
    """The mesh that was meant, or None and why."""
    try:
        return mtf.Mesh(given) if isinstance(given, str) else given, ""
    except LayoutError as fault:
        return None, f" ({str(fault).splitlines()[0]})"


@functools.cache
def _config(d_model: int, d_ff: int, heads: int, activation: str, block: str = "serial") -> Any:
    sizes = {"d_model": d_model, "d_ff": d_ff, "heads": heads, "head_size": 8 if heads == 16 else 4}
    return mtf.model.config("palm-540b", layers=2, vocab=64, block=block, activation=activation, **sizes)


def sent(cfg: Any, mesh: str) -> float:
    """Bytes that one device sends in a decode step; as the lesson has it."""
    plan = mtf.model.plan_phase(cfg, "decode", mesh, ffn="ws2d", attention="heads", batch=64, cached_tokens=16)
    return plan.link_bytes().total


@functools.cache
def _sent(cfg: Any, devices: int) -> dict[tuple[int, int], int]:
    """Sizes of x and y → bytes that a decode step sends, for all meshes that the model can lie on."""
    meshes = {(x, devices // x): f"x:{x} y:{devices // x}" for x in range(2, devices) if devices % x == 0}
    return {sizes: round(sent(cfg, mesh)) for sizes, mesh in meshes.items()
            if not mtf.model.possible(cfg, "ws2d", "heads", mesh, 64, 1, 16, "decode")}  # fmt: skip


# ---- exercise 2: int8 ----------------------------------------------------------------------------------------------


@exercise(
    "10 quantised",
    task="Store a matrix as int8 with one scale for each output.",
    hint="The scale of a column is its largest size over 127. Divide, and round to the nearest whole number.",
    gives="(numbers, scales), two arrays",
    bigger_hint="scale = np.abs(w).max(axis=0) / 127, with 1 where that is 0; np.round(w / scale).astype(np.int8).",
)
def quantised(answer: Callable[..., tuple[np.ndarray, np.ndarray]], rng: Random) -> Iterator[Case]:
    numbers = np.random.default_rng(rng.randrange(2**32))
    for number in range(3):
        shape = rng.choice((5, 8, 24)), rng.choice((3, 7, 12))
        w = (numbers.normal(size=shape) * 10.0 ** numbers.uniform(-3, 1, shape[1])).astype(np.float32)
        if number == 2:
            w[:, 0] = 0
        given = answer(w.copy())
        what = f"{shape[0]} × {shape[1]}" + (", one output all zeros" if number == 2 else "")
        whole, scale = given
        yield equal(f"{what}: dtype of the numbers", "int8", str(whole.dtype))
        yield equal(f"{what}: shape of the numbers", shape, whole.shape)
        yield equal(f"{what}: shape of the scales", (shape[1],), scale.shape)
        yield from _near(what, w, whole, scale)


def _near(what: str, w: np.ndarray, whole: np.ndarray, scale: np.ndarray) -> Iterator[Case]:
    """Each weight within half a step of its output, and the step as small as it can be."""
    yield holds(f"{what}: scales", bool(np.isfinite(scale).all()), "finite numbers", f"{scale}")
    largest = np.abs(w).max(axis=0)
    with np.errstate(invalid="ignore"):
        wrong = np.abs(whole.astype(np.float64) * scale - w)
    worst = np.unravel_index(wrong.argmax() if not largest.any() else (wrong - largest / 254).argmax(), w.shape)
    allowed = largest[worst[1]] / 254 * (1 + 1e-4) + 1e-12
    yield holds(f"{what}: error of weight {tuple(map(int, worst))}, which is {w[worst]:.4g}", wrong[worst] <= allowed,
                f"at most half a step, {allowed:.3g}", f"{wrong[worst]:.3g}")  # fmt: skip


# ---- exercise 3: where the scale goes ------------------------------------------------------------------------------


@exercise(
    "10 scaled",
    task="Multiply by matrices whose parts have scales of their own.",
    hint="While G is still there, each part of the sum has its scale. Once it is summed away, nothing fits any more.",
    gives="a tensor",
    bigger_hint='First the parts: mtf.einsum(x, w, out="B G F"). Then multiply by scale and sum over G in one einsum.',
)
def scaled(answer: Callable[..., Tensor], rng: Random) -> Iterator[Case]:
    handed: list[Any] = []

    def kept(*operands: Tensor) -> Tensor:
        handed.append(answer(*operands))
        return operands[0]

    _scaled_function(kept).trace("B:2 G:2 E:2 F:2")
    yield holds("the answer", isinstance(handed[0], Tensor), "a tensor", f"{handed[0]!r:.80}")
    yield equal("dimensions of the result", ("B", "F"), tuple(dim.name for dim in handed[0].dims))
    numbers, given = np.random.default_rng(rng.randrange(2**32)), _scaled_function(answer)
    cases = [("x:2", {"B": 1, "G": 2, "E": 1, "F": 1})]
    cases += [(f"x:{g}", {"B": 4, "G": g, "E": 3, "F": 8}) for g in (2, 4)]  # few shapes: each new one compiles
    for mesh, sizes in cases:
        operands = _operands(sizes, numbers)
        right = np.einsum("bge,gef,gf->bf", *operands)
        made = np.asarray(given(*operands))
        place = np.unravel_index(np.abs(made - right).argmax(), right.shape)
        what = " ".join(f"{name}:{size}" for name, size in sizes.items())
        yield holds(f"{what}: element {tuple(map(int, place))}", bool(np.allclose(made, right, rtol=1e-4, atol=1e-3)),
                    f"{right[place]:.5g}", f"{made[place]:.5g}")  # fmt: skip
        least, sent = (mtf.plan(fn, mesh, "G:x", sizes=what).link_bytes().total
                       for fn in (_scaled_function(_right), given))  # fmt: skip
        yield at_most(f"{what} on {mesh}", least, sent, "bytes sent by a device")


def _scaled_function(answer: Callable[..., Tensor]) -> Function:
    @mtf.function
    def scaled(x: "B G E", w: "G E F", scale: "G F"):
        return answer(x, w, scale)

    return scaled


def _right(x: Tensor, w: Tensor, scale: Tensor) -> Tensor:
    return mtf.einsum(mtf.einsum(x, w, out="B G F"), scale, out="B F")


def _operands(sizes: dict[str, int], numbers: np.random.Generator) -> list[np.ndarray]:
    """The first case is the lesson's: one column, [127, 1]."""
    b, g, e, f = (sizes[name] for name in "BGEF")
    if b == e == f == 1:
        return [np.ones((1, 2, 1), "f4"), np.full((2, 1, 1), 127, "f4"), np.array([[1], [1 / 127]], "f4")]
    whole = [numbers.integers(-low, low + 1, shape).astype("f4") for low, shape in ((3, (b, g, e)), (127, (g, e, f)))]
    return [*whole, (10.0 ** numbers.uniform(-2, 0, (g, f))).astype("f4")]


# ---- exercise 4: rounds of a ring ----------------------------------------------------------------------------------


@exercise(
    "10 rounds",
    task="Order what each device of a ring multiplies and sends.",
    hint="In the first round you hold only your own block: multiply it, and send it on. What arrives then?",
    gives="a list of pairs (multiplied, sent), blocks from 0 or None",
    bigger_hint="In round r device d has block (d - r) % g: it multiplies and sends that. In the last round nobody "
    "needs it any more: send None.",
)
def rounds(answer: Callable[..., Sequence[tuple[int | None, int | None]]], rng: Random) -> Iterator[Case]:
    for g in (2, *rng.sample((3, 4, 5, 6, 8), 3)):
        orders = [answer(g, d) for d in range(g)]
        long = max(orders, key=len)
        yield at_most(f"ring of {g}: rounds", g, len(long), "rounds")
        yield from _played(g, orders)


def _played(g: int, orders: Sequence[Sequence[tuple[int | None, int | None]]]) -> Iterator[Case]:
    """Round by round: only what a device holds can be multiplied or sent, and each block must be multiplied once."""
    held = [{d} for d in range(g)]
    for number in range(g):
        arriving: list[set[int]] = [set() for _ in range(g)]
        for d in range(g):
            multiplied, sent = orders[d][number] if number < len(orders[d]) else (None, None)
            for does, block in (("multiplies", multiplied), ("sends", sent)):
                if block is not None and block not in held[d]:
                    yield holds(f"ring of {g}, round {number + 1}: device {d} {does} block {block}", False,
                                f"one of those that it holds, {sorted(held[d])}", f"{block!r:.40}")  # fmt: skip
                    return
            if sent is not None:
                arriving[(d + 1) % g].add(sent)
        held = [mine | new for mine, new in zip(held, arriving, strict=True)]
    for d in range(g):
        done = tuple(sorted(block for block, _ in orders[d] if block is not None))
        yield equal(f"ring of {g}: blocks multiplied by device {d}", tuple(range(g)), done)
