"""The engine writes what plain forward passes write: whatever the mesh, partition, chunks, slots and company."""

import numpy as np
import pytest
from model.engine.served import greedy, model, prompts, scores

import mtfcore as mtf
from mtfcore.model.engine.moving_caches import given_whole, moving, taking
from mtfcore.model.engine.programs import Shape

MESH = "x:2 y:2 z:2"
LENGTHS = (3, 17, 1, 9, 30)
MOST = 6


def engine(name, mesh=MESH, prefill="ws2d-heads", decode="ws2d-batch", **more):
    cfg, params = model(name)
    return mtf.model.Engine(cfg, params, mesh, prefill, decode, **{"slots": 8, "length": 64, "chunk": 16, **more})


def starts(name):
    return prompts(model(name)[0], LENGTHS)


@pytest.mark.parametrize(
    ("name", "mesh", "prefill", "decode"),
    [
        ("multiquery", MESH, "ws2d-heads", "ws2d-batch"),
        ("multiquery, serial", MESH, "wg_xyz-heads", "wg_xyz-batch"),
        ("multiquery", MESH, "ws1d-heads", "ws1d-batch"),
        ("grouped", MESH, "wg_xy-heads", "ws2d-heads"),
        ("grouped", "x:2 z:4", "wg_x-batch", "wg_x-heads"),
        ("multihead", MESH, "ws2d-heads", "wg_xy-batch"),
        ("multihead", "y:8", "ws2d-heads", "ws2d-batch"),
        ("odd vocabulary", "x:2 y:2", "ws2d-batch", "ws2d-heads"),
        ("grouped", "x:1", "ws2d-heads", "ws2d-heads"),
    ],
)
def test_every_way_writes_the_same_tokens(name, mesh, prefill, decode):
    eng = engine(name, mesh, prefill, decode)
    assert eng.complete(starts(name), MOST) == greedy(name, starts(name), MOST)
    assert eng.idle and eng.queue.slots.free == eng.n_slots


@pytest.mark.parametrize("chunk", [1, 5, 64])
def test_chunks_of_any_size_read_the_same(chunk):
    assert engine("multiquery", chunk=chunk).complete(starts("multiquery"), MOST) == greedy(
        "multiquery", starts("multiquery"), MOST
    )


@pytest.mark.parametrize(("slots", "prompts", "turns"), [(8, 1, 4), (8, 8, 1), (8, 3, 3)])
def test_packing_and_tokens_a_launch_change_nothing(slots, prompts, turns):
    eng = engine("grouped", slots=slots, prompts=prompts)
    assert eng.complete(starts("grouped"), MOST, tokens_per_launch=turns) == greedy("grouped", starts("grouped"), MOST)


def test_who_joins_later_takes_the_slots_of_who_has_finished_and_nothing_is_compiled_anew():
    eng, first = engine("multiquery", slots=2, decode="ws2d-heads"), starts("multiquery")
    late = prompts(eng.cfg, (5, 20, 2), seed=1)
    asked, got, compiled = eng.submit(first, MOST), {}, 0
    while not eng.idle:
        now = eng.step()
        for number, tokens in now.tokens.items():
            got.setdefault(number, []).extend(tokens)
        if late and len(got) == 3:
            compiled = {key: run.compiled._cache_size() for key, run in eng.launches.runs.items()}
            asked, late = asked + eng.submit(late, MOST), []
    expected = greedy("multiquery", first + prompts(eng.cfg, (5, 20, 2), seed=1), MOST)
    assert [got[request.number] for request in asked] == expected
    assert {key: run.compiled._cache_size() for key, run in eng.launches.runs.items()} == compiled
    assert eng.queue.slots.free == 2


def test_slots_are_handed_out_evenly_over_the_devices_that_share_the_batch():
    eng = engine("multiquery", decode="ws2d-batch", slots=16)
    assert eng.queue.slots.blocks == 8
    eng.submit(prompts(eng.cfg, [4] * 11), 40)
    while eng.queue.waiting or eng.queue.reading:
        eng.step()
        load = eng.queue.slots.load()
        assert max(load) - min(load) <= 1
    assert sum(load) == 11


def test_samples_of_one_prompt_read_it_once_and_are_drawn_apart():
    eng, prompt = engine("multiquery", prefill="ws2d-heads", decode="ws2d-batch"), starts("multiquery")[1]
    done = list(eng.generate([prompt], MOST, samples=8))
    assert sum(now.n_read for now in done) == len(prompt) - 1
    assert eng.complete([prompt], MOST, samples=8) == greedy("multiquery", [prompt], MOST) * 8
    drawn = eng.complete([prompt], MOST, samples=8, temperature=2.0, seed=3)
    assert len({tuple(tokens) for tokens in drawn}) > 4
    alone = [eng.complete([prompt], MOST, temperature=2.0, seed=3, first_sequence=n)[0] for n in (0, 5)]
    assert alone == [drawn[0], drawn[5]]


