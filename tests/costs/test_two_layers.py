"""Table 1: printed entries, closed form = program = counted for all five layouts, and what training must hold."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.costs.first_paper.memory import OPTIMIZERS, largest, memory
from mtfcore.costs.first_paper.two_layers import PASSES, ROWS, Parts, Row, Sizes, cost, uneven
from mtfcore.costs.first_paper.two_layers_printed import (
    printed_communication,
    printed_computation,
    printed_memory,
    printed_ratio,
)
from mtfcore.costs.first_paper.two_layers_programs import planned
from mtfcore.counting import count_stablehlo
from mtfcore.errors import LayoutError

SIZES = Sizes(batch=48, io=40, hidden=112)  # all different, so that no two tiles are alike
MESHES = ((2, 2, 2), (4, 2, 1), (2, 1, 4), (1, 1, 1), (8, 1, 1))
rows = pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.layout or "none")
passes = pytest.mark.parametrize("passes", PASSES)

# Table 1 as printed, entry by entry, on r·c·p = n processors. Rows 2 to 4 are published in texts about the paper;
# rows 1 and 5 are computed from them (row 1 is row 2 at n = 1; row 5 by one all-reduce an einsum).
TABLE_1 = {
    "": lambda b, i, h, r, c, p, n: (b * i * h, 0, 0, b * i + b * h + i * h),
    "batch:all": lambda b, i, h, r, c, p, n: (b * i * h / n, i * h, n / b, b * i / n + b * h / n + i * h),
    "hidden:all": lambda b, i, h, r, c, p, n: (b * i * h / n, b * i, n / h, b * i + b * h / n + i * h / n),
    "batch:rows hidden:cols": lambda b, i, h, r, c, p, n: (
        b * i * h / (r * c), b * i / r + i * h / c, c / h + r / b, b * i / r + b * h / (r * c) + i * h / c
    ),
    "batch:rows hidden:cols io:planes": lambda b, i, h, r, c, p, n: (
        b * i * h / (r * c * p), b * i / (r * p) + b * h / (r * c) + i * h / (c * p), c / h + p / i + r / b,
        b * i / (r * p) + b * h / (r * c) + i * h / (c * p),
    ),
}  # fmt: skip
SPLIT = {"": (1, 1, 1), "batch:all": (8, 1, 1), "hidden:all": (8, 1, 1), "batch:rows hidden:cols": (4, 2, 1)}


def fitting(row: Row) -> list[tuple[int, int, int]]:
    return [mesh for mesh in MESHES if not uneven(row, SIZES, row.parts(*mesh))]


@rows
def test_the_printed_entries(row):
    """Published for rows 2-4, computed for rows 1 and 5: the row says which."""
    assert row.origin == ("computed" if row.layout in ("", "batch:rows hidden:cols io:planes") else "published")
    r, c, p = mesh = SPLIT.get(row.layout, (2, 2, 2))
    entries = (printed_computation, printed_communication, printed_ratio, printed_memory)
    ours = [entry(row, SIZES, row.parts(*mesh)) for entry in entries]
    assert ours == pytest.approx(TABLE_1[row.layout](SIZES.batch, SIZES.io, SIZES.hidden, r, c, p, r * c * p))


@rows
def test_the_printed_formulas_say_what_the_functions_compute(row):
    """The words of the table, evaluated."""
    mesh = SPLIT.get(row.layout, (2, 2, 2))
    parts = row.parts(*mesh)
    values = {"b": SIZES.batch, "d_io": SIZES.io, "d_h": SIZES.hidden, "n": parts.devices,
              "r": parts.batch, "c": parts.hidden, "p": parts.io}  # fmt: skip
    named = ("computation", "communication", "ratio", "memory")
    entries = (printed_computation, printed_communication, printed_ratio, printed_memory)
    for name, entry in zip(named, entries, strict=True):
        assert evaluated(getattr(row.printed, name), values) == entry(row, SIZES, parts)


def evaluated(formula: str, values: dict[str, int]) -> Fraction:
    """`b d_io d_h / rc`: blanks multiply, and the letters after a slash are one product."""
    total = Fraction(0)
    for term in formula.replace(" / ", "/").split(" + "):
        top, _, below = term.partition("/")
        product = Fraction(1)
        for word in top.split():
            product *= int(word) if word.isdigit() else values[word]
        for letter in [below] if below in values else below:
            product /= values[letter]
        total += product
    return total


def test_the_row_of_one_cut_is_the_two_others_when_nothing_is_cut():
    """Row 1 follows from row 2 at n = 1."""
    one = Parts()
    for entry in (printed_computation, printed_memory):
        assert entry(ROWS[""], SIZES, one) == entry(ROWS["batch:all"], SIZES, one)
    assert printed_communication(ROWS[""], SIZES, one) == printed_ratio(ROWS[""], SIZES, one) == 0


@rows
def test_the_ratio_is_communication_over_computation(row):
    for mesh in fitting(row):
        parts = row.parts(*mesh)
        whole = Fraction(printed_communication(row, SIZES, parts), printed_computation(row, SIZES, parts))
        assert printed_ratio(row, SIZES, parts) == whole


@pytest.mark.parametrize(
    ("layout", "mesh", "values"),
    [
        ("batch:all", (8, 1, 1), 2 * 40 * 112),  # 2 d_io d_h
        ("hidden:all", (8, 1, 1), 2 * 48 * 40),  # 2 b d_io
        ("batch:rows hidden:cols", (4, 2, 1), 2 * 48 * 40 // 4 + 2 * 40 * 112 // 2),  # 2 b d_io/r + 2 d_io d_h/c
    ],
)
def test_all_reduced_values_with_their_constants(layout, mesh, values):
    """Published with the factor 2, forward and backward together."""
    assert cost(ROWS[layout], SIZES, ROWS[layout].parts(*mesh)).allreduced == values


def test_b_is_the_global_batch():
    """`n/b with b the batch on one processor` is a mistake in circulation: with 8 processors it is 8 times too much."""
    row, parts = ROWS["batch:all"], Parts(batch=8)
    assert printed_ratio(row, SIZES, parts) == Fraction(8, 48) == Fraction(1, 48 // 8)


@passes
@rows
def test_closed_form_is_the_program(row, passes):
    """FLOPs, bytes sent, and every all-reduce: of what, in which group, how many bytes."""
    for mesh in fitting(row):
        program = planned(row, SIZES, *mesh, passes=passes)
        ours = cost(row, SIZES, row.parts(*mesh), passes=passes)
        assert program.flops() == ours.flops
        assert program.link_bytes() == float(ours.sent_bytes)
        assert allreduces(program) == Counter((each.group, 2 * each.values) for each in ours.allreduces)


def allreduces(program: mtf.Program) -> Counter:
    assert {step.kind for step in program.collectives()} <= {"all_reduce"}
    return Counter((step.group, step.n_bytes) for step in program.collectives())


@passes
@rows
def test_the_program_is_what_is_counted(row, passes):
    """Closed form = program = jaxpr = StableHLO, in float32 on 8 devices."""
    mesh = fitting(row)[0]
    program = planned(row, SIZES, *mesh, dtype="f32", passes=passes)
    ours = cost(row, SIZES, row.parts(*mesh), "f32", passes)
    run = mtf.simulate(program)
    for counts in (mtf.count(run.fn, *run.shapes), count_stablehlo(run.lower())):
        assert (counts.flops, float(counts.link_bytes)) == (ours.flops, float(ours.sent_bytes))


def test_the_five_layouts_give_the_same_values_and_gradients():
    rng = np.random.default_rng(0)
    small = Sizes(16, 8, 24)
    arrays = {"x": (16, 8), "w": (8, 24), "v": (24, 8), "dy": (16, 8)}
    arrays = {name: rng.normal(size=shape).astype(np.float32) for name, shape in arrays.items()}
    h = np.maximum(arrays["x"] @ arrays["w"], 0)
    dh = (arrays["dy"] @ arrays["v"].T) * (h > 0)
    expected = (h @ arrays["v"], dh @ arrays["w"].T, arrays["x"].T @ dh, h.T @ arrays["dy"])
    for row in ROWS.values():
        results = mtf.simulate(planned(row, small, 2, 2, 2, dtype="f32"))(**arrays)
        found = results.values() if isinstance(results, dict) else results
        for got, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(got), right, rtol=1e-4, atol=1e-4)


@mtf.function
def by_gradients(x: "batch io", w: "io hidden", v: "hidden io", dy: "batch io"):
    """The same step with the backward that the library makes; dy enters as the loss's slope."""
    y = mtf.einsum(mtf.relu(mtf.einsum(x, w, out="batch hidden")), v, out="batch io")
    dx, dw, dv = mtf.gradients(mtf.sum(mtf.multiply(y, dy), out=""), (x, w, v))
    return {"y": y, "dx": dx, "dw": dw, "dv": dv}


