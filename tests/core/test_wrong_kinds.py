"""Public names given something of quite another kind: one clear sentence, never a fault from deep inside."""

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore import model, schedules
from mtfcore.costs import inference, slices
from mtfcore.model.engine.choosing import least_prompts
from mtfcore.model.serving import SERVING


@mtf.function
def product(x: "batch:4 io:4", w: "io:4 hidden:4"):
    return mtf.einsum(x, w, out="batch hidden")


def inside(body):
    @mtf.function
    def f(x: "batch:4 io:4"):
        return body(x)

    return lambda: mtf.price(mtf.plan(f, "rows:2"), "v4:2x1x1")


PROGRAM = mtf.plan(product, "rows:2 cols:2", "batch:rows hidden:cols")
ARRAY, HUGE = np.array([1, 2]), 10**400
CALLS = {
    "18": [
        lambda: mtf.Dim("x", 10**18),
        lambda: mtf.Mesh(x=10**30),
        inside(lambda x: mtf.pad_to(x, "io", HUGE)),
        inside(lambda x: mtf.windows(x, "io", HUGE, "tap")),
    ],
    "into": [
        inside(lambda x: mtf.pad_to(x, "io", 2, 0.0, ARRAY)),
        inside(lambda x: mtf.windows(x, "io", 2, ARRAY)),
    ],
    "share": [
        lambda: inference("tiny-lm", "v4:2x2x2", reserve=[]),
        lambda: mtf.price(PROGRAM, "v4:2x2x1", overlap=HUGE),
    ],
    "bytes, e.g.": [lambda: mtf.add_chip("mine", like="v4", source="mine", hbm_bytes=HUGE)],
    "a step is given by": [lambda: mtf.simulate(PROGRAM).values(ARRAY), lambda: mtf.simulate(PROGRAM).values(True)],
    "price": [lambda: inference("tiny-lm", "v4:2x2x2", price_per_chip_hour=[])],
    "True or False": [
        lambda: mtf.price(PROGRAM, "v4:2x2x1", exact=ARRAY),
        lambda: mtf.plan(product, "rows:2", "batch:rows", strict="no"),
        lambda: mtf.plan(product, "rows:2", "batch:rows", search=ARRAY),
        lambda: mtf.Layout("batch:rows").sharding("batch:4", "rows:2", strict=0),
        lambda: model.Trainer("tiny-lm", "x:2", attached=ARRAY),
        lambda: model.Writer("tiny-lm", model.initial(model.config("tiny-lm")), "x:2", attached=ARRAY),
    ],
    "model of time": [
        lambda: mtf.price(PROGRAM, "v4:2x2x1", ARRAY),
        lambda: mtf.search_layout(product, "v4:2x2x1", model=ARRAY),
        lambda: inference("tiny-lm", "v4:2x2x2", model=ARRAY),
    ],
    "expected rules such as": [lambda: mtf.Layout(np.array(4)), lambda: mtf.Layout({("batch", "x")})],
    "expected dimensions such as": [
        lambda: mtf.Sharding(np.array(4), "E:x"),
        lambda: mtf.Sharding({"batch:4", "io:8"}, ""),  # a set's order is chance
        inside(lambda x: mtf.sum(x, np.array("io"))),
    ],
    "expected mesh axes with sizes": [lambda: mtf.Mesh({("x", 2), ("y", 4)})],
    "cannot name a mesh axis": [lambda: mtf.Layout([("batch", np.ones((2, 2)))])],
    "a function of your own": [lambda: mtf.function(int)],
    "wiring": [lambda: mtf.price(PROGRAM, "v4:2x2x1", wiring=ARRAY)],
    "Mesh": [lambda: mtf.partitioned(PROGRAM, ARRAY)],
    "program": [lambda: mtf.padding_share([None]), lambda: mtf.partitioned("x", ARRAY)],
    "sizes": [lambda: mtf.padding_share(PROGRAM, range(3))],
    "phase": [
        lambda: model.plan_phase("tiny-lm", ARRAY, "x:2", batch=4),
        lambda: model.phase("tiny-lm", ARRAY),
    ],
    "devices": [lambda: slices(devices=ARRAY), lambda: slices(devices=0)],
    "where": [lambda: mtf.looped(PROGRAM, where=ARRAY)],
    "optimizer": [lambda: model.Trainer("tiny-lm", "x:2", optimizer=ARRAY)],
    "a text": [lambda: model.Trainer("tiny-lm", "x:2", text="a")],
    "parameters by name": [
        lambda: model.Writer("tiny-lm", 3, "x:2"),
        lambda: model.quantisation_error("tiny-lm", -1),
    ],
    "has no embedding": [lambda: model.Writer("tiny-lm", {}, "x:2")],
    "Param": [lambda: model.initial({"x": -1})],
    "configuration": [lambda: model.initial(" ")],
    "no model": [
        lambda: model.load("a" * 100_000),
        lambda: model.load("~nobody-here/x.gguf"),
        lambda: model.possible("none", "ws2d", "heads", "x:2", 4),
        lambda: model.padding_words("tiny-lm", "none"),
        lambda: model.arguments(ARRAY),
        lambda: model.stored(ARRAY, {}),
        lambda: model.save_config("none", "x.json"),
    ],
    "path of a file": [
        lambda: model.config_file(b"x"),
        lambda: model.save_config("tiny-lm", 3),
    ],
    "step of a program": [
        lambda: schedules.of_step("einsum", "x:2"),
        lambda: schedules.every_group(PROGRAM, "x:2"),
    ],
    "a schedule": [
        lambda: schedules.start(3, [ARRAY]),
        lambda: schedules.replay("x", "x"),
        lambda: schedules.advance("x", [], []),
    ],
    "network": [
        lambda: mtf.add_chip("my-v4", network=["torus"], source="a test"),
        lambda: mtf.add_chip("my-v4", like="v4", network=ARRAY, source="a test"),
    ],
    "no text": [lambda: mtf.add_chip("my-v4", like="v4", title=3, source="a test")],
}


