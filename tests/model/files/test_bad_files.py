"""Files that are cut off, changed, of another kind or hostile: one kind of error that says which, and nothing else."""

from __future__ import annotations

import contextlib
import pathlib
import random
import struct
import tracemalloc
import zipfile

import gguf
import numpy as np
import pytest
from model.files import makers

import mtfcore as mtf
from mtfcore.errors import LayoutError

CFG = makers.small(layers=1, d_model=32, d_ff=32, heads=2, kv_heads=1)
PARAMS = makers.random_params(CFG)
TRIES = 100  # of each kind of random damage
MOST_MEMORY = 64 << 20  # bytes at once; the files have 0.1 MB


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> bytes:
    """A whole file, in which tests then change something."""
    path = tmp_path_factory.mktemp("good") / "good.gguf"
    return makers.write_gguf(path, CFG, PARAMS, values={"general.alignmen2": 3}).read_bytes()


def refused(path: pathlib.Path, match: str) -> None:
    """Loading ends in our own error, at once, and changes nothing."""
    before = sorted((entry, entry.stat().st_mtime_ns) for entry in path.parent.rglob("*"))
    tracemalloc.start()
    with pytest.raises(LayoutError, match=match) as caught:
        mtf.model.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MOST_MEMORY
    assert path.name in str(caught.value) and len(str(caught.value)) < 4_000
    assert sorted((entry, entry.stat().st_mtime_ns) for entry in path.parent.rglob("*")) == before


def value_at(data: bytes, key: str) -> int:
    """Where the value of a key in a GGUF file's metadata begins: behind its name and type."""
    name = struct.pack("<Q", len(key)) + key.encode()
    return data.index(name) + len(name) + 4


def changed(data: bytes, at: int, form: str, *values: int) -> bytes:
    new = struct.pack(form, *values)
    return data[:at] + new + data[at + len(new) :]


def tensor_at(data: bytes, name: str) -> int:
    """Where the description of a tensor begins: number of dimensions, sizes, type, place."""
    key = struct.pack("<Q", len(name)) + name.encode()
    return data.index(key) + len(key)


# ---- bytes of a GGUF file -----------------------------------------------------------------------------------------

