"""The planned two-layer net is the hand-written one: the same collectives and the same values."""

import jax
import numpy as np

from mtfcore.runs import simulate
from tests.benchmarks.hand_written import by_hand, hand_mesh, planned
from tests.benchmarks.lowered import lowered_collectives


def test_collectives_are_identical_in_the_lowered_text():
    run = simulate(planned(64, 32, 128))
    mine = lowered_collectives(run.lower())
    assert mine == lowered_collectives(jax.jit(by_hand(hand_mesh())).lower(*run.shapes))
    assert [kind for kind, *_ in mine] == ["all_reduce"]


def test_values_are_identical():
    run = simulate(planned(64, 32, 128))
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape.shape).astype(np.float32) for shape in run.shapes]
    np.testing.assert_array_equal(run(*arrays), jax.jit(by_hand(hand_mesh()))(*arrays))
