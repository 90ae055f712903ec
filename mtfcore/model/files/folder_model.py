"""A model out of a folder as Hugging Face's tools save it: config.json, safetensors, tokenizer.json.

    models/mine/config.json                            sizes and choices (`mtfcore.model.config_files`)
    models/mine/model.safetensors                      or several, and model.safetensors.index.json, which says where
    models/mine/tokenizer.json, tokenizer_config.json  may be missing: then there is no tokenizer, no chat template

Nothing outside the folder is read, whatever an index names or a link leads to, and no pickles. Next file to read:
`folder_tokenizer`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from mtfcore.errors import LayoutError, refuse
from mtfcore.model.config_files import config_file
from mtfcore.model.files import safetensors_check
from mtfcore.model.files.folder_tokenizer import tokenizer_and_template
from mtfcore.model.files.llama import forms_differ
from mtfcore.model.files.loaded import LoadedModel
from mtfcore.model.files.reading import NEVER, PICKLED, SAVED, inside
from mtfcore.model.files.safetensors_check import Form
from mtfcore.model.files.weights import Weights
from mtfcore.model.plain_json import read_json

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
MOST_INDEX = 1 << 26
DTYPES = ("F32", "F16", "BF16")
IGNORED = ("rotary_emb.inv_freq",)  # turns of rotary positions, which old files keep as numbers


def read(folder: Path) -> LoadedModel:
    """The model in a folder."""
    if not (folder / "config.json").is_file():
        raise LayoutError(f"{str(folder)!r:.300} has no config.json, so it is no model's folder; {_beside(folder)}")
    cfg = config_file(inside(folder, "config.json"))
    files = _files(folder)
    forms = {name: form for found in files.values() for name, form in found.items()}
    ignored = (*IGNORED, "lm_head.weight") if cfg.tied else IGNORED
    faults = forms_differ(cfg, "safetensors", {name: shape for name, (shape, _) in forms.items()}, ignored)
    wrong = [name for name, (_, dtype) in forms.items() if dtype not in DTYPES]
    faults += [f"tensor {name!r:.100} is {forms[name][1]}; weights are read as {', '.join(DTYPES)}" for name in wrong]
    refuse(faults[:12], folder.name)
    tokenizer, template = tokenizer_and_template(folder, cfg.vocab)
    return LoadedModel(cfg, Weights(cfg, _Tensors(files)), tokenizer, template, _said(folder, files))


def _said(folder: Path, files: dict[Path, dict[str, Form]]) -> str:
    kinds = Counter(dtype for forms in files.values() for _, dtype in forms.values())
    n_bytes = sum(path.stat().st_size for path in files)
    return f"{folder.name}, {len(files)} files of {n_bytes:,} bytes: " + ", ".join(
        f"{n} {kind}" for kind, n in kinds.items()
    )


def _beside(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    return f"there: {', '.join(names[:8]) or 'nothing'}{', …' if len(names) > 8 else ''}"


def _files(folder: Path) -> dict[Path, dict[str, Form]]:
    """File → its tensors; each tensor is in one file, the one that the index names."""
    if (folder / SINGLE).is_file():
        path = inside(folder, SINGLE)
        return {path: safetensors_check.check(path)}
    if not (folder / INDEX).is_file():
        pickled = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLED)
        hint = f"{pickled[0]} is not read: {NEVER}; {SAVED}" if pickled else _beside(folder)
        raise LayoutError(f"{str(folder)!r:.300} has no {SINGLE} and no {INDEX}; {hint}")
    return _indexed(folder)


def _indexed(folder: Path) -> dict[Path, dict[str, Form]]:
    """What the index names, held against what the files have."""
    where = read_json(inside(folder, INDEX), MOST_INDEX).get("weight_map")
    if not isinstance(where, dict) or not where:
        raise LayoutError(f"{INDEX}: its weight_map is no table of tensors and files")
    for name in where.values():
        inside(folder, name)  # before names are compared, which not everything can be
    found = {}
    for name in dict.fromkeys(where.values()):
        path = inside(folder, name)
        if not path.is_file():
            raise LayoutError(f"{INDEX} names {name!r:.100}, which is not there; {_beside(folder)}")
        found[path] = safetensors_check.check(path)
    faults = [f"{INDEX} says that tensor {name!r:.100} is in {file}; it is not" for name, file in where.items()
              if name not in found[folder / file]]  # fmt: skip
    refuse(faults[:12], folder.name)
    return {path: {name: form for name, form in forms.items() if where.get(name) == path.name}
            for path, forms in found.items()}  # fmt: skip


class _Tensors:
    """Tensors of safetensors files, a few rows at a time."""

    kind, interleaved = "safetensors", False

    def __init__(self, files: dict[Path, dict[str, Form]]) -> None:
        import ml_dtypes  # noqa: F401  (gives numpy the name bfloat16)
        from safetensors import SafetensorError, safe_open

        self._slices: dict[str, Any] = {}
        for path, forms in files.items():
            try:
                opened = safe_open(path, "np")
                self._slices |= {name: opened.get_slice(name) for name in forms}
            except SafetensorError as fault:
                raise LayoutError(f"{path.name} cannot be read by the library safetensors: {fault!s:.200}") from None

    def rows(self, name: str, begin: int, end: int) -> np.ndarray:
        """f32 rows of a tensor."""
        return self._slices[name][begin:end].astype(np.float32)
