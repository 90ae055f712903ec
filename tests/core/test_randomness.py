"""Random numbers: those of jax.random, the same on every layout and when made again, and never sent."""

from __future__ import annotations

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core.sweep.checking import quick

import mtfcore as mtf
from mtfcore.errors import LayoutError
from mtfcore.kernels import threefry

SIZES = "A:8 B:12 C:4"
PLACES = {
    "x:2": "A:x B C", "x:4 y:2": "A:x B C:y", "x:2 y:2 z:2": "A:z B:yx C", "rows:2 cols:3": "A:rows B:cols C",
    "x:2 y:1 z:4": "A B:z C:x",
}  # fmt: skip
DRAWS = {"random_uniform": jax.random.uniform, "random_normal": jax.random.normal, "random_gumbel": jax.random.gumbel}


@pytest.mark.parametrize(("fn", "dtype"), [*[(fn, "f32") for fn in DRAWS], *[(fn, "bf16") for fn in DRAWS],
                                           ("random_uniform", "f16")])  # fmt: skip
def test_the_numbers_are_those_of_jax(fn, dtype):
    run, right = only(fn, dtype), jax.jit(DRAWS[fn], static_argnums=(1, 2))
    for seed in (0, 1, 2**31 - 1, -(2**31), -7):
        with_key = right(jax.random.key(seed), (8, 12, 4), mtf.dtypes.long_name(dtype))
        got = run(np.zeros((8, 12, 4), np.float32), np.int32(seed))
        assert got.dtype == with_key.dtype
        if fn == "random_uniform":
            np.testing.assert_array_equal(got, with_key)
        else:  # the compiler may fuse a product and a sum here and not there
            close = 4 * float(jnp.finfo(with_key.dtype).eps)
            np.testing.assert_allclose(got.astype(float), np.asarray(with_key, float), rtol=close, atol=close)


def only(fn: str, dtype: str) -> Any:
    """A run that makes the numbers in four parts."""

    @mtf.function(dtypes={"seed": "i32"})
    def numbers(t: "A B C", seed: ""):
        return getattr(mtf, fn)("A B C", t, seed, dtype, out="A:x B:y C")

    return quick(mtf.simulate(mtf.plan(numbers, "x:2 y:2", sizes=SIZES)))


@pytest.mark.parametrize("layout", ["", "B:x", "C:x A:y"])
@pytest.mark.parametrize("mesh", PLACES)
def test_numbers_do_not_depend_on_the_layout_and_are_never_sent(mesh, layout):
    """Wherever they are wanted or used, partial sums included."""
    axis = mtf.Mesh(mesh).names[-1]
    to = SPREAD[axis]

    @mtf.function(dtypes={"seed": "i32"})
    def everywhere(t: "A B C", seed: ""):
        u = mtf.random_uniform("A B C", t, seed)
        return u, t + u, mtf.random_uniform("A B C", t, seed, out=f"A B C partialsum:{axis}"), mtf.reshard(u, to)

    prog = mtf.plan(everywhere, mesh, fitting(layout, mesh), sizes=SIZES, place={"t": PLACES[mesh]})
    assert prog.collectives() == [] and not any(step.kind == "slice" for step in prog.steps)
    if layout != "B:x":
        return  # the plans differ, what is run does not
    right = jax.random.uniform(jax.random.key(11), (8, 12, 4))
    for got in quick(mtf.simulate(prog))(np.zeros((8, 12, 4), np.float32), np.int32(11)):
        np.testing.assert_array_equal(got, right)


SPREAD = {"x": "A:x B C", "y": "A B:y C", "z": "A B C:z", "cols": "A B:cols C"}


def fitting(layout: str, mesh: str) -> str:
    """The rules of a layout whose axes the mesh has."""
    return " ".join(rule for rule in layout.split() if rule.split(":")[1] in mtf.Mesh(mesh).names)


