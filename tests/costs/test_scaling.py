"""The first paper's time, and constant efficiency beside pure data parallelism."""

from __future__ import annotations

import itertools

import pytest

from mtfcore.costs.first_paper.paper_time import paper_time, step_seconds
from mtfcore.costs.first_paper.scaling import data_parallel, grow
from mtfcore.costs.first_paper.two_layers import ROWS, Sizes, cost
from mtfcore.costs.first_paper.two_layers_printed import printed_ratio
from mtfcore.errors import LayoutError

ONE = Sizes(batch=256, io=1024, hidden=512)
MIXED, CUBIC = ROWS["batch:rows hidden:cols"], ROWS["batch:rows hidden:cols io:planes"]
FACTORS = (1, 2, 4, 8, 16)


def efficiency(point) -> float:
    return paper_time(cost(point.row, point.sizes, point.parts), 22.5e12, 60e9).efficiency


def test_seconds_are_flops_at_the_peak_and_bytes_at_the_link_added():
    done = cost(MIXED, ONE, MIXED.parts(2, 2))
    seconds = paper_time(done, peak_flops=1e12, link_bytes_per_second=1e9)
    assert seconds.compute == done.flops / 1e12 and seconds.communicate == done.sent_bytes / 1e9
    assert seconds.total == seconds.compute + seconds.communicate
    assert seconds.efficiency == pytest.approx(1 / (1 + seconds.ratio))


def test_a_chips_record_gives_the_peak_and_the_link_of_one_device():
    class Chip:
        link_bytes_per_second = 2e9

        def peak_flops_per_device(self, dtype):
            return {"bf16": 4e12, "f32": 1e12}[dtype]

    done = cost(MIXED, ONE, MIXED.parts(2, 2))
    assert step_seconds(done, Chip()) == paper_time(done, 4e12, 2e9)
    assert step_seconds(done, Chip(), "float32") == paper_time(done, 1e12, 2e9)
    with pytest.raises(LayoutError, match="no model of time 'price'; legal here: 'paper'"):
        step_seconds(done, Chip(), model="price")


@pytest.mark.parametrize(("row", "power"), [(ROWS["batch:all"], 1), (MIXED, 2), (CUBIC, 3)])
def test_the_ratio_stays_while_devices_grow_with_a_power(row, power):
    points = grow(row, ONE, FACTORS)
    assert [point.devices for point in points] == [k**power for k in FACTORS]
    assert len({printed_ratio(p.row, p.sizes, p.parts) for p in points}) == 1
    for point in points:
        assert point.sizes.batch // point.parts.batch == ONE.batch and not point.sizes.io % ONE.io


def test_efficiency_levels_off_where_data_parallelism_falls():
    """Exact rings send 2(g-1)/g, so the share that computes falls towards a level, not below it."""
    mixed = [efficiency(point) for point in grow(MIXED, ONE, FACTORS)]
    level = 1 / (1 + efficiency_limit())
    assert mixed == sorted(mixed, reverse=True) and mixed[-1] > level
    assert mixed[-1] - level < 0.05 * level
    data = [efficiency(point) for point in data_parallel(grow(MIXED, ONE, FACTORS))]
    assert all(one > 1.5 * two for one, two in itertools.pairwise(data[2:])) and data[-1] < mixed[-1] / 4


def efficiency_limit() -> float:
    """The ratio in time for rings without end: each kind of tile twice, 2 values sent for each value, 2 bytes."""
    ratio = 1 / ONE.hidden + 1 / ONE.batch
    return (2 * 2 * 2 * ratio / 60e9) / (6 * 2 / 22.5e12)


def test_data_parallelism_stops_where_the_batch_does():
    points = data_parallel(grow(MIXED, Sizes(4, 8, 8), FACTORS))
    assert [point.devices for point in points] == [1, 4, 16] and points[-1].sizes.batch == 16
