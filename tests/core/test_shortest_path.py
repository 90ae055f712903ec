"""Resharding by A*: against a plain Dijkstra and against every path there is; its bounds; and what the paths carry."""

from __future__ import annotations

import functools
import heapq
import itertools
import random
from collections.abc import Iterator

import pytest
from core.sweep.checking import check
from core.sweep.drawing import placed_text
from core.sweep.programs import Case, Input, Line

from mtfcore.rules.moves import State, local_bytes, moves, placements
from mtfcore.rules.resharding import must_send, shortest

ITEM = 4
CLOSE = 1e-9  # relative: costs such as 2/3 of a byte count are not exact in binary

Mesh = dict[str, int]
Sizes = tuple[int, ...]

EXHAUSTIVE = [
    ({"x": 4}, (8,)),
    ({"x": 2}, (4, 6, 2)),
    ({"x": 2, "y": 2}, (4, 4)),
    ({"x": 4, "y": 2}, (8, 8)),
    ({"x": 2, "y": 3}, (12, 6)),
    ({"x": 2, "y": 2}, (2, 8)),  # x and y together do not divide the first
]
SAMPLED = [
    ({"x": 2, "y": 2, "z": 2}, (8, 8)),
    ({"x": 4, "y": 2, "z": 2}, (16, 4)),
    ({"x": 2, "y": 2, "z": 3}, (12, 4, 6)),
    ({"x": 2, "y": 2, "z": 2, "w": 2}, (16, 16)),
]


def name(case: tuple[Mesh, Sizes]) -> str:
    return " ".join(f"{axis}:{size}" for axis, size in case[0].items()) + f" {case[1]}"


def states(mesh: Mesh, sizes: Sizes) -> list[State]:
    """Every legal sharding of a tensor: axes on dimensions that they divide, others replicated or partial."""
    found = []
    for axes in placements(tuple(mesh), len(sizes)):
        parts = [functools.reduce(int.__mul__, (mesh[a] for a in on), 1) for on in axes]
        if all(size % n == 0 for size, n in zip(sizes, parts, strict=True)):
            free = [axis for axis in mesh if not any(axis in on for on in axes)]
            found += [State(axes, c) for n in range(len(free) + 1) for c in itertools.combinations(free, n)]
    return found


def dijkstra(start: State, partial: tuple[str, ...], mesh: Mesh, sizes: Sizes) -> dict[State, tuple[float, int]]:
    """(bytes, moves) of the cheapest way from a state to every other; `partial` are those axes that stay partial."""
    done: dict[State, tuple[float, int]] = {}
    heap: list[tuple[float, int, State]] = [(0.0, 0, start)]
    while heap:
        spent, count, state = heapq.heappop(heap)
        if state in done:
            continue
        done[state] = (spent, count)
        for move in moves(state, sizes, mesh, local_bytes(state, sizes, mesh, ITEM), partial):
            if move.state not in done:
                heapq.heappush(heap, (spent + move.cost, count + 1, move.state))
    return done


def every_path(start: State, goal: State, mesh: Mesh, sizes: Sizes, most: int) -> Iterator[float]:
    """The cost of each way with at most so many moves that comes by no state twice."""

    def walk(state: State, spent: float, seen: frozenset[State]) -> Iterator[float]:
        if state == goal:
            yield spent
        elif len(seen) <= most:
            for move in moves(state, sizes, mesh, local_bytes(state, sizes, mesh, ITEM), goal.partial):
                if move.state not in seen:
                    yield from walk(move.state, spent + move.cost, seen | {move.state})

    return walk(start, 0.0, frozenset({start}))


def check_agrees(start: State, mesh: Mesh, sizes: Sizes, goals: list[State]) -> None:
    """A* finds Dijkstra's cost for every goal, and its bound is never above it."""
    by_partial = {goal.partial: dijkstra(start, goal.partial, mesh, sizes) for goal in goals}
    for goal in goals:
        true, _ = by_partial[goal.partial][goal]
        found = shortest(start, goal, sizes, tuple(mesh.items()), ITEM)
        about = f"{start} → {goal}: found {found}, Dijkstra {true}"
        assert found.cost == pytest.approx(true, rel=CLOSE), about
        assert sum(move.cost for move in found.moves) == pytest.approx(found.cost, rel=CLOSE), about
        assert not found.moves or found.moves[-1].state == goal, about
        bound = must_send(start, goal, local_bytes(goal, sizes, mesh, ITEM), mesh)
        assert bound <= true * (1 + CLOSE), f"{about}: bound {bound}"


