"""Which other process holds a chip: told by what Linux says of processes, without opening anything of the chip's.

    >>> holders(machine, tpu_files())
    [Holder(number=4711, command='python -m ipykernel_launcher -f kernel-1.json')]

Only one process can hold a TPU. libtpu shows that it does in two ways: it has the device files open, and it has a lock
on a file of its own. Files that a process of another user has open are hidden from us; its lock is not. Next file to
read: `chip_state`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mtfcore.machine import Machine


@dataclass(frozen=True)
class Holder:
    """A process, and what started it; an empty command where nothing tells."""

    number: int
    command: str = ""

    def __str__(self) -> str:
        return f"process {self.number}" + (f" ({self.command})" if self.command else "")


def holders(machine: Machine, files: Iterable[Path]) -> list[Holder]:
    """The other processes that have one of these files open."""
    wanted = {str(file.resolve()) for file in files}
    found = [number for number in _numbers(machine) if wanted & set(_open(machine, number))]
    return [Holder(number, _command(machine, number)) for number in found]


def lock_holders(machine: Machine) -> list[Holder]:
    """The other processes that have a lock on libtpu's file."""
    try:
        inode = machine.tpu_lock.stat().st_ino
        locks = (machine.processes / "locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    said = [line.split() for line in locks]  # 1: POSIX ADVISORY WRITE 4711 08:01:1311 0 EOF
    numbers = {int(words[4]) for words in said if len(words) == 8 and words[5].split(":")[-1] == str(inode)}
    others = sorted(number for number in numbers - {machine.process} if _may_have(machine, number, machine.tpu_lock))
    return [Holder(number, _command(machine, number)) for number in others]


def _numbers(machine: Machine) -> Iterator[int]:
    names = (path.name for path in machine.processes.glob("[0-9]*"))
    yield from sorted(number for name in names if name.isdecimal() and (number := int(name)) != machine.process)


def _open(machine: Machine, number: int) -> Iterator[str]:
    """What a process has open; nothing where it is gone, or another user's."""
    try:
        for link in (machine.processes / str(number) / "fd").iterdir():
            yield str(link.readlink())
    except OSError:
        return


def _may_have(machine: Machine, number: int, file: Path) -> bool:
    """Locks are told by number in the file system alone, which two systems may share: what is open decides, if seen."""
    opened = list(_open(machine, number))
    return not opened or str(file.resolve()) in opened


def _command(machine: Machine, number: int, most: int = 80) -> str:
    try:
        words = (machine.processes / str(number) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    text = b" ".join(words).decode(errors="replace").strip()
    return text if len(text) <= most else f"{text[: most - 1]}…"
