"""The compiler's refusals as data: what was needed, what there was; other faults are not taken for one."""

from __future__ import annotations

import pytest

from mtfcore.compiling.memory import Compiled, refusal

G = 2**30
HBM = (
    "RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for HLO "
    "temporaries (49.25G) exceeds available HBM (15.75G). HLO module: jit_local."
)


@pytest.mark.parametrize(
    ("message", "needed", "there"),
    [
        (HBM, 49.25 * G, 15.75 * G),
        (HBM.replace("49.25G", "1.5T").replace("15.75G", "512.00M"), 1.5 * 1024 * G, G / 2),
        ("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 20.5G of 15.75G hbm.", 20.5 * G, 15.75 * G),
        ("RESOURCE_EXHAUSTED: something new", None, None),
    ],
)
def test_refusals(message, needed, there):
    found = refusal(message)
    assert (found.needed_bytes, found.available_bytes, found.message) == (needed, there, message)
    assert str(found) == (message if needed is None else str(found)) and str(found)


def test_in_words():
    assert str(refusal(HBM)) == "needs 49.2 GiB of 15.8 GiB"


def test_other_faults_are_no_refusal():
    assert refusal("UNIMPLEMENTED: no such instruction on this chip") is None


def test_what_is_held_at_once():
    assert Compiled(arguments=100, outputs=50, temporaries=7, aliased=40, code=3).total == 120
    assert str(Compiled(2048, 0, 1024, 0, 0)) == "arguments 2 KiB, temporaries 1 KiB"
