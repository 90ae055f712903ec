"""Which benchmarks `python -m tests.benchmarks` finds."""

import pytest

from tests.benchmarks.__main__ import benchmarks
from tests.benchmarks.pairs import interleaved, repeated


def test_all_are_found_and_names_choose():
    assert {"bench_plan", "bench_run"} <= set(benchmarks([]))
    assert benchmarks(["plan"]) == benchmarks(["bench_plan"]) == ["bench_plan"]


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(SystemExit, match=r"no benchmark plam; there are .*bench_plan"):
        benchmarks(["plam"])


def test_pairs_take_turns_and_spreads_keep_every_value():
    calls: list[str] = []
    ratio, ours, theirs = interleaved(lambda: calls.append("a"), lambda: calls.append("b"), 4)
    assert calls == list("ab" + "ab" + "ba" + "ab" + "ba")
    assert len(ratio.values) == len(ours.values) == len(theirs.values) == 4
    assert ratio.quartiles[0] <= ratio.median <= ratio.quartiles[1]
    assert len(repeated(lambda: None, 5, before=lambda: calls.append("c")).values) == calls.count("c") == 5
