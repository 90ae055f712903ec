"""Running sums and the k largest as lines of plain JAX, both stages; and largest values that keep NaN.

    top_k of each part          →   h1 = lax.top_k(x, 3)[0]
    top_k of the candidates     →   out = lax.top_k(h1, 3)[0]
    cumsum with those before    →   out = h2 + jnp.sum(h3, axis=1, keepdims=True, where=jnp.arange(4) < part)

Next file to read: `source/program`.
"""

from __future__ import annotations

from collections.abc import Callable

from mtfcore.mesh import Mesh
from mtfcore.source.lines import Operands, called, dtype_name, place_of, quoted
from mtfcore.steps import Step

# Printed above the function where a line needs it.
WITH_NAN = '''
def with_nan(reduce, t, axes):
    """lax.pmax or lax.pmin that keep NaN, which a CPU's lose: whole numbers in the order of the floats travel."""
    whole = jnp.dtype(f"int{8 * t.dtype.itemsize}")
    least, most = jnp.iinfo(whole).min, jnp.iinfo(whole).max  # the bits of two NaNs

    def turned(bits):
        return jnp.where(bits < 0, bits ^ most, bits)

    bits = turned(lax.bitcast_convert_type(t, whole))
    sent = jnp.where(jnp.isnan(t), most if reduce is lax.pmax else least, bits)
    return lax.bitcast_convert_type(turned(reduce(sent, axes)), t.dtype)

'''


def _cumsum(step: Step, operands: Operands, mesh: Mesh) -> str:
    if len(operands) == 2:  # parts summed already, and the totals of all
        place, rank = place_of(step), len(step.after.dims)
        part = f"lax.axis_index({quoted(step.after.on[step.params['dim']])})"
        index = f"[{', '.join([':'] + ['None'] * (rank - place - 1))}]" if place < rank - 1 else ""
        before = f"jnp.arange({step.before[1].shape[place]}){index} < {part}"
        return f"{operands[0]} + jnp.sum({operands[1]}, axis={place}, keepdims=True, where={before})"
    return called("jnp.cumsum", operands[0], f"axis={place_of(step)}", f"dtype={dtype_name(step.dtype)}")


def _top_k(step: Step, operands: Operands, mesh: Mesh) -> str:
    place, k, part = place_of(step), step.params["k"], step.params["part"]
    last = place == len(step.before[0].dims) - 1
    found = f"lax.top_k({operands[0] if last else f'jnp.moveaxis({operands[0]}, {place}, -1)'}, {k})[{part}]"
    found = found if last else f"jnp.moveaxis({found}, -1, {place})"
    if len(operands) == 2:  # candidates, and where they stand in the whole
        return called("jnp.take_along_axis", operands[1], found, f"axis={place}")
    on = step.before[0].on[step.params["dim"]]
    rows = step.before[0].local_shape(mesh)[place]
    return f"{found} + lax.axis_index({quoted(on)}) * {rows}" if on and part == 1 else found


STAGES: dict[str, Callable[[Step, Operands, Mesh], str]] = {"cumsum": _cumsum, "top_k": _top_k}
