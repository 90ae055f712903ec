"""What live events say of kinds, groups and counts, against XLA's own trace of a run of the same program.

Names in the trace are private to XLA, so this holds for the JAX that is installed: should a later one trace nothing
that can be read, the first assertion says so. It is why events come from marks: the trace's form may change with any
version, and to read one with JAX 0.11 ends the process.
"""

from __future__ import annotations

import re
from collections import Counter

import jax
import pytest

import mtfcore as mtf
from mtfcore import events
from mtfcore.device_pool import launch
from widgets.explorers.examples import weight_stationary_2d
from widgets.explorers.inputs import example_inputs

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(jax.__version_info__ >= (0, 11), reason="to read a trace ends the process in this JAX"),
]
MEETING = re.compile(r"^(?P<kind>[a-z ]+?) RendezvousKey\{.*global_devices=\[(?P<group>[0-9, ]*)\]")
NAMES = {"all gather": "all_gather", "reduce scatter": "reduce_scatter", "all reduce": "all_reduce"}


def traced(run, arrays, folder) -> Counter:
    """(kind, group) → how many devices met in it, in one run."""
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level, options.host_tracer_level = 0, 2
    launch(run.compiled, *arrays, jax_mesh=run.jax_mesh)  # compiled before the trace begins
    jax.profiler.start_trace(str(folder), profiler_options=options)
    try:
        launch(run.compiled, *arrays, jax_mesh=run.jax_mesh)
    finally:
        jax.profiler.stop_trace()
    (path,) = folder.glob("**/*.xplane.pb")
    planes = [plane for plane in jax.profiler.ProfileData.from_file(str(path)).planes if plane.name == "/host:CPU"]
    met = [e for plane in planes for line in plane.lines for e in line.events if e.name == "Rendezvous"]
    names = (MEETING.match(dict(event.stats)["name"]) for event in met)
    return Counter((NAMES.get(m["kind"], m["kind"]), tuple(map(int, m["group"].split(",")))) for m in names if m)


@pytest.mark.parametrize(
    "place",
    [
        {"x": "B L E:xzy", "w_in": "E:x F:zy", "w_out": "F:zy E:x"},
        {"x": "B L E:xzy", "w_in": "E:x F:zy", "w_out": "F E"},
    ],
)
def test_kinds_groups_and_counts_are_those_of_xla_s_trace(place, tmp_path):
    program = mtf.plan(weight_stationary_2d, "x:2 y:2 z:2", "", sizes="B:8 L:4 E:64 F:256", place=place)
    arrays = example_inputs(program)
    watch = events.watch(program)
    watch(**arrays)
    told = Counter((event.kind, tuple(sorted(event.group))) for event in watch.events)
    found = traced(mtf.simulate(program), list(arrays.values()), tmp_path)
    found = Counter({(kind, tuple(sorted(group))): n for (kind, group), n in found.items()})
    assert found, "XLA's trace names no collective that can be read here"
    assert told == found
