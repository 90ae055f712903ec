"""How long planning takes, warm and with every cache emptied, and what importing the pure part adds to numpy."""

import subprocess
import sys

import mtfcore as mtf
from mtfcore.rules import resharding

from .pairs import Spread, repeated, report

NET_SIZES = "batch:64 io:512 hidden:2048"
LAYER_SIZES = "B:64 L:128 M:128 E:4096 F:16384 H:64 D:64"


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


def normed(x: mtf.Tensor, gain: mtf.Tensor) -> mtf.Tensor:
    """Root mean square normalization over E."""
    return x * mtf.rsqrt(mtf.mean(mtf.square(x), "E") + 1e-6) * gain


@mtf.function
def layer(
    x: "B L E", gain_a: "E", wq: "E H D", wk: "E H D", wv: "E H D", wo: "H D E",
    gain_f: "E", w_gate: "E F", w_in: "E F", w_out: "F E",
):  # fmt: skip
    """One Transformer layer: attention of queries at L to keys at M (the same positions), then a gated feedforward."""
    n = normed(x, gain_a)
    q = mtf.einsum(n, wq, out="B L H D")
    k = mtf.rename(mtf.einsum(n, wk, out="B L H D"), "L", "M")
    v = mtf.rename(mtf.einsum(n, wv, out="B L H D"), "L", "M")
    scores = mtf.softmax(mtf.einsum(q, k, out="B H L M") * 0.125, "M")
    attended = mtf.einsum(mtf.einsum(scores, v, out="B L H D"), wo, out="B L E")
    x = x + attended
    n = normed(x, gain_f)
    h = mtf.silu(mtf.einsum(n, w_gate, out="B L F")) * mtf.einsum(n, w_in, out="B L F")
    return x + mtf.einsum(h, w_out, out="B L E")


def plan_net() -> mtf.Program:
    return mtf.plan(two_layers, "rows:4 cols:2", "batch:rows hidden:cols", sizes=NET_SIZES)


def plan_layer() -> mtf.Program:
    return mtf.plan(layer, "x:4 y:4 z:4", "E:x F:zy H:zy", sizes=LAYER_SIZES, dtype="bf16")


def empty_caches() -> None:
    """Forget every answer that the library keeps between plans."""
    for name, module in list(sys.modules.items()):
        if name.startswith("mtfcore"):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
    resharding.forget()


def import_seconds(modules: str, n: int = 9) -> Spread:
    """What `import modules` takes in a new interpreter that has numpy already."""
    code = (
        "import time, numpy; start = time.perf_counter(); "
        f"import {modules}; seconds = time.perf_counter() - start; "
        "import sys; assert 'jax' not in sys.modules; print(seconds)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True) for _ in range(n)]
    return Spread.of(float(run.stdout) for run in runs)


def main() -> None:
    """Print times of planning and of importing."""
    print("planning (measured, this computer)")
    plan_net()
    report("two-layer net, warm", repeated(plan_net, 200).seconds(), "1 ms")
    program = plan_layer()
    n_ops = sum(op.kind != "input" for op in program.graph.ops)
    report(f"Transformer layer, {n_ops} operations, 4x4x4, warm", repeated(plan_layer, 100).seconds(), "10 ms")
    report("the same, caches emptied", repeated(plan_layer, 20, before=empty_caches).seconds(), "40 ms")
    report("import mtfcore, over numpy's", import_seconds("mtfcore").seconds(), "150 ms")
    report("import mtfcore, widgets, over numpy's", import_seconds("mtfcore, widgets").seconds(), "(no target)")


if __name__ == "__main__":
    main()
