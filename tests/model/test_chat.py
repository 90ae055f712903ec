"""A conversation is one text: kept tokens and what is read anew are what reading all of it at once gives."""

import functools

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore import execute
from mtfcore.errors import LayoutError
from mtfcore.model.chat import Chat, fitted, open_model
from mtfcore.model.chat_traffic import Sent, axis_words
from mtfcore.model.untrained import END, Letters, untrained_model

MESH = "x:2 y:2"
SMALL = {"length": 256, "chunk": 8, "slots": 4}
TURNS = ("Where do tides come from?", "Why?", "And on the moon, which has no sea at all?")


def chat(mesh=MESH, prefill="ws2d-heads", decode="ws2d-heads", **more):
    return Chat("untrained", mesh, prefill=prefill, decode=decode, **{**SMALL, **more})


def said(one, text, most=12, **options):
    return "".join(piece for piece, _ in one.say(text, most, **options))


@pytest.fixture(scope="module")
def engine_once():
    return chat()


@pytest.fixture
def one(engine_once):
    """A conversation that has not begun; its engine has been compiled before."""
    engine_once.new()
    return engine_once


@functools.cache
def plain():
    model = untrained_model()
    return model, mtf.model.Engine(model.cfg, model.params, "x:1", "ws2d-heads", "ws2d-heads", slots=1, length=256)


def alone(messages):
    """What the model answers when it reads a whole conversation at once, on one device, with heads as they are."""
    model, engine = plain()
    return model.tokenizer.decode(engine.complete([model.prompt(messages)], 12, stop=model.stop)[0])


@functools.cache
def answers():
    """To each of the turns, read at once."""
    messages, found = [], []
    for text in TURNS:
        messages.append({"role": "user", "content": text})
        found.append(alone(messages))
        messages.append({"role": "assistant", "content": found[-1]})
    return found


def test_a_conversation_held_is_one_text_read_at_once(one):
    assert [said(one, text) for text in TURNS] == answers()
    assert [message["role"] for message in one.messages] == ["user", "assistant"] * 3
    assert [message["content"] for message in one.messages[1::2]] == answers()
    assert one.talk.tokens == one.model.prompt(one.messages)[: len(one.talk.tokens)]


def test_only_what_is_new_is_read(one):
    for text in TURNS[:2]:
        before = len(one.talk.tokens)
        read = sum(now.n_read for _, now in one.say(text, 5))
        assert one.note == ""
        unread = before > 0  # the answer's last token is in no cache yet
        assert read == len(one.model.prompt(one.messages[:-1])) - before + unread


def test_a_text_that_reads_differently_is_read_again_and_said(one):
    said(one, TURNS[0], 4)
    one.messages[-1]["content"] = "something else"
    read = sum(now.n_read for _, now in one.say(TURNS[1], 12))
    assert "all of it is read again" in one.note
    assert read == len(one.model.prompt(one.messages[:-1]))
    assert one.messages[-1]["content"] == alone(one.messages[:-1])
    assert one.engine.queue.slots.free == SMALL["slots"] - 1


def test_an_answer_that_is_left_early_stays_and_goes_on(one):
    found, pieces = "", one.say(TURNS[0], 12)
    for piece, _ in pieces:
        found += piece
        if len(found) == 3:
            pieces.close()
    assert one.messages[-1] == {"role": "assistant", "content": answers()[0][:3]}
    assert one.engine.idle
    assert said(one, TURNS[1]) == alone(one.messages[:3])


def test_left_while_it_is_read_nothing_is_lost(one):
    pieces = one.say(TURNS[0] * 2, 12)
    assert next(pieces)[1].phase == "prefill"
    pieces.close()
    assert one.messages[-1]["content"] == "" and one.engine.idle
    assert said(one, TURNS[1]) == alone(one.messages[:3])


def test_a_new_one_remembers_only_what_the_model_is(one):
    one.messages.append({"role": "system", "content": "You are a tide."})
    first = said(one, TURNS[0])
    one.new()
    assert one.messages == [{"role": "system", "content": "You are a tide."}]
    assert said(one, TURNS[0]) == first
    one.messages = []


def test_a_full_conversation_says_so(one):
    n_read = len(one.model.prompt([{"role": "user", "content": "x" * 240}]))
    assert len(said(one, "x" * 240, 100)) <= 256 - n_read  # as many as there is room for
    with pytest.raises(LayoutError, match="there is room for 256: begin a new one"):
        said(one, "y" * 40)
    assert len(one.messages) == 2


# ---- partitions and meshes change between turns


