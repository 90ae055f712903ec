"""Programs priced step by step: sums, models, memory, wiring, words, and what is refused."""


import numpy as np
import pytest

import mtfcore as mtf
from mtfcore import chips
from mtfcore.costs.first_paper import two_layers_programs
from mtfcore.costs.first_paper.paper_time import step_seconds
from mtfcore.costs.first_paper.two_layers import ROWS, Sizes
from mtfcore.costs.first_paper.two_layers import cost as closed_form
from mtfcore.costs.links.wiring import Leg, wirings
from mtfcore.costs.pricing.step_time import collective_time, local_time, padded_flops, rates
from mtfcore.costs.second_paper.feedforward import LAYOUTS, layout_bytes
from mtfcore.costs.second_paper.programs import planned as second_paper

SIZES = "batch:512 io:4096 hidden:16384"


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


def planned(mesh="x:4 y:4 z:4", layout="batch:x hidden:y io:z", sizes=SIZES, dtype="bf16"):
    return mtf.plan(two_layers, mesh, layout, sizes=sizes, dtype=dtype)


def one_collective(mesh, before, after, sizes="A:4096 B:4096", dtype="bf16"):
    @mtf.function
    def moved(a: "A B"):
        return mtf.reshard(a, after)

    return mtf.plan(moved, mesh, sizes=sizes, place={"a": before}, dtype=dtype)


# ---- sums -------------------------------------------------------------------------------------------------------

PRICED = (
    (planned(), "v4:4x4x4", {}),
    (planned(), "v5e:8x8", {"way": "one"}),
    (planned("x:8 y:8", "batch:x hidden:y"), "h100:8x8", {"at_once": False}),
    (planned("x:16 y:32", "batch:x hidden:y"), "v2:16x16", {"model": "paper"}),
    (planned(), "v4:4x4x4", {"model": "paper", "overlap": 0.5}),
    (planned(), "v4:4x4x4", {"model": "calibrated", "overlap": 1.0}),
)


@pytest.mark.parametrize(("prog", "where", "how"), PRICED)
def test_totals_are_the_sums_of_their_parts(prog, where, how):
    cost = mtf.price(prog, where, **how)
    each = [step.seconds for step in cost.steps]
    assert sum(cost.parts.values()) == pytest.approx(sum(each)) == pytest.approx(cost.additive_seconds)
    assert cost.local_seconds + cost.collective_seconds == pytest.approx(cost.additive_seconds)
    assert sum(cost.by_axes.values()) == pytest.approx(cost.collective_seconds)
    assert sum(row["seconds"] for row in cost.rows) == pytest.approx(cost.additive_seconds)
    assert cost.overlapped_seconds <= cost.seconds <= cost.additive_seconds * (1 + 1e-12)
    hidden = how.get("overlap", 0.0) * min(cost.local_seconds, cost.collective_seconds)
    assert cost.seconds == pytest.approx(cost.additive_seconds - hidden)
    for step in cost.steps:
        once = step.once
        parts = [once.compute, once.hbm] if not step.step.is_collective else [once.link, once.hops]
        assert once.total >= max(parts)
        assert once.total <= sum(parts) + once.launch + 1e-15


def test_loops_are_multiplied():
    @mtf.function
    def deep(x: "batch io", ws: "layers io hidden", vs: "layers hidden io"):
        def block(x, w, v):
            return x + mtf.einsum(mtf.relu(mtf.einsum(x, w, out="batch hidden")), v, out="batch io")

        return mtf.repeat(block, 12, [ws, vs], x)

    prog = mtf.plan(deep, "x:4 y:4", "batch:x hidden:y", sizes=f"{SIZES} layers:12", dtype="bf16")
    cost, once = mtf.price(prog, "v4:4x4x1"), mtf.price(planned("x:4 y:4", "batch:x hidden:y"), "v4:4x4x1")
    assert cost.flops == prog.flops() == 12 * once.flops
    assert cost.compute_seconds == pytest.approx(12 * once.compute_seconds)
    assert cost.link_seconds == pytest.approx(12 * once.link_seconds)
    assert [step.ask.number for step in cost.steps][:2] == ["0.0", "0.1"]


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
    ("x:4 y:4 z:4", "v4:4x4x4", "A:1024 B:4096", "A:x B:y", "A B:y", 17.5, "two-way ring"),  # C02
    ("x:4 y:4 z:4", "v4:4x4x4", "A:1024 B:4096", "A:x B:y partialsum:z", "A:x B:y", 8.74, "two-way ring"),  # C03
    ("x:8 y:4", "v5e:8x4", "A:2048 B:8192", "A:y B", "A B", 559, "two-way line"),  # C04
    ("x:8 y:16", "v5e:8x16", "A:2048 B:8192", "A:y B", "A B", 350, "two-way ring"),
    ("y:2", "v5e:1x2", "A:2048 B:8192", "A:y B", "A B", 373, "two-way line"),
    ("x:4 y:4 z:4", "v4:4x4x4", "A:16 B:8", "A:x B", "A B", 2, "two-way ring"),  # C05
    ("y:4", "v5e:1x4", "A:256 B:256", "A:y B", "A B", 3, "two-way line"),
)


