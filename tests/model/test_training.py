"""Training: one device equals plain JAX, every layout equals one device, a break changes nothing, and it learns."""

import itertools

import numpy as np
import pytest
from model import plain_lm
from model.rule_layouts import MESHES

import mtfcore as mtf
from mtfcore.model import checkpoints
from mtfcore.model.data import Batches, python_sources
from mtfcore.model.optimizers import SGD, Adafactor, Adam
from mtfcore.model.training import Trainer

CFG = mtf.model.config("tiny-lm", d_model=16, d_ff=32, heads=8, head_size=4, max_length=16)
DATA = {"batch": 8, "length": 16, "seed": 1}
TEXT = python_sources(20_000)
RATE, STEPS, HALF = 1e-2, 6, 3
# f32: sums over devices come in another order, and Adam's first steps divide by small gradients. The losses fall by
# 0.5 in these steps, so 2e-4 tells any wrong gradient from rounding.
LOSS_TOLERANCE, PARAM_TOLERANCE = 2e-4, 2e-3
LAYOUTS = [(mesh, name) for name, mesh in MESHES.items()]


def trainer(mesh="one:1", layout="", optimizer=None, **more):
    return Trainer(CFG, mesh, layout, optimizer or Adam(learning_rate=RATE), text=TEXT, **{**DATA, **more})


def losses(events):
    return [event.loss for event in events]


class Ran:
    """A trainer that has made all steps: its losses, its parameters, and the checkpoint of half-way."""

    def __init__(self, folder, *where):
        self.trainer = trainer(*where)
        self.losses = losses(self.trainer.run(HALF))
        self.half = self.trainer.save(folder / "half.safetensors")
        self.losses += losses(self.trainer.run(STEPS - HALF))
        self.arrays = self.trainer.arrays()

    def back(self):
        """The same trainer, which need not be compiled again, at half-way."""
        return self.trainer.resume(self.half)


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    return Ran(tmp_path_factory.mktemp("single"))


@pytest.fixture(scope="module", params=LAYOUTS, ids=lambda where: where[1])
def meshed(request, tmp_path_factory):
    return Ran(tmp_path_factory.mktemp("meshed"), *request.param)


def assert_close(found, expected):
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, atol=PARAM_TOLERANCE, err_msg=name)


def test_one_device_trains_as_plain_jax_does(single):
    expected, params = plain_lm.train(mtf.model.initial(CFG, DATA["seed"]), Batches(TEXT, **DATA), STEPS, RATE)
    assert expected[-1] < expected[0] - 0.5
    np.testing.assert_allclose(single.losses, expected, atol=LOSS_TOLERANCE)
    assert_close(single.arrays, params)


def test_every_layout_has_the_losses_of_one_device(meshed, single):
    np.testing.assert_allclose(meshed.losses, single.losses, atol=LOSS_TOLERANCE)
    assert_close(meshed.arrays, single.arrays)


def test_a_resumed_run_has_the_same_bits(meshed):
    again = meshed.back()
    assert again.step == HALF
    assert losses(again.run(STEPS - HALF)) == meshed.losses[HALF:]
    for name, array in again.arrays().items():
        np.testing.assert_array_equal(array, meshed.arrays[name], name)


def test_a_run_goes_on_on_another_mesh(meshed, single):
    """Every value is restored exactly; what follows differs by rounding."""
    for there, here in ((meshed, single), (single, meshed)):
        went = here.trainer.resume(there.half)
        for name, array in checkpoints.load(there.half).arrays.items():
            np.testing.assert_array_equal(went.runner.fetch(went.state[name]), array, name)
        np.testing.assert_allclose(losses(went.run(STEPS - HALF)), there.losses[HALF:], atol=LOSS_TOLERANCE)


def test_events_count_steps_tokens_and_bytes(meshed):
    events, a_step = list(meshed.back().run(2)), meshed.trainer.program.link_bytes()
    assert [event.step for event in events] == [HALF + 1, HALF + 2]
    assert [event.tokens for event in events] == [128 * (HALF + 1), 128 * (HALF + 2)]
    assert events[1].traffic == (HALF + 2) * a_step > 0
    assert events[1].traffic.by_axis == {axis: (HALF + 2) * sent for axis, sent in a_step.by_axis.items()}


