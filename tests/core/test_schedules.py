"""Schedules: the hops replayed on arrays end as the collective means, and their bytes are the closed forms."""

import numpy as np
import pytest

from mtfcore import schedules
from mtfcore.steps import link_bytes

GROUPS = range(1, 65)


def addends(group, length=None):
    """Whole numbers that tell devices and positions apart, exact in any order of adding."""
    length = group if length is None else length
    return [(np.arange(length) + 1) * 1000 + 7 ** (device % 5) * (device + 1) for device in range(group)]


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
    total = np.sum(arrays, axis=0)
    return [total] * group if kind == "all_reduce" else np.array_split(total, group)


def same(found, wanted):
    return len(found) == len(wanted) and all(np.array_equal(a, b) for a, b in zip(found, wanted))


@pytest.mark.parametrize("way", schedules.WAYS)
@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute"])
def test_hops_end_as_the_collective_means_for_every_group(kind, way):
    for group in GROUPS:
        plan = schedules.schedule(kind, group, way)
        arrays = addends(group)
        assert same(schedules.replay(plan, arrays), meaning(kind, arrays)), (kind, way, group)


@pytest.mark.parametrize("way", ["ring", "two_way"])
@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce"])
def test_every_device_of_a_ring_sends_the_closed_form(kind, way):
    for group in GROUPS:
        plan = schedules.schedule(kind, group, way, n_bytes=1000)
        assert set(plan.sent_bytes.values()) == {link_bytes(kind, 1000, group)}, (kind, way, group)
