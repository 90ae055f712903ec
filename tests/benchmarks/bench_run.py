"""What running through the library costs beside hand-written `shard_map`: the same program, interleaved pairs.

Times are of this computer's CPU with simulated devices, so only the ratios mean anything.
"""

from __future__ import annotations

import jax
import numpy as np

import mtfcore as mtf
from mtfcore.device_pool import launch
from mtfcore.runs import simulate

from .hand_written import SPECS, by_hand, hand_mesh, planned
from .lowered import lowered_collectives
from .pairs import interleaved, report

SIZES = {"small": (64, 32, 128), "large": (512, 512, 2048)}


def main() -> None:
    """Print ratios of steady time and of tracing time."""
    mtf.devices(64)
    mesh = hand_mesh()
    print("explicit run against hand-written shard_map, two-layer net on rows:4 cols:2 (measured; simulated devices)")
    for name, sizes in SIZES.items():
        run = simulate(planned(*sizes))
        lowered = jax.jit(by_hand(mesh)).lower(*run.shapes)
        same = lowered_collectives(run.lower()) == lowered_collectives(lowered)
        report(f"{name}: collectives in the lowered text", "identical" if same else "DIFFERENT", "identical")
        _steady(name, run, mesh)
    _tracing(simulate(planned(*SIZES["small"])), mesh)


def _steady(name: str, run: object, mesh: jax.sharding.Mesh) -> None:
    rng = np.random.default_rng(0)
    whole = [rng.normal(size=shape.shape).astype(np.float32) for shape in run.shapes]
    arrays = [jax.device_put(a, jax.NamedSharding(mesh, spec)) for a, spec in zip(whole, SPECS, strict=True)]
    hand = jax.jit(by_hand(mesh))
    np.testing.assert_array_equal(launch(run.compiled, *arrays)[0], launch(hand, *arrays))
    ratio, ours, theirs = interleaved(lambda: launch(run.compiled, *arrays), lambda: launch(hand, *arrays), 300)
    report(f"{name}: steady time, ours / by hand", str(ratio), "1.05")
    print(f"    ours {ours.seconds()}, by hand {theirs.seconds()}")


def _tracing(run: object, mesh: jax.sharding.Mesh) -> None:
    """From the plan to a jaxpr, a new function each time; planning itself is `bench_plan`'s."""
    shapes, program = run.shapes, run.program
    ratio, ours, theirs = interleaved(
        lambda: jax.make_jaxpr(simulate(program).fn)(*shapes), lambda: jax.make_jaxpr(by_hand(mesh))(*shapes), 100
    )
    report("tracing time, ours / by hand", str(ratio), "2")
    print(f"    ours {ours.seconds()}, by hand {theirs.seconds()}")


if __name__ == "__main__":
    main()