def test_a_run_may_be_stopped_at_any_event_and_within_a_step(meshed, monkeypatch):
    """What was finished is kept and what was not leaves no trace: going on gives the losses of a run without a stop."""
    went = meshed.back()
    found = losses(itertools.islice(went.run(1000), 1))
    with monkeypatch.context() as patched:
        patched.setattr(type(went.runner), "fetch", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            next(went.run(1))
    assert went.step == HALF + 1
    assert found + losses(went.run(2)) == meshed.losses[HALF:]


def _interrupt(*_):
    raise KeyboardInterrupt


def test_all_that_does_not_fit_a_checkpoint_is_said_at_once(single):
    other = Trainer(
        CFG.but(layers=3), "one:1", "", SGD(learning_rate=0.1, momentum=0.9), text=TEXT, batch=4, length=16, seed=2
    )
    with pytest.raises(mtf.LayoutError) as error:
        other.resume(single.half)
    for part in (
        "config layers is 2 in the checkpoint, 3 here",
        "optimizer is 'Adam' in the checkpoint, 'SGD' here",
        "seed is 1 in the checkpoint, 2 here",
        "batch is 8 in the checkpoint, 4 here",
        "array 'wq_momentum' is missing",
        "wq has shape (2, 16, 8, 4), expected (3, 16, 8, 4)",
    ):
        assert part in str(error.value)
    assert other.step == 0


def test_other_data_may_be_asked_for(single):
    other = Trainer(CFG, "one:1", optimizer=Adam(learning_rate=RATE), text=TEXT, batch=4, length=8, seed=2)
    with pytest.raises(mtf.LayoutError, match="batch is 8"):
        other.resume(single.half)
    assert other.resume(single.half, same_data=False).step == HALF


def test_recomputation_holds_less_and_works_more():
    plain, again = (trainer("rows:2 cols:4", "mtf-2d", recompute=flag).program for flag in (False, True))
    assert again.memory() < plain.memory() and again.flops() > plain.flops()


def test_a_length_beyond_the_positions_is_refused():
    with pytest.raises(mtf.LayoutError, match="16 learned positions, fewer than the length 17"):
        trainer(length=17)


def test_an_accelerator_that_is_not_there_is_said():
    with pytest.raises(mtf.DeviceError, match="no TPU or GPU is attached"):
        trainer(attached=True)


@pytest.mark.long
def test_donated_state_changes_nothing_but_memory(single):
    giver = trainer(donate=True)
    old = dict(giver.state)
    assert losses(giver.run(STEPS)) == single.losses
    assert all(array.is_deleted() for array in old.values())


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("tiny-lm", {"dropout": 0.2}),
        ("tiny-lm", {"recompute": True}),
        ("tiny-grouped", {"dropout": 0.1, "recompute": True}),
        ("tiny-palm", {"label_smoothing": 0.1}),
        ("tiny-translate", {"recompute": True}),
    ],
    ids=str,
)
@pytest.mark.parametrize("optimizer", [Adam(learning_rate=RATE, clip=1.0), Adafactor()], ids=["adam", "adafactor"])
def test_every_kind_of_model_trains_alike_on_a_mesh(name, more, optimizer):
    cfg = mtf.model.config(name, d_model=16, d_ff=32, head_size=4, max_length=16)
    one, two = (
        losses(Trainer(cfg, *where, optimizer, text=TEXT, **DATA, **more).run(4))
        for where in (("one:1", ""), ("rows:2 cols:2", "mtf-2d"))
    )
    assert len(set(one)) == 4
    np.testing.assert_allclose(two, one, atol=LOSS_TOLERANCE)


@pytest.mark.long
def test_half_precision_trains():
    """bf16 keeps three digits, so only that it learns is asked."""
    found = losses(trainer("rows:2 cols:4", "mtf-2d", dtype="bf16").run(60))
    assert np.mean(found[-5:]) < np.mean(found[:5]) - 1


@pytest.mark.long
def test_it_learns_more_than_how_often_bytes_come():
    """The best that byte frequencies alone allow is the unigram entropy, 3.1 nats; context takes it well below."""
    text = python_sources(300_000)
    learner = Trainer("tiny-lm", "rows:2 cols:4", "mtf-2d", Adam(learning_rate=3e-3), text=text, batch=16, length=64)
    found = losses(learner.run(400))
    assert np.mean(found[-20:]) < text.unigram_nats - 0.6
