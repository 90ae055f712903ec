"""Whatever is asked of an engine in the wrong form is refused by name, and leaves it as it was."""

import numpy as np
import pytest
from model.engine.served import model

import mtfcore as mtf

NAME = "multiquery"
WRONG = (None, -1, 0.5, "a", b"x", {}, object(), float("nan"), 1j, type, np.array(3.5), np.array([[1, 2]]), "é" * 200)


@pytest.fixture(scope="module")
def eng():
    cfg, params = model(NAME)
    return mtf.model.Engine(cfg, params, "x:1", "ws2d-heads", "ws2d-heads", slots=2, length=16, chunk=8)


def refused(words, call, *args, **options):
    with pytest.raises(mtf.LayoutError, match=words):
        list(call(*args, **options) or ())


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: repr(wrong)[:20])
def test_requests_of_another_form_are_refused(eng, wrong):
    if not isinstance(wrong, dict):  # no prompts, no work
        refused("token", eng.generate, wrong)
    refused("token|prompt", eng.generate, [wrong])
    refused("token ids are whole numbers from 0 to 255", eng.generate, [[wrong]])
    for name in ("max_new_tokens", "samples", "tokens_per_launch", "seed"):
        refused(name, eng.generate, [[1]], **{"max_new_tokens": 2, name: wrong})
    refused("no request", eng.forget, [wrong])
    refused("turns", eng.step, wrong)
    refused("prefill is", eng.move, wrong)
    talk = eng.conversation()
    refused("what is said", talk.say, wrong, 2)
    for name in ("max_new_tokens", "tokens_per_launch", "seed", "samples"):
        refused(name, talk.say, [1], **{"max_new_tokens": 2, name: wrong})
    assert eng.idle and talk.tokens == [] and eng.queue.slots.free == 2


@pytest.mark.parametrize(
    "wrong", [None, 5, -1, "ab", b"ab", [-1], ["a"], [0.5], object(), np.array(3)], ids=lambda wrong: repr(wrong)[:20]
)
def test_stop_is_a_list_of_tokens(eng, wrong):
    refused("stop", eng.generate, [[1]], 2, stop=wrong)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: repr(wrong)[:20])
def test_engines_of_another_form_are_refused(wrong):
    cfg, params = model(NAME)
    usual = {"params": params, "mesh": "x:1", "prefill": "ws2d-heads", "decode": "ws2d-heads"}
    names = ["prefill", "decode", "slots", "length", "chunk", "weights", "attached"]
    names += [] if wrong is None else ["prompts", "n_tokens", "looped", "cache"]
    for name in names:
        refused(name, mtf.model.Engine, cfg, **{**usual, name: wrong})
    refused("embedding" if isinstance(wrong, dict) else "params", mtf.model.Engine, cfg,
            **{**usual, "params": wrong})  # fmt: skip
    for name in ("ffn", "attention", "batch"):
        refused(name, mtf.model.least_padding, cfg, **{"ffn": "ws2d", "attention": "heads", "mesh": "x:2", "batch": 2,
                                                       name: wrong})  # fmt: skip


def test_parameters_of_another_model_are_refused():
    cfg, params = model(NAME)
    less = {name: array for name, array in params.items() if name != "w_out"}
    refused(
        "needs a parameter 'w_out', which is missing", mtf.model.Engine, cfg, less, "x:1", "ws2d-heads", "ws2d-heads"
    )
    other = {**params, "wq": params["wq"].swapaxes(2, 3)}
    refused("parameter wq is .*layers:2 E:64 H:8 D:16", mtf.model.stored, cfg, other)
    refused("parameter wk", mtf.model.stored, cfg, {**params, "wk": params["wk"].astype(str)})


def test_numpy_numbers_are_numbers(eng):
    expected = eng.complete([[1, 2]], 3)
    whole = np.array(3)
    assert eng.complete(np.array([[1, 2]]), whole, tokens_per_launch=np.int64(1), seed=np.uint8(0), samples=np.int8(1),
                        top_k=np.array(4), temperature=np.float32(0)) == expected  # fmt: skip
    cfg, params = model(NAME)
    mtf.model.Engine(cfg, params, "x:1", "ws2d-heads", "ws2d-heads", slots=whole, length=whole, chunk=whole,
                     prompts=whole, n_tokens=whole)  # fmt: skip


def test_auto_moves_to_partitions_that_store_the_weights_alike():
    cfg, params = model(NAME)
    for way in ("ws1d-heads", "ws2d-heads"):
        eng = mtf.model.Engine(cfg, params, "x:2 z:2", way, way, slots=4, length=16, chunk=4, prompts=4)
        eng.move("auto", "auto")
        assert ("ws1d" in eng.prefill) == ("ws1d" in eng.decode) == ("ws1d" in way)
        assert "modelled, v4:2x2x1" in eng.why
