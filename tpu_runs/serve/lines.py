"""What the owner's terminal says of requests: a line for each that is taken, and one for each answer.

    12:03:07  request 7, client 2: phase, waiting as number 1 of 3
    12:03:09  request 7, client 2: phase, ok after 2.1 s, of which 1.4 s waiting

Clients are numbers in the order in which they first came; neither their names nor their tokens are printed, nor what
they asked beyond the case. In a rush lines are left out and counted. Next file to read: `desk`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from mtfcore.errors import sure
from mtfcore.numbers import count, format_seconds
from tpu_runs.serve.limits import Limits, Rate, Refused
from tpu_runs.serve.tickets import Job, Ticket

AT_MOST = Limits(requests_per_second=5, burst=60)  # lines: a whole class may ask at once
CLIENTS = 4096  # that have a number; then counting goes on and those who came first get another


class Lines:
    """Writes them, or nothing where nobody says how; called by the desk."""

    def __init__(
        self, write: Callable[[str], object] = lambda line: None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.write, self._rate = write, Rate(AT_MOST, clock)
        self._clients: dict[str, int] = {}
        self._came, self._left_out = 0, 0

    def taken(self, ticket: Ticket, job: Job, queue: Sequence[Job]) -> None:
        """A request that waits, or that an equal one's run will answer."""
        waits = f"waiting as number {1 + queue.index(job)} of {len(queue)}" if job in queue else ""
        self.say(ticket, job.request.case, waits or "joins the run going on")

    def answered(self, ticket: Ticket, job: Job, now: float) -> None:
        """An answer, how long it took, and how much of that was waiting for the chip."""
        took, began = now - ticket.came, now if job.started is None else max(job.started, ticket.came)
        times = f"after {format_seconds(took)}, of which {format_seconds(began - ticket.came)} waiting"
        self.say(ticket, job.request.case, f"{sure(ticket.record).status} {times}")

    def say(self, ticket: Ticket, case: str, state: str) -> None:
        """One line, unless there were too many just now."""
        who = self._number(ticket.client)
        try:
            self._rate.take("lines")
        except Refused:
            self._left_out += 1
            return
        missing = f" ({count(self._left_out, 'line')} left out before this)" if self._left_out else ""
        self._left_out = 0
        self._print(f"{time.strftime('%H:%M:%S')}  request {ticket.number}, client {who}: {case}, {state}{missing}")

    def _number(self, client: str) -> int:
        if client not in self._clients:
            self._came += 1
            self._clients[client] = self._came
            if len(self._clients) > CLIENTS:
                del self._clients[next(iter(self._clients))]
        return self._clients[client]

    def _print(self, line: str) -> None:
        try:
            self.write(line)
        except OSError:  # a terminal that was closed must not cost the class its answers
            self.write = lambda line: None
