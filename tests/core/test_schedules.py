"""Schedules: the hops, replayed on arrays, end as the collective means; steps and bytes are the closed forms."""

import dataclasses

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore import schedules
from mtfcore.schedules import closed_forms
from mtfcore.traffic import link_bytes

GROUPS = range(1, 65)
N_BYTES = 1000  # divides by few groups: the others need exact fractions
RING_KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")
TORI = [(2, 2, 2), (2, 3), (3, 5), (4, 2, 3), (1, 4), (3, 1, 2), (1, 1), ()]


def arrays_for(group, length=None, width=None):
    """Whole numbers that tell devices and places apart, and whose sum is exact in any order."""
    shape = (group if length is None else length, *([width] if width else []))
    places = np.arange(np.prod(shape)).reshape(shape)
    return [(places + 1) * 1000 + 7 ** (device % 5) * (device + 1) for device in range(group)]


def meaning(kind, arrays):
    """What each device has after a collective, by numpy alone."""
    group = len(arrays)
    if kind == "all_gather":
        return [np.concatenate(arrays)] * group
    if kind == "all_to_all":
        cut = [np.array_split(array, group) for array in arrays]
        return [np.concatenate([cut[source][target] for source in range(group)]) for target in range(group)]
    if kind == "permute":
        return [arrays[position - 1] for position in range(group)]
    if kind == "halo_exchange":
        return [np.zeros_like(arrays[0]), *arrays[:-1]]
    total = np.sum(arrays, axis=0)
    return [total] * group if kind == "all_reduce" else np.array_split(total, group)


def same(found, wanted):
    return len(found) == len(wanted) and all(np.array_equal(a, b) for a, b in zip(found, wanted))


def check(plan, group, **shape):
    """Replay a schedule, and its bytes for the group against the closed form of a step."""
    arrays = arrays_for(group, **shape)
    assert same(schedules.replay(plan, arrays), meaning(plan.kind, arrays)), plan
    wanted = link_bytes(plan.kind, plan.n_bytes, group)
    if plan.kind in RING_KINDS:
        assert sum(plan.payload_bytes.values()) == wanted * group, plan
    if plan.kind == "all_to_all" or "line" not in plan.ways:
        assert plan.kind == "halo_exchange" or set(plan.payload_bytes.values()) == {wanted}, plan


@pytest.mark.parametrize("way", schedules.WAYS)
@pytest.mark.parametrize("kind", schedules.KINDS)
def test_every_kind_in_every_group_on_every_way(kind, way):
    for group in GROUPS:
        plan = schedules.schedule(kind, group, way, N_BYTES)
        check(plan, group)
        if kind in RING_KINDS:
            forms = [
                form(kind, N_BYTES, group, way) for form in (closed_forms.busiest_link_bytes, closed_forms.time_bytes)
            ]
            assert [plan.busiest_link_bytes, plan.time_bytes] == forms, plan
            assert plan.steps == closed_forms.steps(kind, group, way), plan
        if kind in RING_KINDS and way == "line":
            sent = {device: closed_forms.line_sent_bytes(kind, N_BYTES, group, device) for device in range(group)}
            assert plan.sent_bytes == sent, plan


@pytest.mark.parametrize("sizes", TORI)
@pytest.mark.parametrize("kind", schedules.KINDS)
def test_several_axes(kind, sizes):
    group = int(np.prod(sizes))
    mixed = [("two_way", "line", "ring")[n % 3] for n in range(len(sizes))]
    for way in (*schedules.WAYS, mixed):
        for at_once in (True, False):
            check(schedules.schedule(kind, sizes, way, N_BYTES, at_once=at_once), group)


@pytest.mark.parametrize("kind", schedules.KINDS)
def test_sixty_four_devices_as_a_cube(kind):
    for way in ("two_way", "line"):
        check(schedules.schedule(kind, (4, 4, 4), way, N_BYTES), 64)


@pytest.mark.parametrize("kind", schedules.KINDS)
def test_arrays_that_do_not_divide(kind):
    for sizes, way in (((5,), "two_way"), ((4,), "two_way"), ((2, 3), "two_way"), ((6,), "line")):
        group = int(np.prod(sizes))
        for length, width in ((7, 3), (2, 1), (0, 2), (group + 1, 5)):
            check(schedules.schedule(kind, sizes, way), group, length=length, width=width)


@pytest.mark.parametrize("way", schedules.WAYS)
@pytest.mark.parametrize("kind", RING_KINDS)
def test_axes_of_one_size_at_once_take_the_closed_form_s_time(kind, way):
    for sizes in ((2, 2), (3, 3), (4, 4, 4), (2, 2, 2), (1, 5, 5)):
        plan = schedules.schedule(kind, sizes, way, N_BYTES)
        assert plan.time_bytes == closed_forms.time_bytes(kind, N_BYTES, sizes, way), plan


def test_a_maximum_is_joined_by_maximum():
    arrays = arrays_for(6)
    found = schedules.replay(schedules.schedule("all_reduce", (2, 3), "two_way"), arrays, combine=np.maximum)
    assert same(found, [np.max(arrays, axis=0)] * 6)


def test_a_group_of_one_has_no_hops():
    for kind in schedules.KINDS:
        for sizes in (1, (), (1, 1, 1)):
            plan = schedules.schedule(kind, sizes, "two_way", 64)
            assert (plan.hops, plan.steps, plan.max_sent_bytes, plan.busiest_link_bytes, plan.time_bytes) == (
                (),
                0,
                0,
                0,
                0,
            )
            assert plan.seconds(1e9, hop_seconds=1e-6) == 0