def test_a_conversation_reads_only_what_is_new_and_says_what_one_text_would():
    eng, turns = engine("grouped", decode="ws2d-heads"), prompts(model("grouped")[0], (9, 4, 6))
    other = eng.submit([turns[2]], 30)
    while eng.queue.waiting or eng.queue.reading:
        eng.step()
    talk, text = eng.conversation(), []
    for turn in turns:
        told = list(talk.say(turn, MOST))
        made = [token for now in told for token in now.tokens.get(0, [])]
        text += turn
        assert made == greedy("grouped", [text], MOST)[0]
        n_before = len(text) - len(turn)
        assert sum(now.n_read for now in told) == len(turn) + bool(n_before)  # and the last token of the turn before
        text += made
        assert talk.tokens == text and talk.kept == len(text) - 1
    talk.end()
    while not eng.idle:
        eng.step()
    assert other[0].made == greedy("grouped", [turns[2]], 30)[0] and eng.queue.slots.free == 8


def test_a_turn_that_is_stopped_loses_nothing():
    eng, (first, second) = engine("grouped"), prompts(model("grouped")[0], (20, 4))
    talk = eng.conversation()
    for now in talk.say(first, 20):
        if now.phase == "decode":
            break  # closes the loop
    stopped = talk.say(second, 5)
    next(stopped)
    stopped.close()  # while it is still read
    said = first + talk.tokens[20:-4] + second
    assert talk.tokens == said and len(said) > 25
    more = [token for now in talk.say([7], MOST) for token in now.tokens.get(0, [])]
    assert more == greedy("grouped", [[*said, 7]], MOST)[0]


def test_partitions_change_between_turns_and_the_conversation_goes_on():
    eng, turns = engine("multiquery"), prompts(model("multiquery")[0], (9, 4, 3))
    talk, text = eng.conversation(), []
    for turn, way in zip(turns, [("ws2d-heads", "wg_xyz-batch"), ("wg_x-heads", "ws2d-heads"), ("auto", "auto")]):
        made = [token for now in talk.say(turn, MOST) for token in now.tokens.get(0, [])]
        assert made == greedy("multiquery", [text + turn], MOST)[0]
        text += turn + made
        if way != ("auto", "auto"):
            program = eng.move(*way)
            assert {port.name for port in program.inputs} == {"cache_k", "cache_v"}
            assert (eng.prefill, eng.decode) == way
    with pytest.raises(mtf.LayoutError, match="store the weights in different places"):
        eng.move("ws1d-heads", "ws1d-heads")
    assert eng.decode == "ws2d-heads"


@pytest.mark.parametrize(("weights", "cache"), [("bf16", "bf16"), ("int8", "int8"), ("f32", "bf16"), ("int8", "f32")])
def test_other_dtypes_are_near(weights, cache):
    """bf16 keeps 8 bits: the first token is one of the likeliest of the plain model."""
    eng = engine("multihead", decode="ws2d-batch", weights=weights, cache=cache)
    begun = starts("multihead")
    found = scores("multihead", begun)
    made = eng.complete(begun, MOST)
    chosen = found[np.arange(len(begun)), [tokens[0] for tokens in made]]
    assert np.all(found.max(-1) - chosen < 0.05 * np.abs(found).max())
    kinds = {name: str(t.dtype) for name, t in eng.launches.weights.items()}
    assert kinds["w_in"] == {"f32": "float32", "bf16": "bfloat16", "int8": "int8"}[weights]
    assert str(eng.launches.cache["cache_k"].dtype) == {"f32": "float32", "bf16": "bfloat16", "int8": "int8"}[cache]


def test_what_is_told_adds_up():
    eng = engine("multiquery")
    told = list(eng.generate(starts("multiquery"), MOST, tokens_per_launch=2))
    sent = dict.fromkeys("xyz", 0)
    for now in told:
        for axis, n_bytes in now.program.link_bytes().by_axis.items():
            sent[axis] += n_bytes
        assert now.traffic == sent and 0 <= now.cache[0] <= now.cache[1] == 8 * 64
    assert [now.phase for now in told].count("give") == len(LENGTHS)
    assert sum(len(tokens) for now in told for tokens in now.tokens.values()) == MOST * len(LENGTHS)
    assert sorted(number for now in told for number in now.finished) == list(range(len(LENGTHS)))


