"""The Transformer's values: against plain numpy for each choice of a configuration; on meshes, against one device."""

from __future__ import annotations

import numpy as np
import pytest
from model import plain

import mtfcore as mtf
from mtfcore.functions import Function
from mtfcore.model.transformer import arguments, drawing

# Other sizes than each other, so that a mix-up of dimensions cannot pass.
SMALL = mtf.model.config(
    "tiny-lm", layers=3, d_model=24, d_ff=40, heads=6, head_size=8, vocab=32, max_length=16
)  # fmt: skip
BATCH, LENGTH, SOURCE = 4, 8, 12

VARIANTS = {
    "multihead": {},
    "grouped": {"kv_heads": 2},
    "multiquery": {"kv_heads": 1},
    "one head": {"heads": 1},
    "parallel": {"block": "parallel"},
    "rms norm": {"norm": "rms"},
    "gelu": {"activation": "gelu"},
    "swiglu": {"activation": "swiglu"},
    "geglu": {"activation": "geglu"},
    "rotary": {"positions": "rotary"},
    "no positions": {"positions": "none"},
    "full": {"causal": False},
    "tied": {"tied": True},
    "biases": {"biases": True, "activation": "swiglu"},
    "as PaLM": {"kv_heads": 1, "block": "parallel", "activation": "swiglu", "positions": "rotary", "tied": True},
    "as SmolLM2": {"kv_heads": 3, "norm": "rms", "activation": "swiglu", "positions": "rotary", "rotary_base": 1e5},
    "encoder-decoder": {"encoder_layers": 2},
    "encoder-decoder, parallel, grouped, rotary": {
        "encoder_layers": 2, "block": "parallel", "kv_heads": 2, "positions": "rotary", "biases": True,
    },
}  # fmt: skip


def some_long(case):
    """One of several cases of the same kind, for the long run."""
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long)


def small(variant: str):
    return SMALL.but(**VARIANTS[variant])


def arrays_of(cfg, seed: int = 0, targets: bool = False) -> dict[str, np.ndarray]:
    """Tokens and parameters; no parameter is 0 or 1 everywhere, so that each of them counts."""
    random = np.random.default_rng(seed)
    tokens = {"inputs": (BATCH, LENGTH)} | ({"targets": (BATCH, LENGTH)} if targets else {})
    tokens |= {"source": (BATCH, SOURCE)} if cfg.encoder_layers else {}
    found = {name: random.integers(0, cfg.vocab, shape, np.int32) for name, shape in tokens.items()}
    noise = {name: random.normal(size=p.shape) * 0.3 for name, p in cfg.params.items() if p.init != "normal"}
    params = mtf.model.initial(cfg, seed)
    return found | {name: (value + noise.get(name, 0)).astype(np.float32) for name, value in params.items()}


def split(cfg, arrays):
    params = {name: arrays[name] for name in cfg.params}
    return params, {name: value for name, value in arrays.items() if name not in params}


QUICK = set(VARIANTS) - {"one head", "gelu", "geglu", "no positions", "encoder-decoder", "parallel"}


@pytest.mark.parametrize("variant", [name if name in QUICK else some_long(name) for name in VARIANTS])
def test_logits_are_those_of_plain_numpy(variant):
    cfg = small(variant)
    arrays = arrays_of(cfg)
    params, tokens = split(cfg, arrays)
    found = single(mtf.model.forward(cfg), arrays)
    # float32 rounds to 6e-8; some hundred roundings in a row stay below 1e-5 of the largest logit
    expected = plain.logits(cfg, params, **tokens)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    assert expected.std() > 0.1


@pytest.mark.parametrize(
    ("variant", "pad", "smoothing"),
    [
        ("multihead", None, 0.0), ("multihead", 0, 0.1), ("encoder-decoder", 0, 0.0),
        *[some_long((v, pad, 0.1)) for v, pad in (("multihead", None), ("encoder-decoder", None), ("as PaLM", 0))],
    ],
)  # fmt: skip
def test_the_loss_is_that_of_plain_numpy(variant, pad, smoothing):
    cfg = small(variant)
    arrays = arrays_of(cfg, targets=True)
    for name, free in (("targets", 2), ("source", 5)):  # the ends of some rows are padding
        if name in arrays:
            arrays[name][::2, -free:] = 0
    params, tokens = split(cfg, arrays)
    found = single(mtf.model.loss(cfg, pad=pad, label_smoothing=smoothing), arrays)
    expected = plain.loss(cfg, params, **tokens, pad=pad, label_smoothing=smoothing)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert pad is None or abs(expected - plain.loss(cfg, params, **tokens, label_smoothing=smoothing)) > 1e-3


