"""Checks of lesson 08: the 2D layout's places, a budget of bytes, weight-gathered bytes, where gathering pays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from random import Random

import mtfcore as mtf
from mtfcore.costs import second_paper as forms
from mtfcore.costs.second_paper.programs import planned
from mtfcore.errors import LayoutError
from mtfcore.functions import Function
from widgets.learning.exercises import Case, at_most, equal, holds

from .book import exercise

Mesh3 = tuple[int, int, int]

# ---- exercise 1 -----------------------------------------------------------------------------------------------------

PLACES = ("x", "first", "hidden", "result")
RESTING = {"x": "B L E:xzy", "w_in": "E:x F:zy", "w_out": "F:zy E:x"}


@exercise(
    "08 two_d",
    task="Write the four places of the 2D weight-stationary layout.",
    hint="x needs the same cut of E as W_in has. The first product is a sum over x that should be scattered, not "
    "all-reduced: into which dimension?",
    gives="a text for each of x, first, hidden, result",
    bigger_hint="x: only E on x. first: F on zy, and x behind them, so that each device adds up its own part. hidden: "
    "F as W_out has it. result: where x was between layers.",
)
def two_d(answer: Mapping[str, str], rng: Random) -> Iterator[Case]:
    yield holds("the answer", set(answer) == set(PLACES), f"a text for each of {', '.join(PLACES)}", f"{answer!r:.100}")
    for mesh in rng.sample(((4, 2, 2), (2, 4, 2), (2, 2, 4), (4, 4, 2), (2, 2, 2)), 2):
        n, about = math.prod(mesh), "x:{} y:{} z:{}".format(*mesh)
        sizes = (n * rng.choice((1, 3)), rng.choice((1, 3)), n * rng.choice((2, 3)), n * rng.choice((5, 8)))
        right = planned("ws2d", mesh, *sizes)
        try:
            given = _placed(answer, mesh, sizes)
        except LayoutError as fault:
            said = " ".join(str(fault).split())[:400]
            yield holds(f"{about}: the plan", False, "places that can be planned, such as 'B L E:x'", said)
            return
        yield equal(f"{about}: collectives", _moves(right), _moves(given))
        yield equal(f"{about}: bytes sent by a device", right.link_bytes().total, given.link_bytes().total, "bytes")
        yield equal(f"{about}: the result", right.outputs[0].sharding.text(), given.outputs[0].sharding.text())


def _placed(places: Mapping[str, str], mesh: Mesh3, sizes: tuple[int, int, int, int]) -> mtf.Program:
    """The layer with the student's places; the weights stay."""

    def layer(x: mtf.Tensor, w_in: mtf.Tensor, w_out: mtf.Tensor) -> mtf.Tensor:
        h = mtf.gelu(mtf.einsum(x, w_in, out=places["first"], at=[places["x"], RESTING["w_in"]]))
        return mtf.einsum(h, w_out, out=places["result"], at=[places["hidden"], RESTING["w_out"]])

    fn = Function.of("layer", {"x": "B L E", "w_in": "E F", "w_out": "F E"}, layer)
    named = "B:{} L:{} E:{} F:{}".format(*sizes)
    return mtf.plan(fn, "x:{} y:{} z:{}".format(*mesh), sizes=named, place=RESTING, dtype="bf16")


def _moves(program: mtf.Program) -> str:
    """Collectives in order; an order of axes within one does not matter."""
    return ", ".join(f"{step.kind} over {''.join(sorted(step.axes))}" for step in program.collectives()) or "none"


# ---- exercise 2 -----------------------------------------------------------------------------------------------------