def test_any_permutation_arrives():
    rng = np.random.default_rng(3)
    for sizes, way in (((8,), "ring"), ((7,), "line"), ((4, 2, 3), "two_way"), ((3, 4), "line")):
        group = int(np.prod(sizes))
        arrays, targets = arrays_for(group), rng.permutation(group).tolist()
        plan = schedules.schedule("permute", sizes, way, 64, pairs=enumerate(targets))
        assert same(schedules.replay(plan, arrays), [arrays[targets.index(device)] for device in range(group)])


# ---- replay is strict --------------------------------------------------------------------------------------------


def changed(plan, hops):
    return dataclasses.replace(plan, hops=tuple(hops))


@pytest.mark.parametrize("kind", RING_KINDS)
def test_without_a_hop_the_replay_fails(kind):
    plan = schedules.schedule(kind, 5, "ring")
    for left_out in range(len(plan.hops)):
        hops = [hop for number, hop in enumerate(plan.hops) if number != left_out]
        with pytest.raises(schedules.ReplayError, match=r"does not hold|has .* already|still has|ends without"):
            schedules.replay(changed(plan, hops), arrays_for(5))


def test_an_addend_is_sent_once():
    plan = schedules.schedule("reduce_scatter", 4, "ring")
    first = plan.hops[0]
    hops = [*plan.at(1), *plan.at(2), first._replace(time=3)]
    with pytest.raises(schedules.ReplayError, match=r"device 0 does not hold block 3$"):
        schedules.replay(changed(plan, hops), arrays_for(4))


def test_nobody_adds_to_what_has_gone():
    plan = schedules.schedule("reduce_scatter", 4, "ring")
    second = next(hop for hop in plan.at(1) if hop.source == 1)
    hops = [hop if hop.source else hop._replace(pieces=second.pieces) for hop in plan.at(1)]
    with pytest.raises(schedules.ReplayError, match=r"device 1 has no addend of block 0 any more"):
        schedules.replay(changed(plan, hops), arrays_for(4))


def test_nobody_receives_a_block_twice():
    plan = schedules.schedule("all_gather", 4, "ring")
    with pytest.raises(schedules.ReplayError, match=r"device 1 has block 0 already"):
        schedules.replay(changed(plan, [*plan.at(1), *(hop._replace(time=2) for hop in plan.at(1))]), arrays_for(4))


def test_two_messages_on_one_link_in_a_step_are_refused():
    plan = schedules.schedule("all_gather", 4, "ring")
    with pytest.raises(schedules.ReplayError, match="step 1: two messages on one link"):
        schedules.replay(changed(plan, (plan.hops[0], *plan.hops)), arrays_for(4))


def test_what_arrives_in_a_step_is_not_sent_in_it():
    plan = schedules.schedule("all_gather", 4, "ring")
    onward = next(hop for hop in plan.at(2) if hop.source == 1)
    hops = [next(hop for hop in plan.at(1) if hop.source == 0), onward._replace(time=1)]
    with pytest.raises(schedules.ReplayError, match=r"device 1 does not hold block 0$"):
        schedules.replay(changed(plan, hops), arrays_for(4))


# ---- refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("all_gathr", (4,)), "unknown kind; did you mean 'all_gather'?"),
        (("all_gather", (4,), "rings"), "unknown way 'rings'; did you mean 'ring'?"),
        (("all_gather", (4, 0)), "size 0; a size is a whole number, at least 1"),
        (("all_gather", (4, 2.5)), "size 2.5; a size"),
        (("all_gather", (4, 2), ("ring",)), "1 way for 2 axes"),
        (("all_gather", (4,), "ring", -1), "n_bytes is -1; it is a whole number of bytes"),
        (("all_gather", (4,), "ring", 1.5), "n_bytes is 1.5"),
        (("all_gather", "x"), "sizes are whole numbers such as 8 or (4, 4, 4), not 'x'"),
        (("all_gather", None), "sizes are whole numbers such as 8 or (4, 4, 4), not None"),
        (("all_gather", 4, None), "unknown way None"),
        (("all_gather", 4, [["ring"]]), "unknown way ['ring']"),
        (("all_reduce", (64, 64)), "4,096 devices; hops are listed for at most 1,024: closed_forms has bytes for any"),
        (("all_to_all", 512), "512 devices; hops are listed for at most 256"),
    ],
)
def test_what_cannot_be_is_refused(arguments, message):
    with pytest.raises(mtf.LayoutError) as refusal:
        schedules.schedule(*arguments)
    assert message in str(refusal.value)


def test_all_faults_at_once():
    with pytest.raises(mtf.LayoutError, match=r"3 faults(.|\n)*kind(.|\n)*way(.|\n)*size"):
        schedules.schedule("gather", (0,), "circle")


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(0, 4)], "no device 4 in the pair (0, 4); the group has 0 to 3"),
        ([(0, 1), (0, 2)], "device 0 sends twice"),
        ([(0, 1), (2, 1)], "device 1 receives twice"),
        ([(0, 1, 2)], "(0, 1, 2) is no pair (from, to)"),
        (2, "pairs is 2; expected (from, to) positions"),
        ([2], "(2,) is no pair (from, to)"),
    ],
)
def test_pairs_that_cannot_be(pairs, message):
    with pytest.raises(mtf.LayoutError) as refusal:
        schedules.schedule("permute", 4, pairs=pairs)
    assert message in str(refusal.value)


def test_pairs_belong_to_permutes():
    with pytest.raises(mtf.LayoutError, match="an all_gather has no pairs"):
        schedules.schedule("all_gather", 4, pairs=[(0, 1)])


def test_the_wrong_number_of_arrays():
    with pytest.raises(ValueError, match="3 arrays for a group of 4 devices"):
        schedules.replay(schedules.schedule("all_gather", 4), arrays_for(3))
