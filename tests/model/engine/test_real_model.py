"""SmolLM2 on 8 devices under every partition, against what an engine that nobody here wrote said of the same file.

`smollm2_expected.json` has the peer's greedy tokens and, at each position of prompt and continuation, its logits in f32
(`tests/model/files/peer.py` made it). As long as ours has written the peer's tokens, its next must be the likeliest of
those logits wherever that stands clear of rounding.
"""

import json
import pathlib

import pytest

import mtfcore as mtf
from mtfcore import execute

SAID = json.loads((pathlib.Path(__file__).parents[1] / "files" / "smollm2_expected.json").read_text(encoding="utf-8"))
MESH, MOST, CLEAR = "x:2 y:2 z:2", 6, 0.002
WAYS = [f"{ffn}-{attention}" for ffn in ("ws2d", "wg_x", "wg_xy", "wg_xyz") for attention in ("heads", "batch")]
PROMPTS = [prompt for prompt in SAID["prompts"] if len(prompt["tokens"]) <= 23][:8]


@pytest.fixture(scope="module")
def served(real_model):
    """Nine query heads and three key/value heads divide over nothing here: padded to 12 and 4."""
    cfg, params = mtf.model.padded(real_model.cfg, real_model.params, heads=12, kv_heads=4)
    return lambda *ways: mtf.model.Engine(cfg, params, MESH, *ways, slots=8, prompts=8, length=32, chunk=32)


@pytest.fixture(scope="module")
def engine(served):
    return served("ws2d-batch", "ws2d-batch")


def check(made):
    """Each continuation against the peer's, as far as it goes the same way."""
    compared = 0
    for prompt, tokens in zip(PROMPTS, made, strict=True):
        for n, token in enumerate(tokens):
            likely, logits = prompt["exact"][len(prompt["tokens"]) - 1 + n]
            if logits[0] - logits[1] > CLEAR:
                assert token == likely[0], prompt["text"]
                compared += 1
            if token != prompt["greedy"][n]:
                break
    assert compared > 0.75 * MOST * len(PROMPTS)


def starts():
    return [prompt["tokens"] for prompt in PROMPTS]


@pytest.mark.xdist_group("real engine")
@pytest.mark.parametrize(("prefill", "decode"), list(zip(WAYS, [*WAYS[3:], *WAYS[:3]])))
def test_tokens_are_the_peers_under_every_partition(engine, prefill, decode):
    engine.move(prefill, decode)
    check(engine.complete(starts(), MOST))


@pytest.mark.parametrize("ways", [("ws1d-batch", "ws1d-heads")])
def test_tokens_are_the_peers_where_weights_lie_in_one_dimension(served, ways):
    check(served(*ways).complete(starts(), MOST))


@pytest.mark.xdist_group("real engine")
def test_a_collective_that_does_nothing_changes_what_is_written(engine, monkeypatch):
    """So what is written does hang on what the devices send each other."""
    engine.move("ws2d-batch", "ws2d-batch")
    monkeypatch.setitem(execute.MOVES, "all_reduce", lambda step, array, mesh: array)
    engine.launches.runs.clear()  # what was compiled before still sends
    made = engine.complete(starts(), MOST)
    engine.launches.runs.clear()
    assert sum(tokens == prompt["greedy"][:MOST] for tokens, prompt in zip(made, PROMPTS)) < 2
