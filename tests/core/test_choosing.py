"""How an operation is cut: axes without conflict keep their roles, conflicts are settled by the fewest bytes."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

import mtfcore as mtf
from mtfcore.dims import Dim
from mtfcore.rules.choosing import choose
from mtfcore.rules.moves import State, placements
from mtfcore.rules.questions import Question
from mtfcore.rules.resharding import shortest
from mtfcore.sharding import Sharding

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