def test_each_device_makes_only_its_part():
    @mtf.function(dtypes={"seed": "i32"})
    def noisy(t: "A B C", seed: ""):
        return t * mtf.random_uniform("A B C", t, seed)

    prog = mtf.plan(noisy, "x:4 y:2", sizes=SIZES, place={"t": "A:x B:y C"})
    (made,) = [step for step in prog.steps if step.kind == "random"]
    assert made.after.text() == "A:x B:y C"
    largest = max(np.prod(shape) for shape in shapes_in(mtf.simulate(prog)))
    assert largest == 8 * 12 * 4 // 8 == 48  # no device ever holds more


def shapes_in(run: Any) -> list[tuple[int, ...]]:
    """The shapes of all that one device computes."""
    jaxpr = jax.make_jaxpr(run.fn)(*run.shapes)
    found = []

    def walk(inner: Any, within: bool) -> None:
        for eqn in inner.eqns:
            found.extend(v.aval.shape for v in eqn.outvars if within)
            for value in eqn.params.values():
                if hasattr(value, "eqns") or hasattr(value, "jaxpr"):
                    walk(getattr(value, "jaxpr", value), within or eqn.primitive.name == "shard_map")

    walk(jaxpr.jaxpr, False)
    return found


# ---- the kernel ---------------------------------------------------------------------------------------------------


def test_threefry_gives_the_published_words():
    """Known answers of the authors' own tests (Random123, kat_vectors: threefry2x32, 20 rounds)."""
    ones = 0xFFFFFFFF
    known = {
        ((0, 0), (0, 0)): (0x6B200159, 0x99BA4EFE),
        ((ones, ones), (ones, ones)): (0x1CB996FC, 0xBB002BE7),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3)): (0xC4923A9C, 0x483DF7A0),
    }
    for (key, counter), words in known.items():
        got = threefry.threefry(*[tuple(jnp.uint32(word) for word in pair) for pair in (key, counter)])
        assert tuple(int(word) for word in got) == words


@pytest.mark.parametrize("stride", [1, 3, 2**16 - 1, 2**16, 2**31 + 12_345, 2**32 - 1, 2**32, 2**40 + 2**33 + 7])
def test_indices_of_tensors_of_more_than_2_to_the_32_elements(stride):
    index = np.array([0, 1, 65_535, 65_536, 2**22 + 5], np.uint32)
    high, low = jax.jit(threefry.times, static_argnums=1)(index, stride)
    assert [int(a) << 32 | int(b) for a, b in zip(high, low)] == [int(i) * stride for i in index]


def test_the_part_of_a_large_tensor_counts_from_where_it_begins():
    sizes, starts, shape = (2**20, 2**14, 3), (2**19 + 1, 77, 1), (2, 3, 2)
    high, low = jax.jit(lambda: threefry.counters(sizes, starts, shape))()
    for place in np.ndindex(shape):
        i, j, k = (a + b for a, b in zip(place, starts))
        assert int(high[place]) << 32 | int(low[place]) == (i * 2**14 + j) * 3 + k
    sums_that_carry = jax.jit(lambda: threefry.counters((2**17, 2**16), (2**16 - 1, 2**16 - 2), (2, 2)))()
    assert [hex(int(h)) for h in sums_that_carry[0].ravel()] == ["0x0", "0x0", "0x1", "0x1"]


# ---- seeds and dropout --------------------------------------------------------------------------------------------


@mtf.function(dtypes={"seed": "i32", "n": "i32"})
def two_seeds(t: "A:2", seed: "", n: ""):
    first = mtf.fold_in(seed, n)
    return first, mtf.fold_in(first, 0), mtf.fold_in(3, n)


def test_a_seed_and_a_number_give_a_new_seed():
    run = quick(mtf.simulate(mtf.plan(two_seeds, "x:2")))
    seen = {run(np.zeros(2), np.int32(seed), np.int32(n))[0].item() for seed in (0, 1) for n in range(20)}
    assert len(seen) == 40
    first, second, third = run(np.zeros(2), np.int32(5), np.int32(9))
    assert first.dtype == np.int32
    for got, (seed, n) in zip((first, second, third), ((5, 9), (int(first), 0), (3, 9))):
        assert int(got) % 2**32 == int(jax.random.key_data(jax.random.fold_in(jax.random.key(seed), n))[0])