@rows
def test_gradients_plan_the_same_collectives(row):
    """The backward written out and `mtf.gradients`: collective by collective, and every FLOP."""
    for mesh in fitting(row):
        ours = planned(row, SIZES, *mesh)
        made = mtf.plan(by_gradients, row.mesh(*mesh), row.layout, sizes=str(SIZES), dtype="bf16", strict=True)
        assert made.flops() == ours.flops()
        assert allreduces(made) == allreduces(ours) and made.link_bytes() == ours.link_bytes()


# ---- memory


@rows
def test_memory_is_that_of_the_programs_own_tensors(row):
    for mesh in fitting(row):
        program, held = planned(row, SIZES, *mesh), memory(row, SIZES, row.parts(*mesh))
        of = tensor_bytes(program)
        assert held.parameters == of["w"] + of["v"] == of["dw"] + of["dv"] == held.gradients
        assert held.activations == of["x"] + of["dy"] + of["relu"] + of["where"]
        assert held.total - held.optimizer < program.memory()  # which keeps every value of every step


def tensor_bytes(program: mtf.Program) -> dict[str, int]:
    """Bytes on one device of inputs, outputs, and of what each pointwise operation makes."""
    named = {port.name: port.sharding for port in (*program.inputs, *program.outputs)}
    named |= {step.label(): step.after for step in program.steps if step.kind == "pointwise" or step.label() == "where"}
    return {name: where.bytes_per_device(program.mesh, "bf16") for name, where in named.items()}


