"""Random shard_map programs: jaxpr = StableHLO = compiled text, collective by collective."""

from collections import Counter
from math import prod

import jax
import jax.numpy as jnp
from counting.programs import P, array, mapped, mesh
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from mtfcore.counting import count, count_hlo_text, count_stablehlo

MESHES = ({"x": 8}, {"x": 2, "y": 4}, {"x": 2, "y": 1, "z": 2}, {"x": 2, "y": 3}, {"x": 2, "y": 2, "z": 2})
ROWS = 48  # divides by every group above


def _shift(c, axes, on):
    axes = tuple(name for name in on.axis_names if name in axes)  # JAX 0.11 takes them in the mesh's order only
    g = prod(on.shape[name] for name in axes)
    return lax.ppermute(c, axes, [(i, (i + 1) % g) for i in range(g)])


STEPS = {
    "gather": lambda c, axes, on: lax.all_gather(c, axes, tiled=True)[:ROWS],
    "scatter": lambda c, axes, on: jnp.tile(lax.psum_scatter(c, axes, tiled=True), (ROWS, 1))[:ROWS],
    "reduce": lambda c, axes, on: lax.psum(c, axes),
    "max": lambda c, axes, on: lax.pmax(c, axes),
    "exchange": lambda c, axes, on: lax.all_to_all(c, axes, 0, 0, tiled=True),
    "shift": _shift,
    "multiply": lambda c, axes, on: c @ (c.T @ c),
}


@st.composite
def programs(draw):
    """(mesh sizes, dtype, [(step, axes, loop length)])."""
    sizes = draw(st.sampled_from(MESHES))
    axes = st.lists(st.sampled_from(sorted(sizes)), min_size=1, max_size=len(sizes), unique=True).map(tuple)
    steps = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), axes, st.integers(1, 3)), min_size=1, max_size=4)
    return sizes, draw(st.sampled_from(["float32", "bfloat16"])), draw(steps)


def built(program):
    sizes, dtype, steps = program
    on, every = mesh(**sizes), P(tuple(sizes))

    def repeated(c, name, axes, length):
        def step(c, _):
            return STEPS[name](c, axes, on), None

        return lax.scan(step, c, length=length)[0] if length > 1 else step(c, None)[0]

    def body(c):
        for step in steps:
            c = repeated(c, *step)
        return c

    return mapped(body, on, every, every), array(on.size * ROWS, 2, dtype=dtype)


@settings(max_examples=40)
@given(programs())
def test_jaxpr_equals_stablehlo(program):
    f, whole = built(program)
    ours, lowered = count(f, whole), count_stablehlo(jax.jit(f).lower(whole))
    assert ours.traffic() == lowered.traffic()
    assert (ours.flops, ours.scope) == (lowered.flops, lowered.scope)


@settings(max_examples=8)
@given(programs().filter(lambda p: p[1] == "float32"))
def test_the_compiled_text_has_at_most_the_bytes_of_the_jaxpr(program):
    """The compiler may merge or drop work (a group of one, a sum taken twice), never add communication here."""
    f, whole = built(program)
    compiled = count_hlo_text(jax.jit(f).lower(whole).compile().as_text())
    assert compiled.link_bytes <= count(f, whole).link_bytes
    assert not [n for n in compiled.notes if "unknown" in n]


def test_a_plain_program_compiles_to_just_its_collectives():
    """No loop to unroll, nothing to merge: all three counters give the same list."""
    on = mesh(x=2, y=4)

    def body(c):
        c = lax.all_to_all(lax.psum(jnp.sin(c), "y"), "x", 0, 0, tiled=True)
        return lax.scan(lambda c, _: (jnp.cos(_shift(c, ("y",), on)), None), c, length=6)[0]

    f, whole = mapped(body, on, P("x", "y"), P("x", "y")), array(16, 16)
    lowered = jax.jit(f).lower(whole)
    expected = Counter({("all_reduce", 4, 128): 1, ("all_to_all", 2, 128): 1, ("permute", 4, 128): 6})
    assert count(f, whole).traffic() == expected
    assert count_stablehlo(lowered).traffic() == expected
    assert count_hlo_text(lowered.compile().as_text()).traffic() == expected
