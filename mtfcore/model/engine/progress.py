"""What an engine tells while it works: one line for every launch.

    for now in eng.generate(prompts): print(now.phase, now.tokens, now.traffic)

Seconds are measured on whatever runs the program; where that are simulated devices they say nothing of hardware, and
nothing shows them as speed. Bytes are those of the steps that ran. Next file to read: `engine`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mtfcore.model.engine.slots import Request
from mtfcore.steps import Program


@dataclass(frozen=True)
class Progress:
    """One launch of an engine."""

    phase: str  # prefill, give, take, decode, move
    tokens: Mapping[int, list[int]]  # request → what it made, in order
    finished: tuple[int, ...]  # requests that ended with it
    seconds: float  # of this launch, waited for; the first of its shape compiles too
    n_read: int  # tokens of prompts read in it
    traffic: Mapping[str, float]  # bytes that one device has sent so far, by mesh axis
    cache: tuple[int, int]  # tokens kept, and room for how many
    program: Program = field(repr=False)
    times: int = 1  # tokens of each sequence in this launch

    def of(self, requests: Sequence[Request]) -> Progress:
        """Only what concerns these, numbered from 0: all that they made since the last time, whoever launched it."""
        tokens = {n: made for n, request in enumerate(requests) if (made := request.untold())}
        finished = tuple(n for n in tokens if requests[n].done)
        return dataclasses.replace(self, tokens=tokens, finished=finished)
