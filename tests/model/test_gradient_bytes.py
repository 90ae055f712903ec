"""A training step's traffic: on the section 9 layouts never more than `jax.grad` through the explicit forward sends."""

import jax
import pytest
from model.rule_layouts import MESHES

import mtfcore as mtf
from mtfcore import execute
from mtfcore.counting import count
from mtfcore.functions import Function

MODELS = ("tiny-lm", "tiny-palm", "tiny-grouped", "tiny-translate")


@pytest.fixture
def flat_maximum(monkeypatch):
    """JAX has no derivative of pmax; ours has none either, since what softmax takes out cancels."""
    usual = execute.MOVES["all_reduce"]

    def reduced(step, array, mesh):
        is_sum = step.params.get("fn", "sum") == "sum"
        return usual(step, array if is_sum else jax.lax.stop_gradient(array), mesh)

    monkeypatch.setitem(execute.MOVES, "all_reduce", reduced)


def with_gradients(cfg: mtf.model.Config) -> Function:
    loss = mtf.model.loss(cfg)

    def call(**tensors):
        value = loss.call(**tensors)
        return {"loss": value, **mtf.gradients(value, {name: tensors[name] for name in cfg.params})}

    arguments = {name: " ".join(map(str, dims)) for name, dims in loss.arguments.items()}
    return Function.of("with_gradients", arguments, call, loss.dtypes)


@pytest.mark.parametrize("layout", MESHES)
@pytest.mark.parametrize("model", MODELS)
def test_no_more_bytes_than_jax_grad(model, layout, flat_maximum):
    cfg = mtf.model.config(model)
    sizes = "B:8 L:16" + (" S:16" if cfg.encoder_layers else "")
    place = MESHES[layout], mtf.model.read_layout(layout)
    run = mtf.simulate(mtf.plan(mtf.model.loss(cfg), *place, sizes=sizes))
    ports = [port.name for port in run.program.inputs]
    order = tuple(ports.index(name) for name in cfg.params)
    theirs = count(jax.value_and_grad(lambda *arrays: run.fn(*arrays)[0].sum(), argnums=order), *run.shapes)
    ours = mtf.plan(with_gradients(cfg), *place, sizes=sizes)
    assert float(ours.link_bytes()) <= theirs.link_bytes
