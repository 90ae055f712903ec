"""How long a layout search takes: the first paper's model of 4.9 billion parameters on the 512 cores of a TPU v2 pod.

Caches are emptied before each search, as they are for whoever starts one. What is searched is in the printed line.
"""

from __future__ import annotations

import mtfcore as mtf
from mtfcore.functions import Function
from mtfcore.model.optimizers import Adafactor

from .bench_plan import empty_caches
from .pairs import repeated, report

SIZES = "B:256 L:256"
TOPOLOGY = "v2:16x16"


def functions() -> dict[str, Function]:
    """The model forward, with gradients, and as the whole training step."""
    cfg = mtf.model.config("mtf-lm-4.9b")
    loss = mtf.model.loss(cfg)
    arguments = {name: " ".join(map(str, dims)) for name, dims in loss.arguments.items()}

    def gradients(**tensors: mtf.Tensor) -> dict[str, mtf.Tensor]:
        return mtf.gradients(loss(**tensors), {name: tensors[name] for name in cfg.params})

    step = mtf.model.training_step(
        loss, {name: param.text for name, param in cfg.params.items()}, Adafactor(learning_rate=1e-3)
    )
    return {
        "loss": loss,
        "gradients": Function.of("gradients", arguments, gradients, loss.dtypes),
        "training step with Adafactor": step,
    }


def main() -> None:
    """Print times and what was found."""
    print("layout search (measured, this computer)")
    for what, fn in functions().items():
        found = []

        def search(fn: Function = fn, found: list = found) -> None:
            found.append(mtf.search_layout(fn, TOPOLOGY, sizes=SIZES, dtype="bf16"))

        times = repeated(search, 3, before=empty_caches)
        report(f"4.9B {what} on {TOPOLOGY}", times.seconds(), "5 s")
        print(f"    {found[-1].best} {found[-1].proof()}")


if __name__ == "__main__":
    main()
