"""A model writes the same text on every mesh, in every batch; greedily it is the oracle's argmax, one by one."""

import functools

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.model import data
from mtfcore.model.writing import Writer, next_token

CFG = mtf.model.config("tiny-lm", layers=1, d_model=16, d_ff=32, heads=4, head_size=8, max_length=24)
ONE, MESH = ("one:1", ""), ("rows:2 cols:4", "mtf-2d")
PROMPTS = ["import os", "x", "def f(self, other):", "é = 1"]


PARAMS = {name: 3 * array for name, array in mtf.model.initial(CFG, seed=4).items()}  # far from uniform


@functools.cache
def writer(mesh, layout, batch=4, **options):
    """Kept, since compiling one takes most of a second."""
    return Writer(CFG, PARAMS, mesh, layout, batch=batch, length=24, **options)


@pytest.fixture(scope="module")
def sampled():
    """What one device writes at temperature 1, longer than the window."""
    return writer(*ONE).text(PROMPTS, 20, seed=3)


def test_every_mesh_writes_the_same_text(sampled):
    assert writer(*MESH).text(PROMPTS, 20, seed=3) == sampled
    assert len(set(sampled)) == len(PROMPTS) and all(t.startswith(p) for t, p in zip(sampled, PROMPTS))


def test_the_batch_does_not_matter(sampled):
    alone = writer(*MESH, batch=2)
    again = [alone.text([prompt], 20, seed=3, first=n)[0] for n, prompt in enumerate(PROMPTS)]
    assert again == sampled


def test_another_seed_or_place_writes_another_text(sampled):
    one = writer(*ONE)
    assert one.text(PROMPTS, 20, seed=4) != sampled
    twins = one.text([PROMPTS[0]] * 4, 20, seed=3)
    assert twins[0] == sampled[0] and len(set(twins)) == 4


def oracle(row):
    """Plain JAX on one device, given the text alone: no padding, no other row."""
    plan = mtf.plan(mtf.model.forward(CFG), "one:1", sizes=f"B:1 L:{len(row)}")
    return mtf.single(plan)(inputs=np.array([row], np.int32), **PARAMS)[0, -1]


def test_greedy_is_the_oracles_argmax():
    found = np.array(list(writer(*MESH, temperature=0).write(PROMPTS, 6)))
    for number, step in ((0, 1), (2, 5)):  # within the window, and beyond it
        row = [*data.encode(PROMPTS[number]), *found[:step, number]][-24:]
        assert found[step, number] == np.argmax(oracle(row))


def test_a_padded_vocabulary_never_shows():
    padded = CFG.but(vocab=data.padded_vocab(3))
    wide = mtf.model.initial(padded, seed=4)
    wide["softmax"][256:] = 50  # what training would have to unlearn
    made = Writer(padded, wide, "all:3", "vocab:all", length=8).write(["abc"], 12)
    assert max(int(tokens[0]) for tokens in made) < 256


def test_nothing_as_large_as_the_logits_is_sent():
    """Per row and step: sums over E of the products, and a few numbers for the choice."""
    plan = mtf.plan(next_token(CFG, temperature=0), "all:4", mtf.model.read_layout("mtf-1d"), sizes="B:1 L:24")
    moved = [step.n_bytes for step in plan.collectives()]
    assert max(moved) == 4 * 24 * CFG.d_model  # the residual stream; logits of one device have 4 · 24 · 256 / 4


def test_it_may_be_stopped_and_asked_again():
    first = next(iter(writer(*ONE).write(PROMPTS, 1000)))
    np.testing.assert_array_equal(next(iter(writer(*ONE).write(PROMPTS, 1000))), first)


def test_faults_of_prompts_all_at_once():
    one = writer(*ONE)
    with pytest.raises(mtf.LayoutError) as error:
        one.text(["a", "", "c", "d", "e"], 2)
    assert "prompt 1 is empty" in str(error.value) and "5 prompts for a batch of 4" in str(error.value)
    with pytest.raises(mtf.LayoutError, match=r"expected a list, e.g. \['import'\]"):
        one.text("import", 2)
    with pytest.raises(mtf.LayoutError, match="no causal decoder alone"):
        Writer("tiny-translate", {}, "one:1")
