"""Gradients of every operation on many layouts, against `jax.grad` of the same function on whole arrays."""

import itertools

import jax
import numpy as np
import pytest
from core.sweep.checking import quick, quick_options
from core.sweep.reference_shapes import functions

import mtfcore as mtf
from mtfcore.backward.rules import POINTWISE, RULES
from mtfcore.errors import LayoutError
from mtfcore.steps import Program

SIZES = "a:4 b:8 c:4"
MESH = "x:2 y:2"
LAYOUTS = ["", "a:x", "b:xy", "a:x b:y", "b:x a:y", "c:y b:x"]
F = {"p": "a b", "q": "b c", "r": "a b"}
UNARY = [*functions("any"), *functions("small"), "stop_gradient"]

CASES = {
    **{fn: lambda p, q, r, i, fn=fn: getattr(mtf, fn)(p) for fn in UNARY},
    **{fn: lambda p, q, r, i, fn=fn: getattr(mtf, fn)(mtf.square(p) + 0.5) for fn in functions("above 0")},
    **{fn: lambda p, q, r, i, fn=fn: getattr(mtf, fn)(p, r) for fn in ("add", "subtract", "multiply")},
    "divide": lambda p, q, r, i: p / (mtf.square(r) + 1),
    "larger": lambda p, q, r, i: mtf.maximum(p, r) * r,
    "smaller of equals": lambda p, q, r, i: mtf.minimum(p, p),
    "power": lambda p, q, r, i: mtf.power(mtf.square(p) + 1, 3),
    "power of": lambda p, q, r, i: mtf.power(mtf.square(p) + 1, r),
    "where": lambda p, q, r, i: mtf.where(mtf.greater(p, r), p * r, r),
    "cast": lambda p, q, r, i: mtf.cast(mtf.cast(p, "bf16"), "f32") * r,
    "sort_key": lambda p, q, r, i: r * mtf.cast(mtf.less(mtf.sort_key(p), 0), "f32"),
    "einsum": lambda p, q, r, i: mtf.einsum(p, q, out="a c"),
    "einsum of three": lambda p, q, r, i: mtf.einsum(p, r, q, out="c"),
    "einsum that keeps all": lambda p, q, r, i: mtf.einsum(p, q, out="c b a"),
    "einsum with itself": lambda p, q, r, i: mtf.einsum(p, p, out="b"),
    "einsum exactly there": lambda p, q, r, i: mtf.einsum(p, q, out="a:xy c"),
    "einsum fixed": lambda p, q, r, i: mtf.einsum(p, q, out="a c", at=["a b:x", "b:x c"]),
    "filled": lambda p, q, r, i: mtf.einsum(mtf.sum(p, "b"), out="a d:6") * 2,
    "mean": lambda p, q, r, i: mtf.mean(p, "a") * mtf.sum(r, "a"),
    "max": lambda p, q, r, i: mtf.max(p, "b"),
    "min of equals": lambda p, q, r, i: mtf.min(mtf.relu(p), "b") + mtf.min(mtf.relu(p - 9), "b"),
    "logsumexp": lambda p, q, r, i: mtf.logsumexp(p, "b"),
    "softmax": lambda p, q, r, i: mtf.softmax(p, "b") * r,
    "gather": lambda p, q, r, i: mtf.gather(p, i, "b"),
    "gather row by row": lambda p, q, r, i: mtf.gather(mtf.einsum(p, q, out="a b c"), i, "b"),
    "write": lambda p, q, r, i: mtf.write(p, two_of(r), places(r), "b"),
    "write row by row": lambda p, q, r, i: mtf.write(
        mtf.einsum(p, q, out="a b c"), two_of(mtf.einsum(r, q, out="c a b")), mtf.add(places(r), i, out="n a"), "b"),
    "slice": lambda p, q, r, i: mtf.slice(p, "b", 2, 6),
    "pad": lambda p, q, r, i: mtf.pad(p, "b", 12),
    "concat": lambda p, q, r, i: mtf.concat([p, r, p * r], "b"),
    "cumsum": lambda p, q, r, i: mtf.cumsum(p, "b") * r,
    "top_k": lambda p, q, r, i: mtf.top_k(p, "b", 3)[0],
    "reshape": lambda p, q, r, i: mtf.split(mtf.merge(p, "a b", "ab"), "ab", "e:2 f:16"),
    "transpose": lambda p, q, r, i: mtf.transpose(p, "b a") * r,
    "reshard": lambda p, q, r, i: mtf.reshard(mtf.reshard(p, "a:x b:y") * r, "a:yx b"),
    "settle": lambda p, q, r, i: mtf.settle(mtf.einsum(p, q, out="a c")),
    "recomputed": lambda p, q, r, i: mtf.recompute(lambda p, r: mtf.tanh(mtf.sin(p) * r))(p, r),
    "repeat": lambda p, q, r, i: mtf.repeat(lambda c: mtf.tanh(c * r + p), 3, (), p),
    "repeat with outputs": lambda p, q, r, i: loop(p, q, r),
    "repeat in repeat": lambda p, q, r, i: mtf.repeat(lambda c: mtf.repeat(lambda d: mtf.sin(d * r), 2, (), c), 3)(p),
    "repeat recomputed": lambda p, q, r, i: mtf.repeat(mtf.recompute(lambda c: mtf.tanh(mtf.sin(c) * r + p)), 3, (), p),
    "repeat that also carries numbers": lambda p, q, r, i: counted(p, r),
}  # fmt: skip


