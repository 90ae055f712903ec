"""A program of its own: compiles a share for a TPU that is not here, and prints planned and compiled FLOPs."""

import os

from mtfcore.platforms import ANSWERS

os.environ.update(ANSWERS, JAX_PLATFORMS="cpu", ALLOW_MULTIPLE_LIBTPU_LOAD="1")

import jax
from jax.experimental import topologies

import mtfcore as mtf
from mtfcore.counting import count_hlo_text
from mtfcore.measuring.cutting import function_of, shapes_of, without_collectives
from mtfcore.measuring.subject import any_order


def compiled_flops(prog: mtf.Program, device: object) -> int:
    """FLOPs in the compiler's text of one device's share."""
    alone = without_collectives(prog)
    shapes, at = shapes_of(alone), any_order(jax.sharding.SingleDeviceSharding(device))
    jitted = jax.jit(function_of(alone, len(prog.inputs)), in_shardings=[at] * len(shapes))
    return count_hlo_text(jitted.lower(*shapes).compile().as_text()).flops


if __name__ == "__main__":
    found = topologies.get_topology_desc(topology_name="v5e:2x2", platform="tpu")
    prog = mtf.looped(mtf.model.plan_phase("tiny-grouped", "prefill", "x:2 y:2 z:2", ffn="ws2d", attention="heads",
                                           batch=8, new_tokens=8, weights="f32", cache="f32"))  # fmt: skip
    print(prog.flops(), compiled_flops(prog, found.devices[0]))
