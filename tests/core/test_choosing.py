"""How an operation is cut: axes without conflict keep their roles, conflicts are searched, and the papers' layouts."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

import mtfcore as mtf
from mtfcore.dims import Dim
from mtfcore.rules.choosing import Question, choose
from mtfcore.rules.moves import State, placements
from mtfcore.rules.resharding import shortest
from mtfcore.sharding import Sharding

CUBE = "x:4 y:4 z:4"


def collectives(program: mtf.Program) -> list[str]:
    """Every collective in order, in our notation."""
    return [f"{step.label()}: {step.arrow()}" for step in program.collectives()]


# ---- questions drawn at random ------------------------------------------------------------------------------------

MESH = {"x": 2, "y": 2, "z": 2}
ITEMS = tuple(MESH.items())
SIZE = 16  # every dimension: all three axes divide it
Places = dict[str, tuple[str, ...]]


def a_sharding(chosen: random.Random, names: tuple[str, ...], axes: tuple[str, ...], partial: bool) -> Sharding:
    on = chosen.choice(placements(axes, len(names))) if names else ()
    free = [axis for axis in axes if not any(axis in a for a in on)]
    sums = tuple(axis for axis in free if partial and chosen.random() < 0.3)
    return Sharding.of(tuple(Dim(name, SIZE) for name in names), on, sums)


def questions(count: int, seed: str, axes: str = "xyz", partial: bool = True) -> Iterator[Question]:
    """Products of two or three operands over dimensions A to D, with and without a wanted result."""
    chosen = random.Random(seed)
    for _ in range(count):
        names = [tuple(chosen.sample("ABCD", chosen.randint(1, 3))) for _ in range(chosen.choice([2, 2, 3]))]
        operands = tuple(a_sharding(chosen, dims, tuple(axes), partial) for dims in names)
        every = sorted({name for dims in names for name in dims})
        out = tuple(chosen.sample(every, chosen.randint(0, min(3, len(every)))))
        want = None if chosen.random() < 0.4 else a_sharding(chosen, out, tuple(axes), False)
        yield Question(operands, tuple(Dim(name, SIZE) for name in out), "product", want)


def item_bytes(q: Question) -> tuple[int, ...]:
    return (4,) * (len(q.operands) + 1)


def holders(q: Question, axis: str) -> tuple[set[str], list[int]]:
    """The dimensions that an axis cuts, and the operands that are partial over it."""
    held = {name for s in q.operands for name, on in s.on.items() if axis in on}
    return held, [number for number, s in enumerate(q.operands) if axis in s.partial]


def test_an_axis_without_conflict_keeps_its_role():
    """On one dimension wherever it cuts, or partial in one operand: no operand moves along it, slices apart."""
    kept = 0
    for q in questions(400, "roles"):
        needs = choose(q, ITEMS, item_bytes(q)).needs
        for axis in MESH:
            held, partial = holders(q, axis)
            if len(held) == 1 and not partial:
                (dim,) = held
                assert all(axis in need.on[dim] for need in needs if dim in need.on), (axis, q, needs)
                kept += 1
            elif not held and len(partial) == 1:
                assert axis in needs[partial[0]].partial, (axis, q, needs)
                kept += 1
    assert kept > 300


def test_no_work_is_repeated_along_an_axis_that_splits_anything():
    """An axis that cuts an operand or the wanted result cuts the operation, since every size here divides."""
    for q in questions(400, "idle"):
        needs = choose(q, ITEMS, item_bytes(q)).needs
        for axis in MESH:
            held, _ = holders(q, axis)
            wanted = q.want is not None and axis in q.want.used()
            if held or wanted:
                assert any(axis in (*need.used(), *need.partial) for need in needs), (axis, q, needs)


def assignments(q: Question) -> Iterator[tuple[Places, dict[int, tuple[str, ...]]]]:
    """Every way to give each conflicting axis a dimension or a partial operand, in every order; others as they are.

    A free question lets every axis change its role. No axis that cuts anything may repeat work.
    """
    options: list[list[tuple[str, object]]] = []
    for axis in MESH:
        held, partial = holders(q, axis)
        wanted = [name for name, on in q.want.on.items() if axis in on] if q.want else []
        if not q.free and len(held) == 1 and not partial:
            options.append([("on", next(iter(held)))])
        elif not q.free and not held and len(partial) == 1:
            options.append([("partial", partial[0])])
        elif not q.free and not held and not partial:
            options.append([("on", wanted[0])] if wanted else [("idle", "")])
        else:
            sums = [("partial", number) for number in partial]
            options.append([("on", name) for name in q.sizes] + sums + ([] if held or wanted else [("idle", "")]))
    for roles in itertools.product(*options):
        sums = {n: tuple(a for a, r in zip(MESH, roles, strict=True) if r == ("partial", n)) for n in range(3)}
        groups = {d: [a for a, r in zip(MESH, roles, strict=True) if r == ("on", d)] for d in q.sizes}
        for orders in itertools.product(*[orders_of(q, *group) for group in groups.items()]):
            yield dict(zip(groups, orders, strict=True)), sums


def in_conflict(q: Question, axis: str) -> bool:
    held, partial = holders(q, axis)
    return len(held) + len(partial) > 1


def orders_of(q: Question, dim: str, axes: list[str]) -> list[tuple[str, ...]]:
    """All orders; where no axis is in conflict only those that cut what lies there finer, if there are any."""
    every = list(itertools.permutations(axes))
    finer = [o for o in every if all(o[: len(s.on[dim])] == s.on[dim] for s in q.operands if dim in s.on)]
    return finer if finer and not q.free and not any(in_conflict(q, axis) for axis in axes) else every


def way(a: Sharding, b: Sharding) -> float:
    return shortest(State(a.axes, a.partial), State(b.axes, b.partial), a.shape, ITEMS, 4).cost


def cost_of(q: Question, on: Places, sums: dict[int, tuple[str, ...]]) -> float:
    """Bytes that one device sends: operands to their places, the result on to where it is wanted (or scattered)."""
    needs = [Sharding.of(s.dims, tuple(on[n] for n in s.names), sums[k]) for k, s in enumerate(q.operands)]
    kept = [dim.name for dim in q.out]
    left = {axis for name, axes in on.items() if name not in kept for axis in axes}
    left |= {axis for axes in sums.values() for axis in axes}
    result = Sharding.of(q.out, tuple(on[name] for name in kept), tuple(axis for axis in MESH if axis in left))
    moved = sum(map(way, q.operands, needs))
    if q.want is not None:
        return moved + way(result, q.want)
    held = 4 * math.prod(result.local_shape(mtf.Mesh(MESH)))
    return moved + held * (1 - 1 / math.prod(MESH[axis] for axis in result.partial))


@pytest.mark.parametrize("partial", [False, True], ids=["whole", "partial"])
def test_conflicts_are_settled_by_the_fewest_bytes(partial):
    """Against every other way to settle them, one by one."""
    for q in questions(60, f"brute {partial}", partial=partial):
        found = choose(q, ITEMS, item_bytes(q))
        best = min(cost_of(q, on, sums) for on, sums in assignments(q))
        assert found.cost == pytest.approx(best), (q, found)


def test_a_free_search_finds_the_fewest_bytes_of_all():
    """Whatever a user could pin with `at`, as long as no axis repeats work, costs at least as much."""
    for q in questions(25, "zz"):
        free = replace(q, free=True)
        found = choose(free, ITEMS, item_bytes(free))
        best = min(cost_of(free, on, sums) for on, sums in assignments(free))
        assert found.cost == pytest.approx(best), (free, found)


def test_a_free_search_never_sends_more():
    for q in questions(200, "free", axes="xy"):
        items = (("x", 2), ("y", 2))
        fixed = choose(q, items, item_bytes(q))
        free = choose(replace(q, free=True), items, item_bytes(q))
        assert free.cost <= fixed.cost * (1 + 1e-9), (q, fixed, free)


# ---- the papers' layouts ------------------------------------------------------------------------------------------


def feedforward(inside: list[str] | None, out_h: str, back: list[str] | None, out: str, search: bool = False):
    @mtf.function
    def layer(x: "B L E", w_in: "E F", w_out: "F E"):
        h = mtf.gelu(mtf.einsum(x, w_in, out=out_h, at=inside, search=search))
        return mtf.einsum(h, w_out, out=out, at=back, search=search)

    return layer


WEIGHTS = {"w_in": "E:x F:zy", "w_out": "F:zy E:x"}
SIZES = "B:64 L:1 E:512 F:2048"


@pytest.mark.parametrize("search", [False, True])
def test_the_2d_weight_stationary_layer_step_by_step(search):
    """The second paper's section 3.2.2: nothing is pinned but where x, the weights, h and the result lie."""
    layer = feedforward(None, "B L F:zyx", None, "B L E:xzy", search)
    program = mtf.plan(layer, CUBE, sizes=SIZES, place={"x": "B L E:xzy", **WEIGHTS}, dtype="bf16")
    assert [f"{step.label()}: {step.arrow()}" for step in program.steps] == [
        "all_gather over zy of E: B L E:xzy → B L E:x",
        "einsum: B L E:x , E:x F:zy → B L F:zy partialsum:x",
        "reduce_scatter over x into F: B L F:zy partialsum:x → B L F:zyx",
        "gelu: B L F:zyx → B L F:zyx",
        "all_gather over x of F: B L F:zyx → B L F:zy",
        "einsum: B L F:zy , F:zy E:x → B L E:x partialsum:yz",
        "reduce_scatter over zy into E: B L E:x partialsum:yz → B L E:xzy",
    ]
    held = 64 * 512 * 2 // 64
    assert [step.link_bytes for step in program.collectives()] == [
        held * 15, 64 * 2048 * 2 // 16 * 3 // 4, 64 * 2048 * 2 // 64 * 3, 64 * 512 * 2 // 4 * 15 // 16,
    ]  # fmt: skip


