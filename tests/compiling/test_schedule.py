"""A scheduled text read in its order: loops opened and multiplied, each fusion's cycles, what starts and what waits."""

from __future__ import annotations

import pytest
from compiling.texts import CHAIN, LOOP, OFFLOADED, PAIR, WRAPPED

from mtfcore.compiling.collectives import collectives
from mtfcore.compiling.schedule import read
from mtfcore.compiling.timing import timed
from mtfcore.costs.links.collectives import all_reduce
from mtfcore.costs.links.wiring import wire
from mtfcore.counting import count_hlo_text
from mtfcore.mesh import Mesh

MESH = Mesh("x:2 y:2")


def test_cycles_of_a_loop_are_multiplied_by_its_turns():
    schedule = read(LOOP)
    assert schedule.cycles == 100 + 5 * 1_000
    loops = [slot for slot in schedule.slots if slot.opcode == "while"]
    assert [slot.turns for slot in loops] == [5] and not schedule.notes


def test_slots_stand_in_the_order_in_which_they_run():
    names = [slot.instruction.name for slot in read(PAIR).slots]
    assert names.index("start") < names.index("work") < names.index("done")


def test_an_instruction_knows_the_step_it_was_lowered_from():
    steps = {slot.instruction.name: slot.step for slot in read(LOOP).slots}
    assert steps["body_sum"] == "2.7" and steps["before"] == "1" and steps["p"] == ""


def test_collectives_have_axes_bytes_turns_and_order():
    (found,) = collectives(read(LOOP), MESH)
    assert (found.kind, found.axes, found.whole, found.group) == ("all_reduce", ("y",), True, 2)
    assert (found.n_bytes, found.times, found.is_async, found.step) == (4 * 64, 5, False, "2.7")
    assert found.link_bytes == 2 * 4 * 64 / 2


def test_what_a_fusion_wraps_is_found_and_named():
    """A TPU fuses an all-reduce with the slice of each device's part, and pads it: that is its reduce-scatter."""
    (found,) = collectives(read(WRAPPED), MESH)
    assert (found.kind, found.wrapper, found.axes) == ("reduce_scatter", "scattered", ("x",))
    assert found.link_bytes == count_hlo_text(WRAPPED).link_bytes


def test_counted_and_scheduled_bytes_agree():
    for text in (LOOP, PAIR, WRAPPED, CHAIN, OFFLOADED):
        found = collectives(read(text), MESH)
        assert sum(one.times * one.link_bytes for one in found) == count_hlo_text(text).link_bytes


def test_a_collective_beside_several_fusions_is_one():
    schedule = read(CHAIN)
    (found,) = collectives(schedule, MESH)
    assert (found.kind, found.axes, found.is_async, found.name, found.step) == (
        "all_gather", ("x",), True, "gather_1", "4",
    )  # fmt: skip
    assert [slot.instruction.name for slot in schedule.slots if slot.ends] == ["gather_3"]
    assert count_hlo_text(CHAIN).link_bytes == found.link_bytes == 32 * 4


def test_what_runs_on_cores_of_its_own_begins_when_it_has_its_array():
    schedule = read(OFFLOADED)
    (found,) = collectives(schedule, MESH)
    assert (found.kind, found.axes, found.is_async, found.name, found.step) == (
        "all_reduce", ("y",), True, "core_sum", "6",
    )  # fmt: skip
    names = [slot.instruction.name for slot in schedule.slots]
    assert names.index("first") < names.index("update") < names.index("core_sum") < names.index("second")
    assert [slot.ends for slot in schedule.slots if slot.ends] == ["begun"]
    assert found.link_bytes == count_hlo_text(OFFLOADED).link_bytes == 2 * 4 * 64 / 2


def test_a_collective_without_a_start_is_waited_for():
    wired = wire(MESH, "v5e:2x2")
    schedule = read(LOOP)
    took = timed(schedule, collectives(schedule, MESH), wired)
    once = all_reduce(4 * 64, wired.legs(("y",))).seconds
    assert took.link_seconds == took.exposed_link_seconds == 5 * once
    assert took.compute_seconds == 5_100 / 1.5e9 and took.seconds == took.compute_seconds + 5 * once


@pytest.mark.parametrize("text", [PAIR, CHAIN, OFFLOADED], ids=["permute", "fusions", "cores"])
def test_what_runs_between_start_and_done_hides_the_link(text):
    """A permute takes a hop, 1 µs, and a gather of two too; 900 cycles at 1.5 GHz hide 0.6 µs of it, 3,000 hide all."""
    wired = wire(MESH, "v5e:2x2")
    exposed = {}
    for cycles in (0, 900, 3_000):
        schedule = read(text.replace('"estimated_cycles":"900"', f'"estimated_cycles":"{cycles}"'))
        took = timed(schedule, collectives(schedule, MESH), wired)
        exposed[cycles] = took.exposed_link_seconds
    assert exposed[0] == took.link_seconds > 0
    assert abs(exposed[900] - (took.link_seconds - 900 / 1.5e9)) < 1e-12 and exposed[3_000] == 0
