"""The two ways in which JAX on simulated devices can wait for ever, and what keeps us from them.

One process runs the collectives of all simulated devices, so launches that are not waited for can block each other:
`device_pool.launch` holds one lock and waits. A callback inside `shard_map` that touches large arrays can block too:
the executor has none.
"""

import ast
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np

import mtfcore as mtf
from mtfcore import device_pool

MANY = """
import threading, numpy as np, mtfcore as mtf
mtf.devices(8)

@mtf.function
def total(x: "batch io"):
    return mtf.sum(mtf.relu(x), "batch")

run = mtf.simulate(mtf.plan(total, "rows:8", "batch:rows", sizes="batch:64 io:512"))
x = np.ones((64, 512), np.float32)
wrong = []

def work():
    for _ in range(40):
        if not np.array_equal(run(x), x.sum(0)):
            wrong.append(1)

threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("done", len(wrong))
"""


def test_160_launches_from_four_threads_end():
    """Unwaited, one psum at 8 devices stops for good at about 40 launches."""
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() == "done 0", done.stderr[-2000:]


def test_one_launch_at_a_time_and_each_is_waited_for():
    running, most = [], []

    def busy():
        running.append(1)
        most.append(len(running))
        threading.Event().wait(0.02)  # stands for work: long enough that another launch would be seen
        running.pop()
        return np.zeros(1)

    threads = [threading.Thread(target=device_pool.launch, args=(busy,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(most) == 6 and max(most) == 1


def test_only_the_marks_of_live_traffic_call_back_into_python():
    """Once, and with scalars: a callback that is handed an array within shard_map can wait for ever."""
    found = {}
    for path in sorted(Path(mtf.__file__).parent.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
        called = [call for call in calls if call.func.attr in ("pure_callback", "io_callback", "callback")]
        if called:
            found[path.name] = [[ast.unparse(operand) for operand in call.args[1:]] for call in called]
    assert found == {"events.py": [["device", "array.reshape(-1)[0]"]]}
