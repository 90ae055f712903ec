"""Lines that survive a crash: a file only grows, by whole lines, whoever writes and whenever it is killed.

    append_line(path, b'{"id": "3f"}')          # on the disk when this returns
    for number, line, whole in read_lines(path): ...

One `os.write` of the whole line at the end of the file, under a lock file, then `fsync`. The system may still cut a
write short when it kills the process: then the file ends without a newline. The next append starts on a new line, so
that a torn line stays by itself and is never merged into the next. Next file to read: `cases`.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LINE_BYTES = 256 * 1024  # the longest line written or read
FILE_BYTES = 64 * 1024 * 1024  # a file beyond this takes no more lines
BINARY = getattr(os, "O_BINARY", 0)  # Windows would turn newlines into two bytes


def append_line(path: Path, line: bytes) -> None:
    """Add one line to a file, made with its folder where missing; it is on the disk when this returns."""
    if b"\n" in line or len(line) > LINE_BYTES:
        raise ValueError(f"a line of {len(line):,} bytes; it may hold no newline and at most {LINE_BYTES:,} bytes")
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with _locked(path.with_name(path.name + ".lock")):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | BINARY, 0o644)
        try:
            _write(file, path, line)
        finally:
            os.close(file)
    if new:
        _sync_folder(path.parent)


def read_lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Each line: its number from 1, its bytes (of one too long its beginning), whether it ends as it should."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > 2 * FILE_BYTES:  # a pipe or a device need never end
        kind = "a file" if stat.S_ISREG(status.st_mode) else "no file"
        raise OSError(f"{kind} of {status.st_size:,} bytes; records are in files of at most {FILE_BYTES:,}")
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LINE_BYTES + 1):
            number += 1
            whole = line.endswith(b"\n")
            yield number, line.rstrip(b"\r\n"), whole
            while not whole and (rest := file.readline(LINE_BYTES)):  # of a line too long to be ours
                whole = rest.endswith(b"\n")


def _write(file: int, path: Path, line: bytes) -> None:
    """One write of the whole line; where the disk takes only a part of it, the file is what it was."""
    size = os.fstat(file).st_size
    if size + len(line) > FILE_BYTES:
        raise OSError(f"{path} holds {size:,} bytes; at {FILE_BYTES:,} it is full: move it away and go on")
    data = (b"" if _ends_whole(file, size) else b"\n") + line + b"\n"
    written = os.write(file, data)
    if written != len(data):
        os.ftruncate(file, size)
        raise OSError(f"{path}: the disk took {written:,} of {len(data):,} bytes; the file is as it was")
    os.fsync(file)


def _ends_whole(file: int, size: int) -> bool:
    """Whether the file ends with a newline, so that the last writer was not cut short."""
    if size == 0:
        return True
    os.lseek(file, size - 1, os.SEEK_SET)  # where an append writes does not depend on this
    return os.read(file, 1) == b"\n"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One writer at a time; the system frees the lock of a process that ends in any way."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | BINARY, 0o644)
    try:
        if sys.platform == "win32":  # as a checker of types reads it: the module is not there elsewhere
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _sync_folder(folder: Path) -> None:
    """Make a new file's name as lasting as what it holds; Windows has no such call and needs none."""
    if os.name == "nt":
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
