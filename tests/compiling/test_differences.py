"""Planned and compiled laid side by side: each thing that a compiler may do otherwise, alone, and its words."""

from __future__ import annotations

from dataclasses import replace

import pytest

import mtfcore as mtf
from mtfcore.compiling.collectives import Sent, axes_of
from mtfcore.compiling.differences import WORDS, difference, sent_bytes
from mtfcore.compiling.matching import Planned, matches, planned

MESH = mtf.Mesh("x:4 y:2")


@mtf.function
def moved(a: "B L", b: "B L"):
    """a is gathered over x; b, partial over x, is summed and scattered into B."""
    return {"a": mtf.reshard(a, "B L"), "b": mtf.reshard(b, "B:x L:y")}


PROGRAM = mtf.plan(moved, MESH, "", sizes="B:64 L:32", place={"a": "B L:x", "b": "B L:y partialsum:x"}, dtype="f32")
GATHER, SCATTER = planned(PROGRAM)
GATHERED, SCATTERED = 64 * 8 * 4, 64 * 16 * 4  # bytes that a device holds before


def sent(kind: str, *parts: int, step: str = "", **other: object) -> Sent:
    """A compiled collective over x."""
    plain = Sent(kind, ("x",), True, 4, parts, ("f32",) * len(parts), 1, False, f"{kind}.{step}", step, ())
    return replace(plain, **other)


def found(*compiled: Sent, plan: tuple[Planned, ...] = (GATHER, SCATTER)) -> list[tuple[tuple[str, ...], str]]:
    return [difference(match) for match in matches(plan, compiled)]


def words(*compiled: Sent, **options: object) -> list[tuple[str, ...]]:
    return [how.words for how in found(*compiled, **options)]


def test_the_plan_itself():
    assert (GATHER.kind, GATHER.axes, GATHER.step.n_bytes) == ("all_gather", ("x",), GATHERED)
    assert (SCATTER.kind, SCATTER.axes, SCATTER.step.n_bytes) == ("reduce_scatter", ("x",), SCATTERED)


@pytest.mark.parametrize("named", [True, False])
def test_as_planned_with_or_without_a_name(named):
    steps = (GATHER.number, SCATTER.number) if named else ("", "")
    pairs = [sent("all_gather", GATHERED, step=steps[0]), sent("reduce_scatter", SCATTERED, step=steps[1])]
    assert words(*pairs) == words(*reversed(pairs)) == [(), ()]


@pytest.mark.parametrize("grown", [48, 63])
def test_small_parts_grow_most_when_made_whole_tiles(grown):
    """36 rows become 48, and a permute moves what that shifts."""
    made = [sent("all_gather", GATHERED), sent("permute", 512), sent("reduce_scatter", SCATTERED * grown // 36)]
    assert words(*made) == [(), ("padded",)]


def test_an_all_reduce_for_a_reduce_scatter_sends_twice_as_much():
    made = [sent("all_gather", GATHERED), sent("all_reduce", SCATTERED)]
    assert words(*made) == [(), ("all-reduce",)]
    (_, match) = matches((GATHER, SCATTER), made)
    assert sent_bytes(match)[1] == 2 * sent_bytes(match)[0]
    assert "sends twice as much" in difference(match).why


def test_several_in_one():
    [(how, why)] = found(sent("all_reduce", SCATTERED, SCATTERED), plan=(SCATTER, replace(SCATTER, number="9")))
    assert how == ("combined", "all-reduce") and f"steps {SCATTER.number} and 9 travel in one all_reduce" in why


def test_several_in_one_that_kept_one_name():
    other = replace(SCATTER, number="9")
    [(how, _)] = found(sent("reduce_scatter", SCATTERED, SCATTERED, step="9"), plan=(SCATTER, other))
    assert how == ("combined",)


def test_one_in_phases():
    both = replace(GATHER, axes=("x", "y"))
    first = sent("all_gather", GATHERED, step=GATHER.number)
    second = sent("all_gather", 4 * GATHERED, step=GATHER.number, axes=("y",), group=2)
    assert found(first, second, plan=(both,)) == [
        (("in phases",), "runs as all_gather over x, then all_gather over y"),
    ]


def test_padded_parts_and_the_permute_that_mends_them():
    made = [sent("reduce_scatter", SCATTERED + 512), sent("permute", 96)]
    [(how, why)] = found(*made, plan=(SCATTER,))
    assert how == ("padded",) and why == "4.5 KiB instead of 4 KiB, parts made whole tiles"


def test_taken_apart_into_permutes():
    pieces = [sent("permute", GATHERED, step=GATHER.number, name=f"p{n}") for n in range(3)]
    assert found(*pieces, plan=(GATHER,)) == [(("permutes",), "all_gather taken apart into 3 permutes")]


def test_a_gather_done_by_adding_zeros():
    assert words(sent("all_reduce", 4 * GATHERED, step=GATHER.number), plan=(GATHER,)) == [("all-reduce",)]


def test_another_kind():
    (how,) = found(sent("all_to_all", GATHERED, step=GATHER.number), plan=(GATHER,))
    assert how == (("turned",), "all_to_all, not all_gather")


def test_out_of_a_loop():
    in_loop = replace(GATHER, times=118)
    (how,) = found(sent("all_gather", GATHERED), plan=(in_loop,))
    assert how == (("moved",), "moved out of the loop: runs 1 times instead of 118")


def test_in_another_type():
    bf16 = replace(GATHER, step=replace(GATHER.step, dtype="bf16"))
    (how,) = found(sent("all_gather", GATHERED, step=GATHER.number), plan=(bf16,))
    assert how == (("other type",), "in f32 instead of bf16")


def test_nothing_left_and_something_added():
    gone, added = found(sent("all_to_all", 12), plan=(GATHER,))
    assert gone.words == ("gone",) and added == (("added",), "the compiler added an all_to_all over x")


def test_a_name_of_another_axis_is_not_believed():
    """The compiler may give an instruction the name of its neighbour."""
    made = sent("all_gather", GATHERED, step=SCATTER.number, axes=("y",), group=2)
    assert words(made) == [("gone",), ("gone",), ("added",)]


def test_groups_tell_axes():
    assert axes_of(((0, 2, 4, 6), (1, 3, 5, 7)), MESH) == (("x",), True)
    assert axes_of(((0, 1), (2, 3), (4, 5), (6, 7)), MESH) == (("y",), True)
    assert axes_of((tuple(range(8)),), MESH) == (("x", "y"), True)
    assert axes_of(((0, 2), (1, 3), (4, 6), (5, 7)), MESH) == (("x",), False)


def test_every_word_is_explained():
    assert all(text and not text.endswith(".") for text in WORDS.values())
