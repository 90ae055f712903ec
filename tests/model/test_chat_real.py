"""The real model holds a conversation on eight devices, on the explicit executor and nothing else."""

import pytest

from mtfcore import execute
from mtfcore.model.chat import Chat

TURNS = ("What is the capital of France?", "Write its name with a café in it: “é”.")


@pytest.fixture(scope="module")
def chat(real_model):
    return Chat(real_model, "x:2 y:2 z:2", prefill="ws2d-heads", decode="ws2d-batch", slots=2, length=160)


def test_a_conversation_is_held_and_is_one_text_read_at_once(chat, real_model):
    pieces = [[piece for piece, _ in chat.say(text, 16)] for text in TURNS]
    answers = ["".join(each) for each in pieces]
    assert "Paris" in answers[0] and chat.note == ""
    assert [message["content"] for message in chat.messages[1::2]] == answers
    assert not any("\ufffd" in piece for each in pieces for piece in each)
    kept = chat.talk.tokens
    assert real_model.prompt(chat.messages)[: len(kept)] == kept
    whole = real_model.prompt(chat.messages[:-1])
    at_once = chat.engine.complete([whole], 16, stop=real_model.stop)[0]
    assert whole + at_once == kept
    assert chat.engine.cfg.heads == 12 and "heads 9 → 12, key/value heads 3 → 4" in chat.about
    assert set(chat.sent.by_phase) == {"prefill", "give", "take", "decode"}


def test_without_one_collective_its_first_word_is_another(chat, real_model, monkeypatch):
    import jax.numpy as jnp

    asked = [real_model.prompt([{"role": "user", "content": TURNS[0]}])]
    first = chat.engine.complete(asked, 1)
    monkeypatch.setitem(execute.MOVES, "reduce_scatter",
                        lambda step, array, mesh: jnp.resize(array, step.after.local_shape(mesh)))  # fmt: skip
    monkeypatch.setattr(chat.engine.launches, "runs", {})  # compiled anew, without it
    assert chat.engine.complete(asked, 1) != first
