"""Messages between two processes of ours: a length, then that many bytes of a pickle.

Only a program's own parent and child speak like this, over a pipe that nobody else can open; nothing of it is ever
read from a file or a network. Next file to read: `worker`.
"""

from __future__ import annotations

import os
import pickle
import select
import struct
import time
from typing import Any

LENGTH = struct.Struct(">Q")


class Ended(Exception):
    """The other side closed the pipe."""


class TooLate(Exception):
    """Nothing more came within the time."""


def send(fd: int, message: Any) -> None:
    """Write one message."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    rest = memoryview(LENGTH.pack(len(data)) + data)
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except BrokenPipeError as error:
        raise Ended from error


def receive(fd: int, seconds: float | None = None) -> Any:
    """Read one message; `TooLate` if it has not come after so many seconds."""
    until = None if seconds is None else time.monotonic() + seconds
    (length,) = LENGTH.unpack(_read(fd, LENGTH.size, until))
    return pickle.loads(_read(fd, length, until))


def _read(fd: int, length: int, until: float | None) -> bytes:
    parts = []
    while length:
        left = None if until is None else max(0.0, until - time.monotonic())
        if not select.select([fd], [], [], left)[0]:
            raise TooLate
        part = os.read(fd, min(length, 1 << 20))
        if not part:
            raise Ended
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
