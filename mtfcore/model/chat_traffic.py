"""What a conversation has sent, by phase and by mesh axis: a sum over the programs that ran.

    sent = Sent()
    for piece, now in chat.say("Where do tides come from?"): sent.add(now.phase, now.program, now.times)
    sent.by_axis                                     # {'x': 51200.0, 'y': …}: bytes of one device
    print(sent.words())

Bytes are counted from the steps of each launch. Next file to read: `chat`.
"""

from __future__ import annotations

from mtfcore.numbers import format_bytes
from mtfcore.steps import Program

PHASES = ("prefill", "give", "take", "move", "decode")


class Sent:
    """Bytes that one device has sent since the beginning."""

    def __init__(self) -> None:
        self.by_phase: dict[str, dict[str, float]] = {}
        self.launches: dict[str, int] = {}
        self.n_decoded = 0  # tokens that each sequence was decoded
        self.a_token: dict[str, float] = {}  # of decode as it is now, by axis

    @property
    def by_axis(self) -> dict[str, float]:
        """Of all phases together."""
        found: dict[str, float] = {}
        for of_phase in self.by_phase.values():
            for axis, n_bytes in of_phase.items():
                found[axis] = found.get(axis, 0.0) + n_bytes
        return found

    def add(self, phase: str, program: Program, times: int = 1) -> None:
        """One launch more."""
        sent = program.link_bytes().by_axis
        of_phase = self.by_phase.setdefault(phase, {})
        for axis, n_bytes in sent.items():
            of_phase[axis] = of_phase.get(axis, 0.0) + n_bytes
        self.launches[phase] = self.launches.get(phase, 0) + 1
        if phase == "decode":
            self.n_decoded += times
            self.a_token = {axis: n_bytes / times for axis, n_bytes in sent.items()}

    def words(self) -> str:
        """In lines: all, then each phase, then a token."""
        lines = [f"sent by one device so far: {axis_words(self.by_axis)} (counted)"]
        for phase in PHASES:
            if phase in self.by_phase:
                n = self.launches[phase]
                lines.append(f"  {phase}: {axis_words(self.by_phase[phase])} in {n:,} launch{'es' * (n > 1)}")
        if self.n_decoded:
            lines.append(f"  a token, decoded as now: {axis_words(self.a_token)}")
        return "\n".join(lines)


def axis_words(by_axis: dict[str, float]) -> str:
    """'x 16 KiB, y 32 KiB, together 48 KiB'."""
    told = ", ".join(f"{axis} {format_bytes(n_bytes)}" for axis, n_bytes in by_axis.items())
    if not told:
        return "nothing"
    return f"{told}, together {format_bytes(sum(by_axis.values()))}" if len(by_axis) > 1 else told