@mtf.function(dtypes={"seed": "i32"})
def dropped(t: "A B C", w: "C D", seed: "", rate=0.25):
    return mtf.dropout(mtf.einsum(t, w, out="A B D"), rate, mtf.fold_in(seed, 1))


@pytest.mark.parametrize("mesh", PLACES)
def test_dropout_drops_the_same_elements_on_every_layout(mesh):
    chosen = random.Random(mesh)
    place = {"t": chosen.choice([PLACES[mesh], "A B C"]), "w": "C D"}
    prog = mtf.plan(dropped, mesh, sizes=SIZES + " D:6", place=place)
    rng = np.random.default_rng(3)
    t, w = rng.normal(size=(8, 12, 4)).astype(np.float32), rng.normal(size=(4, 6)).astype(np.float32)
    got = quick(mtf.simulate(prog))(t, w, np.int32(2))
    inner = jax.random.key_data(jax.random.fold_in(jax.random.key(2), 1))[0].astype(jnp.int32)
    kept = np.asarray(jax.random.bernoulli(jax.random.key(inner), 0.75, (8, 12, 6)))
    np.testing.assert_array_equal(got != 0, kept)
    np.testing.assert_allclose(got, np.where(kept, np.einsum("abc,cd->abd", t, w) / 0.75, 0), rtol=1e-5, atol=1e-6)


def test_dropout_is_linear_so_partial_sums_pass():
    @mtf.function
    def drop(t: "A B"):
        return mtf.dropout(t, 0.5, 3)

    prog = mtf.plan(drop, "x:4", sizes="A:8 B:4", place={"t": "A B partialsum:x"})
    assert prog.outputs[0].sharding.text() == "A B partialsum:x" and prog.collectives() == []
    t = np.arange(32, dtype=np.float32).reshape(8, 4)
    np.testing.assert_array_equal(quick(mtf.simulate(prog))(t), quick(mtf.single(prog))(t))


def test_the_order_of_the_dimensions_wanted_is_kept():
    @mtf.function
    def turned(t: "A B"):
        return mtf.random_uniform("A B", t, 3, out="B:x A")

    prog = mtf.plan(turned, "x:2 y:2", "A:y", sizes="A:8 B:4")
    assert prog.collectives() == [] and prog.outputs[0].sharding.text() == "B:x A"
    right = jax.random.uniform(jax.random.key(3), (8, 4)).T
    np.testing.assert_array_equal(quick(mtf.simulate(prog))(np.zeros((8, 4))), right)


def test_dropout_keeps_the_mean_and_drops_its_share():
    @mtf.function(dtypes={"seed": "i32"})
    def drop(t: "A B", seed: ""):
        return mtf.dropout(t, 0.3, seed)

    got = drop(np.ones((100, 100), np.float32), np.int32(4))
    assert np.unique(got).size == 2
    assert abs((got == 0).mean() - 0.3) < 4 * (0.3 * 0.7 / 1e4) ** 0.5  # four standard deviations
    assert np.allclose(got[got != 0], 1 / 0.7)


@pytest.mark.parametrize("block", [lambda f: f, mtf.recompute], ids=["kept", "computed again"])
def test_the_backward_drops_what_the_forward_dropped(block):
    @mtf.function(dtypes={"seed": "i32"})
    def slopes(t: "A B", w: "B C", seed: ""):
        def hidden(t: mtf.Tensor, w: mtf.Tensor) -> mtf.Tensor:
            return mtf.dropout(mtf.square(mtf.einsum(t, w, out="A C")), 0.5, mtf.fold_in(seed, 2))

        return mtf.gradients(mtf.sum(block(hidden)(t, w)), (t, w))

    prog = mtf.plan(slopes, "x:2 y:2", "A:x C:y", sizes="A:8 B:6 C:4")
    rng = np.random.default_rng(1)
    t, w = rng.normal(size=(8, 6)).astype(np.float32), rng.normal(size=(6, 4)).astype(np.float32)
    key = jax.random.key(jax.random.key_data(jax.random.fold_in(jax.random.key(3), 2))[0].astype(jnp.int32))

    def loss(t: jax.Array, w: jax.Array) -> jax.Array:
        kept = jax.random.bernoulli(key, 0.5, (8, 4))
        return jnp.where(kept, jnp.square(t @ w) / 0.5, 0).sum()

    right = jax.grad(loss, (0, 1))(t, w)
    for got, expected in zip(quick(mtf.simulate(prog))(t, w, np.int32(3)), right):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_rate_0_drops_nothing():
    @mtf.function
    def drop(t: "A B"):
        return mtf.dropout(t, 0, 5)

    np.testing.assert_array_equal(drop(np.eye(3, dtype=np.float32)), np.eye(3))


