"""Configurations: the published sizes from their dimensions, and what is refused."""

from __future__ import annotations

import dataclasses

import pytest

import mtfcore as mtf
from mtfcore.model.published import CONFIGS

# Mesh-TensorFlow (arXiv 1811.02084): billions of parameters as printed in Table 2 and Table 3, by d_ff and heads.
TABLE_2 = {
    "mtf-lm-0.14b": (4_096, 4, 0.14), "mtf-lm-0.22b": (8_192, 8, 0.22), "mtf-lm-0.37b": (16_384, 16, 0.37),
    "mtf-lm-0.67b": (32_768, 32, 0.67), "mtf-lm-1.28b": (65_536, 64, 1.28), "mtf-lm-2.48b": (131_072, 128, 2.48),
    "mtf-lm-4.9b": (262_144, 256, 4.9),
}  # fmt: skip
TABLE_3 = {
    "mtf-translate-0.15b": (2_048, 4, 0.15), "mtf-translate-0.24b": (4_096, 8, 0.24),
    "mtf-translate-0.42b": (8_192, 16, 0.42), "mtf-translate-0.77b": (16_384, 32, 0.77),
    "mtf-translate-1.48b": (32_768, 64, 1.48), "mtf-translate-2.89b": (65_536, 128, 2.89),
    "mtf-translate-0.21b": (4_096, 16, 0.21),
}  # fmt: skip
CUT_NOT_ROUNDED = ("mtf-translate-0.15b",)  # its dimensions make 0.155; the table prints 0.15


@pytest.mark.parametrize("name", [*TABLE_2, *TABLE_3])
def test_the_first_papers_sizes_follow_from_their_dimensions(name):
    cfg = mtf.model.config(name)
    d_ff, heads, printed = (TABLE_2 | TABLE_3)[name]
    assert (cfg.d_ff, cfg.heads, cfg.kv_heads, cfg.d_model) == (d_ff, heads, heads, 1_024)
    assert (cfg.layers, cfg.encoder_layers) == ((6, 0) if name in TABLE_2 else (6, 6))
    last_digit = 0.1 if name == "mtf-lm-4.9b" else 0.01  # half of it is what rounding takes or adds
    billions = cfg.n_params / 1e9
    if name in CUT_NOT_ROUNDED:
        assert printed <= billions < printed + last_digit
    else:
        assert abs(billions - printed) <= last_digit / 2


@pytest.mark.parametrize("name", [*TABLE_2, *TABLE_3])
def test_matrices_alone_are_the_closed_form(name):
    cfg = mtf.model.config(name)
    attention = 4 * cfg.heads * cfg.head_size * cfg.d_model
    layer = attention + 2 * cfg.d_model * cfg.d_ff
    blocks = cfg.layers * layer + (cfg.layers * attention + cfg.encoder_layers * layer if cfg.encoder_layers else 0)
    tables = (1 if cfg.tied else 2) * cfg.vocab * cfg.d_model
    small = [p for p in cfg.params.values() if p.name.endswith(("_scale", "positions"))]
    assert cfg.n_params - sum(p.n_elements for p in small) == blocks + tables


# PaLM (arXiv 2204.02311), Table 1: billions as printed. The dimensions make 540.357 of matrices alone, so the printed
# figure is not their rounding: 1 in 10,000 is asked for here.
@pytest.mark.parametrize(("name", "printed"), [("palm-8b", 8.63), ("palm-62b", 62.50), ("palm-540b", 540.35)])
def test_palms_sizes_follow_from_its_dimensions(name, printed):
    cfg = mtf.model.config(name)
    assert cfg.n_params / 1e9 == pytest.approx(printed, rel=1e-4 if printed > 50 else 5e-4)
    assert (cfg.attention, cfg.block, cfg.gated, cfg.d_ff) == ("multiquery", "parallel", True, 4 * cfg.d_model)


def test_palm_padded_to_64_heads_has_18_billion_more():
    """Efficiently Scaling Transformer Inference (arXiv 2211.05102), section 4: 18B."""
    cfg = mtf.model.config("palm-540b")
    more = cfg.but(heads=64).n_params - cfg.n_params
    assert more == 118 * 2 * 18_432 * 16 * 256 and round(more / 1e9) == 18


def test_other_published_sizes():
    nlg = mtf.model.config("mt-nlg-530b")  # arXiv 2211.05102, Table D.1
    assert nlg.n_params / 1e9 == pytest.approx(530, rel=1e-3)
    assert (nlg.heads, nlg.head_size, nlg.attention, nlg.block) == (128, 160, "multihead", "serial")
    gpt = mtf.model.config("gpt-3-175b")  # arXiv 2005.14165, Table 2.1, prints 175.0; its dimensions make 174.6
    assert gpt.n_params / 1e9 == pytest.approx(175.0, rel=3e-3)
    assert (gpt.heads * gpt.head_size, gpt.d_ff) == (gpt.d_model, 4 * gpt.d_model)


# Open models: the number of parameters that their checkpoints' metadata give, exactly.
OPEN = {
    "llama-2-7b": 6_738_415_616, "llama-2-13b": 13_015_864_320, "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248, "llama-3-70b": 70_553_706_496, "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496, "llama-3.1-405b": 405_853_388_800, "mistral-7b": 7_248_023_552,
    "qwen2.5-7b": 7_615_616_512, "qwen2.5-72b": 72_706_203_648, "smollm2-135m": 134_515_008,
}  # fmt: skip


