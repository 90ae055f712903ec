"""Random programs of one to six operations: explicit = single = partitioned = numpy, planned bytes = counted bytes.

A failure is shrunk by hypothesis and prints as the Python that repeats it. The seeds are fixed, so everybody runs the
same programs; `make test-long` runs 2,000. The shares of steps are asserted over the very programs that are run.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable

import pytest
from core.sweep.checking import check, kinds
from core.sweep.making import programs
from core.sweep.programs import Case
from hypothesis import HealthCheck, given, seed, settings

EACH = 50  # programs of one part
SHORT = 6  # parts of the ordinary run
PARTS = [pytest.param(part, marks=[pytest.mark.long] if part >= SHORT else []) for part in range(40)]
KINDS = {
    "slice", "mask", "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute", "einsum", "pointwise",
    "reduce", "gather", "window", "pad", "concat", "cumsum", "top_k", "reshape", "constant", "index", "repeat",
    "random", "dropout", "write",
    "shift", "windows", "overlap", "conv", "edge", "halo_exchange", "extend",
}  # fmt: skip


RARE = {"trim", "fold"}  # where a split dimension gets shorter or longer, and where neighbours' rows are handed back


def each_program(part: int, act: Callable[[Case], object]) -> None:
    """Do something with every program of a part."""

    @seed(part)
    @settings(max_examples=EACH, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(programs())
    def each(case: Case) -> None:
        act(case)

    each()


def one_in(n: int, case: Case) -> bool:
    """Whether a program is in the n-th part that takes the dearer checks too."""
    return zlib.crc32(case.script().encode()) % n == 0


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.timeout(600)  # a failure is shrunk, which takes minutes
def test_all_ways_to_run_agree_and_bytes_are_as_planned(part):
    def act(case: Case) -> None:
        third = one_in(3, case)
        check(case, ("explicit", "single", "partitioned") if third else ("explicit", "single"), stablehlo=third)

    each_program(part, act)


def test_every_kind_of_step_is_drawn_and_most_programs_communicate(request):
    """Over the programs that this run checks: 60 % communicate, each kind of step stands in 2 %, rare ones in 1 %."""
    found: Counter = Counter()

    def act(case: Case) -> None:
        program = case.build()
        found.update([*kinds(program), "programs", *(["communicates"] if program.collectives() else [])])

    parts = len(PARTS) if request.config.getoption("--long") else SHORT
    for part in range(parts):
        each_program(part, act)
    share = {kind: found[kind] / found["programs"] for kind in found}
    assert found["programs"] >= parts * EACH
    assert share["communicates"] >= 0.6, share
    assert {kind for kind in found if share[kind] >= 0.02} >= KINDS, share
    assert {kind for kind in found if share[kind] >= 0.01} >= RARE, share
    assert KINDS | RARE >= set(found) - {"programs", "communicates"}, "a kind of step that no test asks for"
