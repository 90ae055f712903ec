"""The printed plain JAX: it runs by itself, gives the executor's values, and lowers to the executor's collectives."""

import itertools
import re
import subprocess
import sys
from typing import Any

import jax
import numpy as np
import pytest
from core.sweep.checking import quick_options
from core.sweep.making import programs
from core.sweep.programs import Case
from core.sweep.reference_shapes import SMOOTH
from hypothesis import HealthCheck, given, seed, settings

import mtfcore as mtf
from mtfcore.dtypes import is_float
from mtfcore.kernels.basic import POINTWISE as KERNELS
from mtfcore.runs import simulate
from mtfcore.source.lines import POINTWISE
from mtfcore.steps import Program
from tests.benchmarks.lowered import lowered_collectives

CUBE = "x:2 y:2 z:2"


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


def net(mesh: str, layout: str, **more: Any) -> Program:
    return mtf.plan(two_layers, mesh, layout, sizes="batch:16 io:8 hidden:32", **more)


@mtf.function
def weight_stationary_2d(x: "B L E", w_in: "E F", w_out: "F E"):
    h = mtf.einsum(mtf.reshard(x, "B L E:x"), w_in, out="B L F:zyx")
    h = mtf.reshard(mtf.gelu(h), "B L F:zy")
    return mtf.einsum(h, w_out, out="B L E:xzy")


def stationary() -> Program:
    place = {"x": "B L E:xzy", "w_in": "E:x F:zy", "w_out": "F:zy E:x"}
    return mtf.plan(weight_stationary_2d, CUBE, sizes="B:2 L:3 E:16 F:32", place=place)


@mtf.function
def attention_weights(q: "B H", m: "H"):
    return mtf.softmax(mtf.add(q, m), "H"), mtf.logsumexp(q, "H")


@mtf.function
def heads(x: "B hk", w: "hk E"):
    q = mtf.split(x, "hk", "H:4 K", out="B:x H K")
    merged = mtf.merge(q, "H K", "hk", out="B hk:x")
    return {"result": mtf.einsum(merged, w, out="B E:x"), "an intermediate": q}


@mtf.function(dtypes={"ids": "i32", "rows": "i32"})
def lookups(ids: "B L", rows: "B M", table: "E V", batched: "B V E"):
    return (
        mtf.gather(table, ids, "V"),
        mtf.gather(batched, rows, "V", out="M E B"),
        mtf.gather(table, rows, "V", out="B M E partialsum:x"),
    )


@mtf.function
def stack(x: "B E", ws: "N E F", vs: "N F E", bias: "E"):
    def block(h, w, v):
        return h + mtf.einsum(mtf.relu(mtf.einsum(h, w, out="B F")), v, out="B E") * bias

    y = mtf.repeat(block, 3, (ws, vs), x)
    return mtf.repeat(lambda h: mtf.tanh(h), 2, (), y)


@mtf.function
def swapped(a: "M N"):
    turned = mtf.reshard(a, "M:yx N")
    return mtf.reshard(turned, "M N:xy"), turned, mtf.reshard(mtf.reshard(a, "M:x N:y"), "M:y N:x")


@mtf.function
def largest(a: "M N"):
    big = mtf.greater(a, 0.5)
    return mtf.max(a, "N"), mtf.any(big, "N"), mtf.all(big), mtf.argmax(a, "N"), mtf.min(a, out="N M")


@mtf.function
def sums(a: "M N", b: "N"):
    total = mtf.sum(a, out="N partialsum:x")
    return mtf.add(total, mtf.reshard(b, "N partialsum:x")), mtf.square(total), mtf.mean(a)


@mtf.function
def pieces(a: "M N", b: "N M"):
    both = mtf.concat([a, mtf.slice(b, "N", 1, 5)], "N")
    lowest = mtf.pad(both, "N", 16, value=-float("inf"))
    best, where = mtf.top_k(lowest, "N", 3)
    return mtf.cumsum(a, "N"), best, where, mtf.exp(lowest), mtf.transpose(mtf.cumsum(b, "M"), "M N")