def test_a_batch_of_padding_alone_costs_nothing():
    cfg = small("multihead")
    arrays = arrays_of(cfg, targets=True) | {"targets": np.zeros((BATCH, LENGTH), np.int32)}
    assert single(mtf.model.loss(cfg, pad=0), arrays) == 0


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_padded_vocabulary_does_not_change_the_loss(smoothing):
    """So that V may lie over 3 devices: the entries behind the real ones do not count, whatever they hold."""
    tokens = np.random.default_rng(3).integers(0, SMALL.vocab, (2, BATCH, LENGTH))
    real = mtf.model.initial(SMALL)
    padded = mtf.model.initial(SMALL.but(vocab=33), seed=9)
    filled = {name: np.where(_inside(real[name].shape, own.shape), _grown(real[name], own.shape), own)
              for name, own in padded.items()}  # fmt: skip
    plans = [
        (SMALL, real, mtf.model.loss(SMALL, label_smoothing=smoothing), "x:1", ""),
        (SMALL.but(vocab=33), filled, mtf.model.loss(SMALL.but(vocab=33), label_smoothing=smoothing, real_vocab=32),
         "x:3", "V:x"),
    ]  # fmt: skip
    losses = []
    for _, arrays, fn, mesh, layout in plans:
        prog = mtf.plan(fn, mesh, layout, sizes=f"B:{BATCH} L:{LENGTH}")
        losses.append(mtf.simulate(prog)(inputs=tokens[0], targets=tokens[1], **arrays))
    np.testing.assert_allclose(losses[1], losses[0], rtol=2e-6)


def _grown(array, shape):
    return np.pad(array, [(0, after - before) for before, after in zip(array.shape, shape, strict=True)])


def _inside(before, after):
    return _grown(np.ones(before, bool), after)


def test_a_causal_model_does_not_see_what_comes():
    cfg = small("as SmolLM2")
    arrays = arrays_of(cfg)
    changed = arrays | {"inputs": arrays["inputs"].copy()}
    changed["inputs"][:, 5:] = (changed["inputs"][:, 5:] + 1) % cfg.vocab
    first, second = (single(mtf.model.forward(cfg), each) for each in (arrays, changed))
    np.testing.assert_array_equal(first[:, :5], second[:, :5])
    assert np.abs(first - second)[:, 5:].max() > 0.01


def single(fn, arrays):
    sizes = {"B": BATCH, "L": LENGTH} | ({"S": SOURCE} if "source" in arrays else {})
    return mtf.single(mtf.plan(fn, "all:1", sizes=sizes))(**arrays)


# ---- on meshes --------------------------------------------------------------------------------------------------

MESHES = ("all:8", "rows:2 cols:4", "rows:4 cols:2", "x:2 y:2 z:2")
WIDE = SMALL.but(layers=2, d_ff=48, heads=8)  # sizes that 8 devices divide, where a layout may ask it
TOGETHER = [  # dimensions that some tensor has at once, so that no axis may be on two of them
    "V E", "P E", "B L E", "B S E", "E H D", "E K D", "E F", "B L F", "B H L S", "B K L S", "B S K D", "B L H D",
    "B S H D", "B L V",
]  # fmt: skip


def random_layout(random: np.random.Generator, mesh: mtf.Mesh, sizes: dict[str, int]) -> dict[str, tuple[str, ...]]:
    """Rules for a random choice of dimensions: legal for every tensor of the model, several axes on one included."""
    rules: dict[str, tuple[str, ...]] = {}
    for axis, size in mesh.axes:
        for dim in random.permutation(list(sizes)):
            others = {other for text in TOGETHER if dim in text.split() for other in text.split()} - {dim}
            taken = any(axis in rules.get(other, ()) for other in others)
            parts = mesh.group_size(rules.get(dim, ())) * size
            if not taken and sizes[dim] % parts == 0 and random.random() < 0.6:
                rules[str(dim)] = (*rules.get(dim, ()), axis)
    return rules


def random_case(number: int):
    """A configuration, a mesh and a layout, from a number."""
    random = np.random.default_rng(number)
    mesh = mtf.Mesh(MESHES[number % len(MESHES)])
    variant = list(VARIANTS)[number * 5 % len(VARIANTS)]
    cfg = WIDE.but(**VARIANTS[variant] | ({"heads": 6} if "kv_heads" in VARIANTS[variant] and number % 3 == 0 else {}))
    sizes = {"B": BATCH, "L": LENGTH, "S": LENGTH}
    sizes |= {dim.name: dim.size for p in cfg.params.values() for dim in p.dims if "layers" not in dim.name}
    return cfg, mesh, random_layout(random, mesh, sizes)


CASES = 100