@exercise(
    "08 within",
    task="Find a layout and a mesh with which a layer keeps to the budget of bytes.",
    hint="There are five layouts, and few ways to write the devices as x·y·z. Try them all.",
    gives="(name, (x, y, z))",
    bigger_hint="Two loops, over forms.LAYOUTS and forms.meshes(devices); return the first pair for which "
    "forms.layout_bytes(name, tokens, d_model, d_ff, *mesh, exact=True) is at most the budget.",
)
def within(answer: Callable[..., tuple[str, Mesh3]], rng: Random) -> Iterator[Case]:
    for many, devices in ((1, 16), (4096, 32), (64, 64), (rng.choice((16, 1024)), rng.choice((32, 64)))):
        tokens, d_model = devices * many, 64 * rng.choice((8, 16, 24))
        d_ff = d_model * rng.choice((3, 4, 8))
        budget = int(1.1 * _least(tokens, d_model, d_ff, devices))
        given = answer(tokens, d_model, d_ff, devices, budget)
        about = f"{tokens:,} tokens, d_model {d_model:,}, d_ff {d_ff:,} on {devices} devices"
        name, mesh = given
        names = ", ".join(forms.LAYOUTS)
        yield holds(f"{about}: layout", name in forms.LAYOUTS, f"one of {names}", repr(name))
        yield holds(f"{about}: mesh", min(mesh) > 0, "three sizes of 1 or more", repr(mesh))
        yield equal(f"{about}: devices", devices, math.prod(mesh))
        x, y, z = mesh
        sent = planned(name, (x, y, z), tokens, 1, d_model, d_ff).link_bytes().total
        yield at_most(f"{about}: sent under {name} on {'x'.join(map(str, mesh))}", budget, sent, "bytes by a device")


def _least(tokens: int, d_model: int, d_ff: int, devices: int) -> float:
    """The fewest bytes of all layouts on all meshes."""
    return min(
        float(forms.layout_bytes(name, tokens, d_model, d_ff, *mesh, exact=True))
        for name in forms.LAYOUTS for mesh in forms.meshes(devices)
    )  # fmt: skip


# ---- exercises 3 and 4 ----------------------------------------------------------------------------------------------


@exercise(
    "08 gathered_bytes",
    task="Give the exact bytes that one device sends where weights are gathered.",
    hint="A device stores 1/devices of each of the two matrices. In a gather over K devices it sends its part K − 1 "
    "times.",
    bigger_hint="Weights: 2 · d_model · d_ff · weight_size / devices · (gathered − 1). Activations: one gather and one "
    "reduce-scatter of tokens · d_model / gathered numbers over K = devices / gathered, (K − 1)/K of 2 bytes each.",
)
def gathered_bytes(answer: Callable[..., float], rng: Random) -> Iterator[Case]:
    for name in ("wg_x", "wg_xy", "wg_xyz", rng.choice(("wg_x", "wg_xy"))):
        mesh = rng.choice((2, 4)), rng.choice((2, 4)), rng.choice((2, 4))
        n, gathered = math.prod(mesh), math.prod(mesh[: len(name) - 3])
        weights, size = rng.choice((("", 2), ("i8", 1)))
        batch, length, d_model, d_ff = n * rng.choice((1, 2)), rng.choice((1, 4)), n * rng.choice((2, 3)), n * 8
        program = planned(name, mesh, batch, length, d_model, d_ff, weights=weights)
        about = f"{batch * length} tokens, d_model {d_model}, d_ff {d_ff}, gathered over {gathered} of {n}"
        given = answer(batch * length, d_model, d_ff, gathered, n, size)
        yield _near(f"{about}, {size} B a weight", program.link_bytes().total, given, "bytes")


@exercise(
    "08 gather_from",
    task="Give the tokens at which ws2d and wg_xyz move the same.",
    hint="One line starts at zero and rises, the other is level. Where do they meet?",
    bigger_hint="2 · T · (d_model/x + d_ff/(y·z)) = 2 · d_model · d_ff. Solve for T.",
)
def gather_from(answer: Callable[..., float], rng: Random) -> Iterator[Case]:
    for ratio in rng.sample((2, 3, 4, 5, 8), 4):
        mesh = rng.choice((2, 4, 8)), rng.choice((2, 4, 8)), rng.choice((2, 4, 8))
        d_model = 1024 * rng.choice((4, 8, 18))
        right = float(forms.crossover("ws2d", "wg_xyz", d_model, ratio * d_model, mesh))
        about = f"d_model {d_model:,}, d_ff {ratio * d_model:,} on {'x'.join(map(str, mesh))}"
        given = answer(d_model, ratio * d_model, *mesh)
        yield _near(about, right, given, "tokens", within=1.0)  # tokens are whole, so a rounded answer is right too


def _near(what: str, right: float, given: float, unit: str, within: float = 0.0) -> Case:
    """A number within a millionth, or within so much of the unit."""
    near = math.isclose(given, right, rel_tol=1e-6, abs_tol=within)
    return holds(what, near, f"{right:,.1f} {unit}", f"{given:,.1f} {unit}")