@mtf.function(dtypes={"ids": "i32"})
def choices(ids: "B", a: "B V"):
    hot = mtf.one_hot(ids, "V")
    signs = mtf.where(mtf.less(a, 0.0), -1.0, 1.0)
    other = mtf.logical_not(mtf.equal(mtf.sort_key(mtf.cast(ids, "f32")), 3))
    half = mtf.divide(mtf.cast(ids, "f32"), 2)
    return mtf.einsum(hot, a, out="B"), signs * 0.1, half, mtf.cast(a * 3.0, "i32"), other


@mtf.function
def wider(a: "M", b: "N"):
    outer = mtf.add(a, b, out="M N")
    return 2.0 - outer, mtf.einsum(a, out="N M"), mtf.multiply(b, a, out="N M"), mtf.maximum(outer, a)


@mtf.function
def space(t: "A B", k: "P:3 B D:2"):
    seen = mtf.windows(t, "A", 3, "P", padding="causal")
    same, shorter = (mtf.conv(t, k, {"A": "P"}, out="A D", padding=how) for how in ("same", "valid"))
    return same, shorter, mtf.shift(t, "A", 5), mtf.shift(t, "A", -1, wrap=True), mtf.overlap_add(seen, "A", "P")


@mtf.function(dtypes={"at": "i32", "to": "i16"})
def written(cache: "A B S D", new: "N B A D", at: "B N", to: "N", wide: "S A", rows: "A N"):
    return mtf.write(cache, new, at, "S"), mtf.write(wide, rows, to, "S")


@mtf.function(dtypes={"seed": "i32"})
def stages(a: "M V", seed: ""):
    values, places = mtf.top_k(a, "V", 2)
    return values, places, mtf.cumsum(a, "V"), mtf.cumsum(a, "M"), mtf.max(a, "V"), mtf.min(a)


@mtf.function(dtypes={"seed": "i32"})
def chances(a: "M V", seed: ""):
    seed = mtf.fold_in(seed, 7)
    drawn = [draw("M V", a, seed) for draw in (mtf.random_uniform, mtf.random_normal, mtf.random_gumbel)]
    return (*drawn, mtf.dropout(a, 0.25, seed), mtf.random_uniform("V", a, seed))


def plan(fn: Any, mesh: str, layout: str, sizes: str, **more: Any) -> Program:
    return mtf.plan(fn, mesh, layout, sizes=sizes, **more)


PROGRAMS: dict[str, Any] = {
    "net, data-parallel": lambda: net("rows:4", "batch:rows"),
    "net, model-parallel": lambda: net("cols:4", "hidden:cols"),
    "net, both": lambda: net("rows:4 cols:2", "batch:rows hidden:cols"),
    "net, both dimensions of each weight": lambda: net(CUBE, "io:x hidden:yz"),
    "net, bf16 with an axis of size 1": lambda: net("rows:1 cols:4", "io:cols batch:rows", dtype="bf16"),
    "net, partial input": lambda: net("x:2 y:2", "", place={"x": "batch io partialsum:xy", "w": "io:y hidden"}),
    "2D weight-stationary": stationary,
    "softmax over a split dimension": lambda: plan(attention_weights, "x:4", "H:x", "B:8 H:16"),
    "softmax with batch split too": lambda: plan(attention_weights, "x:2 y:4", "H:x B:y", "B:8 H:16"),
    "reshape": lambda: plan(heads, "x:4", "hk:x", "B:8 hk:32 E:8"),
    "gather": lambda: plan(lookups, "x:4 y:2", "V:x B:y", "B:2 L:3 M:5 V:16 E:4"),
    "gather, unsplit": lambda: plan(lookups, "x:2", "E:x", "B:2 L:3 M:5 V:16 E:4"),
    "repeat": lambda: plan(stack, "x:4", "E:x", "B:4 N:3 E:8 F:16"),
    "repeat, split over F": lambda: plan(stack, "x:2 y:2", "F:x B:y", "B:4 N:3 E:8 F:16"),
    "permute": lambda: plan(swapped, "x:2 y:2", "M:xy", "M:8 N:8"),
    "permute, three axes": lambda: plan(swapped, "x:2 y:2 z:2", "M:xy", "M:8 N:8"),
    "max, any and argmax": lambda: plan(largest, "x:2 y:2", "M:x N:y", "M:4 N:8"),
    "partial outputs and mask": lambda: plan(sums, "x:4", "M:x", "M:8 N:4"),
    "pieces": lambda: plan(pieces, "x:2", "M:x", "M:4 N:8"),
    "pieces, split along": lambda: plan(pieces, "x:2", "N:x", "M:4 N:8"),
    "choices": lambda: plan(choices, "x:2", "V:x", "B:4 V:8"),
    "space": lambda: plan(space, "x:2", "A:x", "A:8 B:3"),
    "space, whole": lambda: plan(space, "x:2", "B:x", "A:8 B:4"),
    "two stages": lambda: plan(stages, "x:4", "V:x", "M:4 V:32"),
    "two stages, middle": lambda: plan(stages, "x:2 y:2", "M:x V:y", "M:6 V:32"),
    "random numbers": lambda: plan(chances, "x:2 y:2", "M:x V:y", "M:4 V:6"),
    "write": lambda: plan(written, "x:2", "B:x", "A:2 B:4 S:16 D:3 N:3", place={"wide": "S A:x", "new": "N B:x A D"}),
    "write, split along": lambda: plan(written, "x:2 y:2", "S:x B:y", "A:2 B:4 S:16 D:3 N:3"),
    "wider": lambda: plan(wider, "x:2 y:2", "M:x N:y", "M:4 N:6"),
}


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> Program:
    return PROGRAMS[request.param]()