@pytest.mark.parametrize(("mesh", "where", "sizes", "before", "after", "micros", "how"), CASES)
def test_c02_to_c05_as_programs(mesh, where, sizes, before, after, micros, how):
    cost = mtf.price(one_collective(mesh, before, after, sizes), where)
    assert cost.seconds == pytest.approx(micros * 1e-6, rel=2e-3)
    (row,) = cost.rows
    assert row["how"].startswith(f"{how}, exact (K−1)/K, hop floor ")


# ---- bytes, hops, groups of one ---------------------------------------------------------------------------------


def test_a_group_of_one_costs_nothing():
    with_one = mtf.plan(two_layers, "x:1 y:8", "batch:x hidden:y", sizes=SIZES, dtype="bf16")
    without = mtf.plan(two_layers, "y:8", "hidden:y", sizes=SIZES, dtype="bf16")
    costs = [mtf.price(prog, "v5e:2x4") for prog in (with_one, without)]
    assert costs[0].seconds == costs[1].seconds
    assert "x" not in costs[0].by_axes
    alone = mtf.price(mtf.plan(two_layers, "x:1", "hidden:x", sizes=SIZES), "v4:1x1x1")
    assert (alone.collective_seconds, alone.link_seconds, alone.hop_seconds) == (0, 0, 0)


@pytest.mark.parametrize("kind", ["A:x B", "A B partialsum:x"])
@pytest.mark.parametrize("n", [2, 4])
def test_splitting_over_an_uninvolved_axis_divides_the_time(kind, n):
    whole = mtf.price(one_collective("x:4", kind, "A B"), "v4:4x1x1")
    place = kind.replace(" B", " B:y", 1)
    split = mtf.price(one_collective(f"x:4 y:{n}", place, "A B:y"), f"v4:4x{n}x1")
    assert split.link_seconds == pytest.approx(whole.link_seconds / n)


def test_times_grow_with_the_batch():
    times = [mtf.price(planned(sizes=f"batch:{n} io:4096 hidden:16384"), "v5e:8x8").seconds for n in (4, 64, 512, 8192)]
    assert times == sorted(times)
    assert times[0] < times[-1]


def test_the_floor_of_hops_shows_where_little_is_sent():
    cost = mtf.price(one_collective("x:16", "A:x B", "A B", "A:16 B:8"), "v5e:16x1")
    assert cost.bottleneck == "hops"
    assert cost.seconds == pytest.approx(8e-6)  # 8 hops of 1 µs
    assert cost.what_if["latency"] == pytest.approx(4e-6)
    assert "Twice as fast would gain: latency 4 µs (50%)." in str(cost)
    assert "two-way ring, exact (K−1)/K, hop floor 8 µs" in str(cost)
    one_way = mtf.price(one_collective("x:16", "A:x B", "A B", "A:16 B:8"), "v5e:16x1", way="one")
    assert one_way.seconds == pytest.approx(15e-6)


