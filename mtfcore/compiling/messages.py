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
from collections.abc import Callable
from typing import Any

LENGTH = struct.Struct(">Q")
LOOK_SECONDS = 0.1  # between two looks whether somebody wants to stop


class Ended(Exception):
    """The other side closed the pipe."""


class TooLate(Exception):
    """Nothing more came within the time."""


class Stopped(Exception):
    """Whoever waited does not want it any more."""


def send(fd: int, message: Any) -> None:
    """Write one message."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    rest = memoryview(LENGTH.pack(len(data)) + data)
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except BrokenPipeError as error:
        raise Ended from error


def receive(fd: int, seconds: float | None = None, is_stopped: Callable[[], bool] = lambda: False) -> Any:
    """Read one message; `TooLate` if it has not come after so many seconds, `Stopped` once `is_stopped`."""
    until = None if seconds is None else time.monotonic() + seconds
    (length,) = LENGTH.unpack(_read(fd, LENGTH.size, until, is_stopped))
    return pickle.loads(_read(fd, length, until, is_stopped))


def _read(fd: int, length: int, until: float | None, is_stopped: Callable[[], bool]) -> bytes:
    parts = []
    while length:
        _await(fd, until, is_stopped)
        part = os.read(fd, min(length, 1 << 20))
        if not part:
            raise Ended
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _await(fd: int, until: float | None, is_stopped: Callable[[], bool]) -> None:
    """Return once there is something to read."""
    while True:
        left = LOOK_SECONDS if until is None else min(LOOK_SECONDS, max(0.0, until - time.monotonic()))
        if select.select([fd], [], [], left)[0]:
            return
        if until is not None and time.monotonic() >= until:
            raise TooLate
        if is_stopped():
            raise Stopped
