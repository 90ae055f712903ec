"""Checkpoints: whole arrays by name and a header, in one safetensors file.

    save("run/step100.safetensors", arrays, {"step": 100, "seed": 0, "optimizer": "Adam"})
    found = load("run/step100.safetensors", expected={"w": ((16, 64), "f32"), …})
    found.arrays["w"], found.header["step"]

Arrays are whole, so a file does not know on which mesh it was made and may be taken up on any. The file appears under
its name only when all of it is written. Nothing is pickled: reading a file runs no code. Next file to read: `training`.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mtfcore.dtypes import canonical
from mtfcore.errors import LayoutError, nearest, refuse

KEY, VERSION = "meshwork", 1
Form = tuple[tuple[int, ...], str]  # shape and dtype


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a file holds: whole arrays by name, and what was said about them."""

    arrays: dict[str, np.ndarray]
    header: dict[str, Any]


def save(path: str | Path, arrays: Mapping[str, Any], header: Mapping[str, Any]) -> Path:
    """Write whole arrays (numpy, or jax arrays) and a header; the file is there whole or not at all."""
    from safetensors.numpy import save_file

    path = Path(path)
    said = json.dumps({"version": VERSION, **header}, sort_keys=True)
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}  # the library reads plain memory
    path.parent.mkdir(parents=True, exist_ok=True)
    begun = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        save_file(whole, begun, metadata={KEY: said})
        with begun.open("rb+") as written:
            os.fsync(written.fileno())
        os.replace(begun, path)
    finally:
        begun.unlink(missing_ok=True)
    return path


def load(path: str | Path, expected: Mapping[str, Form] | None = None) -> Checkpoint:
    """Read a checkpoint; with `expected`, refuse missing, unknown and misshapen arrays, all at once."""
    with _opened(path) as file:
        header, forms = _header(file.metadata(), Path(path)), _forms(file)
        refuse(differences(forms, forms if expected is None else expected), f"checkpoint {Path(path).name}")
        return Checkpoint({name: np.array(file.get_tensor(name)) for name in forms}, header)


def look(path: str | Path) -> tuple[dict[str, Any], dict[str, Form]]:
    """A checkpoint's header, and shape and dtype of each array, without reading any."""
    with _opened(path) as file:
        return _header(file.metadata(), Path(path)), _forms(file)


@contextlib.contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    import ml_dtypes  # noqa: F401  (gives numpy the name bfloat16)
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise LayoutError(f"no checkpoint at {path}{_others(path)}")
    try:
        with safe_open(path, "np") as file:
            yield file
    except SafetensorError as error:
        raise LayoutError(
            f"{path.name} ({path.stat().st_size:,} bytes) is no whole safetensors file: {error}; it may have been "
            "cut off while it was copied, or be of another kind"
        ) from None


def _header(metadata: Mapping[str, str] | None, path: Path) -> dict[str, Any]:
    said = (metadata or {}).get(KEY)
    if said is None:
        raise LayoutError(f"{path.name} is a safetensors file without this library's header, so no checkpoint of a run")
    header = None
    with contextlib.suppress(json.JSONDecodeError):
        header = json.loads(said)
    version = header.pop("version", None) if isinstance(header, dict) else None
    if header is None or version != VERSION:
        raise LayoutError(f"{path.name}: header of version {version}, this library reads version {VERSION}")
    return header


def _forms(file: Any) -> dict[str, Form]:
    slices = {name: file.get_slice(name) for name in file.keys()}
    return {name: (tuple(found.get_shape()), found.get_dtype().lower()) for name, found in slices.items()}


def differences(forms: Mapping[str, Form], expected: Mapping[str, Form]) -> list[str]:
    """A fault for each array that is missing, not expected, or of another shape or dtype."""
    faults = [f"array {name!r} is missing" for name in expected if name not in forms]
    faults += [f"has {name!r}, which is not asked for; {nearest(name, expected)}" for name in forms
               if name not in expected]  # fmt: skip
    for name, (shape, dtype) in expected.items():
        found, kind = forms.get(name, (tuple(shape), canonical(dtype)))
        if found != tuple(shape):
            faults.append(f"{name} has shape {found}, expected {tuple(shape)}")
        if kind != canonical(dtype):
            faults.append(f"{name} is {kind}, expected {canonical(dtype)}")
    return faults


def _others(path: Path) -> str:
    names = sorted(other.name for other in path.parent.glob("*.safetensors"))
    return f"; {nearest(path.name, names)}" if names else ""