TABLE, VECTOR = "token_embd.weight", "output_norm.weight"
BYTES = {
    "empty": (lambda d: b"", "0 bytes, too few"),
    "a few bytes": (lambda d: d[:20], "20 bytes, too few"),
    "what a server said": (lambda d: b"<html>" + b" " * 90, "a text, perhaps what a server said"),
    "a pointer of LFS": (lambda d: b"version https://git-lfs" + b" " * 90, "a pointer of Git LFS"),
    "a zip archive": (lambda d: b"PK\x03\x04" + b" " * 90, "a zip archive, perhaps PyTorch's.*never are"),
    "a pickle": (lambda d: b"\x80\x04" + b" " * 90, "a pickle; files like it .* run code"),
    "an older format": (lambda d: b"tjgg" + d[4:], "older formats"),
    "random bytes": (lambda d: bytes(range(1, 200)), "of another kind, or damaged"),
    "a later version": (lambda d: changed(d, 4, "<I", 9), "GGUF version 9"),
    "the other byte order": (lambda d: changed(d, 4, ">I", 3), "other byte order"),
    "half of the header": (lambda d: d[:1_000], "would take .* are left"),
    "no last byte": (lambda d: d[:-1], "ends at byte .*cut off"),
    "no tensors": (lambda d: d[: len(d) // 2], "ends at byte .*cut off"),
    "too many tensors": (lambda d: changed(d, 8, "<Q", 2**61), "tensors at byte 24 would take 55,3"),
    "too many values": (lambda d: changed(d, 16, "<Q", 2**61), "values at byte 24 would take 29,9"),
    "a long name": (lambda d: changed(d, 24, "<Q", 2**63), "name of a value at byte 32 would take"),
    "a name of 300 bytes": (lambda d: changed(d, 24, "<Q", 300), "has 300 bytes; a name has at most 256"),
    "a long list": (
        lambda d: changed(d, value_at(d, "tokenizer.ggml.tokens") + 4, "<Q", 2**40),
        "the list 'tokenizer.ggml.tokens' at byte .* would take 8,7",
    ),
    "a list of lists": (
        lambda d: changed(d, value_at(d, "tokenizer.ggml.tokens"), "<I", 9), "is of type 9; numbers, texts",
    ),
    "a value of no type": (
        lambda d: changed(d, value_at(d, "llama.block_count") - 4, "<I", 99), "'llama.block_count' is of type 99",
    ),
    "no UTF-8": (lambda d: d.replace(b"general.architecture", b"general.\xff" + b"rchitecture"), "no UTF-8"),
    "a name twice": (lambda d: d.replace(b"ggml.bos_token_id", b"ggml.eos_token_id"), "eos_token_id' stands twice"),
    "an alignment of 3": (
        lambda d: d.replace(b"general.alignmen2", b"general.alignment"), "alignment is 3; expected a power of two",
    ),
    "many layers": (
        lambda d: changed(d, value_at(d, "llama.block_count"), "<I", 2**31), "says 2,147,483,648 layers and has 11",
    ),
    "no layers": (lambda d: changed(d, value_at(d, "llama.block_count"), "<I", 0), "layers is 0; expected 1 to"),
    "no heads": (lambda d: changed(d, value_at(d, "llama.attention.head_count"), "<I", 0), "heads is 0"),
    "an epsilon that is none": (
        lambda d: changed(d, value_at(d, "llama.attention.layer_norm_rms_epsilon"), "<I", 0x7FC00000),
        "norm_eps is nan",
    ),
    "no dimensions": (lambda d: changed(d, tensor_at(d, TABLE), "<I", 0), "0 dimensions; 1 to 4"),
    "many dimensions": (lambda d: changed(d, tensor_at(d, TABLE), "<I", 2**31), "dimensions; 1 to 4"),
    "an empty dimension": (lambda d: changed(d, tensor_at(d, TABLE) + 4, "<Q", 0), "a dimension of size 0"),
    "a huge dimension": (lambda d: changed(d, tensor_at(d, TABLE) + 4, "<Q", 2**62), "a dimension of size 4,6"),
    "sizes whose product wraps around": (
        lambda d: changed(d, tensor_at(d, TABLE) + 4, "<QQ", 2**16, 2**16), "a dimension of size 65,536",
    ),
    "a type that is none": (lambda d: changed(d, tensor_at(d, TABLE) + 20, "<I", 77), "type 77, which the library"),
    "a type of whole numbers": (
        lambda d: changed(d, tensor_at(d, VECTOR) + 12, "<I", 26), "type I32, which the library gguf cannot turn",
    ),
    "half a block": (lambda d: changed(d, tensor_at(d, TABLE) + 4, "<QQI", 33, 264, 8), "not whole blocks of 32"),
    "a place outside": (lambda d: changed(d, tensor_at(d, VECTOR) + 16, "<Q", 2**40), "ends at byte 1,099"),
    "a place that is crooked": (lambda d: changed(d, tensor_at(d, VECTOR) + 16, "<Q", 33), "not at a multiple of 32"),
    "two in one place": (lambda d: changed(d, tensor_at(d, VECTOR) + 16, "<Q", 0), "overlap"),
}  # fmt: skip


@pytest.mark.parametrize("name", BYTES)
def test_damaged_bytes_are_refused(tmp_path, good, name):
    damage, said = BYTES[name]
    path = tmp_path / "bad.gguf"
    path.write_bytes(damage(good))
    assert path.read_bytes() != good
    refused(path, said)


# ---- what a whole GGUF file says ----------------------------------------------------------------------------------

TOKENS, KINDS = makers.vocabulary(CFG.vocab)
SAYS = {
    "an architecture not built": ({"architecture": "gemma3"}, "architecture 'gemma3'"),
    "a projector": ({"architecture": "clip"}, "an adapter or a projector"),
    "no layers said": ({"llama.block_count": None}, "'llama.block_count' is missing"),
    "a text for a number": ({"llama.block_count": "one"}, "is 'one'; expected a whole number"),
    "a number for a text": ({"tokenizer.ggml.model": 5}, "is 5; expected a text"),
    "layers with heads of their own": ({"llama.attention.head_count": [2, 2]}, r"is \[2, 2\]; expected a whole"),
    "heads that do not divide": ({"llama.attention.head_count": 3}, "shape|divide"),
    "kv heads that do not divide": ({"llama.attention.head_count": 4, "llama.attention.head_count_kv": 3}, "divide"),
    "experts": ({"llama.expert_count": 8}, "it has experts"),
    "turns of a part of a head": ({"llama.rope.dimension_count": 8}, "rope.dimension_count is 8 and heads have 16"),
    "values of another size": ({"llama.attention.value_length": 8}, "value_length is 8 and heads have 16"),
    "another width": ({"llama.feed_forward_length": 64}, r"has shape \(32, 32\), expected \(64, 32\)"),
    "more layers": ({"llama.block_count": 2}, "tensor 'blk.1.attn_norm.weight' is missing"),
    "a tensor less": ({"leave_out": ("blk.0.attn_k.weight",)}, "tensor 'blk.0.attn_k.weight' is missing"),
    "no table": ({"leave_out": ("token_embd.weight",)}, "the table 'token_embd.weight' is missing"),
    "sentencepiece": ({"tokenizer.ggml.model": "llama"}, "tokenizer of kind 'llama'; 'gpt2'"),
    "an unknown way to cut": ({"tokenizer.ggml.pre": "smolm"}, "did you mean 'smollm'"),
    "a token twice": ({"tokenizer.ggml.tokens": [*TOKENS[:-1], TOKENS[0]]}, "1 of its tokens stand twice"),
    "fewer tokens": ({"tokenizer.ggml.tokens": TOKENS[:-4]}, "260 tokens and its table of embeddings 264 rows"),
    "kinds of fewer": ({"tokenizer.ggml.token_type": KINDS[:-1]}, "264 tokens and the kinds of 263"),
    "merges of nothing": ({"tokenizer.ggml.merges": ["t h", "x yz"]}, "1 merges do not give .* 'x yz'"),
    "merges of one": ({"tokenizer.ggml.merges": ["the"]}, "1 merges do not give"),
    "tokens that are numbers": ({"tokenizer.ggml.tokens": [1, 2]}, "a list of other things than str"),
    "tokens that are no list": ({"tokenizer.ggml.tokens": "all"}, "expected a list"),
    "an end that is no token": ({"tokenizer.ggml.eos_token_id": 264}, "is 264; expected 0 to 263"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAYS)
def test_what_a_file_says_is_held_against_what_it_has(tmp_path, name):
    given, said = SAYS[name]
    more = {key: given[key] for key in ("architecture", "leave_out") if key in given}
    values = {key: value for key, value in given.items() if key not in more}
    refused(makers.write_gguf(tmp_path / "bad.gguf", CFG, PARAMS, values=values, **more), said)


def test_a_tensor_that_the_architecture_has_not_is_not_left_out_in_silence(tmp_path):
    cfg = CFG.but(qkv_biases=True)
    path = makers.write_gguf(tmp_path / "bad.gguf", cfg, makers.random_params(cfg))
    refused(path, "tensor 'blk.0.attn_q.bias' is none that this architecture has")


def test_many_faults_are_counted_not_listed(tmp_path):
    cfg = CFG.but(layers=8)
    path = makers.write_gguf(
        tmp_path / "bad.gguf", cfg, makers.random_params(cfg), values={"llama.feed_forward_length": 7}
    )
    refused(path, "12 more of the same kind")


# ---- random damage ------------------------------------------------------------------------------------------------


def ends_well(path: pathlib.Path) -> bool:
    """Either our own error or a model all of whose parts can be used; True for a model."""
    with contextlib.suppress(LayoutError):
        found = mtf.model.load(path)
        for name in found.params:
            assert found.params[name].shape == found.cfg.params[name].shape
        if found.tokenizer:
            found.tokenizer.decode(found.tokenizer.encode("the 1984 <|im_end|>"))
        if found.template:
            with contextlib.suppress(LayoutError):
                found.prompt([{"role": "user", "content": "x"}])
        return True
    return False


@pytest.mark.parametrize("kind", ["flipped bits", "other bytes", "cut off", "numbers made large"])
def test_random_damage_ends_in_one_kind_of_error_or_in_a_model(tmp_path, good, kind):
    rng, path = random.Random(kind), tmp_path / "bad.gguf"
    header = good.index(b"token_embd.weight") + 1_000
    models = 0
    if kind == "numbers made large":  # tracing makes the others slow, and they cannot ask for much
        tracemalloc.start()
    for _ in range(TRIES):
        data = bytearray(good)
        at = rng.randrange(header)
        if kind == "flipped bits":
            data[at] ^= 1 << rng.randrange(8)
        elif kind == "other bytes":
            data[at : at + 4] = rng.randbytes(4)
        elif kind == "cut off":
            del data[rng.randrange(len(data)) :]
        else:
            data[at : at + 8] = struct.pack("<Q", rng.choice([2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1, 0]))
        path.write_bytes(data)
        models += ends_well(path)
    assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    tracemalloc.stop()
    assert models < TRIES


# ---- folders ------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    return makers.write_folder(tmp_path / "mine", CFG, PARAMS, shards=2)


def first_file(folder: pathlib.Path) -> pathlib.Path:
    return folder / "model-00001-of-00002.safetensors"


def header(path: pathlib.Path, text: bytes) -> None:
    """Replace a safetensors file's header."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def replaced(old: bytes, new: bytes):
    def damage(folder: pathlib.Path) -> None:
        data = first_file(folder).read_bytes()
        (length,) = struct.unpack_from("<Q", data)
        assert old in data[: 8 + length]
        header(first_file(folder), data[8 : 8 + length].replace(old, new, 1))

    return damage


def index(where: object):
    return lambda folder: makers.write_json(folder / "model.safetensors.index.json", {"weight_map": where})


def linked(folder: pathlib.Path) -> None:
    outside = folder.parent / "outside.safetensors"
    first_file(folder).rename(outside)
    first_file(folder).symlink_to(outside)


def pickled(folder: pathlib.Path) -> None:
    for path in folder.glob("*.safetensors*"):
        path.unlink()
    with zipfile.ZipFile(folder / "pytorch_model.bin", "w") as archive:
        archive.writestr("data.pkl", b"\x80\x04")


FOLDERS = {
    "no config": (lambda f: (f / "config.json").unlink(), "has no config.json, so it is no model's folder; there: m"),
    "no weights": (lambda f: [p.unlink() for p in f.glob("*.safetensors*")], "has no model.safetensors and no"),
    "pickles only": (pickled, "pytorch_model.bin is not read: files like it hold pickles, which run code"),
    "a file missing": (lambda f: first_file(f).unlink(), "names 'model-00001-of-00002.safetensors', which is not"),
    "a name above": (index({"lm_head.weight": "../outside.safetensors"}), "names with folders are refused"),
    "an absolute name": (index({"lm_head.weight": "/etc/passwd"}), "'/etc/passwd' is no name of a file"),
    "a name of Windows": (index({"lm_head.weight": "sub/x.safetensors"}), "is no name of a file in mine"),
    "a pickle in the index": (index({"lm_head.weight": "x.bin"}), "x.bin is not read: files like it"),
    "a name that is none": (index({"lm_head.weight": 5}), "5 is no name of a file"),
    "a name that cannot be": (index({"lm_head.weight": "a\0b"}), "is no name of a file"),
    "an index that is none": (index([1]), "its weight_map is no table"),
    "a link that leads out": (linked, "is a link that leads out of mine; copy"),
    "a tensor elsewhere": (
        index({"model.norm.weight": "model-00001-of-00002.safetensors", "nothing": "model-00001-of-00002.safetensors"}),
        "says that tensor 'nothing' is in model-00001-of-00002.safetensors; it is not",
    ),
    "a cut file": (lambda f: first_file(f).write_bytes(first_file(f).read_bytes()[:-9]), "it was cut off"),
    "an empty file": (lambda f: first_file(f).write_bytes(b""), "0 bytes, too few"),
    "another kind": (lambda f: first_file(f).write_bytes(b"PK" + b" " * 99), "no whole safetensors file; .* zip"),
    "a long header": (
        lambda f: first_file(f).write_bytes(changed(first_file(f).read_bytes(), 0, "<Q", 2**60)),
        "no whole safetensors file",
    ),
    "a header that is no JSON": (lambda f: header(first_file(f), b"{not JSON"), "header of model-00001.* is no JSON"),
    "a deep header": (lambda f: header(first_file(f), b'{"a":' * 60_000), "nested too deeply|no JSON"),
    "a dtype that is none": (replaced(b'"F32"', b'"F33"'), "of dtype 'F33'; did you mean 'F32'"),
    "whole numbers": (replaced(b'"F32"', b'"I32"'), "is I32; weights are read as F32, F16, BF16"),
    "a smaller dtype": (replaced(b'"F32"', b'"F16"'), "its shape .* needs"),
    "a negative size": (replaced(b'"shape":[', b'"shape":[-'), "expected at most 8 whole numbers"),
    "a size like truth": (replaced(b'"data_offsets":[0', b'"data_offsets":[true'), "where it begins and ends"),
    "an overlap": (replaced(b'"data_offsets":[0,', b'"data_offsets":[4,'), "bytes, its shape"),
    "no shape": (replaced(b'"shape"', b'"shapf"'), "expected dtype, shape and data_offsets"),
    "another width": (
        lambda f: makers.write_json(f / "config.json", {**makers.config_json(CFG), "intermediate_size": 64}),
        r"has shape \(32, 32\), expected",
    ),
    "more layers": (
        lambda f: makers.write_json(f / "config.json", {**makers.config_json(CFG), "num_hidden_layers": 2}),
        "tensor 'model.layers.1.input_layernorm.weight' is missing",
    ),
    "far more layers": (
        lambda f: makers.write_json(f / "config.json", {**makers.config_json(CFG), "num_hidden_layers": 2**31}),
        "it says 2,147,483,648 layers and has ",
    ),
    "untied": (
        lambda f: makers.write_json(f / "config.json", {**makers.config_json(CFG), "tie_word_embeddings": False}),
        "tensor 'lm_head.weight' is missing",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDERS)
def test_broken_folders_are_refused(folder, name):
    damage, said = FOLDERS[name]
    damage(folder)
    with pytest.raises(LayoutError, match=said):
        mtf.model.load(folder)


def test_random_damage_to_a_folder_ends_in_one_kind_of_error_or_in_a_model(folder):
    rng, path = random.Random(7), first_file(folder)
    whole = path.read_bytes()
    (length,) = struct.unpack_from("<Q", whole)
    for _ in range(TRIES):
        data = bytearray(whole)
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        else:
            data[rng.randrange(8 + length)] = rng.choice(b'0129-",:[]{}eE\\ \xff')
        path.write_bytes(data)
        ends_well(folder)


# ---- what is no model at all ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("smollm2-135", "did you mean 'smollm2-135m'"),
        ("nowhere/at/all.gguf", "no model 'nowhere/at/all.gguf'"),
        ("", "is no name and no path"),
        (None, "is no name and no path"),
        (5, "is no name and no path"),
        ("a\0b", "is no name and no path"),
    ],
)
def test_what_is_no_path_is_refused(what, said):
    with pytest.raises(LayoutError, match=said):
        mtf.model.load(what)


@pytest.mark.parametrize(("name", "said"), [("x.bin", "hold pickles"), ("x.safetensors", "give the folder in which")])
def test_files_that_are_not_read_are_said_by_their_names(tmp_path, name, said):
    (tmp_path / name).write_bytes(b"x" * 100)
    with pytest.raises(LayoutError, match=said):
        mtf.model.load(tmp_path / name)


def test_a_known_model_that_is_not_there_or_not_whole_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("MESHWORK_MODELS", str(tmp_path))
    with pytest.raises(LayoutError, match=r"not in .* yet; fetch it once: python -m mtfcore\.model fetch"):
        mtf.model.load("smollm2-135m")
    (tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF")
    with pytest.raises(LayoutError, match="has 4 bytes, smollm2-135m has 98,362,432; fetch it again"):
        mtf.model.load("smollm2-135m")


def test_the_reader_itself_refuses_in_its_own_words_only_what_the_check_has_not(good, tmp_path):
    """The check knows the format as the library does: what it lets through the library reads."""
    path = tmp_path / "good.gguf"
    path.write_bytes(good)
    assert {tensor.name for tensor in gguf.GGUFReader(path).tensors} == set(makers.layers_of(CFG, PARAMS, 0))
    assert np.isfinite(mtf.model.load(path).params["wq"]).all()
