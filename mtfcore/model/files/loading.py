"""`mtf.model.load`: a model by the name of one that was fetched, from a GGUF file, or from a folder.

    >>> found = mtf.model.load("smollm2-135m")
    >>> found.cfg.n_params, sorted(found.params)[:3]
    (134515008, ['attention_norm_scale', 'embedding', 'ffn_norm_scale'])

Next file to read: `gguf_model`; for folders, `folder_model`.
"""

from __future__ import annotations

import os
from pathlib import Path

from mtfcore.errors import LayoutError, nearest
from mtfcore.model.files import known
from mtfcore.model.files.loaded import LoadedModel
from mtfcore.model.files.reading import NEVER, PICKLED, SAVED

__all__ = ["LoadedModel", "load"]


def load(path_or_name: str | os.PathLike[str]) -> LoadedModel:
    """The model of that name, in that GGUF file or in that folder. Parameters are read when they are asked for.

    `path_or_name`: "smollm2-135m" (after `python -m mtfcore.model fetch`), a .gguf file, or a folder of safetensors
    with config.json.

    Raises `LayoutError` for files that are not whole, or of another family.
    """
    if not isinstance(path_or_name, (str, os.PathLike)) or not os.fspath(path_or_name) or "\0" in str(path_or_name):
        raise LayoutError(f"load: {path_or_name!r:.100} is no name and no path; {_legal('')}")
    if path_or_name in known.MODELS:
        return _fetched(str(path_or_name))
    path = _expanded(path_or_name)
    if os.path.isdir(path):
        from mtfcore.model.files import folder_model

        return folder_model.read(path)
    if not os.path.isfile(path):  # of a name that is too long for the system, pathlib raises
        raise LayoutError(f"no model {str(path_or_name)!r:.300}; {_legal(path.name)}")
    return _file(path)


def _expanded(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # ~somebody, who is not known here
        return Path(path)


def _legal(name: str) -> str:
    return f"{nearest(name, known.MODELS)}; or a .gguf file, or a folder with config.json and safetensors files"


def _file(path: Path) -> LoadedModel:
    if path.suffix in PICKLED:
        raise LayoutError(f"{path.name} is not read: {NEVER}; {SAVED}")
    if path.suffix == ".safetensors" or path.name == "config.json":
        raise LayoutError(f"{path.name} is a part of a model; give the folder in which it lies, {str(path.parent)!r}")
    from mtfcore.model.files import gguf_model

    return gguf_model.read(path)


def _fetched(name: str) -> LoadedModel:
    from mtfcore.model.files import gguf_model

    path, model = known.path_of(name), known.MODELS[name]
    if not path.is_file():
        raise LayoutError(f"{name} is not in {str(path.parent)!r} yet; fetch it once: python -m mtfcore.model fetch")
    if path.stat().st_size != model.n_bytes:
        raise LayoutError(
            f"{path.name} has {path.stat().st_size:,} bytes, {name} has {model.n_bytes:,}; "
            "fetch it again: python -m mtfcore.model fetch"
        )
    return gguf_model.read(path, name)