# name: (x, x and w_in during the first product, h, h and w_out during the second, the result)
PUBLISHED = {
    "ws1d": ("B L E:xyz", ["B L E", "E F:xyz"], "B L F:xyz", ["B L F:xyz", "F:xyz E"], "B L E:xyz"),
    "ws2d": ("B L E:xzy", ["B L E:x", "E:x F:zy"], "B L F:zyx", ["B L F:zy", "F:zy E:x"], "B L E:xzy"),
    "wg_x": ("B:x L E:yz", ["B:x L E", "E F:zy"], "B:x L F:zy", ["B:x L F:zy", "F:zy E"], "B:x L E:yz"),
    "wg_xy": ("B:xy L E:z", ["B:xy L E", "E F:z"], "B:xy L F:z", ["B:xy L F:z", "F:z E"], "B:xy L E:z"),
    "wg_xyz": ("B:xyz L E", ["B:xyz L E", "E F"], "B:xyz L F", ["B:xyz L F", "F E"], "B:xyz L E"),
}
MOVED = {
    "ws1d": ["all_gather over xyz of E", "reduce_scatter over xyz into E"],
    "ws2d": ["all_gather over zy of E", "reduce_scatter over x into F", "all_gather over x of F",
             "reduce_scatter over zy into E"],
    "wg_x": ["all_gather over yz of E", "all_gather over x of E", "all_gather over x of E",
             "reduce_scatter over yz into E"],
    "wg_xy": ["all_gather over z of E", "all_gather over x of E", "all_gather over y of F", "all_gather over y of F",
              "all_gather over x of E", "reduce_scatter over z into E"],
    "wg_xyz": ["all_gather over x of E", "all_gather over zy of F"] * 2,
}  # fmt: skip


