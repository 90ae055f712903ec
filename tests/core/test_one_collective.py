"""One collective for real against its schedule, on one to three axes."""

from __future__ import annotations

import numpy as np
import pytest

from mtfcore import schedules
from mtfcore.errors import DeviceError, LayoutError
from mtfcore.mesh import Mesh
from mtfcore.one_collective import CALLS, call_text, perform


def arrays(kind, n, seed=0):
    length = 3 if kind in ("all_gather", "permute", "halo_exchange") else 2 * n
    return list(np.random.default_rng(seed).integers(-50, 50, (n, length)).astype(np.float32))


@pytest.mark.parametrize("mesh", ["x:1", "x:3", "x:2 y:4", "x:2 y:2 z:2"])
@pytest.mark.parametrize("kind", CALLS)
def test_the_real_one_ends_as_the_hops_do(kind, mesh):
    sizes, given = tuple(Mesh(mesh).shape.values()), arrays(kind, Mesh(mesh).size)
    real = perform(kind, mesh, given)
    replayed = schedules.replay(schedules.schedule(kind, sizes, "two_way"), given)
    for device, (a, b) in enumerate(zip(real, replayed, strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=f"device {device}")


def test_the_call_is_the_one_that_a_reader_would_write():
    assert call_text("all_reduce", "x:2 y:4") == "jax.lax.psum(x, ('x', 'y'))"
    assert call_text("permute", "x:8") == "jax.lax.ppermute(x, 'x', [(0, 1), (1, 2), …, (7, 0)])"
    assert set(CALLS) == set(schedules.KINDS)


def test_bad_input_is_refused():
    with pytest.raises(LayoutError, match="unknown kind 'all_gathr'; did you mean 'all_gather'"):
        perform("all_gathr", "x:4", arrays("all_gather", 4))
    with pytest.raises(LayoutError, match="3 arrays for the 4 devices of mesh 'x:4'; give one for each"):
        perform("all_gather", "x:4", arrays("all_gather", 3))
    with pytest.raises(DeviceError, match="no TPU or GPU is attached"):
        perform("all_gather", "x:4", arrays("all_gather", 4), attached=True)
