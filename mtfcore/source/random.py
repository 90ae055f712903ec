"""Random steps as lines of plain JAX: the whole tensor's numbers, of which each device takes its part.

    h1 = lax.dynamic_slice(jax.random.uniform(jax.random.key(seed), (8, 4)), (lax.axis_index("x") * 2, 0), (2, 4))

The executor computes only the part (`kernels/threefry`); both are the same numbers. Next file to read:
`source/program`.
"""

from __future__ import annotations

from collections.abc import Callable

from mtfcore.mesh import Mesh
from mtfcore.sharding import Sharding
from mtfcore.source.lines import Operands, called, dtype_name, quoted, shape_text
from mtfcore.steps import Step


def _part(whole: str, s: Sharding, mesh: Mesh) -> str:
    """What this device holds of a whole array."""
    local = s.local_shape(mesh)
    starts = [f"lax.axis_index({quoted(on)}) * {n}" if on else "0" for on, n in zip(s.axes, local, strict=True)]
    if not any(s.axes):
        return whole
    return called("lax.dynamic_slice", whole, f"({', '.join(starts)}{',' * (len(starts) == 1)})", shape_text(local))


def _random(step: Step, operands: Operands, mesh: Mesh) -> str:
    fn = step.params["fn"].removeprefix("random_")
    key, shape = called("jax.random.key", operands[0]), shape_text(step.after.shape)
    return _part(called(f"jax.random.{fn}", key, shape, dtype_name(step.dtype)), step.after, mesh)


def _dropout(step: Step, operands: Operands, mesh: Mesh) -> str:
    keep = 1 - step.params["rate"]
    key, shape = called("jax.random.key", operands[1]), shape_text(step.after.shape)
    kept = _part(called("jax.random.bernoulli", key, repr(keep), shape), step.after, mesh)
    return called("jnp.where", kept, f"{operands[0]} / {keep!r}", "0")


RANDOM: dict[str, Callable[[Step, Operands, Mesh], str]] = {"random": _random, "dropout": _dropout}