def arrays_for(program: Program, seed: int = 0) -> list[np.ndarray]:
    """Values that tell devices apart; ids run past both ends of what is looked up."""
    rng = np.random.default_rng(seed)
    made = {True: lambda shape: rng.normal(size=shape), False: lambda shape: rng.integers(-3, 20, shape)}
    return [made[is_float(port.dtype)](port.sharding.shape) for port in program.inputs]


def run_source(program: Program) -> dict[str, Any]:
    """What is defined after running the printed text as a module of its own."""
    defined: dict[str, Any] = {"__name__": "printed"}
    exec(compile(program.source(), f"source of {program.name}", "exec"), defined)
    return defined


def listed(program: Program, got: Any) -> list[Any]:
    """The outputs in order, however the function returned them."""
    return [got[port.name] for port in program.outputs] if isinstance(got, dict) else jax.tree.leaves(got)


def test_values_are_those_of_the_executor(program):
    run = simulate(program)
    arrays = [jax.numpy.asarray(a, shape.dtype) for a, shape in zip(arrays_for(program), run.shapes, strict=True)]
    printed = run_source(program)
    leaves = listed(program, printed[program.name](*printed["place"](*arrays)))
    expected = run.compiled(*arrays)
    assert len(leaves) == len(expected)
    for mine, theirs in zip(leaves, expected, strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        assert mine.sharding.is_equivalent_to(theirs.sharding, mine.ndim)
        np.testing.assert_allclose(np.float64(mine), np.float64(theirs), rtol=2e-6, atol=1e-6)


def test_lowers_to_the_same_collectives(program):
    run, printed = simulate(program), run_source(program)
    mine = lowered_collectives(printed[program.name].lower(*run.shapes))
    assert mine == lowered_collectives(run.lower())
    looped = [step for step in program.walk() if step.is_collective]
    assert len(mine) == len(looped)


@pytest.mark.parametrize("part", [0, *[pytest.param(n, marks=pytest.mark.long) for n in range(1, 10)]])
@pytest.mark.timeout(300)
def test_random_programs_give_the_same_values_and_collectives(part):
    @seed(part)
    @settings(max_examples=30, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(programs())
    def each(case: Case) -> None:
        program = case.build()
        run, text = simulate(program), program.source()
        mine = run_source(program)[program.name].lower(*run.shapes)
        assert lowered_collectives(mine) == lowered_collectives(run.lower()), f"{case.script()}\n{text}"
        arrays = [np.asarray(a, shape.dtype) for a, shape in zip(case.arrays(), run.shapes, strict=True)]
        got = listed(program, mine.compile(compiler_options=quick_options())(*arrays))
        expected = run.lower().compile(compiler_options=quick_options())(*arrays)
        for a, b in zip(got, expected, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            limit = 3e-2 if a.dtype == "bfloat16" else 1e-5
            a, b = np.asarray(a).astype(float), np.asarray(b).astype(float)
            np.testing.assert_allclose(a, b, rtol=limit, atol=limit, err_msg=f"{case.script()}\n{text}")

    each()


@pytest.mark.parametrize("fn", SMOOTH)
def test_each_function_of_one_number_is_written_as_its_kernel_computes(fn):
    x = jax.numpy.linspace(0.1 if SMOOTH[fn].on == "above 0" else -3, 3, 8)
    assert fn in POINTWISE, f"{fn} has no text in mtfcore/source/lines.py"
    written = eval(POINTWISE[fn].format("x"), {"jax": jax, "jnp": jax.numpy, "lax": jax.lax, "x": x})
    np.testing.assert_allclose(written, KERNELS[fn](x), rtol=2e-6, atol=1e-6)


def test_every_kind_of_step_is_among_the_programs():
    kinds = {step.kind for make in PROGRAMS.values() for step in make().walk()}
    assert kinds >= {
        "slice", "mask", "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute", "einsum", "pointwise",
        "reduce", "gather", "window", "pad", "concat", "cumsum", "top_k", "reshape", "index", "repeat", "constant",
        "random", "dropout", "shift", "windows", "overlap", "conv", "edge", "halo_exchange", "extend", "trim", "fold",
        "write",
    }  # fmt: skip


def test_each_communicating_line_says_its_arrow(program):
    lines = program.source().splitlines()
    for step in program.walk():
        if step.is_collective:
            assert any(step.arrow() in line for line in lines)
    calls = re.compile(r"lax\.(all_gather|psum|psum_scatter|pmax|pmin|all_to_all|ppermute)\(")
    for above, line in itertools.pairwise(lines):
        assert not calls.search(line) or "→" in line or ("# " in above and "→" in above)


def test_nothing_of_this_library_is_in_it(program):
    text = program.source()
    assert "mtf" not in text
    assert max(map(len, text.splitlines())) <= 120


def test_two_layer_net_reads_as_written_by_hand():
    body = net("rows:4 cols:2", "batch:rows hidden:cols").source().split('"""\n')[1].split("\n\n")[0]
    assert body.splitlines() == [
        '    h1 = jnp.einsum("bi,ih->bh", x, w)',
        "    h2 = jnp.maximum(h1, 0)",
        '    h3 = jnp.einsum("bh,hi->bi", h2, v)  # → batch:rows io partialsum:cols, addends of a sum',
        '    out = lax.psum(h3, "cols")  # batch:rows io partialsum:cols → batch:rows io',
        "    return out",
    ]


def test_an_old_form_that_is_read_again_keeps_its_name():
    @mtf.function
    def twice(x: "B E"):
        whole = mtf.reshard(x, "B E")
        return mtf.tanh(whole), mtf.exp(x)

    text = mtf.plan(twice, "x:2", sizes="B:4 E:8", place={"x": "B E:x"}).source()
    assert 'x_gathered = lax.all_gather(x, "x", axis=1, tiled=True)' in text
    assert "jnp.tanh(x_gathered)" in text and "jnp.exp(x)" in text


def test_names_that_python_or_the_text_itself_needs_are_not_taken():
    @mtf.function
    def mesh(jnp: "B", lax: "B", place: "B"):
        return {"lambda": jnp + lax, "P": lax + place}

    printed = run_source(mtf.plan(mesh, "x:2", "B:x", sizes="B:4"))
    results = printed["mesh_2"](*[np.ones(4, np.float32)] * 3)
    assert {name: value.tolist() for name, value in results.items()} == {"lambda": [2.0] * 4, "P": [2.0] * 4}


def test_printing_does_not_load_jax():
    code = (
        "import sys, mtfcore as mtf\n"
        "@mtf.function\n"
        "def f(a: 'M N'): return mtf.sum(a, out='M:x')\n"
        "mtf.plan(f, 'x:2', 'N:x', sizes='M:4 N:8').source()\n"
        "assert 'jax' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
