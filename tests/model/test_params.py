"""The declaration of the parameters, their first values, and the named layouts."""

from __future__ import annotations

import numpy as np
import pytest
from model.rule_layouts import PARTITIONS

import mtfcore as mtf
from mtfcore.model.params import layer_names
from mtfcore.model.published import CONFIGS

ODD = {"smollm2-135m": "H", "gpt-3-175b": "V"}  # 9 heads, and a vocabulary of 50,257: neither divides by 2


def test_heads_of_keys_are_those_of_the_kind_of_attention():
    texts = {name: mtf.model.config(name).params["wk"].text for name in ("tiny-lm", "tiny-grouped", "tiny-palm")}
    assert texts == {
        "tiny-lm": "layers:2 E:64 H:8 D:16", "tiny-grouped": "layers:2 E:64 K:2 D:16",
        "tiny-palm": "layers:2 E:64 D:16",
    }  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_every_layout_of_rules_places_every_parameter(name):
    refused, odd = set(), ODD.get(name, "")
    for partition in PARTITIONS.values():
        mesh = mtf.Mesh([(axis, 2) for axis in partition.axes])
        for param in mtf.model.config(name).params.values():
            try:
                s = partition.layout.sharding(param.dims, mesh)
            except mtf.LayoutError:
                refused.add(partition.name)
                continue
            assert s.dims == param.dims and np.prod(s.local_shape(mesh)) * 2 ** len(s.used()) == param.n_elements
    assert refused == {each.name for each in PARTITIONS.values() if odd in [dim for dim, _ in each.layout.rules]}


def test_stacks_come_first_and_the_block_sees_its_own_names():
    cfg = mtf.model.config("tiny-translate")
    own, encoder = layer_names(cfg), layer_names(cfg, "encoder_")
    assert set(own) - set(encoder) == {"cross_norm_scale", "cross_wq", "cross_wk", "cross_wv", "cross_wo"}
    assert set(encoder) < set(own) and encoder["wq"] == "encoder_wq"
    assert all(cfg.params[name].dims[0].name == "layers" for name in own.values())
    assert all(cfg.params[name].dims[0].name == "encoder_layers" for name in encoder.values())
    rest = set(cfg.params) - set(own.values()) - set(encoder.values())
    assert rest == {
        "embedding", "positions", "encoder_positions", "final_norm_scale", "encoder_final_norm_scale", "softmax",
    }  # fmt: skip


def test_biases_stand_beside_every_product_and_norm():
    cfg = mtf.model.config("tiny-lm", biases=True, activation="swiglu")
    names = set(cfg.params)
    products = {name for name in names if name.startswith("w")}
    assert {f"b{name[1:]}" for name in products} == {name for name in names if name.startswith("b")}
    assert {name.replace("_scale", "_bias") for name in names if "_scale" in name} <= names
    assert "final_norm_bias" not in mtf.model.config("tiny-lm", biases=True, norm="rms").params


def test_first_values_depend_on_name_and_seed_only():
    cfg = mtf.model.config("tiny-lm")
    made, other = mtf.model.initial(cfg, 1), mtf.model.initial(cfg.but(tied=True), 1)
    assert [*made] == [*cfg.params] and all(value.dtype == np.float32 for value in made.values())
    for name, value in other.items():
        np.testing.assert_array_equal(value, made[name])
    turned = mtf.model.initial(dict(reversed(cfg.params.items())), 1)
    assert all((turned[name] == made[name]).all() for name in made)
    assert (mtf.model.initial(cfg, 2)["wq"] != made["wq"]).any() and (made["wk"] != made["wq"]).any()


def test_first_values_have_the_variance_that_is_declared():
    cfg = mtf.model.config("tiny-lm")
    made = mtf.model.initial(cfg)
    assert made["wq"].std() == pytest.approx(64**-0.5, rel=0.05)  # 1/√(what is summed over)
    assert made["w_out"].std() == pytest.approx((256 * 2 * 2) ** -0.5, rel=0.05)  # and over two sublayers a layer
    assert made["embedding"].std() == pytest.approx(64**-0.5, rel=0.05)
    assert (made["ffn_norm_scale"] == 1).all()
    assert (mtf.model.initial(cfg.but(biases=True))["bq"] == 0).all()


@pytest.mark.parametrize("seed", [-1, 1.5, None, "one"])
def test_a_seed_that_is_none(seed):
    with pytest.raises(mtf.LayoutError, match="expected a whole number, 0 or more"):
        mtf.model.initial(mtf.model.config("tiny-lm"), seed)


# ---- layouts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("vocab:all d_ff:all heads:all", "V:all F:all H:all"),  # section 9
        ("batch:rows;vocab:cols;d_ff:cols;heads:cols", "B:rows V:cols F:cols H:cols"),
        ("B:rows V:cols F:cols H:cols", "B:rows V:cols F:cols H:cols"),
        ("batch:(x y) E:z kv_heads:x d_k:z length:w memory_length:w", "B:xy E:z K:x D:z L:w S:w"),
        ("mtf-3d", "B:rows V:cols F:cols H:cols E:planes"),
        (" mtf-1d ", "V:all F:all H:all"),
        (mtf.Layout("batch:rows"), "B:rows"),
        ("", ""),
    ],
)
def test_layouts_in_words_and_letters(text, letters):
    assert mtf.model.read_layout(text) == mtf.Layout(letters)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hidden:cols batchs:rows", ["2 faults", "no dimension 'hidden'", "did you mean 'batch'?"]),
        ("batch:rows B:cols", ["dimension 'B' has 2 rules"]),
        ("mtf-4d", ["no partition 'mtf-4d'; did you mean 'mtf-3d'? legal here: 'mtf-data'"]),
        (" ws2d-head ", ["no partition 'ws2d-head'; did you mean 'ws2d-heads'?"]),
    ],
)
def test_layouts_that_are_refused(text, found):
    with pytest.raises(mtf.LayoutError) as refusal:
        mtf.model.read_layout(text)
    for part in found:
        assert part in str(refusal.value)


def test_partitions_are_data_with_a_source():
    for name, partition in PARTITIONS.items():
        assert partition.name == name and "arXiv" in partition.source
        assert {axis for _, axes in partition.layout.rules for axis in axes} == set(partition.axes)
        assert mtf.model.read_layout(partition) == mtf.model.read_layout(name) == partition.layout