def test_a_forward_pass_keeps_no_gradients():
    held = memory(ROWS["batch:all"], SIZES, Parts(batch=8), passes="forward")
    assert (held.gradients, held.optimizer) == (0, 0)
    assert held.activations == 2 * (2 * 6 * 40 + 6 * 112)


@pytest.mark.parametrize(("optimizer", "n_bytes"), [("sgd", 0), ("adam", 16 * 40 * 56), ("adafactor", 8 * (40 + 56))])
def test_optimizer_state_is_cut_like_its_parameters(optimizer, n_bytes):
    row = ROWS["batch:rows hidden:cols"]
    assert memory(row, SIZES, row.parts(4, 2), optimizer=optimizer).optimizer == n_bytes


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("dim", ["batch", "hidden", "io"])
@rows
def test_the_largest_size_fits_and_the_next_does_not(row, dim, optimizer):
    parts, hbm = row.parts(2, 2, 2), 5_000_000
    size, unit = largest(row, SIZES, parts, dim, hbm, optimizer=optimizer), getattr(parts, dim)
    held = [
        memory(row, Sizes(**{**vars(SIZES), dim: n}), parts, optimizer=optimizer).fits(hbm) for n in (size, size + unit)
    ]
    assert held == [True, False]


def test_nothing_fits_where_the_rest_is_too_much():
    assert largest(ROWS[""], Sizes(1000, 1000, 1000), Parts(), "batch", 1_000_000) == 0


# ---- refusals


def test_uneven_sizes_are_refused_all_at_once():
    row = ROWS["batch:rows hidden:cols io:planes"]
    faults = "batch 48 does not divide into 5 parts(.|\n)*hidden 112 .* 3 parts(.|\n)*io 40 .* 7 parts"
    with pytest.raises(LayoutError, match=faults):
        cost(row, SIZES, row.parts(5, 3, 7))
    with pytest.raises(LayoutError, match="batch 48 does not divide into 5 parts"):
        memory(ROWS["batch:all"], SIZES, Parts(batch=5))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda row, parts: cost(row, SIZES, parts, passes="back"), "no pass 'back'; legal here: 'forward'"),
        (lambda row, parts: memory(row, SIZES, parts, optimizer="adams"), "did you mean 'adam'"),
        (lambda row, parts: largest(row, SIZES, parts, "hiden", 1e9), "did you mean 'hidden'"),
    ],
)
def test_unknown_words_are_refused(call, words):
    with pytest.raises(LayoutError, match=words):
        call(ROWS[""], Parts())
