"""Configurations from files: the Llama family's and our own; and whatever else a file may hold, refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mtfcore as mtf
from mtfcore.model.config_files import NAMES
from mtfcore.model.plain_json import MOST_BYTES
from mtfcore.model.published import CONFIGS

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672,
    "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 8192, "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
    "tie_word_embeddings": False, "attention_bias": False, "torch_dtype": "bfloat16", "rope_scaling": None,
}  # fmt: skip


@pytest.fixture
def write(tmp_path):
    def put(what, name="config.json"):
        path = tmp_path / name
        path.write_bytes(what if isinstance(what, bytes) else json.dumps(what).encode())
        return path

    return put


def same_but_for_words(a: mtf.model.Config, b: mtf.model.Config) -> bool:
    words = {"name": "", "source": ""}
    return a.but(**words) == b.but(**words)


def test_a_llama_file_is_the_published_model(write):
    path = write(LLAMA)
    for given_as in (path, str(path), path.parent, str(path.parent)):
        assert same_but_for_words(mtf.model.config(given_as), CONFIGS["llama-3-70b"])
    cfg = mtf.model.config(path, layers=2)
    assert (cfg.layers, cfg.source, cfg.name) == (2, "the file config.json", path.parent.name)
    assert mtf.model.config_file(write(LLAMA, "seventy.json")).name == "seventy"


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"head_dim": 64}, "head_size", 64),
        ({"num_key_value_heads": None}, "kv_heads", 64),  # Llama's first models have none of their own
        ({"tie_word_embeddings": True}, "tied", True),
        ({"hidden_act": "gelu_pytorch_tanh"}, "activation", "geglu"),
        ({"model_type": None}, "heads", 64),  # the class alone says it
        ({"model_type": "qwen2"}, "qkv_biases", True),
        ({"model_type": "mistral", "sliding_window": None}, "qkv_biases", False),
        ({"attention_bias": True, "mlp_bias": True}, "biases", True),
        ({"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 7e4}}, "rotary_base", 7e4),
        ({"sliding_window": 4096, "use_sliding_window": False}, "left_out", ""),
    ],
)
def test_what_is_read(write, changes, field, value):
    assert getattr(mtf.model.config_file(write({**LLAMA, **changes}), strict=True), field) == value


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("none/x.json", r"cannot be written: No such file or directory; make its folder first: os\.makedirs\("),
        (".", r"cannot be written: Is a directory; give the path of a file, such as 'config\.json'"),
        ("x" * 300, "cannot be written: File name too long; give"),
        ("x\0.json", "cannot be written: this cannot be the name of a file; give"),
        ("\ud800.json", "cannot be written: this cannot be the name of a file; give"),
    ],
)
def test_a_place_where_no_file_can_be_written_is_refused(tmp_path, path, said):
    with pytest.raises(mtf.LayoutError, match=said):
        mtf.model.save_config("tiny-lm", tmp_path / path)


@pytest.mark.parametrize("name", CONFIGS)
def test_our_own_files_give_back_the_same(tmp_path, name):
    path = mtf.model.save_config(CONFIGS[name], tmp_path / f"{name}.json")
    assert mtf.model.config_file(path, strict=True) == CONFIGS[name]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "its rotary positions are scaled"),
        ({"rope_parameters": {"type": "yarn"}}, "its rotary positions are scaled"),
        ({"sliding_window": 4096}, "a window of 4096 positions"),
    ],
)
def test_what_a_configuration_cannot_say_is_said(write, changes, said):
    path = write({**LLAMA, **changes})
    with pytest.warns(mtf.LayoutWarning, match=said):
        cfg = mtf.model.config(path)
    assert said in cfg.left_out and cfg.n_params == CONFIGS["llama-3-70b"].n_params
    with pytest.raises(mtf.LayoutError, match=said):
        mtf.model.config_file(path, strict=True)


def test_unknown_names_are_warned_of_all_at_once(write):
    path = write({**LLAMA, "surprise": 1, "novelty": [2]})
    with pytest.warns(mtf.LayoutWarning, match="not read: surprise, novelty"):
        mtf.model.config_file(path)
    with pytest.raises(mtf.LayoutError, match="not read: surprise, novelty"):
        mtf.model.config_file(path, strict=True)


WRONG = [
    ({**LLAMA, "num_attention_heads": -3, "vocab_size": 2.5, "hidden_size": True},
     ["3 faults", "num_attention_heads is -3;", "vocab_size is 2.5;", "hidden_size is True;"]),
    ({"model_type": "llama"}, ["6 faults", "hidden_size is missing", "max_position_embeddings is missing"]),
    ({**LLAMA, "model_type": "mixtral"}, ["'mixtral' is not supported; did you mean 'mistral'?", "Experts"]),
    ({**LLAMA, "model_type": "gemma2"}, ["'gemma2' is not supported", "'llama', 'mistral', 'qwen2'"]),
    ({**LLAMA, "model_type": ["llama"]}, ["model_type ['llama'] is not supported"]),
    ({"architectures": ["FalconForCausalLM"]}, ["'FalconForCausalLM' is not supported"]),
    ({"hello": 1}, ["model_type is missing"]),
    # What somebody means by "groups"
    ({**LLAMA, "groups": 4}, ["groups: groups are read as a number of heads by some and as a divisor by others"]),
    ({**LLAMA, "n_query_groups": 4}, ["n_query_groups: groups", "say key and value heads"]),
    ({**LLAMA, "num_key_value_heads": 6}, ["heads 64 do not divide by kv_heads 6; kv_heads may be 1, 2, 4, 8"]),
    ({**LLAMA, "model_type": "mistral", "num_key_value_heads": None}, ["num_key_value_heads is missing"]),
    ({**LLAMA, "num_attention_heads": 60}, ["8192 does not divide by num_attention_heads 60; give head_dim"]),
    ({**LLAMA, "hidden_act": "relu"}, ["hidden_act is 'relu'; legal here: 'silu'"]),
    ({**LLAMA, "attention_bias": True}, ["attention_bias and mlp_bias differ"]),
    ({**LLAMA, "rms_norm_eps": 0, "rope_theta": "big", "tie_word_embeddings": 1},
     ["3 faults", "rms_norm_eps is 0;", "rope_theta is 'big';", "tie_word_embeddings is 1;"]),
    ({**LLAMA, "hidden_size": 10**30}, ["hidden_size is over 1e+16"]),
    ({**LLAMA, "hidden_size": 2**40, "intermediate_size": 2**40}, ["parameters; no model has over 1e+16"]),
    ({"model_type": "meshwork", "name": "mine", "groups": 3},
     ["8 faults", "no field 'groups'; groups are", "head_size is missing"]),
    ([LLAMA], ["holds a list; expected an object"]),
    (b"[" * 400_000, ["nested too deeply"]),
    (b'{"a":' * 100_000, ["nested too deeply"]),
    (b'{"hidden_size": NaN}', ["NaN is not a number"]),
    (b'{"hidden_size": -Infinity}', ["-Infinity is not a number"]),
    (b'{"hidden_size": ' + b"9" * 6_000 + b"}", ["a number has 6,000 digits"]),
    (b'{"hidden_size": 1, "hidden_size": 2}', ["the name 'hidden_size' stands twice"]),
    (b"\xff\xfe{}", ["no JSON that can be read"]),
    (b"", ["no JSON that can be read"]),
    (b" " * (MOST_BYTES + 1), ["has more than 1,048,576 bytes"]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "texts"), WRONG, ids=[texts[0][:30] for _, texts in WRONG])
def test_what_is_refused(write, content, texts):
    with pytest.raises(mtf.LayoutError) as refusal:
        mtf.model.config_file(write(content))
    for text in texts:
        assert text in str(refusal.value)


def test_a_path_without_a_file(tmp_path):
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(mtf.LayoutError, match=r"no file .*JSON files there: other.json"):
        mtf.model.config(tmp_path / "config.json")
    for name in ("/" + "a" * 5_000, "a\0/b.json", "./.json/" + "b/" * 3_000):
        with pytest.raises(mtf.LayoutError, match=r"cannot be read|no file"):
            mtf.model.config(name)
    with pytest.raises(mtf.LayoutError, match="a file is given with its folder"):
        mtf.model.config("llama-3-71b")


plain = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=8)
anything = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner))
words = [*NAMES, "model_type", "architectures", "hidden_act", "rope_scaling", "sliding_window", "layers", "groups"]
spoilt = st.dictionaries(st.sampled_from(words), anything | st.sampled_from([1, 2, 8, 64, "llama", "silu"]), max_size=4)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=spoilt, own=st.booleans())
@pytest.mark.filterwarnings("ignore::mtfcore.LayoutWarning")
def test_any_file_is_read_or_refused(write, changes, own):
    base = {"model_type": "meshwork", **vars(CONFIGS["tiny-grouped"])} if own else LLAMA
    try:
        cfg = mtf.model.config_file(write({**base, **changes}))
    except mtf.LayoutError:
        return
    assert 0 < cfg.n_params <= 10**16 and cfg.heads % cfg.kv_heads == 0


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200) | anything.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_refused(write, data):
    with pytest.raises(mtf.LayoutError):
        mtf.model.config_file(write(data))
