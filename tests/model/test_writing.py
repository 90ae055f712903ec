"""A model writes the same text on every mesh, in every batch; greedily it is the oracle's argmax, one by one."""

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.model import data
from mtfcore.model.writing import Writer, next_token

CFG = mtf.model.config("tiny-lm", layers=1, d_model=16, d_ff=32, heads=4, head_size=8, max_length=24)
MESHES = (("one:1", ""), ("rows:2 cols:4", "mtf-2d"), ("all:4", "mtf-1d"))
PROMPTS = ["import os", "x", "def f(self, other):", "é = 1"]


@pytest.fixture(scope="module")
def params():
    return {name: 3 * array for name, array in mtf.model.initial(CFG, seed=4).items()}  # far from uniform


def writer(params, mesh=MESHES[1][0], layout=MESHES[1][1], **options):
    options = {"batch": 4, "length": 24, **options}
    return Writer(CFG, params, mesh, layout, **options)


@pytest.fixture(scope="module")
def sampled(params):
    """Mesh → what it writes at temperature 1, longer than the window."""
    return {mesh: writer(params, mesh, layout).text(PROMPTS, 20, seed=3) for mesh, layout in MESHES}


def test_every_mesh_writes_the_same_text(sampled):
    texts = list(sampled.values())
    assert texts[0] == texts[1] == texts[2]
    assert len(set(texts[0])) == len(PROMPTS) and all(t.startswith(p) for t, p in zip(texts[0], PROMPTS))


def test_the_batch_does_not_matter(sampled, params):
    alone = writer(params, "all:4", "mtf-1d", batch=1)
    again = [alone.text([prompt], 20, seed=3, first=n)[0] for n, prompt in enumerate(PROMPTS)]
    assert again == sampled["one:1"]


def test_another_seed_or_place_writes_another_text(sampled, params):
    one = writer(params, "one:1", "")
    assert one.text(PROMPTS, 20, seed=4) != sampled["one:1"]
    twins = one.text([PROMPTS[0]] * 4, 20, seed=3)
    assert twins[0] == sampled["one:1"][0] and len(set(twins)) == 4


def oracle(params, row):
    """Plain JAX on one device, given the text alone: no padding, no other row."""
    plan = mtf.plan(mtf.model.forward(CFG), "one:1", sizes=f"B:1 L:{len(row)}")
    return mtf.single(plan)(inputs=np.array([row], np.int32), **params)[0, -1]


def test_greedy_is_the_oracles_argmax(params):
    found = np.array(list(writer(params, temperature=0).write(PROMPTS, 6)))
    for number, steps in ((0, (0, 5)), (2, (4,))):  # within the window, and beyond it
        for step in steps:
            row = [*data.encode(PROMPTS[number]), *found[:step, number]][-24:]
            assert found[step, number] == np.argmax(oracle(params, row))


def test_a_padded_vocabulary_never_shows(params):
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


def test_it_may_be_stopped_and_asked_again(params):
    one = writer(params, "one:1", "")
    first = next(iter(one.write(PROMPTS, 1000)))
    np.testing.assert_array_equal(next(iter(one.write(PROMPTS, 1000))), first)


def test_faults_of_prompts_all_at_once(params):
    one = writer(params, "one:1", "")
    with pytest.raises(mtf.LayoutError) as error:
        one.text(["a", "", "c", "d", "e"], 2)
    assert "prompt 1 is empty" in str(error.value) and "5 prompts for a batch of 4" in str(error.value)
    with pytest.raises(mtf.LayoutError, match=r"expected a list, e.g. \['import'\]"):
        one.text("import", 2)
    with pytest.raises(mtf.LayoutError, match="no causal decoder alone"):
        Writer("tiny-translate", {}, "one:1")
