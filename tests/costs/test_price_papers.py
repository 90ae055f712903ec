"""`mtf.price` against both papers' closed forms, and the cases of neighbouring tools."""

import pytest
from costs.programs_to_price import one_collective

import mtfcore as mtf
from mtfcore.costs.first_paper import two_layers_programs
from mtfcore.costs.first_paper.paper_time import step_seconds
from mtfcore.costs.first_paper.two_layers import ROWS, Sizes
from mtfcore.costs.first_paper.two_layers import cost as closed_form
from mtfcore.costs.second_paper.feedforward import LAYOUTS, layout_bytes
from mtfcore.costs.second_paper.programs import planned as second_paper

# ---- the papers' models -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ROWS)
@pytest.mark.parametrize("passes", ["forward", "training"])
def test_the_first_papers_closed_form_comes_out(layout, passes):
    row, sizes, grid = ROWS[layout], Sizes(1024, 512, 2048), (4, 4, 2)
    planes = grid if "planes" in layout else (4, 8)
    prog = two_layers_programs.planned(row, sizes, *planes, passes=passes)
    want = step_seconds(closed_form(row, sizes, row.parts(*planes), passes=passes), mtf.chip("v2"))
    where = "v2:4x4" if prog.mesh.size > 1 else "v2:1x1"
    cost = mtf.price(prog, where, model="paper")
    assert cost.rates.model == "first paper"
    assert cost.compute_seconds == pytest.approx(want.compute, rel=1e-12)
    assert cost.link_seconds == pytest.approx(want.communicate, rel=1e-12)
    assert cost.seconds == pytest.approx(want.total, rel=1e-12)
    assert cost.hbm_seconds == cost.hop_seconds == 0


def weight_stationary_2d():
    """Section 3.2.2: E split over x, F over y and z; activations gathered and scattered."""

    @mtf.function
    def ffn(x: "B L E", w_in: "E F", w_out: "F E"):
        h = mtf.einsum(x, w_in, out="B L F:zyx", at=["B L E:x", "E:x F:zy"])
        return mtf.einsum(h, w_out, out="B L E:xzy", at=["B L F:zy", "F:zy E:x"])

    place = {"x": "B L E:xzy", "w_in": "E:x F:zy", "w_out": "F:zy E:x"}
    return mtf.plan(ffn, "x:4 y:4 z:4", sizes="B:64 L:16 E:2048 F:8192", place=place, dtype="bf16")


def test_the_second_papers_closed_form_comes_out():
    b_l, e, f, w = 64 * 16, 2048, 8192, 270e9
    cost = mtf.price(weight_stationary_2d(), "v4:4x4x4", model="paper")
    assert cost.rates.model == "second paper"
    assert cost.link_seconds == pytest.approx(2 * 2 * b_l / w * (e / 4 + f / 16), rel=1e-12)  # 2 bytes an element
    exact = mtf.price(weight_stationary_2d(), "v4:4x4x4", model="paper", exact=True)
    assert exact.link_seconds == pytest.approx(2 * 2 * b_l / w * (e / 4 * 15 / 16 + f / 16 * 3 / 4), rel=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("gated", [False, True])
def test_every_layout_of_the_second_paper_takes_its_closed_form(layout, exact, gated):
    sizes = {"d_model": 2048, "d_ff": 8192}
    prog = second_paper(layout, (4, 2, 4), batch=64, length=16, **sizes, gated=gated)
    want = layout_bytes(layout, 64 * 16, **sizes, x=4, y=2, z=4, gated=gated, exact=exact) / 270e9
    cost = mtf.price(prog, "v4:4x4x4", model="paper", exact=exact)
    assert cost.link_seconds == pytest.approx(want, rel=1e-12)


def test_an_all_reduce_in_the_second_paper_is_twice_a_gather():
    reduced = mtf.price(one_collective("x:4", "A B partialsum:x", "A B"), "v4:4x1x1", model="second paper")
    gathered = mtf.price(one_collective("x:4", "A:x B", "A B"), "v4:4x1x1", model="second paper")
    assert reduced.link_seconds == pytest.approx(2 * gathered.link_seconds) == pytest.approx(2 * 2 * 4096**2 / 270e9)


# ---- the cases of neighbouring tools, as whole programs ---------------------------------------------------------

CASES = (  # mesh, slice, sizes, where it lies and where it goes, microseconds, how it runs
    ("x:4 y:4 z:4", "v4:4x4x4", "A:1024 B:4096", "A:x B:y", "A B:y", 17.5, "two-way ring"),
    ("x:4 y:4 z:4", "v4:4x4x4", "A:1024 B:4096", "A:x B:y partialsum:z", "A:x B:y", 8.74, "two-way ring"),
    ("x:8 y:4", "v5e:8x4", "A:2048 B:8192", "A:y B", "A B", 559, "two-way line"),
    ("x:8 y:16", "v5e:8x16", "A:2048 B:8192", "A:y B", "A B", 350, "two-way ring"),
    ("y:2", "v5e:1x2", "A:2048 B:8192", "A:y B", "A B", 373, "two-way line"),
    ("x:4 y:4 z:4", "v4:4x4x4", "A:16 B:8", "A:x B", "A B", 2, "two-way ring"),
    ("y:4", "v5e:1x4", "A:256 B:256", "A:y B", "A B", 3, "two-way line"),
)


@pytest.mark.parametrize(("mesh", "where", "sizes", "before", "after", "micros", "how"), CASES)
def test_to_c05_as_programs(mesh, where, sizes, before, after, micros, how):
    cost = mtf.price(one_collective(mesh, before, after, sizes), where)
    assert cost.seconds == pytest.approx(micros * 1e-6, rel=2e-3)
    (row,) = cost.rows
    assert row["how"].startswith(f"{how}, exact (K−1)/K, hop floor ")
