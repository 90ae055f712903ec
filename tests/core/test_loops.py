"""Loops that carry several tensors, hand out one entry a turn, and run backwards."""

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.counting import count_stablehlo
from mtfcore.errors import LayoutError

SIZES = "batch:8 io:8 hidden:16 layers:3"


@mtf.function
def running(x: "batch io", w: "layers io hidden", v: "layers hidden io", bias: "io"):
    def block(x, total, w, v):
        h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
        y = mtf.einsum(h, v, out="batch io") + bias
        return y, total + mtf.sum(y, "io", out="batch"), h, mtf.max(y, "io")

    start = mtf.sum(x, "io", out="batch")
    return mtf.repeat(block, 3, [w, v], x, start)


@mtf.function
def backwards(x: "batch io", w: "layers io"):
    return mtf.repeat(lambda c, w: (0.5 * c + w * x, c), 3, w, x, reverse=True, over="turns")


@mtf.function
def only_an_output(x: "batch io", w: "layers io hidden", v: "layers hidden io"):
    def block(x, unread, w, v):
        h = mtf.einsum(x, w, out="batch hidden")
        return mtf.relu(x), mtf.einsum(h, v, out="batch io"), mtf.sum(h, "hidden")

    return mtf.repeat(block, 3, {"w": w, "v": v}, x, x)[2]


def arrays(prog):
    rng = np.random.default_rng(0)
    return [rng.normal(size=port.sharding.shape).astype(np.float32) for port in prog.inputs]


def expected_running(x, w, v, bias):
    total, hs, tops = x.sum(1), [], []
    for layer in range(3):
        h = np.maximum(x @ w[layer], 0)
        x = h @ v[layer] + bias
        total = total + x.sum(1)
        hs.append(h)
        tops.append(x.max(1))
    return x, total, np.stack(hs), np.stack(tops)


def expected_backwards(x, w):
    c, kept = x, [None] * 3
    for layer in (2, 1, 0):
        kept[layer] = c
        c = 0.5 * c + w[layer] * x
    return c, np.stack(kept)


LAYOUTS = ["", "batch:x hidden:y", "hidden:xy", "io:x hidden:y", "batch:x io:y", "layers:x hidden:y"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("fn", "oracle"), [(running, expected_running), (backwards, expected_backwards)])
def test_values_on_every_layout(fn, oracle, layout):
    mesh, layout = ("x:3 y:2", layout) if "layers" in layout else ("x:2 y:2", layout)
    used = layout if fn is running else layout.replace("hidden:xy", "").replace("hidden:y", "")
    prog = mtf.plan(fn, mesh, used, sizes=SIZES if fn is running else SIZES.replace(" hidden:16", ""))
    given = arrays(prog)
    for run in (mtf.simulate(prog), mtf.single(prog), mtf.partitioned(prog)):
        for got, right in zip(run(*given), oracle(*given), strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-4, atol=2e-4)


def test_the_printed_program_gives_the_same():
    prog = mtf.plan(running, "x:2 y:2", "batch:x hidden:y", sizes=SIZES)
    space: dict = {}
    exec(prog.source(), space)
    given = arrays(prog)
    results = space["running"](*space["place"](*given))
    for got, right in zip(results, expected_running(*given), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=2e-4)


def test_what_nobody_reads_is_neither_planned_nor_run():
    prog = mtf.plan(only_an_output, "x:2 y:2", "hidden:x io:y", sizes=SIZES)
    (loop,) = [step for step in prog.steps if step.kind == "repeat"]
    assert [port.name for port in loop.body.inputs] == ["carry0", "w"]  # the second carry and v are gone
    counted = count_stablehlo(mtf.simulate(prog).lower())
    assert counted.link_bytes == pytest.approx(float(prog.link_bytes()))


def test_values_of_every_turn_can_be_looked_at():
    prog = mtf.plan(running, "x:2 y:2", "batch:x hidden:y", sizes=SIZES)
    run, given = mtf.simulate(prog), None
    given = arrays(prog)
    run(*given)
    number = next(n for n, step in enumerate(prog.steps) if step.kind == "repeat")
    np.testing.assert_allclose(run.values(number, 0), expected_running(*given)[0][:4], rtol=1e-4, atol=2e-4)
    inner = next(n for n, step in enumerate(prog.steps[number].body.steps) if step.label() == "relu")
    for turn in range(3):
        right = expected_running(*given)[2][turn][:4, :8]
        np.testing.assert_allclose(run.values((number, inner), 0, turn), right, rtol=1e-4, atol=2e-4)


def trace(block, *carry, over=""):
    @mtf.function
    def f(x: "batch io", w: "layers io"):
        return mtf.repeat(block, 3, w, *[{"x": x}[c] for c in carry], over=over)

    return f.trace(SIZES.replace(" hidden:16", ""))


@pytest.mark.parametrize(
    ("block", "carry", "over", "words"),
    [
        (lambda a, b, w: a, "xx", "", "carries 2 tensors and returns 1; each turn must return what the next one takes"),
        (lambda a, w: (a, a), "x", "io", "out1 of each turn has a dimension 'io' already; give another name"),
        (lambda a, w: (a, a), "x", "3x", "over is '3x'; expected the name of one dimension"),
        (lambda a, w: (a, 3), "x", "", "returns int 3; expected tensors"),
        (lambda a, w: a, "xx", "", "is called with 2 carries and 1 part of the stack"),
    ],
)
def test_faults_are_named(block, carry, over, words):
    with pytest.raises(LayoutError) as fault:
        trace(block, *carry, over=over)
    assert words in str(fault.value)
