"""Fair turns: in each round every client who waits is served once, so that one who floods delays only himself.

    turns = Turns()
    turns.place("ann", []), turns.place("ann", [0]), turns.place("ben", [])  # rounds 0, 1, 0: ben before ann's second

A request's round is fixed when it comes: the one being served, or the one after the client's latest. Round and number
of arrival become Dask's priority, so the queue is the scheduler's own and outlives its worker. (Fair queueing by
virtual time: A. Demers, S. Keshav, S. Shenker, "Analysis and simulation of a fair queueing algorithm", 1989, with every
run counted alike.) Next file to read: `tickets`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Turns:
    """The round being served, and who has had a turn in it or in a later one."""

    current: int = 0
    _served: dict[str, int] = field(default_factory=dict)

    def place(self, client: str, open_rounds: Iterable[int]) -> int:
        """The round of a client's new request; `open_rounds` are those of its requests that wait or run."""
        taken = [*open_rounds, self._served.get(client, -1)]
        return max(self.current, max(taken) + 1)

    def serve(self, client: str, round: int) -> None:
        """A run starts, on this client's turn."""
        self.current = max(self.current, round)
        self._served = {name: had for name, had in self._served.items() if had >= self.current}
        self._served[client] = max(round, self._served.get(client, round))


def priority(round: int, number: int) -> int:
    """What Dask sorts by, the largest first: earlier rounds, then earlier arrivals."""
    return -(round * 2**32 + number)