@pytest.mark.parametrize("number", [*range(4), *map(some_long, range(4, CASES))])
def test_no_layout_changes_the_loss(number):
    cfg, mesh, rules = random_case(number)
    arrays = arrays_of(cfg, number, targets=True)
    arrays |= {"source": arrays["source"][:, :LENGTH]} if cfg.encoder_layers else {}  # which the layouts' axes divide
    sizes = {"B": BATCH, "L": LENGTH} | ({"S": LENGTH} if cfg.encoder_layers else {})
    prog = mtf.plan(mtf.model.loss(cfg), mesh, mtf.Layout(rules), sizes=sizes)
    # float32; the order of sums differs between devices and one device, no more
    np.testing.assert_allclose(mtf.simulate(prog)(**arrays), mtf.single(prog)(**arrays), rtol=2e-6)


def test_the_random_layouts_are_many_and_deep():
    cases = [random_case(number) for number in range(CASES)]
    used = {dim for _, _, rules in cases for dim in rules}
    assert used >= set("BLEFHKDVS")
    assert len({str(rules) for _, _, rules in cases}) > CASES * 0.8
    assert any(len(axes) > 1 for _, _, rules in cases for axes in rules.values())


# ---- dropout, recomputation -------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["multihead", some_long("encoder-decoder, parallel, grouped, rotary")])
def test_dropout_is_the_same_on_every_layout_and_another_for_every_seed(variant):
    cfg = small(variant).but(layers=2)
    arrays = arrays_of(cfg, targets=True)
    sizes = {"B": BATCH, "L": LENGTH} | ({"S": SOURCE} if cfg.encoder_layers else {})
    program = mtf.plan(mtf.model.loss(cfg, dropout=0.3), "rows:2 cols:2", "B:rows V:cols F:cols", sizes=sizes)
    found = [mtf.simulate(program)(**arrays, seed=seed) for seed in (1, 2)]
    np.testing.assert_allclose(found[0], mtf.single(program)(**arrays, seed=1), rtol=2e-6)
    assert abs(found[0] - found[1]) > 1e-3


def test_every_place_and_every_seed_draws_by_itself(monkeypatch):
    cfg = small("encoder-decoder")
    monkeypatch.setattr(mtf, "dropout", lambda t, rate, seed: seed)
    drawn = [
        drawing(cfg, 0.1, seed, prefix)(layer)(None, site)
        for seed in (0, 1, 2)
        for prefix, n, sublayers in (("", cfg.layers, 3), ("encoder_", cfg.encoder_layers, 2))
        for layer in range(n + 1)  # the last is the embedding
        for site in range(sublayers if layer < n else 1)
    ]
    assert len(set(drawn)) == len(drawn) == 3 * (cfg.layers * 3 + cfg.encoder_layers * 2 + 2)


@pytest.mark.long
def test_recomputed_layers_have_the_same_values():
    cfg = small("encoder-decoder")
    arrays = arrays_of(cfg, targets=True)
    found = [single(mtf.model.loss(cfg, recompute=again), arrays) for again in (False, True)]
    assert found[0] == found[1]


# ---- gradients --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "variant",
    ["as SmolLM2", *map(some_long, ("multihead", "as PaLM", "encoder-decoder, parallel, grouped, rotary"))],
)
def test_gradients_on_a_mesh_are_those_of_jax_on_one_device(variant):
    import jax

    from mtfcore.whole import run_graph

    cfg = small(variant).but(layers=2)
    arrays = arrays_of(cfg, targets=True)
    loss = mtf.model.loss(cfg)
    tokens = [name for name in loss.arguments if name not in cfg.params]

    def call(**tensors):
        return mtf.gradients(loss.call(**tensors), {name: tensors[name] for name in cfg.params})

    sizes = {"B": BATCH, "L": LENGTH} | ({"S": SOURCE} if cfg.encoder_layers else {})
    said, dtypes = arguments(cfg, *[name for name in tokens if name != "source"])
    program = mtf.plan(Function.of("step", said, call, dtypes), "rows:2 cols:2", "B:rows V:cols F:cols", sizes=sizes)
    found = mtf.simulate(program)(**arrays)
    graph = loss.trace(sizes)

    def plainly(params):
        return run_graph(graph, [{**arrays, **params}[name] for name in graph.inputs])[0]

    expected = jax.jit(jax.grad(plainly))({name: arrays[name] for name in cfg.params})
    for name, value in expected.items():
        # float32: sums in another order, relative to the largest entry of the gradient; a bias of the keys that are
        # not turned moves all scores of a query alike, so that its gradient is 0 but for rounding
        tolerance = 1e-5 * np.abs(value).max() + 1e-8
        np.testing.assert_allclose(found[name], value, rtol=0, atol=tolerance, err_msg=name)
