"""`mtf.price`: what steps take on a device and on its links, and how they add up."""

import numpy as np
import pytest
from costs.programs_to_price import SIZES, one_collective, planned, two_layers

import mtfcore as mtf
from mtfcore.costs.links.wiring import Leg, wirings
from mtfcore.costs.pricing.rates import rates
from mtfcore.costs.pricing.step_time import collective_time, local_time, padded_flops

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


def test_the_critical_batch():
    at = rates("v5e", "second paper")
    for math, weights, n_bytes, right in (("bf16", "bf16", 2, 240), ("bf16", "i8", 1, 120), ("i8", "i8", 1, 240)):
        batch = mtf.chip("v5e").critical_batch(weights, math)
        assert batch == pytest.approx(right, rel=5e-3)
        for rows, bound in ((batch - 1, "hbm"), (batch + 1, "compute")):
            assert local_time(2 * rows * 1e6, n_bytes * 1e6, math, at).bound == bound


def test_analytic_flops():
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
