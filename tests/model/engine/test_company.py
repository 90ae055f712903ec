"""Whoever else is served, and in whatever order loops begin and end: each gets its own tokens, and no slot is lost."""

import itertools

import pytest
from model.engine.served import greedy, model, prompts, scores

import mtfcore as mtf

NAME, SLOTS, LENGTH = "multiquery", 4, 48


@pytest.fixture(scope="module")
def shared():
    """One engine for all, so that what one test leaves behind shows in the next."""
    cfg, params = model(NAME)
    return mtf.model.Engine(cfg, params, "x:2", "ws2d-heads", "ws2d-heads", slots=SLOTS, length=LENGTH, chunk=16)


@pytest.fixture
def eng(shared):
    yield shared
    assert shared.idle and shared.queue.slots.free == SLOTS and not shared.queue.held


def starts(*lengths):
    return prompts(model(NAME)[0], lengths)


def made(told, number=0):
    return [token for now in told for token in now.tokens.get(number, [])]


def test_loops_in_turn_are_each_told_all_of_their_own(eng):
    begun = starts(5, 7)
    loops = [eng.generate([start], 6) for start in begun]
    told = list(zip(*itertools.zip_longest(*loops)))
    for loop, expected in zip(told, greedy(NAME, begun, 6)):
        loop = [now for now in loop if now]
        assert made(loop) == expected
        assert [now.finished for now in loop if now.finished] == [(0,)]


def test_a_turn_goes_on_while_others_are_served(eng):
    first, second, other = starts(5, 4, 7)
    talk = eng.conversation()
    turn = talk.say(first, 6)
    for _ in range(3):
        next(turn)
    assert eng.complete([other], 8) == greedy(NAME, [other], 8)
    list(turn)
    assert talk.tokens == first + greedy(NAME, [first], 6)[0] and talk.kept == 10
    said = [*talk.tokens, *second]
    assert made(talk.say(second, 4)) == greedy(NAME, [said], 4)[0]
    talk.end()


def test_the_next_turn_ends_one_that_is_open(eng):
    first, second, third = starts(5, 4, 3)
    talk = eng.conversation()
    open_one = talk.say(first, 6)
    for _ in range(3):
        next(open_one)
    said = [*talk.tokens, *second]
    assert made(talk.say(second, 3)) == greedy(NAME, [said], 3)[0]
    assert list(open_one) == []  # and does not take the slot back
    said = [*talk.tokens, *third]
    assert made(talk.say(third, 3)) == greedy(NAME, [said], 3)[0]
    talk.end()


def test_a_turn_of_a_conversation_that_ends_is_over(eng):
    talk = eng.conversation()
    turn = talk.say(starts(5)[0], 6)
    next(turn)
    talk.end()
    assert list(turn) == []


def test_a_conversation_that_ends_while_it_is_read_leaves_nothing_in_its_slot(eng):
    first, second = starts(5, 20)
    talk = eng.conversation()
    list(talk.say(first, 2))
    turn = talk.say(second, 2)
    while not eng.queue.reading:
        next(turn)
    talk.end()
    assert not eng.queue.held and eng.queue.n_kept == 0
    begun = starts(9, 4, 3, 6)  # and whoever comes next is not taken for it
    assert eng.complete(begun, 4) == greedy(NAME, begun, 4)


def test_a_loop_that_never_begins_asks_for_nothing(eng):
    talk = eng.conversation()
    talk.say(starts(5)[0], 6).close()
    eng.generate(starts(5), 6).close()
    assert eng.idle and talk.tokens == []


def test_samples_can_be_forgotten_one_by_one(eng):
    start = starts(5)
    expected = greedy(NAME, start, 6)[0]
    for launches, gone in ((0, 0), (1, 1), (2, 0), (4, 2)):
        asked = eng.submit(start, 6, samples=3)
        for _ in range(launches):
            eng.step()
        eng.forget([asked[gone]])
        while not eng.idle:
            eng.step()
        assert [sample.made == expected for sample in asked] == [n != gone for n in range(3)]


def test_a_turn_does_not_wait_for_who_waits_for_its_slot(eng):
    first, second, other = starts(5, 4, 7)
    talk = eng.conversation()
    list(talk.say(first, 2))
    asked = eng.submit([other], 3, samples=SLOTS)
    said = [*talk.tokens, *second]
    assert made(talk.say(second, 3)) == greedy(NAME, [said], 3)[0]
    assert eng.complete([second], 2) == greedy(NAME, [second], 2)  # there are slots for one
    with pytest.raises(mtf.LayoutError, match="conversations hold 1 of 4 slots"):
        eng.step()
    talk.end()
    while not eng.idle:
        eng.step()
    assert [sample.made for sample in asked] == greedy(NAME, [other], 3) * SLOTS


def test_every_prompt_ends_at_the_same_tokens(eng):
    begun = starts(5, 7)
    first = [tokens[0] for tokens in greedy(NAME, begun, 1)]
    assert eng.complete(begun, 4, stop=iter(first)) == [[token] for token in first]


def test_the_coldest_draw_is_the_likeliest_and_the_hottest_is_legal(eng):
    begun = starts(5, 7)
    for cold in (1e-300, 1e-40, 1e-20):
        assert eng.complete(begun, 4, temperature=cold) == greedy(NAME, begun, 4)
    hot = [eng.complete(begun, 4, temperature=t) for t in (1e20, 1e39, 1e300)]
    assert hot[0] == hot[1] == hot[2] != greedy(NAME, begun, 4)


def test_more_may_be_read_at_a_time_than_there_are_slots():
    cfg, params = model(NAME)
    few = mtf.model.Engine(cfg, params, "x:2 y:2", "wg_xyz-heads", "ws2d-heads", slots=2, length=LENGTH, chunk=16)
    assert few.launches.read_shape.sequences == 4
    begun = starts(5, 7, 3)
    assert few.complete(begun, 3) == greedy(NAME, begun, 3)


def test_positions_that_a_model_has_not_learned_are_refused():
    cfg, params = model("multihead")
    few = cfg.but(max_length=32)
    with pytest.raises(mtf.LayoutError, match="32 learned positions; use length=32"):
        mtf.model.Engine(few, params, "x:2", "ws2d-heads", "ws2d-heads", length=33)
    cut = {**params, "positions": params["positions"][:32]}
    eng = mtf.model.Engine(few, cut, "x:1", "ws2d-heads", "ws2d-heads", slots=2, length=32, chunk=12)
    begun = prompts(cfg, (28, 27), seed=1)
    tokens = eng.complete(begun, 4, tokens_per_launch=3)
    assert tokens == greedy("multihead", begun, 4)
    assert scores("multihead", begun).argmax(-1).tolist() == [row[0] for row in tokens]
