"""Picking the next token over a split vocabulary, against a plain numpy reference; the same tokens on every mesh."""

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.model.sampling import HALVINGS, chances, pick, pick_each

B, V = 32, 24
MESHES = (("one:1", ""), ("rows:2 cols:4", "B:rows V:cols"), ("x:2 y:2 z:2", "B:x V:(z y)"))
OPTIONS = (
    {},
    {"temperature": 0.5, "top_k": 3},
    {"top_p": 0.6},
    {"top_k": 6, "top_p": 0.5, "temperature": 1.7},
    {"n_tokens": 17},
    {"n_tokens": 5, "top_k": 7, "temperature": 0},
)


def sampler(**options):
    @mtf.function
    def sample(logits: "B V", chance: "B"):
        return pick(logits, chance, **options)

    return sample


def program(mesh, layout, **options):
    return mtf.plan(sampler(**options), mesh, layout, sizes=f"B:{B} V:{V}", strict=True)


def logits(seed=0):
    return np.random.default_rng(seed).normal(scale=2, size=(B, V)).astype(np.float32)


def reference(logits, chance, temperature=1.0, top_k=None, top_p=None, n_tokens=None):
    """One row at a time, by sorting, in float64."""
    found = []
    for row, u in zip(logits.astype(np.float64), chance):
        row = np.where(np.arange(row.size) < (n_tokens or row.size), row, -np.inf)
        if temperature == 0:
            found.append(int(np.argmax(row)))
            continue
        row, order = row / temperature, np.argsort(-row)
        row[order[top_k or row.size :]] = -np.inf
        p = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
        order = np.argsort(-p)
        enough = int(np.searchsorted(np.cumsum(p[order]), (top_p or 1) - 1e-12)) + 1
        p[order[enough:]] = 0
        found.append(int(np.searchsorted(np.cumsum(p), u * p.sum(), side="right")))
    return np.array(found)


@pytest.fixture(scope="module")
def picked():
    """Mesh → options → tokens: every choice of options in one program, which compiles in a fraction of the time."""

    @mtf.function
    def sample(logits: "B V", chance: "B"):
        return {str(options): pick(logits, chance, **options) for options in OPTIONS}

    plans = [mtf.plan(sample, mesh, layout, sizes=f"B:{B} V:{V}", strict=True) for mesh, layout in MESHES]
    return {str(plan.mesh): mtf.simulate(plan)(logits(), chances(1, range(B), 0)) for plan in plans}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_mesh_picks_what_the_reference_picks(picked, options):
    expected = reference(logits(), chances(1, range(B), 0), **options)
    assert len(set(expected)) > 2
    for mesh, found in picked.items():
        np.testing.assert_array_equal(found[str(options)], expected, mesh)


@pytest.mark.parametrize("options", [{"temperature": 0}, {}, {"top_p": 0.9}], ids=str)
def test_what_is_sent_does_not_grow_with_the_vocabulary(options):
    sent = {
        size: mtf.plan(sampler(**options), "cols:8", "V:cols", sizes=f"B:4 V:{size}", strict=True).link_bytes().total
        for size in (64, 4096)
    }
    assert 0 < sent[64] == sent[4096]


def test_top_k_sends_only_candidates():
    sizes = "B:4 V:4096"
    sent = mtf.plan(sampler(top_k=8), "cols:8", "V:cols", sizes=sizes, strict=True).link_bytes().total
    assert 0 < sent < 4 * 4096  # a gather of the logits alone would send 4 · 4 · 4096 · 7 / 8 bytes


@pytest.mark.parametrize("options", [{}, {"temperature": 0.7, "top_k": 5, "top_p": 0.9}], ids=str)
def test_tokens_come_as_often_as_they_should(options):
    """Pearson's chi-square with fixed chances: at 7 degrees of freedom 99.9 % of samples lie below 24.3."""
    rows, size, fine = 4096, 8, (np.arange(10_000) + 0.5) / 10_000  # every chance once gives the shares wanted
    row = np.random.default_rng(5).normal(size=size).astype(np.float32)
    shares = np.bincount(reference(np.tile(row, (fine.size, 1)), fine, **options), minlength=size) / fine.size
    plan = mtf.plan(sampler(**options), "cols:4", "V:cols", sizes=f"B:{rows} V:{size}", strict=True)
    found = mtf.simulate(plan)(np.tile(row, (rows, 1)), chances(3, range(rows), 11))
    counts, expected = np.bincount(found, minlength=size), rows * shares
    assert not counts[expected == 0].any()
    wrong = (counts - expected)[expected > 0]
    assert (wrong**2 / expected[expected > 0]).sum() < 24.3


