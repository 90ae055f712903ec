"""Putting a real model on a device holds its weights once, and besides at most a part and one tensor."""

import subprocess
import sys

import pytest

from mtfcore.model.files import known

PEAK = """
import pathlib, re, sys, threading
import mtfcore as mtf

def held():
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"RssAnon:\\s+(\\d+)", status)[1])

def watch():
    while not done.wait(0.005):
        peak[0] = max(peak[0], held())

mtf.devices(1)
import jax
jax.numpy.zeros(1).block_until_ready()
found = mtf.model.load(sys.argv[1])
before, peak, done = held(), [0], threading.Event()
watcher = threading.Thread(target=watch)
watcher.start()
eng = mtf.model.Engine(found.cfg, found.params, "x:1", "ws2d-heads", "ws2d-heads", slots=1, length=8)
done.set()
watcher.join()
sizes = [array.nbytes for array in eng.launches.weights.values()]
print(peak[0] - before, sum(sizes), max(sizes))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a process's memory is read so on Linux only")
def test_an_engine_holds_each_weight_once(real_model):
    command = [sys.executable, "-c", PEAK, str(known.path_of("smollm2-135m"))]
    said = subprocess.run(command, capture_output=True, text=True, timeout=110, check=True).stdout
    peak, weights, largest = map(int, said.split())
    assert weights == 538_060_032
    assert peak < 1.3 * weights + largest
