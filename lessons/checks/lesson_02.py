"""Checks of lesson 02: layouts, and what an operation needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import mtfcore as mtf
from mtfcore.functions import Function
from mtfcore.tensor import Tensor
from widgets.learning.exercises import Case, at_most, equal, holds

from . import draw
from .book import exercise

LAYOUTS = ("", "batch:rows", "hidden:cols", "batch:(rows cols)", "hidden:(rows cols)", "batch:rows hidden:cols")
EINSUMS = (("b i", "i h", "b h"), ("b h", "h i", "b i"), ("b i", "b h", "i h"), ("b i h", "i h", "b"))


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    """The first paper's example, without its bias."""
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


@exercise(
    "02 partial_axes",
    task="Find the mesh axes over which an einsum's result is a partial sum.",
    hint="Which dimensions does the einsum sum over? Those that `out` does not have.",
    bigger_hint="Go through the dimensions of left and right. Keep the axis of each one that is not in out and that "
    "the layout cuts.",
)
def partial_axes(answer: Callable[..., set[str]], rng: Random) -> Iterator[Case]:
    mesh = mtf.Mesh("rows:4 cols:2")
    for left, right, out in EINSUMS:
        for _ in range(2):
            layout = dict(zip(rng.sample("bih", 2), mesh.names))
            product = einsum_of(left, right, out)
            wanted, given = partial_result(product, mesh, layout), answer(layout, *map(str.split, (left, right, out)))
            about = f"layout {layout}, [{left}] · [{right}] → [{out}]: mesh axes"
            yield equal(about, sorted(wanted) or "none", sorted(given) or "none")


def einsum_of(left: str, right: str, out: str) -> Function:
    """A named function of one einsum, whose result stays as the operands make it."""

    def product(x: Tensor, w: Tensor) -> Tensor:
        return mtf.einsum(x, w, out=out)

    product.__annotations__ = {"x": left, "w": right}
    return mtf.function(product)


def partial_result(product: Function, mesh: mtf.Mesh, layout: dict[str, str]) -> tuple[str, ...]:
    """The axes over which the einsum itself leaves addends, before any collective."""
    program = mtf.plan(product, mesh, mtf.Layout(layout), sizes="b:8 i:8 h:8")
    return next(step for step in program.steps if step.kind == "einsum").after.partial


@exercise(
    "02 out",
    task="Write where the result shall lie, so that half the bytes are sent.",
    hint="Nobody said that every device needs the whole of io. What if each device along cols kept one block of it?",
    gives="a text such as 'batch:rows io'",
    bigger_hint="Keep batch where it is, on rows, and name an axis for io too.",
)
def out(answer: str, rng: Random) -> Iterator[Case]:
    for _ in range(4):
        mesh = draw.mesh(rng, "rows cols", (2, 4))
        sizes = f"batch:{draw.size(rng, mesh)} io:{draw.size(rng, mesh)} hidden:{draw.size(rng, mesh)}"
        whole = mtf.plan(second_layer("batch io"), mesh, mtf.Layout("batch:rows hidden:cols"), sizes=sizes)
        given = mtf.plan(second_layer(answer), mesh, mtf.Layout("batch:rows hidden:cols"), sizes=sizes)
        about, result = f"{sizes} on {mesh}", given.outputs[0].sharding
        yield equal(f"{about}: dimensions of the result", "batch io", " ".join(dim.name for dim in result.dims))
        half, given_bytes = whole.link_bytes().total // 2, given.link_bytes().total
        yield at_most(f"{about}: bytes sent by a device", half, given_bytes, "bytes")
        yield equal(f"{about}: axes still to be summed over", "none", " ".join(result.partial) or "none")
        yield equal(f"{about}: work of a device", whole.flops(), given.flops(), "FLOPs")


def second_layer(wanted: str) -> Function:
    """h · v with the result where `wanted` says."""

    @mtf.function
    def second(h: "batch hidden", v: "hidden io"):
        return mtf.einsum(h, v, out=wanted)

    return second


@exercise(
    "02 sent",
    task="Compute the bytes that one device sends for two layers under batch:rows hidden:cols.",
    hint="Only y needs a collective: an all-reduce over cols of the block of y that a device holds.",
    bigger_hint="The block has batch / rows × io elements. In a ring of g devices an all-reduce of n_bytes sends "
    "2 · n_bytes · (g − 1) / g.",
)
def sent(answer: Callable[..., float], rng: Random) -> Iterator[Case]:
    meshes = [draw.mesh(rng, "rows cols", (2, 4, 8)) for _ in range(3)] + [mtf.Mesh("rows:4 cols:1")]
    for mesh, (itemsize, dtype) in zip(meshes, ((4, "f32"), (2, "bf16"), (4, "f32"), (2, "bf16"))):
        batch, io = draw.size(rng, mesh), draw.size(rng, mesh)
        sizes = f"batch:{batch} io:{io} hidden:{draw.size(rng, mesh)}"
        program = mtf.plan(two_layers, mesh, mtf.Layout("batch:rows hidden:cols"), sizes=sizes, dtype=dtype)
        given = answer(batch, io, mesh["rows"], mesh["cols"], itemsize)
        yield equal(f"{sizes} in {dtype} on {mesh}", program.link_bytes().total, given, "bytes")


@exercise(
    "02 layout_within",
    task="Choose the layout that meets a memory budget and sends the fewest bytes.",
    hint="There are six layouts to try. Plan each; a plan costs about a millisecond and no devices.",
    bigger_hint="Keep those with .memory() at most the budget, then take min(..., key=...) by .link_bytes().",
)
def layout_within(answer: Callable[..., str], rng: Random) -> Iterator[Case]:
    for mesh, sizes, budget, plans in budgets(rng):
        chosen = answer(mesh, sizes, budget)
        about, fewest = f"{sizes} on {mesh}", min(sent for sent in fitting(plans, budget).values())
        yield holds(f"{about}: layout", chosen in LAYOUTS, "one of LAYOUTS", repr(chosen))
        given = plans[chosen]
        yield at_most(f"{about}: memory", budget, given.memory(), "bytes on a device")
        yield at_most(f"{about}: traffic", fewest, given.link_bytes().total, "bytes sent by a device")


def fitting(plans: dict[str, mtf.Program], budget: int) -> dict[str, float]:
    """Layout → bytes sent, for the layouts that meet the budget."""
    return {text: program.link_bytes().total for text, program in plans.items() if program.memory() <= budget}


def budgets(rng: Random) -> Iterator[tuple[mtf.Mesh, str, int, dict[str, mtf.Program]]]:
    """At least five cases, and so many that no single layout is right in all of them."""
    always_right, number = set(LAYOUTS), 0
    while always_right or number < 5:
        mesh, number = draw.mesh(rng, "rows cols", (2, 4)), number + 1
        scale = mesh.size * rng.choice((4, 8))
        sizes = f"batch:{scale * rng.choice((1, 8))} io:{scale} hidden:{scale * rng.choice((1, 4))}"
        plans = {text: mtf.plan(two_layers, mesh, mtf.Layout(text), sizes=sizes) for text in LAYOUTS}
        budget = rng.choice(sorted({program.memory() for program in plans.values()})[:-1])
        found = fitting(plans, budget)
        always_right -= {text for text in LAYOUTS if found.get(text) != min(found.values())}
        yield mesh, sizes, budget, plans
