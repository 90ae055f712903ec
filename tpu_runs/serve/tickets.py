"""Tickets and jobs: a ticket is what one client holds, a job is one run, and several tickets may wait for it.

    job = Job(key, Request("product", {"m": 4096}), place=(0, 7), client="ann")     # ann's turn, the seventh request
    job.tickets[ticket.id] = ticket; ticket.job = job                               # until ticket.record is there

Next file to read: `desk`, which moves them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tpu_runs.records import Record
from tpu_runs.serve.limits import Request


@dataclass
class Job:
    """One run, and the tickets of all who wait for it."""

    key: str
    request: Request
    place: tuple[int, int]  # round, number of arrival
    client: str  # whose turn it is
    tickets: dict[str, Ticket] = field(default_factory=dict)
    started: float | None = None
    stopping: bool = False
    ended: str = ""  # why its worker was killed, if it was by us
    progress: dict[str, Any] = field(default_factory=dict)


@dataclass
class Ticket:
    """One client's request; `record` once it is answered."""

    id: str
    client: str
    round: int
    looked: float
    number: int = 0  # of arrival, for the owner's terminal
    came: float = 0.0
    job: Job | None = None
    record: Record | None = None
    source: str = ""  # "run", "records" or "cancelled"
