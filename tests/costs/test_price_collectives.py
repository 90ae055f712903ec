"""Seconds of collectives on legs: the C-cases, the schedules' replayed hops, exact optima, arrays."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from mtfcore.costs.links import collectives
from mtfcore.costs.links.collectives import How, Load, collective, sent_bytes
from mtfcore.costs.links.routing import Wire, loads
from mtfcore.costs.links.wiring import Leg
from mtfcore.errors import LayoutError
from mtfcore.schedules import schedule

MIB = 2**20
ICI = 4.5e10
KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")


def ring(size, rate=ICI, hop=0.0):
    return Leg(size, size > 2, rate, "links", hop)


def line(size, rate=ICI, hop=0.0):
    return Leg(size, False, rate, "links", hop)


def best_split(sizes_and_rates):
    """Seconds of gathering one byte a device when shares of it take the legs in every order: a linear program."""
    orders = list(itertools.permutations(range(len(sizes_and_rates))))
    carried = np.zeros((len(sizes_and_rates), len(orders)))
    for number, order in enumerate(orders):
        block = 1
        for k in order:
            carried[k, number] = block * (sizes_and_rates[k][0] - 1)
            block *= sizes_and_rates[k][0]
    busy = np.hstack([carried, [[-rate] for _, rate in sizes_and_rates]])
    whole = [[1] * len(orders) + [0]]
    return linprog([0] * len(orders) + [1], busy, [0] * len(busy), whole, [1]).fun


# ---- bytes and times as worked out by hand -----------------------------------------------------------------------


def test_bytes_sent_in_rings_and_directly():
    v = 64 * MIB
    for k, mib in ((1, 0), (2, 64), (4, 96), (8, 112), (16, 120), (64, 126)):
        assert sent_bytes("all_reduce", v, k) == mib * MIB
        assert sent_bytes("all_gather", Fraction(v, k), k) * 2 == mib * MIB  # V is what a gather results in
        assert sent_bytes("reduce_scatter", v, k) * 2 == mib * MIB
    assert sent_bytes("all_reduce", v, 8, algorithm="direct") == 448 * MIB
    with pytest.raises(LayoutError, match="no algorithm 'tree'; legal here: 'ring', 'direct'"):
        sent_bytes("all_reduce", v, 8, algorithm="tree")


def test_a_group_of_one_has_no_bytes_no_hops_and_no_time():
    for kind in KINDS:
        for legs in ([], [ring(1, hop=1e-6)], [ring(1, hop=1e-6), line(1, hop=1e-6)]):
            took = collective(kind, 64 * MIB, legs)
            assert (took.link_seconds, took.hop_seconds, took.seconds) == (0, 0, 0)
            assert took.label == "a group of one: nothing is sent"


def test_large_k_and_exact_gather():
    v = 2 * 1024 * 4096 // 4  # bytes an element × elements: the gathered array of one device
    large = collective("all_gather", v / 4, [ring(4)], How(exact=False))
    exact = collective("all_gather", v / 4, [ring(4)])
    assert v == 2_097_152
    assert large.seconds == pytest.approx(v / 9e10) == pytest.approx(23.3e-6, rel=2e-3)
    assert exact.seconds == pytest.approx(17.5e-6, rel=2e-3)
    assert (large.label, exact.label) == (
        "two-way ring, large-K, no hop floor", "two-way ring, exact (K−1)/K, no hop floor",
    )  # fmt: skip


def test_all_reduce_of_what_is_split_already():
    v = 2 * 1024 * 4096 // 16
    exact = collective("all_reduce", v, [ring(4, hop=1e-6)])
    assert collective("all_reduce", v, [ring(4)], How(exact=False)).seconds == pytest.approx(11.65e-6, rel=1e-3)
    assert exact.seconds == pytest.approx(8.74e-6, rel=1e-3)
    assert exact.hop_seconds == pytest.approx(4e-6)
    assert exact.label == "two-way ring, exact (K−1)/K, hop floor 4 µs"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 4, 16])
def test_splitting_over_an_uninvolved_axis_divides_the_time(kind, n):
    for legs in ([ring(4)], [line(8)], [ring(4), line(2)], [Leg(8, False, 3e11, "switch", 0.0)]):
        assert collective(kind, MIB, legs).seconds == pytest.approx(n * collective(kind, MIB / n, legs).seconds)


def test_no_wrap_around_link():
    v = 33_554_432
    on_line, on_ring = collective("all_gather", v / 4, [line(4)]), collective("all_gather", v / 16, [ring(16)])
    assert on_line.seconds == pytest.approx(3 * 8_388_608 / 4.5e10) == pytest.approx(559e-6, rel=1e-3)
    assert on_line.label == "two-way line, exact (K−1)/K, no hop floor"
    assert on_ring.seconds == pytest.approx(350e-6, rel=2e-3)
    assert collective("all_gather", v / 16, [ring(16)], How(exact=False)).seconds == pytest.approx(373e-6, rel=1e-3)
    assert collective("all_gather", v / 2, [line(2)]).seconds == pytest.approx(v / 9e10)


def test_the_floor_of_hops():
    assert collective("all_gather", 64, [ring(4, hop=1e-6)]).seconds == pytest.approx(2e-6)
    block = 2 * 256 * 256 // 4
    took = collective("all_gather", block, [line(4, hop=1e-6)])
    assert took.seconds == pytest.approx(3e-6)
    assert took.link_seconds == pytest.approx(3 * 0.73e-6, rel=5e-3)
    hops = [collective("all_gather", n, [line(4, hop=1e-6)]).seconds for n in (1, 1e4, 44_999, 45_001, 9e4)]
    assert hops[0] == hops[1] == hops[2] < hops[3] < hops[4]  # flat, with its knee where a hop carries 45 kB


# ---- against the schedules' hops --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [2, 3, 4, 5, 8])
def test_one_axis_takes_what_the_replayed_hops_take(kind, size):
    n = 720 * size
    for way, how, leg in (
        ("two_way", How(), Leg(size, True, 1.0, "links", 0.0)),
        ("ring", How(way="one"), Leg(size, True, 1.0, "links", 0.0)),
        ("line", How(), Leg(size, False, 1.0, "links", 0.0)),
        ("line", How(way="one"), Leg(size, False, 1.0, "links", 0.0)),
    ):
        plan = schedule(kind, (size,), way, n)
        assert collective(kind, n, [leg], how).seconds == pytest.approx(float(plan.time_bytes)), way


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(2, 2), (3, 3), (2, 2, 2), (4, 4)])
def test_equal_axes_at_once_and_in_turn_take_what_the_hops_take(kind, sizes):
    n = 1440 * int(np.prod(sizes))
    legs = [Leg(size, True, 1.0, "links", 0.0) for size in sizes]
    for at_once in (True, False):
        plan = schedule(kind, sizes, "two_way", n, at_once=at_once)
        took = collective(kind, n, legs, How(at_once=at_once))
        assert took.seconds == pytest.approx(float(plan.time_bytes)), plan


def test_unequal_axes_in_turn_take_the_better_order():
    slow, fast = line(4, 1.0), line(8, 10.0)
    took = collective("all_gather", 1.0, [fast, slow], How(at_once=False))
    assert took.seconds == pytest.approx(3 + 4 * 7 / 10)  # the slow axis first, while the blocks are small
    assert took.label == "two-way line over 2 axes in turn, exact (K−1)/K, no hop floor"
    assert collective("reduce_scatter", 32.0, [slow, fast], How(at_once=False)).seconds == pytest.approx(took.seconds)


@pytest.mark.parametrize("legs", [
    [line(4, 1.0), line(8, 10.0)],
    [line(2, 1.0), line(16, 1.0)],
    [line(2, 3.0), line(3, 1.0), line(5, 0.5)],
    [Leg(4, False, 1.0, "network", 0.0), Leg(8, False, 9.0, "switch", 0.0)],
])  # fmt: skip
def test_unequal_axes_at_once_reach_the_best_split_of_the_data(legs):
    """Every share of the data takes the legs in some order; no split over the orders is better, and one is as good."""
    took = collective("all_gather", 1.0, legs).seconds
    assert took == pytest.approx(best_split([(leg.size, leg.bytes_per_second) for leg in legs]))


def test_an_all_to_all_on_a_two_way_ring_needs_an_eighth_of_the_group():
    assert collective("all_to_all", MIB, [ring(16)]).seconds == pytest.approx(MIB * 16 / (8 * ICI))
    assert collective("all_to_all", MIB, [line(16)]).seconds == pytest.approx(MIB * 64 / 16 / ICI)
    assert collective("all_to_all", MIB, [Leg(16, False, ICI, "switch", 0.0)]).seconds == pytest.approx(
        MIB * 15 / 16 / ICI
    )


def test_a_switch_needs_one_hop_and_its_own_label():
    leg = Leg(8, False, 4.5e11, "switch", 2e-6)
    took = collective("all_gather", 1, [leg])
    assert (took.seconds, took.label) == (2e-6, "direct at the one-way rate, exact (K−1)/K, hop floor 2 µs")
    assert collective("all_reduce", 1, [leg]).seconds == pytest.approx(4e-6)


# ---- permutes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 5, 8])
@pytest.mark.parametrize("way", ["two_way", "ring", "line"])
def test_a_permute_loads_links_as_its_replayed_hops_do(size, way):
    rng = np.random.default_rng(size)
    for _ in range(5):
        goal = rng.permutation(size)
        pairs = [(i, int(g)) for i, g in enumerate(goal)]
        plan = schedule("permute", (size,), way, 1000, pairs=pairs)
        (load,) = loads([Wire(size, way)], [(a,) for a, _ in pairs], [(b,) for _, b in pairs])
        if way == "two_way" and size % 2 == 0:  # there the schedule sends half of a block each way
            assert load.blocks * 1000 <= 2 * max(plan.busiest_link_bytes, 1000)
        else:
            assert load.blocks * 1000 == plan.busiest_link_bytes
        assert load.hops <= (size // 2 if way == "two_way" else size - 1)


def test_a_permute_to_the_next_device_takes_one_hop_of_all_it_holds():
    assert collective("permute", MIB, [ring(8, hop=1e-6)]).seconds == pytest.approx(MIB / ICI)
    assert collective("permute", 1, [ring(8, hop=1e-6)]).seconds == pytest.approx(1e-6)
    far = collective("permute", MIB, [ring(8)], loads=[Load(3, 4)])
    assert far.seconds == pytest.approx(3 * MIB / ICI)


def test_a_transpose_of_a_square_needs_more_than_a_shift():
    square = [Wire(4, "two_way"), Wire(4, "two_way")]
    places = list(itertools.product(range(4), repeat=2))
    turned = loads(square, places, [(b, a) for a, b in places])
    shifted = loads(square, places, [(a, (b + 1) % 4) for a, b in places])
    assert max(load.blocks for load in turned) == 2
    assert [(load.blocks, load.hops) for load in shifted] == [(0, 0), (1, 1)]


def test_cores_of_one_chip_share_its_links():
    wires = [Wire(4, "two_way"), Wire(2, "line", shares=True)]
    places = [(a, c) for a in range(4) for c in range(2)]
    both = loads(wires, places, [((a + 1) % 4, c) for a, c in places])
    assert [(load.blocks, load.hops) for load in both] == [(2, 1), (0, 0)]


# ---- arrays, properties, what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "permute", "halo_exchange"])
@pytest.mark.parametrize("how", [How(), How(way="one"), How(exact=False), How(at_once=False)])
def test_arrays_give_what_numbers_give(kind, how):
    cases = list(itertools.product((0, 100, 10**6), (1, 2, 4), (1, 4), (True, False), (1e9, 5e10)))
    n, a, b, wraps, rate = map(np.array, zip(*cases, strict=True))
    took = collective(kind, n, [Leg(a, wraps, rate, "links", 1e-6), Leg(b, False, 2e9, "cores", 1e-7)], how)
    for number, (n, a, b, wraps, rate) in enumerate(cases):
        one = collective(kind, n, [Leg(a, wraps, rate, "links", 1e-6), Leg(b, False, 2e9, "cores", 1e-7)], how)
        found = [np.broadcast_to(v, len(cases))[number] for v in (took.link_seconds, took.hop_seconds, took.seconds)]
        assert found == pytest.approx([one.link_seconds, one.hop_seconds, one.seconds]), cases[number]
    assert "hop floor" in took.label


@pytest.mark.parametrize("kind", KINDS)
def test_times_grow_with_bytes_and_a_ring_is_no_slower_than_a_line(kind):
    for size in (2, 3, 4, 8, 16):
        times = [collective(kind, n, [line(size, hop=1e-6)]).seconds for n in (0, 1, 10**3, 10**6, 10**9)]
        assert times == sorted(times)
        around, cut = (collective(kind, MIB, [Leg(size, wraps, ICI, "links", 1e-6)]) for wraps in (True, False))
        assert around.seconds <= cut.seconds
        assert around.hop_seconds <= cut.hop_seconds
        one_way = collective(kind, MIB, [Leg(size, True, ICI, "links", 1e-6)], How(way="one"))
        assert around.seconds <= one_way.seconds


def test_what_is_no_collective_is_refused_with_the_nearest():
    with pytest.raises(LayoutError, match=r"no collective 'allgather'.*did you mean 'all_gather'"):
        collective("allgather", 1, [ring(4)])
    with pytest.raises(LayoutError, match=r"way is 'two'; legal here: 'both', 'one'"):
        collective("all_gather", 1, [ring(4)], How(way="two"))
    assert collectives.all_reduce(MIB, [ring(4)]).seconds == collective("all_reduce", MIB, [ring(4)]).seconds