def published(name: str, batch: int, pinned: bool, search: bool = False) -> mtf.Program:
    x, inside, h, back, out = PUBLISHED[name]
    layer = feedforward(inside if pinned else None, h, back if pinned else None, out, search)
    weights = {"w_in": "E F:xyz", "w_out": "F:xyz E"} if name == "ws1d" else WEIGHTS
    return mtf.plan(layer, CUBE, sizes=f"B:{batch} L:1 E:512 F:2048", place={"x": x, **weights}, dtype="bf16")


@pytest.mark.parametrize("name", PUBLISHED)
def test_pins_give_the_published_collectives(name):
    labels = [step.label() for step in published(name, 512, pinned=True).collectives()]
    assert sorted(labels) == sorted(MOVED[name])


@pytest.mark.parametrize("search", [False, True], ids=["default", "search"])
@pytest.mark.parametrize("batch", [64, 512, 8192, 65536])
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_pins_never_cost_less_than_the_free_plan(name, batch, search):
    pinned, free = published(name, batch, pinned=True), published(name, batch, pinned=False, search=search)
    assert free.link_bytes() <= pinned.link_bytes()
    assert free.flops() == pinned.flops() == 4 * batch * 512 * 2048 // 64


def test_large_batches_move_weights_and_small_ones_move_activations():
    """The crossing that the second paper draws in its figure 3, found by the planner from the same placement."""

    def weights_move(batch: int) -> bool:
        steps = published("wg_x", batch, pinned=False, search=True).collectives()
        return any(step.before[0].names in (("E", "F"), ("F", "E")) for step in steps)

    assert [weights_move(batch) for batch in (64, 65536)] == [False, True]