def loop(p, q, r):
    stack = mtf.rename(p, "b", "b2")

    def block(c, unused, part):
        h = mtf.einsum(c, mtf.rename(part, "b2", "b"), out="b") + mtf.sum(r, "a")
        return mtf.sin(h), unused, mtf.square(h), mtf.max(h, "b")

    last, _, squares, tops = mtf.repeat(block, 4, stack, mtf.sum(p, "a"), mtf.sum(q, "c"), over="turns", reverse=True)
    return mtf.einsum(last, squares, out="b turns") * tops


def two_of(t):
    return mtf.rename(mtf.slice(t, "b", 0, 2), "b", "n")


def places(r):
    """Of two rows: the second is written behind the end."""
    return mtf.index("n:2", r) * 6 + 3


def counted(p, r):
    def block(c, n):
        return mtf.sin(c) * mtf.cast(n, "f32"), n + 1

    start = mtf.cast(mtf.sum(mtf.index("a", p), "a"), "i32")
    return mtf.repeat(block, 3, (), p * r, start)[0]


def program_of(case: str, layout: str) -> tuple[Program, Program]:
    """The loss alone, and the loss with its gradients."""
    if case == "top_k" and "b:" in layout:
        layout = layout.replace("b:xy", "").replace("b:x", "").replace("b:y", "")

    def loss_of(p, q, r, i):
        y = CASES[case](p, q, r, i)
        weight = mtf.sin(mtf.cast(mtf.index(y.dims[0], y), "f32") + 1)
        return mtf.sum(mtf.sin(y * 0.7) * weight)

    @mtf.function(dtypes={"i": "i32"})
    def forward(p: "a b", q: "b c", r: "a b", i: "a"):
        return loss_of(p, q, r, i)

    @mtf.function(dtypes={"i": "i32"})
    def backward(p: "a b", q: "b c", r: "a b", i: "a"):
        loss = loss_of(p, q, r, i)
        return {"loss": loss, **mtf.gradients(loss, {"p": p, "q": q, "r": r})}

    return tuple(mtf.plan(fn, MESH, layout, sizes=SIZES) for fn in (forward, backward))


