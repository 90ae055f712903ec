"""Illegal options of optimizers, training steps and models are refused before anything is planned, each named."""

import pytest

import mtfcore as mtf
from mtfcore.errors import LayoutError
from mtfcore.functions import Function
from mtfcore.model.optimizers import SGD, Adafactor, Adam, warmup
from mtfcore.model.step_function import training_step

LOSS = Function.of("loss", {"x": "B:4 E:8", "w": "E:8"}, lambda x, w: mtf.mean(mtf.einsum(x, w, out="B")))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Adam(learning_rate=-1), "Adam: learning_rate is -1; expected a number of at least 0, or a function"),
        (lambda: Adam(learning_rate=float("nan")), "learning_rate is nan"),
        (lambda: Adam(learning_rate=0.1, beta2=1), "beta2 is 1; expected a number from 0 to below 1"),
        (lambda: Adam(learning_rate=0.1, clip=0), "clip is 0; expected a number above 0, or None"),
        (lambda: SGD(learning_rate=0.1, momentum=None), "momentum is None; expected a number from 0"),
        (lambda: SGD(learning_rate=None), "SGD: learning_rate is None"),
        (lambda: Adam(learning_rate=0.1, dtype="i32"), "dtype is 'i32'; expected a float such as 'f32'"),
        (lambda: Adam(learning_rate=0.1, dtype=3), "dtype is 3; expected a float"),
        (lambda: Adafactor(stacked="layers"), "stacked is 'layers'; expected names such as ('layers',)"),
        (lambda: Adafactor(decay=[1]), "decay is [1]; expected a number above 0"),
        (lambda: Adafactor(scale_parameter=2), "scale_parameter is 2; expected True or False"),
        (lambda: Adam(learning_rate=0.1).state(3), "state: params is int 3; expected e.g. {'w': 'io:512"),
        (lambda: training_step(LOSS, 3, SGD(learning_rate=0.1)), "training_step: params is int 3"),
        (lambda: training_step(LOSS, {"w": 3}, SGD(learning_rate=0.1)), "expected"),
        (lambda: training_step(LOSS, {"w": "E:8"}, "adam"), "optimizer is 'adam'; expected e.g. Adam("),
        (lambda: mtf.model.loss("tiny-lm", recompute="yes"), "recompute is 'yes'; expected True or False"),
        (lambda: mtf.model.config("tiny-lm", block=["serial"]), "block is ['serial']; "),
    ],
)
def test_what_is_not_legal_is_named(make, said):
    with pytest.raises(LayoutError) as error:
        make()
    assert said in str(error.value)


def test_all_faults_of_an_optimizer_come_at_once():
    with pytest.raises(LayoutError) as error:
        Adafactor(eps1=0, clip_threshold=-1)
    assert "eps1" in str(error.value)
    assert "clip_threshold" in str(error.value)


def test_what_is_legal_is_taken():
    assert Adafactor().learning_rate is None
    assert callable(Adam(learning_rate=warmup(0.1, 10), weight_decay=0, beta1=0).learning_rate)
