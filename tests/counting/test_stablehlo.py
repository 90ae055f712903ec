"""StableHLO against the jaxpr it was lowered from, and what only StableHLO shows."""

from collections import Counter

import jax
import jax.numpy as jnp
import pytest
from counting.programs import P, array, mapped, mesh
from jax import lax

from mtfcore.counting import count, count_stablehlo

ON = mesh(x=2, y=4)
ALL_REDUCE = """
  func.func {private}@{name}(%a: tensor<4x2xbf16>) -> tensor<4x2xbf16> {{
    %r = "stablehlo.all_reduce"(%a) <{{replica_groups = {groups}}}> ({{
    ^bb0(%p: tensor<bf16>, %q: tensor<bf16>):
      %s = stablehlo.add %p, %q : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }}) : (tensor<4x2xbf16>) -> tensor<4x2xbf16>
    return %r : tensor<4x2xbf16>
  }}"""
GROUPS = "dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>"
MESH_AXES = pytest.mark.skipif(
    jax.__version_info__ < (0, 9), reason="StableHLO of JAX 0.8 has no mesh axes in its replica groups"
)


def test_everything_at_once_agrees_with_the_jaxpr():
    def body(a, w):
        def step(c, wi):
            c = lax.ppermute(lax.psum(c @ wi, "y"), "x", [(0, 1), (1, 0)])
            return c, lax.all_gather(c, ("x", "y"), tiled=True)

        c, gathered = lax.scan(step, a, w)
        c = lax.fori_loop(0, 3, lambda i, c: jnp.sin(lax.psum_scatter(lax.all_gather(c, "y"), "y")), c)
        c = lax.cond(c[0, 0] > 0, lambda c: lax.psum(c, "x"), lambda c: c, c)
        return jax.jit(lambda c: lax.all_to_all(c, "x", 1, 0, tiled=True))(c), gathered

    f = mapped(body, ON, (P("x", "y"), P(None, "y")), (P("x", "y"), P()))
    args = array(8, 8), array(5, 8, 2)
    lowered = jax.jit(f).lower(*args)
    expected = Counter(
        {("all_reduce", 4, 32): 5, ("permute", 2, 32): 5, ("all_gather", 8, 32): 5, ("all_gather", 4, 32): 3,
         ("reduce_scatter", 4, 128): 3, ("all_reduce", 2, 32): 1, ("all_to_all", 2, 32): 1}
    )  # fmt: skip
    counts = count_stablehlo(lowered)
    assert counts.traffic() == expected == count(f, *args).traffic()
    assert counts.flops == count(f, *args).flops == 5 * 2 * 4 * 2 * 2
    assert (counts.scope, counts.origin, counts.elementwise_flops) == ("per device", "counted", None)
    assert count_stablehlo(lowered.as_text()) == count_stablehlo(lowered.compiler_ir("stablehlo")) == counts


def test_groups_of_one_are_free():
    one = mesh(x=1, y=8)
    f = mapped(lambda a: lax.psum(a, "x") + lax.ppermute(a, "y", [(i, i) for i in range(8)]), one, P("y"), P("y"))
    counts = count_stablehlo(jax.jit(f).lower(array(8, 2)))
    assert counts.collectives == () and [c.kind for c in counts.free] == ["all_reduce", "permute"]


def test_a_function_called_twice_counts_twice():
    helper = ALL_REDUCE.format(private="private ", name="helper", groups=GROUPS)
    text = f"""module @m attributes {{mhlo.num_partitions = 8 : i32}} {{
  func.func public @main(%a: tensor<4x2xbf16>) -> tensor<4x2xbf16> {{
    %0 = func.call @helper(%a) : (tensor<4x2xbf16>) -> tensor<4x2xbf16>
    %1 = func.call @helper(%0) : (tensor<4x2xbf16>) -> tensor<4x2xbf16>
    return %1 : tensor<4x2xbf16>
  }}{helper}
}}"""
    assert count_stablehlo(text).traffic() == Counter({("all_reduce", 4, 16): 2})


