"""What the numbers of plans are in terms of named sizes, and when that cannot be said."""

from __future__ import annotations

import re

import pytest

from mtfcore.costs.templates.sizes import Meanings, apart
from mtfcore.errors import LayoutError

SIZES = [
    {"B": 16, "H": 24, "K": 8, "S": 13, "D": 14, "L": 1, "T": 100},
    {"B": 48, "H": 80, "K": 16, "S": 31, "D": 26, "L": 1, "T": 110},
]
MESHES = [{"x": 2, "y": 4}, {"x": 14, "y": 4}]


@pytest.mark.parametrize(("name", "numbers", "said"), [
    ("B", (16, 48), "B"), ("L", (1, 1), "L"), ("turns", (7, 7), "7"), ("M", (13, 31), "S"), ("G", (3, 5), "H/K"),
    ("pairs", (7, 13), "1/2 D"), ("S", (14, 32), "S + 1"), ("S", (12, 30), "S - 1"), ("seen", (113, 141), "S + T"),
    ("kd", (112, 416), "K D"), ("vocab", (6, 42), "3 x"), ("rows", (112, 48), "14 B/x"), ("BKG", (384, 3840), "B H"),
    ("KBD", (1792, 19968), "B K D"), ("half", (56, 208), "1/2 K D"),
])  # fmt: skip
def test_the_simplest_expression_that_gives_all_numbers(name, numbers, said):
    assert str(Meanings.of(SIZES, MESHES).solve(numbers, name)) == said


def test_a_name_of_its_own_breaks_a_tie():
    """Both are 16 and 48; each dimension goes by its own name, and what has neither is refused."""
    twice = Meanings.of([{**each, "N": each["B"]} for each in SIZES], MESHES)
    assert [str(twice.solve((16, 48), name)) for name in "BN"] == ["B", "N"]
    with pytest.raises(LayoutError, match="M has sizes 16, 48, which may be B or N; let the named sizes of the plans"):
        twice.solve((16, 48), "M")


@pytest.mark.parametrize(("numbers", "why"), [
    ((17, 1001), "M has sizes 17, 1001, which no short expression of the named sizes gives: B 16, 48, H 24, 80"),
    ((3, 3), "M has sizes 3, 3, which may be 3 or H/G"),
])  # fmt: skip
def test_what_cannot_be_said_is_refused(numbers, why):
    sizes = [{**SIZES[0], "G": 8}, {"B": 48, "H": 81, "G": 27, "K": 16, "S": 31, "D": 26, "L": 1, "T": 110}]
    with pytest.raises(LayoutError, match=re.escape(why)):
        Meanings.of(SIZES if numbers[0] == 17 else sizes, MESHES).solve(numbers, "M")


def test_other_sizes_are_the_same_times_primes():
    sizes = {"B": 16, "L": 1, "E": 64}
    assert apart(sizes) == {"B": 48, "L": 5, "E": 7 * 64}
    assert apart(sizes, fixed=["L"]) == {"B": 48, "L": 1, "E": 5 * 64}