def test_the_cache_is_changed_in_place():
    eng = engine("multiquery")
    list(eng.generate(starts("multiquery")[:1], 2))
    for key in (("prefill", 16, False), ("decode", 1, False), ("give", 0, False)):
        run = eng.launches.run(*key)
        names = tuple(port.name for port in run.program.inputs if port.name.startswith("cache_"))
        memory = run.donating(names).lower(*run.shapes).compile().memory_analysis()
        changed = eng.launches.prompts if key[0] == "prefill" else eng.launches.cache
        assert memory.alias_size_in_bytes == sum(t.addressable_shards[0].data.nbytes for t in changed.values())


@pytest.mark.parametrize("form", ["throughput", "latency"])
def test_collectives_that_overlap_with_products_change_no_token(form):
    eng = engine("multiquery", looped=form)
    assert eng.complete(starts("multiquery"), MOST) == greedy("multiquery", starts("multiquery"), MOST)
    plain = engine("multiquery").plans["decode"]
    kinds = [step.kind for step in eng.plans["decode"].collectives()]
    assert kinds.count("permute") > 4 and "permute" not in [step.kind for step in plain.collectives()]
    assert eng.plans["decode"].link_bytes() == plain.link_bytes()


def test_switching_moves_no_weights_and_has_a_price():
    eng = engine("multiquery")
    for name in ("give", "take"):
        program = eng.plans[name]
        assert {port.name for port in program.inputs} <= {"slot", "cache_k", "cache_v", "prompt_k", "prompt_v"}
        assert mtf.price(program, "v4:2x2x2").seconds > 0
    whole = engine("multiquery", prompts=8)
    told = list(whole.generate(prompts(whole.cfg, [5] * 8), 2))
    (give,) = [now.program for now in told if now.phase == "give"]
    assert {step.kind for step in give.collectives()} <= {"all_to_all", "permute"}


def test_from_heads_to_batch_a_cache_of_several_heads_is_exchanged_not_gathered():
    """Section 3.3: all-to-alls, on a mesh that nobody here has."""
    sizes = {"cfg": mtf.model.config("mt-nlg-530b"), "mesh": mtf.Mesh("x:4 y:4 z:4"), "length": 2048, "weights": "i8",
             "cache": "bf16", "n_tokens": 100}  # fmt: skip
    read, one = (Shape(partition="ws2d-heads", sequences=n, **sizes) for n in (128, 1))
    kept = Shape(partition="ws2d-batch", sequences=128, **sizes)
    assert {step.kind for step in given_whole(read, kept).collectives()} == {"all_to_all"}
    assert {step.kind for step in moving(kept, read).collectives()} == {"all_to_all"}
    assert {step.kind for step in taking(one, kept).collectives()} == {"reduce_scatter"}


def test_auto_asks_the_cost_model_and_says_why():
    eng = engine("multiquery", prefill="auto", decode="auto", prompts=8)
    assert "modelled, v4:2x2x2" in eng.why and "others:" in eng.why
    fixed = engine("multiquery", prefill=eng.prefill, decode=eng.decode)
    assert fixed.why.splitlines() == [f"prefill: {eng.prefill}, as asked", f"decode: {eng.decode}, as asked"]


def test_what_cannot_be_is_refused_before_anything_runs():
    cfg, params = model("grouped")
    with pytest.raises(mtf.LayoutError, match="ws2d-heads"):
        mtf.model.Engine(cfg, params, MESH, "ws2d-head", "ws2d-heads")
    with pytest.raises(mtf.LayoutError, match="store the weights in different places"):
        mtf.model.Engine(cfg, params, MESH, "ws1d-heads", "ws2d-heads")
    with pytest.raises(mtf.LayoutError, match="slots is 0"):
        mtf.model.Engine(cfg, params, MESH, slots=0)
    with pytest.raises(mtf.LayoutError, match=r"looped is 'loop'.*throughput"):
        mtf.model.Engine(cfg, params, MESH, looped="loop")
    eng = engine("grouped")
    for prompt, words in (([], "is empty"), ([300], "from 0 to 255"), ([1] * 60, "nearest: max_new_tokens=4"),
                          ("text", "tokenizer"), ([1.5], "1.5")):  # fmt: skip
        with pytest.raises(mtf.LayoutError, match=words):
            eng.generate([prompt] if prompt != "text" else prompt, 8)
    with pytest.raises(mtf.LayoutError, match="temperature is -1"):
        eng.generate([[1]], 8, temperature=-1)
    talk = eng.conversation()
    talk.end()
    with pytest.raises(mtf.LayoutError, match="has ended"):
        talk.say([1])
    assert eng.idle