def test_a_permute_is_routed_over_the_grid():
    turned = one_collective("x:4 y:4", "A:x B", "A:y B")
    cost = mtf.price(turned, "v4:4x4x4")
    (step,) = [s for s in cost.steps if s.step.kind == "permute"]
    n = step.step.n_bytes
    assert step.once.link >= n / 45e9
    assert step.once.link == pytest.approx(round(step.once.link * 45e9 / n) * n / 45e9)
    swapped = mtf.price(one_collective("x:4 y:4", "A:x B:y", "A:y B:x"), "v4:4x4x4")
    assert swapped.steps[-1].once.link == pytest.approx(2 * (4096 * 4096 * 2 // 16) / 45e9)


def test_a_halo_exchange_is_one_hop():
    @mtf.function
    def shifted(a: "A B"):
        return mtf.shift(a, "A", 1)

    cost = mtf.price(mtf.plan(shifted, "x:8", "A:x", sizes="A:64 B:4096", dtype="bf16"), "v5e:8x1")
    (step,) = [s for s in cost.steps if s.step.kind == "halo_exchange"]
    assert step.once.link == pytest.approx(4096 * 2 / 45e9)
    assert step.once.hops == pytest.approx(1e-6)


# ---- local steps ------------------------------------------------------------------------------------------------


def test_c16_the_critical_batch():
    at = rates("v5e", "second paper")
    for math, weights, n_bytes, right in (("bf16", "bf16", 2, 240), ("bf16", "i8", 1, 120), ("i8", "i8", 1, 240)):
        batch = mtf.chip("v5e").critical_batch(weights, math)
        assert batch == pytest.approx(right, rel=5e-3)
        for rows, bound in ((batch - 1, "hbm"), (batch + 1, "compute")):
            assert local_time(2 * rows * 1e6, n_bytes * 1e6, math, at).bound == bound


def test_c22_analytic_flops():
    @mtf.function
    def product(a: "I J", b: "J K"):
        return mtf.einsum(a, b, out="I K")

    prog = mtf.plan(product, "x:4 y:2", "J:x", sizes="I:64 J:64 K:64", strict=True)
    cost = mtf.price(prog, "v4:4x2x1")
    assert (cost.flops, cost.model_flops) == (131_072, 524_288)

    @mtf.function
    def ten(a: "I J", bs: "turns J K"):
        return mtf.repeat(lambda a, b: mtf.rename(mtf.einsum(a, b, out="I K"), "K", "J"), 10, [bs], a)

    assert mtf.price(mtf.plan(ten, "x:1", sizes="I:64 J:64 K:64 turns:10"), "v4:1x1x1").flops == 5_242_880


def test_int8_weights_are_read_as_int8():
    @mtf.function(dtypes={"w": "i8"})
    def quantized(x: "batch io", w: "io hidden"):
        return mtf.einsum(x, mtf.cast(w, "bf16"), out="batch hidden")

    sizes = "batch:1 io:8192 hidden:8192"
    cost = mtf.price(mtf.plan(quantized, "x:1", sizes=sizes, dtype="bf16"), "v4:1x1x1")
    (step,) = [step for step in cost.steps if step.step.flops]
    assert step.ask.hbm_bytes == 8192 * 8192 + 2 * 8192
    assert step.intensity == pytest.approx(2, rel=1e-3)
    assert cost.hbm_by_input == {"w": 8192 * 8192, "x": 2 * 8192}
    assert sum(mtf.price(planned(), "v4:4x4x4").hbm_by_input.values()) == sum(
        step.ask.hbm_bytes for step in mtf.price(planned(), "v4:4x4x4").steps
    )
    assert "HBM traffic of a device: w 64 MiB, x 16 KiB." in str(cost)


def test_tiles_pad_what_does_not_fill_them():
    tile = (8, 128, 128)
    assert padded_flops(3, 130, 100, 129, tile) == 2 * 3 * 136 * 128 * 256
    assert padded_flops(3, 100, 130, 129, tile) == 2 * 3 * 136 * 128 * 256  # the operands change places
    assert padded_flops(3, 1, 1, 129, tile) == 2 * 3 * 129
    found = padded_flops(1, np.array([1, 1, 200]), np.array([1, 2, 200]), 128, tile)
    assert found.tolist() == [2 * 128, 2 * 8 * 128 * 128, 2 * 200 * 256 * 128]
    cost = mtf.price(planned("x:1", "", "batch:4 io:4096 hidden:4096"), "v4:1x1x1")
    assert cost.padded_share == pytest.approx(0.5)
    assert "Tiles of 128 x 128, 8 rows at a time: 50% of the FLOPs done are padding." in str(cost)


def test_arrays_give_what_numbers_give():
    v4, flops, n_bytes = rates("v4"), np.array([0.0, 1e9, 1e12]), np.array([1e6, 0.0, 1e6])
    both = local_time(flops, n_bytes, "bf16", v4)
    each = [local_time(float(f), float(n), "bf16", v4) for f, n in zip(flops, n_bytes, strict=True)]
    assert both.total.tolist() == [one.total for one in each]
    legs = [Leg(4, True, 45e9, "links", 1e-6)]
    for model in ("physical", "first paper", "second paper"):
        at = rates("v4", model)
        several = collective_time("all_reduce", np.array([0, 10, 10**7]), legs, at).total
        one_by_one = [collective_time("all_reduce", n, legs, at).total for n in (0, 10, 10**7)]
        assert several == pytest.approx(one_by_one)


# ---- wiring -----------------------------------------------------------------------------------------------------


WIRED = [("x:8 y:4", "h100:4x8"), ("x:8 y:16 z:4", "v2:16x16"), ("x:4 y:8", "v4:4x4x4")]


@pytest.mark.parametrize(("mesh", "where"), WIRED)
def test_the_cheapest_wiring_is_chosen(mesh, where):
    for layout in ("batch:x hidden:y", "batch:y hidden:x"):
        prog = planned(mesh, layout)
        each = [mtf.price(prog, where, wiring=wired) for wired in wirings(mesh, where)]
        best = mtf.price(prog, where)
        assert best.seconds == pytest.approx(min(cost.seconds for cost in each))
        again = mtf.price(prog, where, wiring=best.wiring.text())
        assert again.seconds == pytest.approx(best.seconds)


def test_axes_of_unequal_bandwidth_are_named():
    prog = planned("x:8 y:4", "batch:y hidden:x")
    given = ("x→switch, y→network", "x→network+switch:2 by 4, y→switch:4")
    inside, outside = (mtf.price(prog, "h100:4x8", wiring=text) for text in given)
    assert inside.link_seconds < outside.link_seconds
    said = "Axes of unequal bandwidth, a link one way: x 450 GB/s (switch), y 50 GB/s (network); y is the slow one, 9"
    assert said in str(inside)


def test_groups_that_share_links_wait_for_each_other():
    prog = planned("x:4 y:4", "batch:x hidden:y")
    inner, outer = (mtf.price(prog, "v5e:16x1", wiring=given) for given in ("x→0:4 by 4, y→0:4", "y→0:4 by 4, x→0:4"))
    assert inner.contention_seconds == 0
    assert outer.contention_seconds > 0
    assert "Contention" in str(outer)
    assert "y (4 groups on each link)" in str(outer)


def test_a_ring_is_no_slower_than_a_line_and_both_ways_no_slower_than_one():
    ring, line = one_collective("x:16", "A:x B", "A B"), one_collective("x:8", "A:x B", "A B")
    assert mtf.price(ring, "v5e:16x1").link_seconds == pytest.approx(2 * 4096**2 * 15 / 16 / 9e10)
    assert mtf.price(line, "v5e:8x1").link_seconds == pytest.approx(2 * 4096**2 * 7 / 8 / 4.5e10)
    assert mtf.price(ring, "v5e:16x1", way="one").link_seconds == pytest.approx(2 * 4096**2 * 15 / 16 / 4.5e10)
    assert mtf.price(ring, "v5e:16x1", exact=False).link_seconds == pytest.approx(2 * 4096**2 / 9e10)


def test_several_axes_at_once_are_faster_than_in_turn():
    prog = one_collective("x:4 y:4", "A:xy B", "A B")
    at_once, in_turn = (mtf.price(prog, "v4:4x4x4", at_once=way).link_seconds for way in (True, False))
    assert at_once == pytest.approx(in_turn / 2)


# ---- what would help, memory, words -----------------------------------------------------------------------------


def test_what_would_help():
    cost = mtf.price(planned("x:64", "hidden:x", "batch:8192 io:4096 hidden:16384"), "v4:4x4x4")
    assert cost.bottleneck == "link"
    assert max(cost.what_if, key=cost.what_if.get) == "link"
    assert cost.what_if["link"] == pytest.approx(cost.collective_seconds / 2)
    assert sum(cost.what_if.values()) <= cost.seconds / 2 * (1 + 1e-9)
    everything = cost.rates.faster("compute").faster("hbm").faster("link").faster("latency")
    assert cost._repriced(everything) == pytest.approx(cost.seconds / 2)
    assert cost.slowest.step.kind in ("all_reduce", "reduce_scatter", "all_gather")


def test_c13_both_verdicts_on_memory():
    @mtf.function
    def serve(weights: "parts n", cache: "batch k"):
        return mtf.add(mtf.sum(weights), mtf.sum(cache))

    def cost(batch, reserve=0.1):
        sizes = f"parts:8 n:{13_000_000_000 // 8} batch:{batch} k:{6_710_886_400 // 2}"
        prog = mtf.plan(serve, "x:8", "parts:x k:x", sizes=sizes, dtype="bf16")
        return mtf.price(prog, "v5e:2x4", reserve=reserve)

    assert 8 * cost(16).memory.inputs == 26_000_000_000 + 16 * 6_710_886_400
    assert [(cost(n).fits_raw, cost(n).fits) for n in (14, 15, 16, 17)] == [
        (True, True), (True, False), (True, False), (False, False),
    ]  # fmt: skip
    assert cost(16, reserve=0).fits
    assert "of 16 GiB: fits raw; with 10% left free (14.4 GiB) does not fit." in str(cost(16))


def test_mfu_counts_repeated_work_once_and_idle_devices_as_there():
    prog = planned("x:4 y:4", "batch:x")  # the same work on all four along y
    cost = mtf.price(prog, "v4:4x4x1", model="second paper")
    assert cost.model_flops * 4 == cost.flops * 16
    at_peak = cost.model_flops / (16 * 275e12)
    assert cost.mfu == pytest.approx(at_peak / cost.seconds)
    half = mtf.price(planned("x:8", "batch:x"), "v4:4x4x1")
    assert "8 of 16 devices are idle" in str(half)


def test_a_cost_reads_as_text_and_html():
    cost = mtf.price(planned(), "v4:4x4x4")
    text, html = str(cost), cost._repr_html_()
    assert cost.origin == "modelled"
    for word in ("physical model: modelled", "Bottleneck: ", "Twice as fast would gain", "MFU", "fits raw"):
        assert word in text
        assert word in html
    assert repr(cost).startswith("<Cost two_layers on v4:4x4x4: ")
    assert {row["bound"] for row in cost.rows} <= {"compute", "HBM", "links", "hops"}
    assert len([row for row in cost.rows if row["is_slowest"]]) == 1


def test_uncalibrated_chips_say_so():
    fitted = [name for name in ("v2", "v4", "v5e", "h200") if rates(name, "calibrated").is_calibrated]
    cost = mtf.price(planned("x:8", "batch:x"), "h200:8", model="calibrated")
    assert ("Uncalibrated" in str(cost)) == ("h200" not in fitted)
    assert "Uncalibrated" not in str(mtf.price(planned("x:8", "batch:x"), "h200:8"))


def test_a_users_chip_is_priced_with_its_own_figures(monkeypatch):
    monkeypatch.setitem(chips._ADDED, "priced-chip", mtf.chip("v4"))  # taken out again at the end
    prog, seconds = planned("x:4 y:4", "batch:x hidden:y"), []
    for peak in (100e12, 400e12):  # registered again under the same name
        mtf.add_chip("priced-chip", like="v4", peak_bf16=peak, source="made up for a test")
        seconds.append(mtf.price(prog, "priced-chip:4x4x1").compute_seconds)
    assert seconds[0] == pytest.approx(4 * seconds[1])


def test_a_program_without_work_costs_nothing():
    @mtf.function
    def same(a: "A"):
        return a

    cost = mtf.price(mtf.plan(same, "x:4", "A:x", sizes="A:8"), "v4:4x1x1")
    assert (cost.seconds, cost.mfu, cost.rows) == (0, 0, [])
    assert "Memory" in str(cost)


# ---- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "text"), [
    ({"topology": "v9:4x4"}, "no topology 'v9:4x4'"),
    ({"topology": "v4:3x4x4"}, "nearest: 'v4:4x4x4'"),
    ({"topology": "v4:2x2x1"}, "mesh 'x:4 y:4 z:4' names 64 devices"),
    ({"model": "phisical"}, "no model of time 'phisical'; did you mean 'physical'"),
    ({"way": "two"}, "way is 'two'; legal here: 'both', 'one'"),
    ({"overlap": 2}, "overlap is 2; it is a share, 0 to 1"),
    ({"reserve": "10%"}, "reserve is '10%'; it is a share, 0 to 1"),
    ({"overlap": True}, "overlap is True; it is a share, 0 to 1"),
    ({"way": ["both"]}, "way is ['both']"),
    ({"exact": "yes"}, "exact is 'yes'; expected True or False"),
    ({"at_once": None}, "at_once is None; expected True or False"),
    ({"wiring": "x→7"}, "7"),
])  # fmt: skip
def test_refused_with_the_nearest_choice(how, text):
    with pytest.raises(mtf.LayoutError) as error:
        mtf.price(planned(), **{"topology": "v4:4x4x4", **how})
    assert text in str(error.value)


def test_shares_may_be_numbers_of_numpy():
    assert mtf.price(planned(), "v4:4x4x4", overlap=np.float32(0.5), reserve=np.int64(0)).overlap == 0.5


def test_a_type_without_a_peak_is_refused_before_anything_is_priced():
    with pytest.raises(mtf.LayoutError, match=r"TPU v4 has no published peak for f64; it has bf16"):
        mtf.price(planned(dtype="f64"), "v4:4x4x4")
    with pytest.raises(mtf.LayoutError, match=r"expected a program, as mtf.plan makes it, got str"):
        mtf.price("two_layers", "v4:4x4x4")