def test_numbers_in_a_loop_differ_by_turn_only():
    """Each turn folds its number into the seed; the same on a mesh and on one device."""

    @mtf.function(dtypes={"seed": "i32"})
    def looped(t: "A B C", seed: ""):
        turns = mtf.index("layers:3", t)
        return mtf.repeat(lambda x, n: mtf.dropout(x, 0.5, mtf.fold_in(seed, n)) + 1, 3, [turns], t)

    prog = mtf.plan(looped, "x:2 y:2", "A:x B:y", sizes=SIZES)
    t = np.ones((8, 12, 4), np.float32)
    got, right = quick(mtf.simulate(prog))(t, np.int32(1)), quick(mtf.single(prog))(t, np.int32(1))
    np.testing.assert_array_equal(got, right)
    assert set(np.unique(got)) == {1.0, 3.0, 7.0, 15.0}


def test_a_draw_from_a_split_vocabulary():
    """argmax of logits and Gumbel noise: nothing of the size of the vocabulary is sent, and the shares are right."""

    @mtf.function(dtypes={"seed": "i32"})
    def sample(logits: "V:8", seed: ""):
        many = mtf.random_gumbel("B:4000 V", logits, seed)
        return mtf.argmax(mtf.add(many, logits), "V")

    prog = mtf.plan(sample, "x:4", "V:x")
    assert all(step.n_bytes == 4000 * 4 for step in prog.collectives())
    logits = np.log(np.array([1, 2, 3, 4, 10, 10, 10, 60]) / 100).astype(np.float32)
    shares = np.bincount(quick(mtf.simulate(prog))(logits, np.int32(8)), minlength=8) / 4000
    np.testing.assert_allclose(shares, np.exp(logits), atol=0.03)


# ---- refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda t, s: mtf.random_uniform("A Z", t, s), "the size of 'Z' is not known; write e.g. 'Z:512'"),
        (lambda t, s: mtf.random_uniform("A", t, s, dtype="i32"), "random_uniform: dtype is i32, expected a float"),
        (lambda t, s: mtf.random_normal("A", t, s, dtype="f64"), "dtype is f64, drawn are f32, bf16 and f16"),
        (lambda t, s: mtf.random_uniform("A", t, t), "seed t[A:8, B:4] is f32; expected one i32 without dimensions"),
        (lambda t, s: mtf.random_uniform("A", t, 1.5), "the seed is a whole number or an i32 tensor without dim"),
        (lambda t, s: mtf.random_uniform("A", t, 2**31), "is out of its range, -2147483648 to 2147483647"),
        (lambda t, s: mtf.random_normal("A", t, s, out="A B"), "out names 'B', which the result does not have"),
        (lambda t, s: mtf.random_normal("A", 3, s), "expected a tensor of a named function, got int"),
        (lambda t, s: mtf.dropout(t, 1, s), "rate is 1; expected a number from 0 to below 1"),
        (lambda t, s: mtf.dropout(t, "0.1", s), "rate is '0.1'; expected a number from 0 to below 1"),
        (lambda t, s: mtf.dropout(s, 0.1, s), "dropout of s[]: dtype is i32, expected a float"),
        (lambda t, s: mtf.fold_in(1, 2), "one of the two must be a tensor of the function"),
        (lambda t, s: mtf.fold_in(s, True), "the seed is a whole number or an i32 tensor"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, said):
    @mtf.function(dtypes={"s": "i32"})
    def wrong(t: "A B", s: ""):
        return call(t, s)

    with pytest.raises(LayoutError) as error:
        mtf.plan(wrong, "x:2", sizes="A:8 B:4")
    assert said in str(error.value)
