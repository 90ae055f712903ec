"""What is in a file is what is loaded: every parameter, in every kind of file, exactly."""

from __future__ import annotations

import subprocess
import sys

import gguf
import numpy as np
import pytest
from model.files import makers

import mtfcore as mtf
from mtfcore.errors import LayoutWarning
from mtfcore.model.files import known

KINDS = {
    "grouped, tied": {},
    "multihead, untied": {"kv_heads": 4, "tied": False},
    "multiquery": {"kv_heads": 1},
    "biases": {"biases": True, "tied": False},
}


def the_same(found: mtf.model.LoadedModel, params: dict[str, np.ndarray]) -> None:
    assert list(found.params) == list(found.cfg.params) == list(params)
    for name, array in params.items():
        assert found.params[name].dtype == np.float32
        np.testing.assert_array_equal(found.params[name], array, err_msg=name)


def without_source(cfg: mtf.model.Config) -> mtf.model.Config:
    return cfg.but(name="x", source="x")


@pytest.mark.parametrize("kind", KINDS)
def test_a_gguf_file_gives_back_what_was_written(tmp_path, kind):
    cfg = makers.small(**KINDS[kind])
    params = makers.random_params(cfg)
    found = mtf.model.load(makers.write_gguf(tmp_path / "mine.gguf", cfg, params))
    assert without_source(found.cfg) == without_source(cfg)
    assert found.cfg.name == "mine" and "mine.gguf" in found.source
    the_same(found, params)


def test_of_qwen2_queries_and_keys_lie_as_ours_do(tmp_path):
    cfg = makers.small(qkv_biases=True, tied=False)
    params = makers.random_params(cfg)
    found = mtf.model.load(makers.write_gguf(tmp_path / "q.gguf", cfg, params, architecture="qwen2"))
    assert without_source(found.cfg) == without_source(cfg)
    the_same(found, params)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shards", [1, 3])
def test_a_folder_gives_back_what_was_written(tmp_path, kind, shards):
    cfg = makers.small(**KINDS[kind])
    params = makers.random_params(cfg)
    found = mtf.model.load(makers.write_folder(tmp_path / "mine", cfg, params, shards=shards))
    assert without_source(found.cfg) == without_source(cfg)
    assert found.tokenizer is None and found.template is None
    the_same(found, params)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_in_a_folder_is_widened_exactly(tmp_path, dtype):
    cfg = makers.small(tied=False)
    params = makers.random_params(cfg)
    found = mtf.model.load(makers.write_folder(tmp_path / "mine", cfg, params, dtype, shards=2))
    the_same(found, {name: array.astype(dtype).astype(np.float32) for name, array in params.items()})


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q4_0", "Q4_1", "Q5_1", "Q8_0"])
def test_quantized_numbers_are_what_the_formats_library_says(tmp_path, kind):
    cfg = makers.small()
    params = makers.random_params(cfg)
    matrices = {name: kind for name, param in cfg.params.items() if not name.endswith("scale")}
    found = mtf.model.load(makers.write_gguf(tmp_path / "mine.gguf", cfg, params, types=matrices))
    quantized = gguf.GGMLQuantizationType[kind]

    def rounded(name: str, one: np.ndarray) -> np.ndarray:
        there = makers.in_file(cfg, name, one)
        back = gguf.dequantize(
            gguf.quantize(there, quantized), quantized
        )  # rows are what is quantized: order no matter
        return back if name == "embedding" else back.T.reshape(one.shape)

    for name in ("embedding", "wq", "wo", "w_out"):
        array = params[name]
        whole = rounded(name, array) if name == "embedding" else np.stack([rounded(name, one) for one in array])
        np.testing.assert_array_equal(found.params[name], whole, err_msg=name)


def test_a_mapping_reads_when_asked_and_keeps_nothing(tmp_path):
    cfg = makers.small()
    found = mtf.model.load(makers.write_gguf(tmp_path / "mine.gguf", cfg, makers.random_params(cfg)))
    first = found.params["wq"]
    assert first.flags.writeable and first.flags.owndata
    first[:] = 0
    assert np.abs(found.params["wq"]).min() > 0, "another reading knows nothing of changes to the first"
    assert "wq" in found.params and "w" not in found.params and len(found.params) == len(cfg.params)
    with pytest.raises(KeyError, match="did you mean 'wq'"):
        found.params["wqq"]
    assert "read when asked for" in repr(found.params) and "with tokenizer and template" in repr(found)


def test_what_is_scaled_or_left_out_is_said(tmp_path):
    cfg = makers.small()
    values = {"llama.rope.scaling.type": "yarn"}
    path = makers.write_gguf(tmp_path / "mine.gguf", cfg, makers.random_params(cfg), values=values)
    with pytest.warns(LayoutWarning, match="rotary positions are scaled"):
        assert "scaled" in mtf.model.load(path).cfg.left_out


def test_the_real_model_is_the_published_one(real_model):
    preset = mtf.model.config("smollm2-135m")
    assert real_model.cfg.but(source=preset.source) == preset
    assert real_model.cfg.n_params == 134_515_008
    assert "98,362,432 bytes: 210 Q4_1, 61 F32, 1 Q8_0" in real_model.source


PEAK = """
import pathlib, sys
import mtfcore as mtf
found = mtf.model.load(sys.argv[1])
kept = {name: found.params[name] for name in found.params}
status = dict(line.split(":") for line in pathlib.Path("/proc/self/status").read_text().splitlines())
print(status["VmHWM"].split()[0], sum(array.nbytes for array in kept.values()) // 1024)
"""  # not ru_maxrss, which begins with what the process that started this one had


@pytest.mark.skipif(sys.platform != "linux", reason="a process's peak of memory is read so on Linux only")
def test_loading_holds_the_weights_and_little_more(real_model):
    """The whole process, its libraries and the mapped file's pages included: 1.3 times the weights and one tensor."""
    command = [sys.executable, "-c", PEAK, str(known.path_of("smollm2-135m"))]
    said = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout
    peak, weights = map(int, said.split())
    largest = max(param.n_elements for param in real_model.cfg.params.values()) * 4 // 1024
    assert weights == 525_449
    assert peak < 1.3 * weights + largest


def test_naming_the_loader_loads_none_of_the_libraries_that_read():
    code = (
        "import sys, mtfcore as mtf; mtf.model.load, mtf.model.LoadedModel; print([n for n in %r if n in sys.modules])"
    )
    command = [sys.executable, "-c", code % ["gguf", "safetensors", "tokenizers", "jinja2", "jax"]]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip() == "[]"