def arrays(seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    floats = [rng.normal(size=shape).astype(np.float32) for shape in ((4, 8), (8, 4), (4, 8))]
    return [*floats, np.array([3, 7, 0, 3], np.int32)]


def expected(program: Program, given: list[np.ndarray]) -> dict[str, np.ndarray]:
    fn = lambda *floats: mtf.single(program).fn(*floats, given[3])[0]  # noqa: E731
    both = jax.value_and_grad(fn, argnums=(0, 1, 2))
    loss, slopes = jax.jit(both, compiler_options=quick_options())(*given[:3])
    return {"loss": loss, **dict(zip("pqr", slopes, strict=True))}


@pytest.mark.parametrize(("case", "layout"), [
    ("write", "c:y b:x"),  # an all-to-all of zeros, which XLA for CPUs once refused
    *[(case, LAYOUTS[n % len(LAYOUTS)] if k else "a:x b:y") for n, case in enumerate(CASES) for k in (0, 1)],
])  # fmt: skip
def test_the_same_as_jax_grad_on_whole_arrays(case, layout):
    forward, backward = program_of(case, layout)
    given = arrays()
    right = expected(forward, given)
    for run in (quick(mtf.simulate(backward)), quick(mtf.single(backward))):
        got = run(*given)
        for name, value in right.items():
            np.testing.assert_allclose(got[name], value, rtol=2e-4, atol=2e-5, err_msg=f"{case}: {name} by {run!r}")


@pytest.mark.long
@pytest.mark.parametrize(("case", "layout"), list(itertools.product(CASES, LAYOUTS)))
def test_every_operation_on_every_layout(case, layout):
    test_the_same_as_jax_grad_on_whole_arrays(case, layout)


def test_every_rule_is_tried():
    """So a new operation cannot come without a case here."""
    tried: set[str] = set()
    for case in CASES:
        pending = [program_of(case, "")[1].graph]
        while pending:
            graph = pending.pop()
            tried |= {op.params.get("fn", op.kind) for op in graph.ops} | {op.kind for op in graph.ops}
            pending += [op.params["body"] for op in graph.ops if op.kind == "repeat"]
    elsewhere = {"shift", "windows", "overlap", "conv", "conv_kernel", "dropout", "random", "fold_in"}  # own tests
    assert set(RULES) | set(POINTWISE) <= tried | elsewhere


def test_gradients_lie_where_their_parameters_do_and_twice_works():
    @mtf.function
    def f(w: "a b", x: "b c"):
        y = mtf.sum(mtf.sin(mtf.einsum(w, x, out="a c")))
        (d,) = mtf.gradients(y, [w])
        return mtf.gradients(mtf.sum(mtf.square(d)), w)

    prog = mtf.plan(f, MESH, "b:xy", sizes=SIZES, place={"w": "a:y b:x"})
    assert prog.outputs[0].sharding.text() == "a:y b:x"
    p, q, _, _ = arrays()
    import jax.numpy as jnp

    first = jax.grad(lambda w: jnp.sum(jnp.sin(w @ q)))
    right = jax.grad(lambda w: jnp.sum(first(w) ** 2))(p)
    np.testing.assert_allclose(mtf.simulate(prog)(p, q), right, rtol=1e-4, atol=1e-5)


def test_what_the_loss_does_not_depend_on_has_zeros():
    @mtf.function
    def f(w: "a b", x: "b c"):
        return mtf.gradients(mtf.sum(w), {"w": w, "x": x})

    got = mtf.simulate(mtf.plan(f, MESH, "b:x", sizes=SIZES))(*arrays()[:2])
    assert (got["w"] == 1).all()
    assert (got["x"] == 0).all()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda p, i: mtf.gradients(p, p), "has dimensions; use mtf.sum(t) or mtf.mean(t)"),
        (lambda p, i: mtf.gradients(mtf.sum(p), [p, i]), "param 1 i[a:4] is i32; only floats have gradients"),
        (lambda p, i: mtf.gradients(mtf.sum(p), {"w": 3}), "w is int 3, expected a tensor of this function"),
        (lambda p, i: mtf.gradients(3, p), "expected a tensor of a named function, got int"),
        (lambda p, i: mtf.recompute(3)(p), "recompute: expected a function of tensors, got int"),
        (lambda p, i: mtf.recompute(lambda: p)(), "is called without a tensor"),
        (lambda p, i: mtf.gradients(mtf.sum(p), 3), "params is int 3; expected tensors"),
    ],
)
def test_faults_are_named(ask, words):
    @mtf.function(dtypes={"i": "i32"})
    def f(p: "a b", i: "a"):
        return ask(p, i)

    with pytest.raises(LayoutError) as fault:
        f.trace(SIZES)
    assert words in str(fault.value)
