"""Model files: GGUF, safetensors and what lies beside them. A damaged file lies in a folder that is otherwise whole.

Next file to read: `compilers`.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from fuzz import mutating
from fuzz.parser import Change, Parser

import mtfcore as mtf
from mtfcore.errors import LayoutError, LayoutWarning


def _cfg() -> Any:
    from model.files import makers

    return makers.small(layers=1, d_model=32, d_ff=32, heads=2, kv_heads=1)


@cache
def _folder_files() -> dict[str, bytes]:
    """A whole model's folder."""
    import tempfile

    from model.files import makers

    cfg = _cfg()
    with tempfile.TemporaryDirectory() as made:
        folder = makers.write_folder(pathlib.Path(made) / "mine", cfg, makers.random_params(cfg), shards=2)
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
    tokens, _ = makers.vocabulary(cfg.vocab)
    files["tokenizer.json"] = json.dumps(_tokenizer(tokens)).encode()
    said = {"chat_template": makers.TEMPLATE, "bos_token": "<|im_start|>", "eos_token": {"content": "<|im_end|>"}}
    files["tokenizer_config.json"] = json.dumps(said).encode()
    return files


def _tokenizer(tokens: Sequence[str]) -> dict[str, Any]:
    from model.files import makers

    special = [
        {
            "id": n,
            "content": t,
            "special": True,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
        }
        for n, t in enumerate(makers.SPECIALS)
    ]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    bpe = {"type": "BPE", "vocab": {t: n for n, t in enumerate(tokens)}, "merges": list(makers.MERGES)}
    return {
        "version": "1.0",
        "added_tokens": special,
        "pre_tokenizer": level,
        "decoder": level,
        "model": bpe,
        "normalizer": None,
        "post_processor": None,
        "truncation": None,
        "padding": None,
    }


@cache
def _gguf() -> bytes:
    import tempfile

    from model.files import makers

    with tempfile.TemporaryDirectory() as made:
        return makers.write_gguf(pathlib.Path(made) / "a.gguf", _cfg(), makers.random_params(_cfg())).read_bytes()


def _used(found: Any) -> None:
    for name in found.params:
        found.params[name]
    if found.tokenizer:
        found.tokenizer.decode(found.tokenizer.encode("the 1984 <|im_end|> é"))
    if found.template:
        found.prompt([{"role": "user", "content": "the"}])


def _read_gguf(data: bytes, folder: pathlib.Path) -> None:
    (folder / "a.gguf").write_bytes(data)
    _used(mtf.model.load(folder / "a.gguf"))


def _read_folder(name: str) -> Callable[..., None]:
    def read(data: Any, folder: pathlib.Path) -> None:
        data = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
        for other, content in {**_folder_files(), name: data}.items():
            (folder / other).write_bytes(content)
        _used(mtf.model.load(folder))

    return read


def _in_folder(name: str, change: Change) -> Parser:
    def seeds() -> Sequence[Any]:
        data = _folder_files()[name]
        return [json.loads(data)] if change is mutating.json_texts else [data]

    def read(value: Any, folder: pathlib.Path) -> None:
        _read_folder(name)(json.dumps(value) if isinstance(value, dict) else value, folder)

    return Parser(read, seeds, change, (LayoutError, LayoutWarning), in_folder=True)


def _template(source: str, folder: pathlib.Path) -> None:
    said = {"chat_template": source, "bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    _read_folder("tokenizer_config.json")(json.dumps(said), folder)


TEMPLATES = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}",
    "{% set x = namespace(n=0) %}{% for m in messages if m.role == 'user' %}{% set x.n = x.n + loop.index %}"
    "{{ m.content | trim | upper }}{% endfor %}{{ x.n * 3 }}{% if not x.n %}{{ raise_exception('no') }}{% endif %}",
    "{%- macro one(a, b=2) -%}{{ a ~ b }}{%- endmacro -%}{{ one(messages | length) }}{{ range(9) | list | tojson }}",
    "{{ messages[0]['content'].split('t') | join('-') }}{{ 'a' * 10 }}{{ 2 ** 8 }}{{ strftime_now('%Y') | length }}",
)
FILES = {
    "gguf": Parser(_read_gguf, lambda: [_gguf()], mutating.raw, in_folder=True),
    "safetensors": _in_folder("model-00001-of-00002.safetensors", mutating.raw),
    "safetensors' index": _in_folder("model.safetensors.index.json", mutating.json_texts),
    "config.json": _in_folder("config.json", mutating.json_texts),
    "tokenizer.json": _in_folder("tokenizer.json", mutating.json_texts),
    "tokenizer_config.json": _in_folder("tokenizer_config.json", mutating.json_texts),
    "chat template": Parser(_template, lambda: _folder_files() and TEMPLATES, mutating.texts, in_folder=True),
}
