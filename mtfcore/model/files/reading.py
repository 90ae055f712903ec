"""Opening a file that somebody else wrote: what it seems to be, and that it lies where it may.

    with mapped(path, 24) as data:                      # its bytes, not read into memory
        data[:4]
    inside(folder, "model-00001-of-00002.safetensors")  # a path in the folder, or LayoutError

Next file to read: `gguf_check`.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator
from pathlib import Path

from mtfcore.errors import LayoutError

PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
NEVER = "files like it hold pickles, which run code when they are read, so they never are"
SAVED = "save the model again as safetensors (`save_pretrained(folder, safe_serialization=True)`)"
LONGEST_NAME = 255  # bytes of a file's name, on every system


def kind_of(begin: bytes) -> str:
    """What a file of some other kind seems to be, from its first bytes."""
    if begin.startswith(b"PK"):
        return f"a zip archive, perhaps PyTorch's; {NEVER}: {SAVED}"
    if begin.startswith(b"\x80"):
        return f"a pickle; {NEVER}: {SAVED}"
    if begin.startswith(b"version "):
        return "a pointer of Git LFS: the file itself was not downloaded (git lfs pull)"
    if begin[:1] in (b"{", b"<"):
        return "a text, perhaps what a server said in place of the file"
    if begin.startswith((b"ggml", b"lmgg", b"tjgg", b"fmgg")):
        return "a file of GGML's older formats; convert the model again"
    if begin[8:9] == b"{":
        return "a safetensors file; give the folder in which it lies with its config.json"
    return "of another kind, or damaged"


@contextlib.contextmanager
def mapped(path: Path, least: int) -> Iterator[mmap.mmap]:
    """A file's bytes; refused if it cannot be read or has fewer than `least`."""
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            if size < least:
                raise LayoutError(f"{path.name} has {size:,} bytes, too few for a model; it may have been cut off")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as fault:
        if isinstance(fault, LayoutError):
            raise
        raise LayoutError(f"{str(path)!r:.300} cannot be read: {fault!s:.200}") from None
    with data:
        yield data


def inside(folder: Path, name: object) -> Path:
    """The file of that name in a folder: not beside it, above it or behind a link that leads out of it."""
    is_name = isinstance(name, str) and 0 < len(name.encode("utf-8", "replace")) <= LONGEST_NAME and name.isprintable()
    if not isinstance(name, str) or not is_name or name != Path(name).name or name in (".", ".."):
        raise LayoutError(f"{name!r:.200} is no name of a file in {folder.name}; names with folders are refused")
    if name.endswith(PICKLED):
        raise LayoutError(f"{name} is not read: {NEVER}; {SAVED}")
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise LayoutError(f"{name} is a link that leads out of {folder.name}; copy what it leads to (cp -L)")
    return path