def test_a_token_that_cannot_be_is_never_drawn():
    """Whatever the chance, its ends included; the running sum is rounded, so this does not follow from arithmetic."""
    rows = 512
    x = np.full((rows, V), -np.inf, np.float32)
    x[:, 1::3] = np.random.default_rng(0).normal(size=(rows, V // 3))
    chance = np.linspace(0, 1, rows, endpoint=False).astype(np.float32)
    chance[-1] = np.nextafter(np.float32(1), np.float32(0))
    plan = mtf.plan(sampler(), "cols:8", "V:cols", sizes=f"B:{rows} V:{V}", strict=True)
    found = mtf.simulate(plan)(x, chance)
    assert set(found % 3) == {1}


def test_ties_at_the_threshold_are_kept():
    x = np.tile(np.array([0, 1, 1, 1, 0, 0, 0, 0], np.float32), (64, 1))
    plan = mtf.plan(sampler(top_k=2), "cols:4", "V:cols", sizes="B:64 V:8", strict=True)
    assert set(mtf.simulate(plan)(x, chances(0, range(64), 0))) == {1, 2, 3}


def test_options_that_keep_everything_cost_nothing():
    plain, all_kept = program("cols:8", "V:cols"), program("cols:8", "V:cols", top_k=V, top_p=1.0, n_tokens=V)
    assert [step.label() for step in plain.steps] == [step.label() for step in all_kept.steps]


def test_the_search_for_top_p_is_one_entry_with_a_count():
    (loop,) = [step for step in program("cols:8", "V:cols", top_p=0.5).steps if step.kind == "repeat"]
    assert loop.times == HALVINGS


# ---- options of each row ------------------------------------------------------------------------------------------

EACH = ("temperature", "top_k", "top_p")
OFF = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
MANY = (
    {}, {"temperature": 0.0}, {"temperature": 0.5, "top_k": 3}, {"top_p": 0.6}, {"top_k": 1}, {"top_k": V},
    {"top_k": 5, "top_p": 0.5, "temperature": 1.7}, {"top_k": 99}, {"temperature": 0.0, "top_k": 2, "top_p": 0.1},
)  # fmt: skip


@mtf.function(dtypes={"top_k": "i32"})
def sample_each(logits: "B V", chance: "B", temperature: "B", top_k: "B", top_p: "B"):
    given = (chance, temperature, top_k, top_p)
    n_tokens = min(17, logits.dim("V").size)
    return {"all": pick_each(logits, *given), "some": pick_each(logits, *given, n_tokens=n_tokens)}


def columns(rows):
    """The options of each row as arrays."""
    dtypes = {"temperature": np.float32, "top_k": np.int32, "top_p": np.float32}
    return {name: np.array([(OFF | row)[name] for row in rows], dtypes[name]) for name in EACH}


@pytest.mark.parametrize(("mesh", "layout"), MESHES)
def test_each_row_has_its_own_options(mesh, layout):
    rows = [MANY[n % len(MANY)] for n in range(B)]
    plan = mtf.plan(sample_each, mesh, layout, sizes=f"B:{B} V:{V}", strict=True)
    given, chance = logits(3), chances(2, range(B), 5)
    found = mtf.simulate(plan)(given, chance, **columns(rows))
    for name, n_tokens in (("all", None), ("some", 17)):
        for b, row in enumerate(rows):
            options = row | {"top_k": row.get("top_k", 0) % 99 or None}
            (right,) = reference(given[b : b + 1], chance[b : b + 1], n_tokens=n_tokens, **options)
            assert found[name][b] == right, (mesh, name, row)


def test_options_of_each_row_send_nothing_of_the_vocabulary():
    sent = [mtf.plan(sample_each, "cols:8", "V:cols", sizes=f"B:4 V:{size}").link_bytes().total for size in (64, 4096)]
    assert 0 < sent[0] == sent[1]


def test_the_kth_largest_is_exact_and_its_ties_are_kept():
    """Neighbouring floats, negative ones, both zeros, infinities: what a halving of distances would not tell apart."""
    one = np.float32(1)
    x = np.array([one, np.nextafter(one, one * 2), 1e-30, -1e-30, 0.0, -0.0, -np.inf, 2.0], np.float32)
    k = np.arange(1, 9, dtype=np.int32)
    rows = np.repeat(k, 128)
    plan = mtf.plan(sample_each, "cols:4", "V:cols", sizes=f"B:{rows.size} V:8")
    given = {"temperature": np.ones(rows.size), "top_k": rows, "top_p": np.ones(rows.size)}
    found = mtf.simulate(plan)(np.tile(x, (rows.size, 1)), chances(0, range(rows.size), 0), **given)["all"]
    kept = [{7}, {7, 1}, {7, 1, 0}, {7, 1, 0, 2}, *[{7, 1, 0, 2, 4, 5}] * 2, *[{7, 1, 0, 2, 4, 5, 3}] * 2]
    for number, right in zip(k, kept, strict=True):
        assert set(found[rows == number]) == right


def test_tokens_come_as_often_as_they_should_with_options_of_each_row():
    """Pearson's chi-square of each kind of row; the most at 7 degrees of freedom, 99.9 %: 24.3."""
    kinds = [{}, {"temperature": 0.7, "top_k": 5, "top_p": 0.9}, {"top_p": 0.7}, {"top_k": 3}]
    rows, fine = [kind for kind in kinds for _ in range(2048)], (np.arange(10_000) + 0.5) / 10_000
    row = np.random.default_rng(5).normal(size=8).astype(np.float32)
    plan = mtf.plan(sample_each, "cols:4", "V:cols", sizes=f"B:{len(rows)} V:8")
    found = mtf.simulate(plan)(np.tile(row, (len(rows), 1)), chances(3, range(len(rows)), 11), **columns(rows))["all"]
    for number, kind in enumerate(kinds):
        shares = np.bincount(reference(np.tile(row, (fine.size, 1)), fine, **kind), minlength=8) / fine.size
        counts, expected = np.bincount(found[number * 2048 :][:2048], minlength=8), 2048 * shares
        assert not counts[expected == 0].any()
        assert (((counts - expected) ** 2)[expected > 0] / expected[expected > 0]).sum() < 24.3, kind


# ---- chances ------------------------------------------------------------------------------------------------------


def test_chances_of_several_positions_seeds_and_sequences_at_once():
    many = chances(7, [3, 1, 4], np.arange(5)[:, None])
    np.testing.assert_array_equal(many, [chances(7, [3, 1, 4], n) for n in range(5)])
    np.testing.assert_array_equal(chances([7, 8], [3, 1], [4, 5]), [chances(7, 3, 4), chances(8, 1, 5)])
    assert many.shape == (5, 3) and many.dtype == np.float32 and chances(7, 3, 4).shape == ()
    assert chances(2**64 + 7, -1, 4) == chances(7, 2**64 - 1, 4)


def test_chances_are_even_and_know_nothing_of_their_neighbours():
    """Chi-square over 64 parts of the interval (99.9 % below 103), and correlations along each of the three."""
    drawn = chances(np.arange(32)[:, None, None], np.arange(32)[:, None], np.arange(64))
    counts = np.bincount((drawn * 64).astype(int).ravel(), minlength=64)
    assert drawn.min() >= 0 and drawn.max() < 1
    assert ((counts - drawn.size / 64) ** 2 / (drawn.size / 64)).sum() < 103
    for axis in range(3):
        before, after = (np.delete(drawn, end, axis).ravel() for end in (-1, 0))
        assert abs(np.corrcoef(before, after)[0, 1]) < 4 / np.sqrt(before.size)


def test_chances_depend_on_seed_sequence_and_position_alone():
    together, alone = chances(7, [3, 1, 4], 9), [chances(7, [n], 9)[0] for n in (3, 1, 4)]
    np.testing.assert_array_equal(together, alone)
    assert together.dtype == np.float32 and len({*together, *chances(7, [3, 1, 4], 10), *chances(8, [3, 1, 4], 9)}) == 9


def test_faults_of_the_options_all_at_once():
    with pytest.raises(mtf.LayoutError) as error:
        program("cols:8", "V:cols", temperature=-1, top_k=V + 1, top_p=1.5, n_tokens=0)
    for part in ("4 faults", "temperature is -1", f"top_k is {V + 1}", "top_p is 1.5", f"from 1 to {V}, or None"):
        assert part in str(error.value)
