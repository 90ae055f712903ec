"""What records keep of measurements and of reports: the same from every place that makes them."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

import mtfcore as mtf
from mtfcore.measuring import Measured, Share
from tpu_runs.entries import by_axis, measured_fields
from tpu_runs.papers.kept import kept
from tpu_runs.papers.machine import machine_of
from tpu_runs.records import Record

WHERE = {"platform": "tpu", "device_kind": "TPU v4", "devices": 1, "hosts": 1, "topology": "v4:1"}


def two_gathers() -> mtf.Program:
    @mtf.function
    def gathered(t: "A B"):
        return mtf.reshard(t, "A B")

    return mtf.plan(gathered, "x:2 y:4", sizes="A:16 B:8", place={"t": "A:yx B"}, dtype="bf16")


def test_a_share_has_its_words_wherever_it_was_measured() -> None:
    share = Share("x:4", 8, 1e-4, "v4:2x2x1", "calibrated")
    counts = {"flops": 7, "link_bytes": Fraction(7, 2)}
    found = Measured("a", "x:4", (2e-3, 1e-3), 1.5, 1, WHERE, {"jax": "0"}, {"error": None}, counts, share)
    record = Record(case="program", **measured_fields(found))
    assert record.share == {"mesh": "x:4", "left_out": 8, "topology": "v4:2x2x1", "modelled_link_seconds": 1e-4,
                            "model": "calibrated", "words": share.words}  # fmt: skip
    assert record.seconds == [2e-3, 1e-3] and record.counts == {"flops": 7, "link_bytes": 3.5}


def compiled(collectives: list, total: float) -> Record:
    return Record(case="paper", origin="compiled", counts={"link_bytes": total}, facts={"collectives": collectives})


def test_bytes_over_each_axis_follow_from_the_collectives_of_a_record() -> None:
    program = two_gathers()
    (step,) = program.collectives()
    assert step.axes == ("y", "x") and step.n_bytes == 32
    planned = {axis: float(n_bytes) for axis, n_bytes in program.link_bytes().by_axis.items()}
    assert by_axis(compiled([["all_gather", "xy", 32, False, 1]], 224), program) == planned  # in the plan's order
    mixed = [["all_gather", "xy", 32, False, 3], ["permute", "x", 5, True, 2]]
    assert by_axis(compiled(mixed, 3 * 224 + 10), program) == {"x": 3 * planned["x"] + 10, "y": 3 * planned["y"]}


def test_where_collectives_do_not_add_up_nothing_is_said() -> None:
    in_halves = compiled([["all_gather", "y", 32, False, 1]], 32)  # groups of 2 of the 4 along y
    assert by_axis(in_halves, two_gathers()) == {} == by_axis(Record(case="paper", origin="compiled"), two_gathers())


def test_what_a_record_keeps_by_axis_stands() -> None:
    kept_of_it = Record(case="paper", origin="compiled", facts={"by_axis": {"x": 1, "y": 2.5}, "collectives": []})
    assert by_axis(kept_of_it, two_gathers()) == {"x": 1, "y": 2.5}


def test_committed_records_tell_their_bytes_by_axis() -> None:
    seed = random.randrange(10**6)
    known = [one for one in kept().values() if one.status == "ok" and not one.params["partitioned"]]
    for record in random.Random(seed).sample(known, 8):
        program = machine_of(record.params).program()
        found = by_axis(record, program)
        assert set(found) == set(program.mesh.names), (record.params["name"], seed)
        assert sum(found.values()) == pytest.approx(record.counts["link_bytes"], rel=1e-12)