def test_a_change_that_cannot_be_leaves_everything_as_it_was(one):
    said(one, TURNS[0], 2)
    engine, tokens = one.engine, list(one.talk.tokens)
    for wrong in ({"decode": "wg_xyz-batch", "mesh": "x:8"}, {"prefill": "wg"}, {"mesh": "x:0"}):
        with pytest.raises(LayoutError):
            one.change(**wrong)
    assert one.engine is engine and one.talk.tokens == tokens


def test_partitions_and_mesh_change_between_turns_and_no_answer_does():
    one = chat()
    assert said(one, TURNS[0]) == answers()[0]
    assert "moved" in one.change(decode="ws2d-batch")
    assert said(one, TURNS[1]) == answers()[1]
    assert one.sent.by_phase["move"].keys() == {"x", "y"}
    told = one.change(mesh="x:2", decode="ws1d-heads")
    assert one.engine.prefill.startswith("ws1d") and "loaded again; " in told and "tokens will be read again" in told
    assert said(one, TURNS[2]) == answers()[2]
    assert len(one.messages) == 6


def test_partitions_that_store_weights_elsewhere_load_them_again():
    one = chat("x:2")
    assert "loaded again" in one.change(decode="ws1d-heads")
    assert (one.engine.prefill, one.engine.decode) == ("ws1d-heads", "ws1d-heads")


# ---- the collectives are what is talked with


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce", "all_to_all"])
def test_an_answer_depends_on_every_kind_of_collective(kind, monkeypatch):
    """Nothing done in its place, the words are others: there is no second way in which they come about."""
    assert kind in execute.MOVES

    def nothing(step, array, mesh):
        import jax.numpy as jnp

        return jnp.resize(array, step.after.local_shape(mesh))  # of its own part, again and again: nothing is sent

    monkeypatch.setitem(execute.MOVES, kind, nothing)
    one = chat(decode="ws2d-batch")
    assert any(step.kind == kind for program in one.engine.plans.values() for step in program.collectives())
    assert said(one, TURNS[0]) != answers()[0]


# ---- padding, models


def test_heads_are_padded_only_where_they_must_be_and_only_when_asked():
    assert chat("x:2", slots=2).padding == ""
    assert chat("x:2 y:2 z:2").padding.startswith("heads 9 → 12, key/value heads 3 → 4: +")
    assert "FLOPs a token" in chat("x:2 y:2 z:2").about
    with pytest.raises(LayoutError, match=r"3 key/value heads .* do not divide over z:2 y:2(.|\n)*pad=\"heads\" would"):
        chat("x:2 y:2 z:2", pad="none")
    with pytest.raises(LayoutError, match="pad is 'yes'; legal here: 'heads', 'none'"):
        chat(pad="yes")


def test_padded_heads_do_not_change_a_word():
    one = chat("x:2 y:2 z:2", decode="ws2d-batch")
    assert one.engine.cfg.heads == 12 and said(one, TURNS[0]) == answers()[0]
    model = untrained_model()
    wide, params, words = fitted(model, one.engine.mesh, "heads", 4)
    assert wide.heads == 12 and words and np.asarray(params["wq"]).shape == wide.params["wq"].shape


def test_models_that_cannot_talk_are_refused():
    model = untrained_model()
    with pytest.raises(LayoutError, match="untrained has no template in its files, so nobody can chat with it"):
        open_model(type(model)(model.cfg, model.params, model.tokenizer, None, ""))
    with pytest.raises(LayoutError, match="no model 'smolm2-135m'; did you mean 'smollm2-135m'"):
        open_model("smolm2-135m")


def test_letters_are_tokens():
    letters = Letters()
    assert letters.decode([*letters.encode("A b~\n\u00e9"), END]) == "A b~ ?"
    assert len(letters) == END + 1 == untrained_model().cfg.vocab


# ---- what was sent


def test_what_was_sent_is_the_sum_over_the_programs_that_ran():
    one = chat(decode="ws2d-batch")
    said(one, TURNS[0], 6, tokens_per_launch=2)
    assert one.sent.by_axis == {axis: n for axis, n in one.engine.launches.sent.items() if axis in one.sent.by_axis}
    a_token = one.engine.launches.run("decode", 2).program.link_bytes().by_axis
    assert one.sent.a_token == {axis: n / 2 for axis, n in a_token.items()}
    words = one.sent.words()
    assert words.startswith("sent by one device so far: x ") and "(counted)" in words and "  a token" in words


def test_nothing_sent_is_said_as_such():
    assert axis_words({}) == "nothing"
    assert Sent().words() == "sent by one device so far: nothing (counted)"
