"""The block: which collectives the papers' layouts cost, and its parts by themselves."""

from __future__ import annotations

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.functions import Function
from mtfcore.model import block as blocks

SIZES = {"B": 8, "L": 16}


def layer_program(cfg, mesh, layout, dtype="f32", **more):
    """One block as a program of its own: x and the parameters of one layer."""
    stacked = {name: param for name, param in cfg.params.items() if param.dims[0].name == "layers"}
    said = {"x": f"B L E:{cfg.d_model}"} | {name: param.text.split(" ", 1)[1] for name, param in stacked.items()}

    def call(x, **w):
        turns = blocks.rotary(cfg, mtf.index("L", x), x.dtype) if cfg.positions == "rotary" else None
        return blocks.block(cfg, x, w, see=blocks.causal(x) if cfg.causal else None, turns=turns)

    return mtf.plan(Function.of("layer", said, call), mesh, layout, sizes=SIZES, dtype=dtype, **more)


def told(program):
    """Each collective in a few words: kind, axes, and where its result lies."""
    return [f"{step.kind} {' '.join(step.axes)}: {step.arrow()}" for step in program.collectives()]


REDUCED = "all_reduce cols: B:rows L E partialsum:cols → B:rows L E"


# ---- the layouts of section 9 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("name", ["tiny-lm", "tiny-grouped"])
def test_each_sublayer_costs_one_all_reduce(name, dtype):
    cfg = mtf.model.config(name)
    program = layer_program(cfg, "rows:4 cols:2", mtf.Layout("B:rows F:cols H:cols"), dtype, strict=True)
    assert told(program) == [REDUCED, REDUCED]
    size = {"f32": 4, "bf16": 2}[dtype]
    assert [step.n_bytes for step in program.collectives()] == [8 // 4 * 16 * 64 * size] * 2


def test_one_axis_for_vocab_d_ff_and_heads():
    program = layer_program(mtf.model.config("tiny-lm"), "all:8", mtf.Layout("F:all H:all"))
    assert told(program) == ["all_reduce all: B L E partialsum:all → B L E"] * 2


def test_side_by_side_the_sublayers_share_one():
    """Efficiently Scaling Transformer Inference (arXiv 2211.05102), section 3.4."""
    program = layer_program(mtf.model.config("tiny-palm"), "rows:4 cols:2", mtf.Layout("B:rows F:cols H:cols"))
    assert told(program) == [REDUCED]


def test_data_parallel_costs_nothing_forward():
    for name in ("tiny-lm", "tiny-grouped", "tiny-palm"):
        assert told(layer_program(mtf.model.config(name), "all:8", mtf.Layout("B:all"))) == []


def test_the_biases_are_added_once():
    cfg = mtf.model.config("tiny-lm", biases=True)
    program = layer_program(cfg, "rows:4 cols:2", mtf.Layout("B:rows F:cols H:cols"))
    assert told(program) == [REDUCED, REDUCED]


def test_in_three_dimensions_every_product_sums_over_one_axis():
    """d_model on planes: products with E inside sum over planes, those with H or F over cols, and norms over planes."""
    layout = mtf.Layout("B:rows F:cols H:cols E:planes")
    program = layer_program(mtf.model.config("tiny-lm", norm="rms"), "rows:2 cols:2 planes:2", layout)
    into = lambda dims: f"all_reduce planes: B:rows L {dims} partialsum:planes → B:rows L {dims}"  # noqa: E731
    out = "all_reduce cols: B:rows L E:planes partialsum:cols → B:rows L E:planes"
    norm, qkv = "all_reduce planes: B:rows L partialsum:planes → B:rows L", [into("H:cols D")] * 3
    assert told(program) == [norm, *qkv, out, norm, into("F:cols"), out]


def test_a_whole_language_model_in_a_strict_plan():
    """The largest model of Table 2 on the mesh it was trained on (section 9; 512 cores as 16 x 32)."""
    cfg = mtf.model.config("mtf-lm-4.9b")
    program = mtf.plan(
        mtf.model.loss(cfg), "rows:16 cols:32", mtf.model.partitions["mtf-2d"].layout, sizes="B:256 L:256",
        dtype="bf16", strict=True,
    )  # fmt: skip
    steps = [(step.label(), step.times) for step in program.collectives()]
    assert steps == [
        ("all_reduce over cols", 1),  # the embedding
        ("all_reduce over cols", 6), ("all_reduce over cols", 6),  # attention and feedforward of each layer
        ("all_reduce over cols", 1),  # the targets' logits
        ("all_reduce (max) over cols", 1), ("all_reduce over cols", 1),  # the softmax's largest, and its sum
        ("all_reduce over rows", 1),  # the mean over the batch
    ]  # fmt: skip
    hidden = 256 // 16 * 256 * 1_024 * 2  # bytes of B:rows L E in bf16
    assert [step.n_bytes for step in program.collectives()][:3] == [hidden] * 3
    per_token = 6 * (4 * 256 * 256 * 1_024 + 2 * 1_024 * 262_144) + 32_768 * 1_024  # multiply-adds of matrices
    attention = 6 * 2 * 256 * 256 * 256  # and of scores and mixtures, over 256 positions
    looked_up = 32_768  # the target's logit, as a product with a one-hot row
    assert program.flops() * 512 == 2 * 256 * 256 * (per_token + attention + looked_up)


def test_the_backward_of_each_sublayer_costs_one_all_reduce_too():
    """And every gradient one over rows, for the batch is split there: 4 and 2 matrices and 2 norms a layer.

    The devices along cols have the same norms; they share that work, each a part, and gather it: 64 bytes each.
    """
    cfg = mtf.model.config("mtf-lm-4.9b")
    loss = mtf.model.loss(cfg)
    call = lambda **given: mtf.gradients(loss.call(**given), {name: given[name] for name in cfg.params})  # noqa: E731
    said, dtypes = mtf.model.arguments(cfg, "inputs", "targets")
    layout = mtf.model.partitions["mtf-2d"].layout
    program = mtf.plan(
        Function.of("step", said, call, dtypes), "rows:16 cols:32", layout, sizes="B:256 L:256", dtype="bf16",
        strict=True,
    )  # fmt: skip
    layers = [step for step in program.collectives() if step.times == 6]
    inside = [(step.kind, *step.axes) for step in layers if step.n_bytes > 64]
    assert sorted(inside) == [("all_reduce", "cols")] * (2 + 2) + [("all_reduce", "rows")] * (4 + 2)
    norms = [(step.kind, *step.axes) for step in layers if step.n_bytes <= 64]
    assert sorted(norms) == [("all_gather", "cols")] * 2 + [("all_reduce", "rows")] * 2


def test_a_translation_model_in_a_strict_plan():
    cfg = mtf.model.config("mtf-translate-2.89b")
    program = mtf.plan(
        mtf.model.loss(cfg, pad=0, label_smoothing=0.1), "rows:16 cols:8", mtf.model.read_layout("mtf-2d"),
        sizes="B:128 L:256 S:256", dtype="bf16", strict=True,
    )  # fmt: skip
    inside = [step.times for step in program.collectives() if step.times > 1]
    assert inside == [6] * 5  # two sublayers of the encoder, three of the decoder


# ---- its parts --------------------------------------------------------------------------------------------------


def run(call, arrays, mesh="all:1", layout="", **dims):
    """A function of arrays whose dimensions are given, on a mesh: its result, and the program."""
    sizes = {letter: size for name, text in dims.items() for letter, size in zip(text.split(), arrays[name].shape)}
    program = mtf.plan(Function.of("part", dims, call), mesh, layout, sizes=sizes)
    return mtf.simulate(program)(**arrays), program


@pytest.mark.parametrize(
    ("kv_heads", "layout"), [(4, "S:all"), (2, "S:all"), (1, "S:all"), (2, "H:all"), (2, "H:all K:all"), (1, "L:all")]
)
def test_attention_where_positions_or_heads_are_split(kv_heads, layout):
    """Split memory: the softmax crosses devices, and the mixture of values is a partial sum."""
    cfg = mtf.model.config("tiny-lm", heads=4, kv_heads=kv_heads, head_size=8)
    heads = {4: "H", 2: "K", 1: ""}[kv_heads]
    random = np.random.default_rng(0)
    shape = (4, 8, *([kv_heads] if heads else []), 8)
    arrays = {"q": random.normal(size=(4, 8, 4, 8)), "k": random.normal(size=shape), "v": random.normal(size=shape)}
    arrays = {name: value.astype(np.float32) for name, value in arrays.items()}
    call = lambda q, k, v: mtf.reshard(blocks.attend(cfg, q, k, v, blocks.causal(q)), "B L H D")  # noqa: E731
    found, program = run(call, arrays, "all:2", layout, q="B L H D", k=f"B S {heads} D", v=f"B S {heads} D")
    q, k, v = (arrays[name].astype(np.float64) for name in "qkv")
    k, v = (np.repeat(t.reshape(4, 8, kv_heads, 8), 4 // kv_heads, axis=2) for t in (k, v))
    scores = np.einsum("blhd,bshd->bhls", q, k) / np.sqrt(8)
    scores = np.where(np.tril(np.ones((8, 8), bool)), scores, -np.inf)
    chances = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("bhls,bshd->blhd", chances / chances.sum(-1, keepdims=True), v)
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert bool(program.collectives()) == (layout == "S:all")


def test_few_key_heads_on_a_wide_axis_cost_moves_and_keep_the_values():
    """Two key and value heads for an axis of four: query heads cannot keep their axis when they are grouped."""
    cfg = mtf.model.config("tiny-lm", heads=4, kv_heads=2, head_size=8)
    random = np.random.default_rng(1)
    arrays = {"q": random.normal(size=(4, 8, 4, 8)).astype(np.float32)}
    arrays |= {name: random.normal(size=(4, 8, 2, 8)).astype(np.float32) for name in "kv"}
    call = lambda q, k, v: mtf.reshard(blocks.attend(cfg, q, k, v), "B L H D")  # noqa: E731
    found, program = run(call, arrays, "all:4", "H:all", q="B L H D", k="B S K D", v="B S K D")
    np.testing.assert_allclose(found, mtf.single(program)(**arrays), atol=2e-6)
    assert program.collectives()


def test_rotary_scores_depend_on_distances_alone():
    cfg = mtf.model.config("tiny-palm", head_size=8)
    vector = np.random.default_rng(2).normal(size=(2, 8)).astype(np.float32)
    t = np.broadcast_to(vector[:, None, None, :], (2, 12, 1, 8)).copy()  # q and k, the same at every position
    turned, _ = run(lambda t: blocks.rotated(t, blocks.rotary(cfg, mtf.index("L", t), "f32")), {"t": t}, t="B L H D")
    q, k = turned[:, :, 0]
    scores = q @ k.T
    for distance in range(-3, 4):
        diagonal = np.diagonal(scores, distance)
        np.testing.assert_allclose(diagonal, diagonal[0], atol=1e-5)
    assert np.ptp(scores[0]) > 0.1
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(t, axis=-1), rtol=1e-5)


def test_half_precision_keeps_norms_and_softmax_in_float32():
    program = layer_program(mtf.model.config("tiny-lm"), "all:2", "B:all", dtype="bf16")
    dtypes = {step.params.get("fn"): step.dtype for step in program.steps}
    kept = {fn: dtypes[fn] for fn in ("rsqrt", "exp", "relu")}
    assert kept == {"rsqrt": "f32", "exp": "f32", "relu": "bf16"}
    assert program.outputs[0].dtype == "bf16"


def test_half_precision_stays_near_float32():
    """bfloat16 rounds to 1/256; the steps of a layer, one behind the other, stay within ten times that."""
    import ml_dtypes

    cfg = mtf.model.config("tiny-grouped", d_model=32, d_ff=64)
    params = mtf.model.initial(cfg)
    random = np.random.default_rng(3)
    arrays = {"x": random.normal(size=(8, 16, 32)).astype(np.float32)}
    arrays |= {name: value[0] for name, value in params.items() if cfg.params[name].dims[0].name == "layers"}
    exact = mtf.single(layer_program(cfg, "all:1", ""))(**arrays)
    halves = {name: value.astype(ml_dtypes.bfloat16) for name, value in arrays.items()}
    found = mtf.simulate(layer_program(cfg, "rows:2 cols:2", "B:rows F:cols H:cols", dtype="bf16"))(**halves)
    np.testing.assert_allclose(found.astype(np.float32), exact, atol=10 / 256 * np.abs(exact).max())


def test_more_positions_than_are_learned():
    with pytest.raises(mtf.LayoutError, match="tiny-lm has 128 learned positions, fewer than the length 256"):
        mtf.plan(mtf.model.forward(mtf.model.config("tiny-lm")), "all:1", sizes="B:2 L:256")


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ({"label_smothing": 0.1}, ["no option 'label_smothing'; did you mean 'label_smoothing'?"]),
        ({"dropout": 1, "label_smoothing": "a", "pad": 0.5},
         ["3 faults", "dropout is 1; expected a share", "label_smoothing is 'a';", "pad is 0.5;"]),
    ],
)  # fmt: skip
def test_options_that_are_refused(options, texts):
    with pytest.raises(mtf.LayoutError) as refusal:
        mtf.model.loss("tiny-lm", **options)
    for text in texts:
        assert text in str(refusal.value)


def test_what_is_missing_or_does_not_fit_is_named():
    loss = mtf.model.loss("tiny-lm")
    with pytest.raises(mtf.LayoutError, match="no size for dimension 'L'"):
        mtf.plan(loss, "all:2", sizes="B:2")
    with pytest.raises(mtf.LayoutError, match=r"argument embedding says E:64, sizes say E:32"):
        mtf.plan(loss, "all:2", sizes="B:2 L:8 E:32")
    with pytest.raises(mtf.LayoutError, match=r"input wq: .*H of size 8 does not divide over mesh axis all:3"):
        mtf.plan(loss, "all:3", "H:all", sizes="B:2 L:8")