@pytest.mark.parametrize(("name", "n_params"), OPEN.items())
def test_open_models_have_exactly_the_parameters_of_their_checkpoints(name, n_params):
    cfg = mtf.model.config(name)
    assert cfg.n_params == n_params
    assert (cfg.norm, cfg.activation, cfg.positions, cfg.block) == ("rms", "swiglu", "rotary", "serial")
    assert cfg.heads * cfg.head_size == cfg.d_model and "huggingface.co/" in cfg.source


def test_smollm2_is_as_its_file_has_it():
    smol = mtf.model.config("smollm2-135m")
    assert (smol.heads, smol.kv_heads, smol.attention) == (9, 3, "grouped")
    assert (smol.max_length, smol.rotary_base, smol.norm_eps, smol.tied) == (8_192, 100_000, 1e-5, True)


def test_biases_of_queries_keys_and_values_alone():
    cfg = mtf.model.config("tiny-grouped", qkv_biases=True)
    assert {name for name in cfg.params if name.startswith("b")} == {"bq", "bk", "bv"}
    assert cfg.params["bq"].text == "layers:2 H:8 D:16" and cfg.params["bk"].text == "layers:2 K:2 D:16"
    assert mtf.model.config("qwen2.5-7b").qkv_biases and not mtf.model.config("llama-3-8b").qkv_biases


def test_every_configuration_says_its_source():
    for name, cfg in CONFIGS.items():
        assert cfg.name == name
        assert "arXiv" in cfg.source or name.startswith("tiny-") or "huggingface.co/" in cfg.source
    with pytest.raises(dataclasses.FrozenInstanceError):
        CONFIGS["tiny-lm"].layers = 3


def test_changing_the_heads_keeps_the_kind_of_attention():
    assert mtf.model.config("tiny-lm", heads=4).attention == "multihead"
    assert mtf.model.config("tiny-palm", heads=4).attention == "multiquery"
    assert mtf.model.config("tiny-lm", heads=4, kv_heads=2).attention == "grouped"
    assert mtf.model.config(mtf.model.config("tiny-lm"), layers=1).layers == 1


@pytest.mark.parametrize(
    ("name", "changes", "texts"),
    [
        ("mtf-lm-4.9", {}, ["no model 'mtf-lm-4.9'; did you mean 'mtf-lm-4.9b'?"]),
        ("PALM-8B", {}, ["did you mean 'palm-8b'?"]),
        (3, {}, ["no model 3"]),
        (["tiny-lm"], {}, ["no model ['tiny-lm']"]),
        # 24 query heads, and what somebody means by "groups = 4"
        ("tiny-lm", {"heads": 24, "kv_heads": 5},
         ["config 'tiny-lm': heads 24 do not divide by kv_heads 5; kv_heads may be 1, 2, 3, 4, 6, 8, 12, 24"]),
        ("tiny-lm", {"heads": 24, "groups": 4},
         ["no field 'groups'; say kv_heads, the number of key and value heads"]),
        ("tiny-lm", {"d_modle": 24}, ["no field 'd_modle'; did you mean 'd_model'?"]),
        ("tiny-lm", {"layers": 0, "vocab": 2.5, "heads": True, "encoder_layers": -1},
         ["4 faults", "layers is 0;", "vocab is 2.5;", "heads is True;", "encoder_layers is -1;"]),
        ("palm-540b", {"heads": 61 * 10**30, "layers": 10**17, "encoder_layers": 10**17},
         ["3 faults", "heads is over 1e+16; no model has that", "layers is over", "encoder_layers is over"]),
        ("palm-540b", {"heads": 10**15}, ["it has over 5.6e+23 parameters; no model has over 1e+16"]),
        ("tiny-lm", {"vocab": 10**15}, ["parameters; no model has over"]),
        ("tiny-lm", {"layers": 1, "d_model": 1, "head_size": 1, "heads": 2 * 10**12 + 1, "kv_heads": 2},
         ["kv_heads may be 1, "]),
        ("tiny-lm", {"norm_eps": 10**5_000, "rotary_base": 1e39},
         ["norm_eps is a whole number of 16,610 bits; expected a positive number below 1e+38", "rotary_base is 1e+39"]),
        ("tiny-lm", {"norm": "rns", "block": "paralel", "activation": "gated", "positions": None},
         ["4 faults", "did you mean 'rms'?", "did you mean 'parallel'?", "activation is 'gated'; legal here: 'relu'",
          "positions is None;"]),
        ("tiny-lm", {"tied": 1, "norm_eps": 0}, ["tied is 1; expected True or False", "norm_eps is 0;"]),
        ("tiny-palm", {"head_size": 15}, ["head_size must be even; it is 15, try 14 or 16"]),
    ],
)  # fmt: skip
def test_what_is_refused(name, changes, texts):
    with pytest.raises(mtf.LayoutError) as refusal:
        mtf.model.config(name, **changes)
    for text in texts:
        assert text in str(refusal.value)


def test_a_name_that_the_package_lacks():
    with pytest.raises(AttributeError, match=r"module 'mtfcore\.model' has no attribute 'nothing'"):
        mtf.model.nothing  # noqa: B018
    assert set(mtf.model.__all__) <= set(dir(mtf.model))