@pytest.mark.parametrize(("word", "number"), [(word, n) for word, calls in CALLS.items() for n in range(len(calls))])
def test_another_kind_of_thing_is_refused_in_a_sentence(word, number):
    with pytest.raises(mtf.LayoutError, match=word) as caught:
        CALLS[word][number]()
    assert len(str(caught.value)) <= 2_000


def test_a_phase_that_is_none_is_a_reason_why_not():
    assert "no phase array" in model.possible("tiny-lm", "ws2d", "heads", "x:2", 4, phase=ARRAY)[0]


@pytest.mark.timeout(60)
def test_a_mesh_of_any_size_is_answered_at_once():
    said = model.possible("palm-8b", "ws2d", "heads", "x:2 y:1000000 z:1000000", 8)
    assert any("heads=1000000000000" in reason for reason in said)
    assert not any("1000000000000 or 1000000000000" in reason for reason in said)
    cfg = model.config("tiny-lm")
    assert least_prompts(cfg, mtf.Mesh("batch:64 io:512 hidden:2048"), "ws2d-heads", 16) == 1
    assert least_prompts(cfg, mtf.Mesh("x:1000000 y:1000000 z:1000000"), "ws2d-heads", 16) == 1


@pytest.mark.parametrize("mesh", ["x:1", "x:2 y:2 z:2", "x:4 y:2 z:3", "z:2 x:3", "x:3 y:5", "x:4 y:4 z:2"])
@pytest.mark.parametrize("name", SERVING)
def test_the_least_batch_of_prompts_is_the_least(mesh, name):
    cfg, mesh, way = model.config("tiny-palm"), mtf.Mesh(mesh), SERVING[name]
    fits = (n for n in range(1, mesh.size + 1)
            if not model.possible(cfg, way.ffn.name, way.attention, mesh, n, 16, 0, "prefill"))  # fmt: skip
    assert least_prompts(cfg, mesh, name, 16) == next(fits, 1)


def test_names_of_configurations_stand_for_them():
    cfg = model.config("tiny-lm")
    assert model.possible("tiny-lm", "ws2d", "heads", "x:2", 4) == model.possible(cfg, "ws2d", "heads", "x:2", 4)
    assert model.arguments("tiny-lm", "inputs") == model.arguments(cfg, "inputs")
    assert model.padding_words("tiny-lm", "tiny-lm") == model.padding_words(cfg, cfg)


def test_a_set_names_dimensions_where_their_order_does_not_matter():
    assert inside(lambda x: mtf.sum(x, {"io", "batch"}))().seconds > 0
    with pytest.raises(mtf.LayoutError, match="got set"):
        mtf.Sharding({"io", "batch"}, "")
