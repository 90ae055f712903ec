"""Training: one device equals plain JAX, every layout equals one device, a break changes nothing, and it learns."""

import itertools

import numpy as np
import pytest
from model import plain_lm

import mtfcore as mtf
from mtfcore.model.data import Batches, python_sources
from mtfcore.model.optimizers import SGD, Adafactor, Adam
from mtfcore.model.training import Trainer

CFG = mtf.model.config("tiny-lm", d_model=16, d_ff=32, heads=8, head_size=4, max_length=16)
DATA = {"batch": 8, "length": 16, "seed": 1}
TEXT = python_sources(20_000)
RATE, STEPS = 1e-2, 6
# f32: sums over devices come in another order, and Adam's first steps divide by small gradients. The losses fall by
# 0.5 in these steps, so 2e-4 tells any wrong gradient from rounding.
LOSS_TOLERANCE, PARAM_TOLERANCE = 2e-4, 2e-3
LAYOUTS = (
    ("all:8", "mtf-data"),
    ("all:8", "mtf-1d"),
    ("rows:2 cols:4", "mtf-2d"),
    ("rows:2 cols:2 planes:2", "mtf-3d"),
)


def trainer(mesh="one:1", layout="", optimizer=None, **more):
    return Trainer(CFG, mesh, layout, optimizer or Adam(learning_rate=RATE), text=TEXT, **{**DATA, **more})


def losses(events):
    return [event.loss for event in events]


@pytest.fixture(scope="module")
def single():
    """The trainer on one device, and its losses."""
    made = trainer()
    return made, losses(made.run(STEPS))


def test_one_device_trains_as_plain_jax_does(single):
    expected, params = plain_lm.train(mtf.model.initial(CFG, DATA["seed"]), Batches(TEXT, **DATA), STEPS, RATE)
    assert expected[-1] < expected[0] - 0.5
    np.testing.assert_allclose(single[1], expected, atol=LOSS_TOLERANCE)
    for name, array in single[0].arrays().items():
        np.testing.assert_allclose(array, params[name], atol=PARAM_TOLERANCE, err_msg=name)


@pytest.fixture(scope="module", params=LAYOUTS, ids=lambda layout: layout[1])
def meshed(request):
    """On a mesh: the trainer after all steps, its losses, and what its checkpoint held half-way."""
    made = trainer(*request.param)
    first = losses(made.run(STEPS // 2))
    half = made.runner.fetch(made.state), made.header()
    return made, first + losses(made.run(STEPS - STEPS // 2)), half


def test_every_layout_has_the_losses_of_one_device(meshed, single):
    np.testing.assert_allclose(meshed[1], single[1], atol=LOSS_TOLERANCE)
    expected = single[0].arrays()
    for name, array in meshed[0].arrays().items():
        np.testing.assert_allclose(array, expected[name], atol=PARAM_TOLERANCE, err_msg=name)
