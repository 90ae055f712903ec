"""What a price says: what would help, memory, words; and what is refused."""

import numpy as np
import pytest
from costs.programs_to_price import planned

import mtfcore as mtf
from mtfcore import chips
from mtfcore.costs.pricing.rates import rates

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


def test_both_verdicts_on_memory():
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
