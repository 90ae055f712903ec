"""Reshape: which axes are carried through splits and merges for nothing, and what must move first."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from core.sweep.checking import check
from core.sweep.drawing import placed_text
from core.sweep.programs import Case, Input, Line

import mtfcore as mtf
from mtfcore.dims import Dim
from mtfcore.rules.moves import State, placements
from mtfcore.rules.reshaping import carry, choose_reshape, groups
from mtfcore.rules.resharding import shortest
from mtfcore.sharding import Sharding


def dims(text: str) -> tuple[Dim, ...]:
    return mtf.Sharding(text).dims


def grouped(before: str, after: str) -> list[str]:
    """The groups as texts: `A B → C`."""
    return [
        f"{' '.join(map(str, group.before))} → {' '.join(map(str, group.after))}"
        for group in groups(dims(before), dims(after))
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("A:6 B:4", "C:24", ["A:6 B:4 → C:24"]),
        ("A:6 B:4", "A:6 C:2 D:2", ["A:6 → A:6", "B:4 → C:2 D:2"]),
        ("A:6 B:4", "C:4 D:6", ["A:6 B:4 → C:4 D:6"]),
        ("A:2 B:3 C:4", "P:6 Q:2 R:2", ["A:2 B:3 → P:6", "C:4 → Q:2 R:2"]),
        ("A:4", "A:4 B:1", ["A:4 → A:4", " → B:1"]),
    ],
)
def test_reshapes_are_cut_at_every_common_boundary(before, after, expected):
    assert [text.strip() for text in grouped(before, after)] == [text.strip() for text in expected]


def carried(placed: str, before: str, after: str, mesh: str) -> str | None:
    """Where the result lies when nothing moves; None where an axis cannot be carried."""
    found = carry(Sharding(before, placed), groups(dims(before), dims(after)), mtf.Mesh(mesh).shape)
    return None if found is None else found.text()


@pytest.mark.parametrize(
    ("placed", "before", "after", "expected"),
    [
        # splitting hands axes outward in order
        ("A:x", "A:8", "P:4 Q:2", "P:x Q"),
        ("A:xy", "A:8", "P:2 Q:4", "P:x Q:y"),
        ("A:yx", "A:8", "P:4 Q:2", "P:yx Q"),
        # merging joins the outer one's axes, then the inner one's
        ("P:x Q", "P:4 Q:2", "A:8", "A:x"),
        ("P:x Q:y", "P:2 Q:4", "A:8", "A:xy"),  # P is cut to single rows
        ("P:x Q:y", "P:4 Q:4", "A:16", None),  # each device's rows would not be one block
        ("P Q:y", "P:1 Q:4", "A:4", "A:y"),
        ("P Q:y", "P:2 Q:4", "A:8", None),
        # an axis that straddles a boundary cannot be carried
        ("A:x", "A:6", "P:3 Q:2", None),
        ("A:xy", "A:12", "P:6 Q:2", None),
        # other dimensions, and partial sums, pass through
        ("A:x B:y", "A:8 B:6", "P:2 Q:4 B:6", "P:x Q B:y"),
        ("A:x partialsum:y", "A:8", "P:2 Q:4", "P:x Q partialsum:y"),
    ],
)
def test_what_can_be_carried(placed, before, after, expected):
    assert carried(placed, before, after, "x:2 y:2") == expected


CASES = [
    ("A:8", "P:4 Q:2"), ("P:4 Q:2", "A:8"), ("A:4 B:4", "P:2 Q:8"), ("A:2 B:2 C:4", "P:4 Q:4"), ("A:1 B:8", "P:8"),
    ("A:12", "P:3 Q:4"), ("A:6 B:2", "P:2 Q:6"), ("A:8 B:2", "A:8 P:2"),
]  # fmt: skip
MESH = {"x": 2, "y": 2}


def held(s: Sharding, whole: np.ndarray) -> list[np.ndarray]:
    """What each device holds, flattened."""
    mesh = mtf.Mesh(MESH)
    return [whole[s.slices(mesh, device)].reshape(-1) for device in range(mesh.size)]


def divides(s: Sharding) -> bool:
    return all(dim.size % math.prod(MESH[a] for a in on) == 0 for dim, on in zip(s.dims, s.axes, strict=True))


@pytest.mark.parametrize(("before", "after"), CASES)
def test_every_placement_is_carried_exactly_when_that_is_right(before, after):
    """Against the elements themselves: carried means that each device holds, in order, what it held before.

    Where the rule says that nothing can be carried, no placement of the same axes holds the same elements.
    """
    whole = np.arange(math.prod(dim.size for dim in dims(before)))
    cut = groups(dims(before), dims(after))
    for axes in placements(("x", "y"), len(dims(before))):
        start = Sharding.of(dims(before), axes)
        if not divides(start):
            continue
        found = carry(start, cut, MESH)
        same = held(start, whole.reshape(start.shape))
        candidates = [Sharding.of(dims(after), on) for on in placements(("x", "y"), len(dims(after)))]
        right = [
            s
            for s in candidates
            if divides(s)
            and set(s.used()) == set(start.used())
            and all(map(np.array_equal, same, held(s, whole.reshape(s.shape))))
        ]
        if found is None:
            assert right == [], f"{start} could be carried to {right}"
        else:
            assert found in right, f"{start} was carried to {found}, right are {right}"


@pytest.mark.parametrize("mesh", ["x:2 y:2", "x:4 y:2", "x:2 y:3"])
@pytest.mark.parametrize(("before", "after"), CASES)
def test_values_from_any_placement_to_any_placement(before, after, mesh):
    """What cannot be carried is moved first, and still every element arrives."""
    chosen = random.Random(f"{before} {after} {mesh}")
    sizes = mtf.Mesh(mesh).shape
    lines, inputs = [], []
    for number in range(6):
        place, out = (a_place(chosen, text, sizes, partial=number > 3) for text in (before, after))
        inputs.append(Input(f"a{number}", tuple((d.name, d.size) for d in dims(before)), place, wide=True))
        more = (("dims", after), *([("out", out)] if ":" in out else []))
        lines.append(Line((f"h{number}",), "reshape", (f"a{number}",), more))
    check(Case(mesh, tuple(inputs), tuple(lines), tuple(f"h{n}" for n in range(6))), ("explicit",))


def a_place(chosen: random.Random, text: str, mesh: dict[str, int], partial: bool) -> str:
    on: dict[str, list[str]] = {dim.name: [] for dim in dims(text)}
    sums = []
    for axis in chosen.sample(sorted(mesh), len(mesh)):
        fits = [d.name for d in dims(text) if d.size % (math.prod(mesh[a] for a in on[d.name]) * mesh[axis]) == 0]
        place = chosen.choice([None, *fits, *fits, *(["sum"] if partial else [])])
        if place == "sum":
            sums.append(axis)
        elif place:
            on[place].append(axis)
    return placed_text(on, sorted(sums))


def reshaped(before: str, placed: str, after: str, out: str, mesh: str) -> mtf.Program:
    def shaped(t):
        return mtf.reshape(t, after, out=out)

    shaped.__annotations__ = {"t": before}
    return mtf.plan(mtf.function(shaped), mesh, place={"t": placed})


def test_what_is_carried_sends_nothing():
    assert reshaped("A:8", "A:xy", "P:2 Q:4", "P:x Q:y", "x:2 y:2").collectives() == []


def test_what_straddles_takes_one_move():
    """Heads and their size on 4 devices that do not divide the heads: the axis goes from one side to the other."""
    program = reshaped("A:6 B:8", "A:x B", "Q:48", "Q:x", "x:2")
    assert program.collectives() == []
    program = reshaped("A:3 B:8", "A B:x", "Q:24", "Q:x", "x:2")
    assert [step.kind for step in program.collectives()] == ["all_gather"]


def test_partial_sums_pass_through():
    program = reshaped("A:8", "A partialsum:x", "P:4 Q:2", "P Q partialsum:x", "x:2")
    assert [step.kind for step in program.steps] == ["reshape"]


def test_a_partial_sum_is_scattered_on_the_way_to_where_it_is_wanted():
    program = reshaped("A:8 B:2", "A B partialsum:x", "Q:16", "Q:x", "x:2")
    assert [step.kind for step in program.collectives()] == ["reduce_scatter"]
    assert program.link_bytes() == 16 * 4 / 2


def test_different_numbers_of_elements_are_refused():
    with pytest.raises(mtf.LayoutError, match=r"'A:8' \(8 elements\) to 'P:3 Q:3' \(9 elements\)"):
        reshaped("A:8", "A", "P:3 Q:3", "P:x Q", "x:2")


def test_the_cheapest_of_all_ways():
    """Brute force over every place to reshape at, from it and to it by shortest paths."""
    items, chosen = tuple(MESH.items()), random.Random("cheapest")

    def way(a: Sharding, b: Sharding) -> float:
        return shortest(State(a.axes, a.partial), State(b.axes, b.partial), a.shape, items, 4).cost

    for before, after in CASES:
        cut = groups(dims(before), dims(after))
        every = [Sharding.of(dims(before), axes) for axes in placements(("x", "y"), len(dims(before)))]
        every = [s for s in every if divides(s)]
        goals = [Sharding.of(dims(after), axes) for axes in placements(("x", "y"), len(dims(after)))]
        goals = [s for s in goals if divides(s)]
        pairs = list(itertools.product(every, goals))
        for start, goal in chosen.sample(pairs, min(40, len(pairs))):
            middle, result = choose_reshape(start, cut, goal, items, 4)
            cost = way(start, middle) + way(result, goal)
            ways = [way(start, s) + way(through, goal) for s in every if (through := carry(s, cut, MESH)) is not None]
            assert cost == pytest.approx(min(ways)), f"{start} → {goal} by {middle}"
