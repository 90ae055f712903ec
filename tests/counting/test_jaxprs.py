"""Every collective on several meshes against bytes worked out by hand; programs inside programs; FLOPs."""

from collections import Counter

import jax
import jax.numpy as jnp
import pytest
from counting.programs import P, array, mapped, mesh
from jax import lax

from mtfcore.counting import Counts, count, count_jaxpr

MESHES = {"x=8": {"x": 8}, "2x4": {"x": 2, "y": 4}, "2x2x2": {"x": 2, "y": 2, "z": 2}, "2x3": {"x": 2, "y": 3}}


def on_each_device(body, sizes, *local, dtype="float32", check_vma=False) -> Counts:
    """Count a body that sees one array of this local shape, whatever the mesh."""
    on = mesh(**sizes)
    whole = array(on.size * local[0], *local[1:], dtype=dtype)
    every = P(tuple(sizes))
    return count(mapped(body, on, every, every, check_vma), whole)


@pytest.mark.parametrize("check_vma", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("sizes", MESHES.values(), ids=MESHES)
@pytest.mark.parametrize("over", ["first", "last", "all"])
def test_every_collective_against_its_closed_form(over, sizes, dtype, check_vma):
    names = {"first": ("x",), "last": tuple(sizes)[-1:], "all": tuple(sizes)}[over]
    g = 1
    for name in names:
        g *= sizes[name]
    n = (
        24 * 2 * {"float32": 4, "bfloat16": 2, "int8": 1}[dtype]
    )  # bytes of the local [24, 2]; 24 divides by 2, 3, 4, 6, 8
    ring = [(i, (i + 1) % g) for i in range(g)]
    bodies = {
        "all_gather": (lambda a: lax.all_gather(a, names, tiled=True)[:24], n * (g - 1)),
        "reduce_scatter": (lambda a: lax.psum_scatter(a, names, tiled=True), n - n // g),
        "all_reduce": (lambda a: a + lax.psum(a, names), 2 * (n - n // g)),
        "all_to_all": (lambda a: lax.all_to_all(a, names, 0, 0, tiled=True), n - n // g),
        "permute": (lambda a: lax.ppermute(a, names, ring), n),
    }
    for kind, (body, sent) in bodies.items():
        counts = on_each_device(body, sizes, 24, 2, dtype=dtype, check_vma=check_vma)
        (c,) = counts.collectives
        assert (c.kind, c.axes, c.group_size, c.n_bytes, c.link_bytes) == (kind, names, g, n, sent)
        assert counts.by_axes() == {names: sent} and counts.by_kind() == {kind: sent}
        assert (counts.scope, c.dtype) == ("per device", dtype)


@pytest.mark.parametrize("reduce", [lax.pmax, lax.pmin, lax.pmean])
def test_maxima_and_means_are_all_reduces(reduce):
    counts = on_each_device(lambda a: a + reduce(a, "y"), {"x": 2, "y": 4}, 8, 2)
    assert counts.traffic() == Counter({("all_reduce", 4, 64): 1})


def test_a_psum_of_several_arrays_is_one_entry_each():
    def body(a):
        s, t = lax.psum((a, a[:1]), "y")
        return a + s + t

    counts = on_each_device(body, {"x": 2, "y": 4}, 8, 2)
    assert counts.traffic() == Counter({("all_reduce", 4, 64): 1, ("all_reduce", 4, 8): 1})


def test_groups_given_by_index():
    groups = [[0, 1], [2, 3]]
    counts = on_each_device(lambda a: lax.psum(a, "y", axis_index_groups=groups), {"x": 2, "y": 4}, 8, 2)
    assert counts.traffic() == Counter({("all_reduce", 2, 64): 1})


def test_groups_of_one_are_free():
    """Mesh x=1, y=8: over x nothing moves; the layout with x costs what the one without costs."""
    over_x = on_each_device(lambda a: lax.psum(a, "x") + lax.all_gather(a, "x", tiled=True), {"x": 1, "y": 8}, 8, 2)
    assert over_x.collectives == () and over_x.link_bytes == 0
    assert [c.kind for c in over_x.free] == ["all_reduce", "all_gather"]
    both = on_each_device(lambda a: lax.psum(a, ("x", "y")), {"x": 1, "y": 8}, 8, 2)
    assert both.link_bytes == on_each_device(lambda a: lax.psum(a, "y"), {"y": 8}, 8, 2).link_bytes == 2 * 64 * 7 // 8


def test_a_permute_in_place_is_free_and_a_partial_one_is_not():
    still = on_each_device(lambda a: lax.ppermute(a, "y", [(i, i) for i in range(4)]), {"x": 2, "y": 4}, 8, 2)
    assert still.collectives == () and [c.kind for c in still.free] == ["permute"]
    shift = on_each_device(lambda a: lax.ppermute(a, "y", [(0, 1), (1, 2), (2, 3)]), {"x": 2, "y": 4}, 8, 2)
    assert shift.traffic() == Counter({("permute", 4, 64): 1})


def test_scan_in_scan_multiplies():
    def body(a):
        def outer(c, _):
            inner = lax.scan(lambda c, _: (lax.ppermute(c, "x", [(0, 1), (1, 0)]), None), c, length=5)[0]
            return lax.psum_scatter(lax.all_gather(inner, "y", tiled=True), "y", tiled=True), None

        return lax.scan(outer, a, length=3)[0]

    counts = on_each_device(body, {"x": 2, "y": 4}, 8, 2)
    assert counts.traffic() == Counter(
        {("permute", 2, 64): 15, ("all_gather", 4, 64): 3, ("reduce_scatter", 4, 256): 3}
    )
    assert counts.link_bytes == 15 * 64 + 3 * 192 + 3 * 192
    assert counts.collectives[0].where.endswith("scan x3/scan x5/ppermute")


def test_loops_with_written_bounds_are_multiplied():
    """fori_loop(0, 5) becomes a scan; i = 0, 3, 6, 9 < 10 stays a while, four runs."""
    a = array(8, 8)
    assert count(lambda a: lax.fori_loop(0, 5, lambda i, c: c @ c, a), a).flops == 5 * 1024
    step_3 = count(lambda a: lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 3, s[1] @ s[1]), (0, a))[1], a)
    assert (step_3.flops, step_3.notes) == (4 * 1024, ())
    down = count(lambda a: lax.while_loop(lambda s: s[0] > 2, lambda s: (s[0] - 1, s[1] @ s[1]), (9, a))[1], a)
    assert (down.flops, down.notes) == (7 * 1024, ())


def test_loops_of_unknown_length_count_once_and_say_so():
    counts = count(lambda a, n: lax.fori_loop(0, n, lambda i, c: c @ c, a), array(8, 8), array(dtype="int32"))
    assert counts.flops == 1024
    assert counts.notes == ("while: number of runs unknown; body counted once",)
    moving = count(lambda a: lax.while_loop(lambda s: s[0] < s[1], lambda s: (s[0] + 1, s[1] - 1), (0, 9)), array(8))
    assert moving.notes == ("while: number of runs unknown; body counted once",)


def test_cond_counts_the_dearest_branch_and_says_so():
    def body(a):
        return lax.switch(lax.axis_index("x"), [lambda a: a, lambda a: a + lax.psum(a, "y"), lambda a: a * 2], a)

    counts = on_each_device(body, {"x": 2, "y": 4}, 8, 2)
    assert counts.traffic() == Counter({("all_reduce", 4, 64): 1})
    assert counts.notes == ("shard_map/cond: one of 3 branches runs; the dearest (number 1) is counted",)
    same = count(lambda a: lax.cond(a[0] > 0, lambda a: a * 2, lambda a: a + 1, a), array(8))
    assert same.notes == () and same.elementwise_flops == 8 + 1


def _loss(w, x):
    h = lax.all_gather(x, "x", axis=1, tiled=True) @ w  # x: [4, 2] on each → [4, 4]; w [4, 8] is whole
    return lax.psum((h * h).sum(), ("x", "y"))


def _sharded_loss(body, check_vma=True):
    return mapped(body, mesh(x=2, y=4), (P(), P("y", "x")), P(), check_vma)


def test_gradients_through_shard_map():
    """Forward: gather x (32 B), reduce the scalar loss. Backward: dx reduce-scatters over x what was gathered (64 B),
    dw (128 B) all-reduces over both axes. h alone needs 2*4*4*8 FLOPs; each of dx and dw as many."""
    w, x = array(4, 8), array(16, 4)
    forward = count(_sharded_loss(_loss), w, x)
    assert forward.traffic() == Counter({("all_gather", 2, 32): 1, ("all_reduce", 8, 4): 1})
    assert forward.flops == 256
    both = count(jax.value_and_grad(_sharded_loss(_loss), argnums=(0, 1)), w, x)
    backward = Counter({("reduce_scatter", 2, 64): 1, ("all_reduce", 8, 128): 1})
    assert both.traffic() == forward.traffic() + backward
    assert both.flops == 3 * 256


def test_dead_code_is_left_out_as_on_lowering():
    """Without its value, the loss itself is not reduced."""
    alone = count(jax.grad(_sharded_loss(_loss), argnums=(0, 1)), array(4, 8), array(16, 4))
    assert ("all_reduce", 8, 4) not in alone.traffic()
    assert alone.traffic()["all_reduce", 8, 128] == 1


def test_remat_counts_the_work_done_twice():
    """Saving nothing, the backward gathers x again and computes h again."""
    w, x = array(4, 8), array(16, 4)
    plain = count(jax.value_and_grad(_sharded_loss(_loss)), w, x)
    again = count(jax.value_and_grad(_sharded_loss(jax.checkpoint(_loss))), w, x)
    assert again.flops == plain.flops + 256
    assert again.traffic()["all_gather", 2, 32] == plain.traffic()["all_gather", 2, 32] + 1 == 2


def test_custom_vjp_and_nested_jit_are_walked():
    @jax.custom_vjp
    def twice(a):
        return a @ a

    twice.defvjp(lambda a: (twice(a), a), lambda a, ct: (ct @ a,))
    a = array(8, 8)
    assert count(jax.jit(lambda a: jax.jit(twice)(a) + twice(a)), a).flops == 2 * 1024
    assert count(jax.grad(lambda a: twice(a).sum()), a).flops == 1024  # the forward is dead, its rule is one product
    assert count(jax.vmap(lambda r: lax.psum(r, "rows"), axis_name="rows"), a).collectives == ()


def test_static_arguments_of_a_jitted_function_are_respected():
    power = jax.jit(lambda a, n: a if n == 1 else a @ a, static_argnums=1)
    assert count(power, array(8, 8), 1).flops == 0
    assert count(power, array(8, 8), 2).flops == 1024
    assert count(lambda a, *, b: a @ b, array(8, 8), b=array(8, 8)).flops == 1024


def test_case_c22_flops_per_device_and_through_a_scan():
    """64x64 @ 64x64 contracted over 4: each device multiplies [64,16] by [16,64], 2*64*16*64 = 131,072; the whole
    problem is 2*64^3 = 524,288; ten of them in a scan are 5,242,880, where a compiler says one body."""
    a, on = array(64, 64), mesh(x=4, y=2)
    local = mapped(lambda a, b: lax.psum(a @ b, "x"), on, (P(None, "x"), P("x")), P())
    counts = count(local, a, a)
    assert (counts.flops, counts.scope) == (131_072, "per device")
    assert counts.traffic() == Counter({("all_reduce", 4, 64 * 64 * 4): 1})
    whole = count(lambda a, b: a @ b, a, a)
    assert (whole.flops, whole.scope) == (524_288, "whole problem")
    assert count(lambda a: lax.scan(lambda c, _: (c @ c, None), a, length=10)[0], a).flops == 5_242_880

    def ten(a, b):
        return lax.scan(
            lambda c, _: (lax.psum_scatter(c @ b, "x", scatter_dimension=1, tiled=True), None), a, length=10
        )[0]

    assert count(mapped(ten, on, (P(None, "x"), P("x")), P(None, "x")), a, a).flops == 1_310_720


def test_batched_ragged_and_convolution_flops():
    batched = count(lambda a, b: jnp.einsum("bij,bjk->bik", a, b), array(4, 8, 16), array(4, 16, 32))
    assert batched.flops == 2 * 4 * 8 * 16 * 32
    ragged = count(lambda a, b, n: lax.ragged_dot(a, b, n), array(12, 8), array(3, 8, 5), array(3, dtype="int32"))
    assert ragged.flops == 2 * 12 * 8 * 5

    def convolve(a, k):
        return lax.conv_general_dilated(a, k, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    # Rows: stride 2 over 8, SAME pads one behind: 3+3+3+2. Columns: 8 outputs of 3 taps less 2 in the padding.
    assert count(convolve, array(2, 8, 8, 3), array(3, 3, 3, 16)).flops == 2 * 2 * 16 * 3 * 11 * 22


def test_work_outside_of_shard_map_is_kept_apart():
    inner = mapped(lambda a: a @ a.T, mesh(x=2, y=4), P("x"), P("x"))
    counts = count(lambda a: (a @ a).sum() + inner(a).sum(), array(8, 8))
    assert (counts.scope, counts.flops) == ("per device", 2 * 4 * 8 * 4)
    assert counts.outside_flops == 1024
    assert any("outside of shard_map" in n and "1,024 FLOPs" in n for n in counts.notes)


def test_axes_left_to_the_compiler_are_noted():
    part = jax.shard_map(
        lambda a: lax.psum(a, "x"), mesh=mesh(x=2, y=4), in_specs=P("x"), out_specs=P(), axis_names={"x"}
    )
    counts = count(part, array(8, 8))
    assert counts.traffic() == Counter({("all_reduce", 2, 128): 1})
    assert counts.notes == ("shard_map: automatic over y: those devices share the bytes and FLOPs counted here",)
    placed = jax.NamedSharding(mesh(x=2), P("x"))
    constrained = count(lambda a: lax.with_sharding_constraint(a, placed), array(8, 8))
    assert "collectives that the compiler adds here are in no jaxpr" in constrained.notes[0]


def test_elementwise_counts_outputs_and_reductions_inputs():
    counts = count(lambda a: (jnp.tanh(a) + a).sum(axis=0).T.reshape(2, 4), array(8, 8))
    assert (counts.flops, counts.elementwise_flops) == (0, 64 + 64 + 64)


def test_what_is_not_counted_is_noted():
    def ragged(a):
        n = jnp.zeros(4, jnp.int32)
        return lax.ragged_all_to_all(a, a, n, n, n, n, axis_name="y")

    assert "ragged_all_to_all over ('y',) is not counted" in on_each_device(ragged, {"x": 2, "y": 4}, 8, 2).notes[0]
    assert "the FLOPs of cholesky are not counted" in count(jnp.linalg.cholesky, array(8, 8)).notes[0]


def test_keys_and_small_integers_have_their_real_size():
    on = mesh(x=8)
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), 8))
    gather = mapped(lambda k: lax.all_gather(k, "x", tiled=True), on, P("x"), P())
    assert count(gather, keys).traffic() == Counter({("all_gather", 8, 8): 1})
    assert count(gather, array(64, 3, dtype="int4")).traffic() == Counter({("all_gather", 8, 12): 1})


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(TypeError, match="expected a function and its arguments, got int"):
        count(3)
    inner = jax.make_jaxpr(mapped(lambda a: lax.psum(a, "x"), mesh(x=8), P("x"), P()))(array(8)).eqns[0].params["jaxpr"]
    with pytest.raises(ValueError, match=r"psum over 'x': nothing here gives that axis a size \(known: none\)"):
        count_jaxpr(inner)
    assert count_jaxpr(inner, {"x": 8}).traffic() == Counter({("all_reduce", 8, 4): 1})