@pytest.mark.parametrize("case", EXHAUSTIVE, ids=name)
def test_every_pair_of_shardings_on_small_meshes(case):
    mesh, sizes = case
    every = states(mesh, sizes)
    for start in every:
        check_agrees(start, mesh, sizes, every)


@pytest.mark.parametrize("case", SAMPLED, ids=name)
def test_pairs_of_shardings_on_larger_meshes(case, request):
    mesh, sizes = case
    every, chosen = states(mesh, sizes), random.Random(name(case))
    short, long = (4, 40) if len(mesh) < 4 else (1, 4)  # four axes have hundreds of shardings, each a slow Dijkstra
    count = long if request.config.getoption("--long") else short
    for start in chosen.sample(every, count):
        partials = chosen.sample(sorted({goal.partial for goal in every}), 2)
        goals = [goal for goal in every if goal.partial in partials]
        check_agrees(start, mesh, sizes, chosen.sample(goals, min(60, len(goals))))


@pytest.mark.parametrize(("mesh", "sizes", "most"), [({"x": 2}, (4, 4), 4), ({"x": 2, "y": 2}, (4, 2), 3)])
def test_no_path_at_all_is_cheaper(mesh, sizes, most):
    """Brute force: every walk of a few moves, and the cheapest found among them is not beaten."""
    every = states(mesh, sizes)
    for start, goal in itertools.product(every, every):
        found = shortest(start, goal, sizes, tuple(mesh.items()), ITEM)
        costs = list(every_path(start, goal, mesh, sizes, most))
        assert all(cost >= found.cost * (1 - CLOSE) for cost in costs)
        if len(found.moves) <= most and all(len(move.axes) == 1 for move in found.moves):
            assert min(costs) == pytest.approx(found.cost, rel=CLOSE)


def test_among_equal_costs_the_path_has_fewest_moves():
    """Moves over several axes count as one each axis here, as the search does before it joins them."""
    mesh, sizes = {"x": 2, "y": 2}, (4, 4)
    every = states(mesh, sizes)
    for start in every:
        for partial in {goal.partial for goal in every}:
            reached = dijkstra(start, partial, mesh, sizes)
            for goal in (goal for goal in every if goal.partial == partial):
                found = shortest(start, goal, sizes, tuple(mesh.items()), ITEM)
                assert len(found.moves) <= reached[goal][1]


# ---- what the moves do to values ----------------------------------------------------------------------------------

WALKS = [({"x": 2, "y": 2, "z": 2}, (8, 4)), ({"x": 4, "y": 2}, (8, 8)), ({"x": 2, "y": 3}, (12, 6)),
         ({"w": 2, "x": 2, "y": 2, "z": 2}, (16, 4))]  # fmt: skip


def text(state: State, partial: bool = True) -> str:
    names = "ABCD"[: len(state.axes)]
    on = dict(zip(names, map(list, state.axes), strict=True))
    return placed_text(on, list(state.partial) if partial else [])


def random_walk(chosen: random.Random, start: State, mesh: Mesh, sizes: Sizes, count: int) -> list[State]:
    """States one move apart, each kind of move as likely as the others."""
    state, found = start, []
    for _ in range(count):
        masks = tuple(axis for axis in mesh if chosen.random() < 0.2)
        by_kind: dict[str, list[State]] = {}
        for move in moves(state, sizes, mesh, local_bytes(state, sizes, mesh, ITEM), masks):
            by_kind.setdefault(move.kind, []).append(move.state)
        state = chosen.choice(by_kind[chosen.choice(sorted(by_kind))])
        if any(state.axes) or state.partial:  # names alone would ask for the layout's place
            found.append(state)
    return found


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("case", WALKS, ids=name)
def test_every_path_carries_the_same_values(case, number):
    """Long walks over the moves, each state read back: all hold the tensor that went in, on every device."""
    mesh, sizes = case
    chosen = random.Random(f"{name(case)} {number}")
    every = states(mesh, sizes)
    starts = chosen.sample(every, 2)
    lines, inputs, outputs = [], [], []
    for place, start in enumerate(starts):
        inputs.append(Input(f"a{place}", tuple(zip("ABCD", sizes, strict=False)), text(start), wide=True))
        last = f"a{place}"
        for step, state in enumerate(random_walk(chosen, start, mesh, sizes, 8)):
            lines.append(Line((f"h{place}{step}",), "reshard", (last, text(state))))
            last = f"h{place}{step}"
            outputs.append(last)
    mesh_text = " ".join(f"{axis}:{size}" for axis, size in mesh.items())
    check(Case(mesh_text, tuple(inputs), tuple(lines), tuple(outputs)), ("explicit",))