def test_decode_attention_by_batch_brings_queries_over():
    @mtf.function
    def queries(q: "B H D"):
        return mtf.reshard(q, "B:xzy H D")

    program = mtf.plan(queries, CUBE, sizes="B:512 H:64 D:256", place={"q": "B H:zy D partialsum:x"}, dtype="bf16")
    assert collectives(program) == [
        "reduce_scatter over x into B: B H:zy D partialsum:x → B:x H:zy D",
        "all_to_all over zy from H to B: B:x H:zy D → B:xzy H D",
    ]


def test_decode_attention_by_batch_takes_keys_by_the_cheapest_route():
    """16 kB a device against 197 kB for scattering the whole head first, at batch 512 on 4 x 4 x 4."""

    @mtf.function
    def keys(k: "B D"):
        return mtf.reshard(k, "B:xzy D")

    program = mtf.plan(keys, CUBE, sizes="B:512 D:256", place={"k": "B D partialsum:x"}, dtype="bf16")
    assert [f"{step.label()}: {step.arrow()}" for step in program.steps] == [
        "slice over zy of D: B D partialsum:x → B D:zy partialsum:x",
        "reduce_scatter over x into B: B D:zy partialsum:x → B:x D:zy",
        "all_to_all over zy from D to B: B:x D:zy → B:xzy D",
    ]
    assert program.link_bytes() == 16_128
    straight = 512 * 256 * 2 * 3 // 4
    assert straight == 196_608


def test_a_data_parallel_backward_sums_gradients_and_moves_no_activation():
    @mtf.function
    def backward(x: "B E", dy: "B F"):
        return mtf.einsum(x, dy, out="E F")

    program = mtf.plan(backward, "x:8", "B:x", sizes="B:64 E:512 F:512")
    assert [(step.kind, step.tensor) for step in program.collectives()] == [("all_reduce", program.steps[0].tensor)]
    assert program.flops() == 2 * 64 * 512 * 512 // 8


def test_partial_sums_are_scattered_into_the_later_dimension():
    @mtf.function
    def settled(t: "B L F"):
        return mtf.relu(mtf.settle(t))

    program = mtf.plan(settled, "x:4", sizes="B:8 L:8 F:8", place={"t": "B L F partialsum:x"})
    assert collectives(program) == ["reduce_scatter over x into F: B L F partialsum:x → B L F:x"]


def test_partial_sums_wait_through_linear_operations():
    """Sums of partials over the same axes, products with whole tensors, slices: one all-reduce at the very end."""

    @mtf.function
    def linear(a: "A B", b: "A B", c: "B:8"):
        t = mtf.add(mtf.sum(a, out="B partialsum:x"), mtf.sum(b, out="B partialsum:x"))
        return mtf.slice(mtf.multiply(t, c), "B", 0, 4, out="B")

    program = mtf.plan(linear, "x:2", sizes="A:8 B:8", place={"a": "A:x B", "b": "A:x B"})
    assert collectives(program) == ["all_reduce over x: B partialsum:x → B"]
    assert program.collectives()[0].n_bytes == 4 * 4


def test_a_product_of_two_partials_reduces_one_first():
    @mtf.function
    def product(a: "A B", b: "A B"):
        return mtf.multiply(mtf.sum(a, out="B partialsum:x"), mtf.sum(b, out="B partialsum:x"), out="B partialsum:x")

    program = mtf.plan(product, "x:2", sizes="A:8 B:8", place={"a": "A:x B", "b": "A:x B"})
    assert [step.kind for step in program.collectives()] == ["all_reduce"]
