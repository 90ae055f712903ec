"""Turns on a shared machine: each compiler takes about 450 MB, so where there is room for no more the next one waits.

    >>> slot = CompilerSlots().take(told=print)
    waiting for 3 other compilers
    >>> slot.close()

A slot is a lock on a file in a folder of this user's. The lock goes over to the compiler's process and ends with it,
however that ends, so nothing is left behind by one that was killed. Who waits has a lock too, on a file named by when
it came: the first comes first, and compilers that idle see that somebody waits and make room. How many slots there are
follows from the memory that is free and from the processor's cores; MESHWORK_COMPILERS=2 says it outright. Where files
cannot be locked nobody waits. Next file to read: `process`.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from mtfcore.compiling.messages import LOOK_SECONDS
from mtfcore.errors import DeviceError, sure
from mtfcore.machine import Machine
from mtfcore.numbers import count

CHILD_BYTES = 700 * 2**20  # 450 MB once started, and room for a program
FOR_OTHERS = 512 * 2**20  # what is left to everything else
PER_CORE = 2
DOOR_SECONDS = 2.0  # whoever holds the door longer than this has been stopped
SET_BY = "MESHWORK_COMPILERS"


class CompilerSlots:
    """The slots that all compilers of one user share."""

    def __init__(self, folder: Path | None = None, machine: Machine | None = None) -> None:
        self.machine = machine or Machine()
        self.folder = folder or _own_folder(self.machine)

    def take(
        self, told: Callable[[str], None] = print, is_stopped: Callable[[], bool] = lambda: False
    ) -> IO[bytes] | None:
        """A locked slot, once there is one; None where files cannot be locked. `DeviceError` if stopped meanwhile.

        `told` hears what is waited for whenever that changes, and "" when the wait is over.
        """
        slot, others = self._try("")
        if slot or not others:
            return slot
        with self._ticket() as ticket:
            said = ""
            while others and not slot:
                if is_stopped():
                    raise DeviceError("the compilation was stopped while it waited for other compilers")
                if others != said:
                    told(said := others)
                time.sleep(LOOK_SECONDS)
                slot, others = self._try(ticket)
        told("")
        return slot

    def is_wanted(self) -> bool:
        """Whether somebody waits for a slot."""
        if self.folder is None or not any(self.folder.glob("ticket-*")):
            return False
        with self._door() as door:
            return bool(door and self._locked("ticket-*"))

    def slots(self, taken: int) -> int:
        """How many compilers there may be, with so many of them running already."""
        said = self.machine.environment.get(SET_BY, "")
        if said.isdecimal() and int(said):
            return int(said)
        memory = self.machine.free_memory()
        room = taken + max(0, memory[0] - FOR_OTHERS) // CHILD_BYTES if memory else PER_CORE
        return max(1, min(room, PER_CORE * (os.cpu_count() or 1)))

    def _try(self, ticket: str) -> tuple[IO[bytes] | None, str]:
        """A slot if one is free and nobody asked before; otherwise what is waited for. Neither: no locks here."""
        with self._door() as door:
            if not door:
                return None, ""
            taken, asked = self._locked("slot-*"), self._locked("ticket-*")
            before = sum(name < ticket or not ticket for name in asked)
            if before or len(taken) >= self.slots(len(taken)):
                return None, waiting_words(len(taken), before)
            free = next(name for n in range(len(taken) + 1) if (name := f"slot-{n}") not in taken)
            return _lock(sure(self.folder) / free), ""

    @contextlib.contextmanager
    def _ticket(self) -> Iterator[str]:
        """A place in the queue, given up at the end."""
        path = sure(self.folder) / f"ticket-{time.time_ns():020d}-{os.getpid()}"
        with self._door():
            file = _lock(path)
        try:
            yield path.name
        finally:
            path.unlink(missing_ok=True)
            if file:
                file.close()

    @contextlib.contextmanager
    def _door(self) -> Iterator[bool]:
        """Only one looks at the locks at a time: looking takes them for a moment. False where that cannot be had."""
        until, file = time.monotonic() + DOOR_SECONDS, None
        while self.folder and not (file := _lock(self.folder / "door")) and time.monotonic() < until:
            time.sleep(0.005)
        try:
            yield file is not None
        finally:
            if file:
                file.close()

    def _locked(self, pattern: str) -> set[str]:
        """The names of the files that somebody has a lock on; tickets of those that are gone are removed."""
        found = set()
        for path in sure(self.folder).glob(pattern):
            if mine := _lock(path):
                if path.name.startswith("ticket-"):
                    path.unlink(missing_ok=True)
                mine.close()
            else:
                found.add(path.name)
        return found


def waiting_words(compilers: int, before: int) -> str:
    """What somebody who waits is told."""
    words = f"waiting for {count(compilers, 'other compiler')}"
    return f"{words}, after {count(before, 'other')} who asked before" if before else words


def _own_folder(machine: Machine) -> Path | None:
    """A folder that this user alone can write into; None where there is no such thing, or no locks."""
    if os.name != "posix":  # no compiler there either
        return None
    given = machine.environment.get("XDG_RUNTIME_DIR", "")
    root = Path(given) if os.path.isdir(given) else Path(tempfile.gettempdir())
    folder = root / f"meshwork-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        is_ours = folder.stat().st_uid == os.getuid() and not folder.is_symlink()
    except OSError:
        return None
    return folder if is_ours else None


def _lock(path: Path) -> IO[bytes] | None:
    """An open file with a lock on it, which ends with the last process that has it open; None if another has it."""
    import fcntl

    try:
        file = path.open("ab")
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file
