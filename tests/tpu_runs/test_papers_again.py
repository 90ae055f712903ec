"""Three committed records of the papers' machines, by chance, are compiled again: nothing may come out otherwise."""

from __future__ import annotations

import os
import random

import pytest

from tpu_runs.entries import by_axis
from tpu_runs.papers.kept import kept
from tpu_runs.papers.machine import machine_of
from tpu_runs.papers.making import make
from tpu_runs.papers.remaking import differences, other_compiler, quick

SEED = int(os.environ.get("MESHWORK_PAPERS_SEED") or random.randrange(10**6))


@pytest.mark.xdist_group("compiling")
@pytest.mark.parametrize("which", range(3))
def test_a_committed_record_is_what_the_compiler_makes_again(which: int) -> None:
    print(f"MESHWORK_PAPERS_SEED={SEED}")
    record = quick(kept(), 3, SEED)[which]
    if reason := other_compiler(record):
        pytest.skip(reason)
    one = machine_of(record.params)
    again = make(one)
    found = differences(record, again)
    assert not found, f"{record.params['name']} (MESHWORK_PAPERS_SEED={SEED}): " + "; ".join(found)
    if record.status == "ok" and not record.params["partitioned"]:
        assert by_axis(record, one.program()) == again.facts["by_axis"], record.params["name"]
