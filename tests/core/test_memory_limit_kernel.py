"""In a real kernel: whatever fills the memory ends in an error with words, and the same kernel works on.

The limit is small, so that little is ever allocated; the larger one, as a student has it, is for `--long`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty

import pytest

jupyter_client = pytest.importorskip("jupyter_client")
pytest.importorskip("ipykernel")
ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the system refuses memory on Linux only")

START = """
import mtfcore as mtf, numpy as np
mtf.devices(8)
@mtf.function
def layer(x: "batch io", w: "io hidden"):
    return mtf.einsum(x, w, out="batch hidden")
def simulate():
    plan = mtf.plan(layer, "a:8", "batch:a", sizes="batch:8 io:4 hidden:4")
    return mtf.simulate(plan)(np.ones((8, 4), np.float32), np.ones((4, 4), np.float32))[0][0]
float(simulate())
"""
FILLINGS = {
    "an array": "held = np.ones(10**10)",
    "a list": "held = []\nwhile True: held.append(str(len(held)) * 100)",
    "large pieces": "held = []\nwhile True: held.append(bytearray(10**7))",
    "a dict": "held, i = {}, 0\nwhile True:\n    i += 1\n    held[i] = str(i) * 100",
    "a string": "held = 'a'\nwhile True: held += held",
    "jax arrays": "import jax.numpy as jnp\nheld = []\nwhile True: held.append(jnp.ones((1000, 1000)))",
    "names of a function": "def fill():\n    mine = {}\n    while True: mine[len(mine)] = str(len(mine)) * 100\nfill()",
}


class Kernel:
    """One kernel, and what its cells say."""

    def __init__(self, gib: str) -> None:
        environment = {**os.environ, "MESHWORK_MEMORY_GIB": gib, "PYTHONPATH": str(ROOT)}
        self.manager, self.client = jupyter_client.manager.start_new_kernel(
            kernel_name="python3", startup_timeout=60, env=environment
        )

    def cell(self, code: str, seconds: float = 30.0) -> str:
        """All that the cell shows; an `AssertionError` where the kernel ends or does not answer."""
        asked, end, said = self.client.execute(code), time.monotonic() + seconds, ""
        while time.monotonic() < end and self.manager.is_alive():
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except Empty:
                continue
            if message["parent_header"].get("msg_id") == asked:
                said += _shown(message["content"])
                if message["content"].get("execution_state") == "idle":
                    return said
        raise AssertionError(f"no answer to {code!r} (alive: {self.manager.is_alive()}): {said}")


def _shown(content: dict) -> str:
    if "ename" in content:
        return f"{content['ename']}: {content['evalue']}\n"
    return content.get("text", "") + content.get("data", {}).get("text/plain", "")


@pytest.fixture(scope="module", params=["1", pytest.param("2", marks=pytest.mark.long)])
def kernel(request: pytest.FixtureRequest) -> Iterator[Kernel]:
    kernel = Kernel(request.param)
    assert kernel.cell(START).endswith("4.0")
    yield kernel
    kernel.client.stop_channels()
    kernel.manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("what", FILLINGS)
def test_a_cell_that_fills_the_memory_ends_in_words_and_the_kernel_works_on(kernel, what):
    said = kernel.cell(FILLINGS[what])
    assert said.count("This notebook's kernel may take") == 1, said
    assert kernel.cell("1 + 1") == "2"  # with all that the cell left behind
    said = kernel.cell("simulate()")
    assert said.endswith("4.0)") or "may take" in said  # where too little room is left, that is said again
    assert kernel.cell("held = None; 1 + 2") == "3"
    assert kernel.cell("simulate()").endswith("4.0)")


def test_a_cell_that_fills_again_and_again_stops_each_time(kernel):
    kernel.cell("held = []")
    for _ in range(4):
        assert "may take" in kernel.cell("while True: held.append(str(len(held)) * 100)")
        assert kernel.cell("1 + 1") == "2"
    assert kernel.cell("held = None; simulate()").endswith("4.0)")
