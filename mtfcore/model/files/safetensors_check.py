"""A safetensors file's header held against the file's size, before anything is allocated by it.

    >>> safetensors_check.check(Path("model.safetensors"))["lm_head.weight"]
    ((49152, 576), 'BF16')

Such a file is eight bytes with the header's length, the header (JSON: name → dtype, shape, place), and the tensors one
after the other. Here each tensor's bytes must be what its shape and dtype say, and together they must fill the file
without overlap or gap. What passes is then read by the library `safetensors`. Source: the format's description
(github.com/huggingface/safetensors). Next file to read: `folder_model`.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

from mtfcore.errors import LayoutError, nearest
from mtfcore.model.files.reading import kind_of, mapped
from mtfcore.model.plain_json import parse_json

Form = tuple[tuple[int, ...], str]  # shape and dtype, as the file names it
MOST_HEADER = 100_000_000  # bytes: the library's own limit
MOST_DIMS = 8
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32,
    "U32": 32, "F32": 32, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip


def check(path: Path) -> dict[str, Form]:
    """Shape and dtype of each tensor; refuses a file whose header cannot be true."""
    with mapped(path, 10) as data:
        (length,) = struct.unpack_from("<Q", data, 0)
        if length > min(len(data) - 8, MOST_HEADER) or data[8:9] != b"{":
            raise LayoutError(f"{path.name} is no whole safetensors file; it seems to be {kind_of(data[:8])}")
        said = parse_json(data[8 : 8 + length], f"the header of {path.name}")
        return _forms(path.name, said, len(data) - 8 - length)


def _forms(file: str, said: dict[str, Any], size: int) -> dict[str, Form]:
    metadata = said.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise LayoutError(f"{file}: its __metadata__ is no table of texts")
    found, places = {}, []
    for name, entry in said.items():
        shape, dtype, begin, end = _entry(f"{file}: tensor {name!r:.100}", entry)
        found[name] = shape, dtype
        places.append((begin, end, name))
    _filled(file, sorted(places), size)
    return found


def _entry(about: str, entry: Any) -> tuple[tuple[int, ...], str, int, int]:
    """(shape, dtype, begin, end) of one tensor; its bytes are those that its shape needs."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise LayoutError(f"{about} is described by {entry!r:.100}; expected dtype, shape and data_offsets")
    dtype, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BITS:
        raise LayoutError(f"{about} is of dtype {dtype!r:.60}; {nearest(dtype, BITS)}")
    if not _wholes(shape) or len(shape) > MOST_DIMS:
        raise LayoutError(f"{about} has the shape {shape!r:.100}; expected at most {MOST_DIMS} whole numbers")
    if not _wholes(place) or len(place) != 2:
        raise LayoutError(f"{about} lies at {place!r:.100}; expected where it begins and ends")
    n_bytes = math.prod(shape) * BITS[dtype] // 8
    if place[1] - place[0] != n_bytes:
        raise LayoutError(f"{about} has {place[1] - place[0]:,} bytes, its shape {tuple(shape)} needs {n_bytes:,}")
    return tuple(shape), dtype, place[0], place[1]


def _wholes(items: Any) -> bool:
    return isinstance(items, list) and all(type(n) is int and 0 <= n < 1 << 60 for n in items)


def _filled(file: str, places: list[tuple[int, int, str]], size: int) -> None:
    """The tensors lie one after the other and end where the file ends."""
    before = 0
    for begin, end, name in places:
        if begin != before:
            what = "overlaps the one before it" if begin < before else f"leaves a gap of {begin - before:,} bytes"
            raise LayoutError(f"{file}: tensor {name!r:.100} {what}")
        before = end
    if before != size:
        what = "it was cut off" if before > size else "it has more bytes than its header says"
        raise LayoutError(f"{file}: its tensors take {before:,} bytes and {size:,} are there; {what}")
