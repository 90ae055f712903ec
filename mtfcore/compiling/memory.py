"""Memory of a compiled program on one device, and the compiler's refusal where there is too little.

    >>> refusal("RESOURCE_EXHAUSTED: ... for HLO temporaries (49.25G) exceeds available HBM (15.75G)")
    Refusal(message='RESOURCE_EXHAUSTED: …', needed_bytes=52881784832, available_bytes=16911433728)

Next file to read: `programs`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mtfcore.numbers import format_bytes

EXHAUSTED = "RESOURCE_EXHAUSTED"
_SIZE = r"([\d.]+)([KMGT]?)i?B?"
_SAID = (
    re.compile(rf"\({_SIZE}\) exceeds available \w+ \({_SIZE}\)"),
    re.compile(rf"Used {_SIZE} of {_SIZE} \w+"),
    re.compile(rf"[Aa]llocat\w* {_SIZE}.{{0,80}}?{_SIZE} (?:free|available)"),
)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


@dataclass(frozen=True)
class Compiled:
    """Bytes of one device, as the compiler lays them out."""

    arguments: int
    outputs: int
    temporaries: int
    aliased: int  # outputs that take over the memory of arguments
    code: int

    @property
    def total(self) -> int:
        """All that is held at the fullest moment."""
        return self.arguments + self.outputs + self.temporaries - self.aliased + self.code

    def __str__(self) -> str:
        names = ("arguments", "outputs", "temporaries", "aliased", "code")
        return ", ".join(f"{name} {format_bytes(getattr(self, name))}" for name in names if getattr(self, name))


@dataclass(frozen=True)
class Refusal:
    """Why the compiler made no program."""

    message: str
    needed_bytes: int | None = None
    available_bytes: int | None = None

    def __str__(self) -> str:
        if self.needed_bytes is None or self.available_bytes is None:
            return self.message
        return f"needs {format_bytes(self.needed_bytes)} of {format_bytes(self.available_bytes)}"


def refusal(message: str) -> Refusal | None:
    """The compiler's words as data, if they are about memory; None for another fault."""
    if EXHAUSTED not in message:
        return None
    for said in _SAID:
        if match := said.search(message):
            needed, needed_unit, there, there_unit = match.groups()
            return Refusal(message, _bytes(needed, needed_unit), _bytes(there, there_unit))
    return Refusal(message)


def _bytes(number: str, letter: str) -> int:
    return round(float(number) * 1024 ** _POWERS[letter])