@MESH_AXES
@pytest.mark.parametrize(
    ("mesh", "axes", "size"),
    [
        ("@m", '#stablehlo.axis_ref<name = "y">', 4),
        ("@m", '#stablehlo.axis_ref<name = "y">, #stablehlo.axis_ref<name = "x">', 8),
        ("@m", '#stablehlo.axis_ref<name = "y", sub_axis_info = (2)2>', 2),
        ('#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "y", size = 6>]>', '#stablehlo.axis_ref<name = "y">', 6),
    ],
)
def test_groups_along_mesh_axes(mesh, axes, size):
    """The newer spelling of groups: axes, or a part of one, of a mesh that is named or written in place."""
    groups = f"#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [{axes}]>"
    main = ALL_REDUCE.format(private="public ", name="main", groups=groups)
    counts = count_stablehlo(f'module {{ sdy.mesh @m = <["x"=2, "y"=4, "one"=1]> {main} }}')
    assert counts.traffic() == Counter({("all_reduce", size, 16): 1})
    (found,) = counts.collectives
    whole = "sub_axis" not in axes
    assert {len(group) for group in found.groups} == ({size} if whole else set())
    assert not whole or sorted(d for group in found.groups for d in group) == list(range(size if size == 6 else 8))


@MESH_AXES
def test_groups_are_listed_device_by_device():
    """Axes are named outermost first; a table stands as it is, without what pads unequal rows."""
    axes = '#stablehlo.axis_ref<name = "y">, #stablehlo.axis_ref<name = "x">'
    for groups, listed in {
        f"#stablehlo.replica_group_mesh_axes<mesh = @m, axes = [{axes}]>": ((0, 4, 1, 5, 2, 6, 3, 7),),
        "dense<[[0, 2], [3, 1]]> : tensor<2x2xi64>": ((0, 2), (3, 1)),
        "dense<[[0, 2, 3], [1, -1, -1]]> : tensor<2x3xi64>": ((0, 2, 3), (1,)),
    }.items():
        main = ALL_REDUCE.format(private="public ", name="main", groups=groups)
        (found,) = count_stablehlo(f'module {{ sdy.mesh @m = <["x"=2, "y"=4]> {main} }}').collectives
        assert found.groups == listed


@MESH_AXES
def test_groups_along_an_axis_of_one_are_free_and_unknown_axes_refused():
    groups = '#stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "one">]>'
    main = ALL_REDUCE.format(private="public ", name="main", groups=groups)
    counts = count_stablehlo(f'module {{ sdy.mesh @m = <["x"=2, "one"=1]> {main} }}')
    assert counts.collectives == () and [c.kind for c in counts.free] == ["all_reduce"]
    with pytest.raises(ValueError, match=r"stablehlo.all_reduce: groups along 'one', expected one of x, y"):
        count_stablehlo(f'module {{ sdy.mesh @m = <["x"=2, "y"=4]> {main} }}')


def test_an_uncalled_function_does_not_count():
    helper = ALL_REDUCE.format(private="private ", name="helper", groups=GROUPS)
    main = "func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"
    assert count_stablehlo(f"module @m {{ {main} {helper} }}").collectives == ()


def test_loops_of_unknown_length_are_noted_and_written_bounds_multiply():
    def loop(a, n):
        return lax.fori_loop(0, n, lambda i, c: c @ c, a)

    unknown = count_stablehlo(jax.jit(loop).lower(array(8, 8), array(dtype="int32")))
    assert unknown.flops == 1024 and unknown.notes == ("@main/while: number of runs unknown; body counted once",)
    down = jax.jit(lambda a: lax.while_loop(lambda s: s[0] > 2, lambda s: (s[0] - 2, s[1] @ s[1]), (9, a))[1])
    counts = count_stablehlo(down.lower(array(8, 8)))
    assert counts.flops == 4 * 1024 and counts.notes == ()


def test_convolutions_and_batched_products_agree_with_the_jaxpr():
    def both(a, k, u, v):
        c = lax.conv_general_dilated(a, k, (2, 1), [(1, 2), (-1, 0)], (1, 2), (2, 1), ("NHWC", "HWIO", "NHWC"), 3)
        return c, jnp.einsum("bij,bjk->bik", u, v)

    args = array(2, 8, 8, 3), array(3, 3, 1, 6), array(4, 8, 16), array(4, 16, 32)
    lowered = count_stablehlo(jax.jit(both).lower(*args))
    assert lowered.flops == count(both, *args).flops > 2 * 4 * 8 * 16 * 32
    assert lowered.scope == "whole problem"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("HloModule jit_f", "not StableHLO that can be read. It starts 'HloModule jit_f'; expected MLIR text"),
        ("module @m {", "not StableHLO that can be read"),
        ("module @m {}", "without a public function"),
        ("", "without a public function"),
    ],
)
def test_what_is_not_stablehlo_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        count_stablehlo(text)


def test_only_programs_are_taken():
    with pytest.raises(TypeError, match=r"expected a jax\.stages\.Lowered, an MLIR module or its text, got int"):
        count_stablehlo(3)
