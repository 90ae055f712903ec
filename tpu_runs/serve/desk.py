"""The desk: who asked for what, whose turn it is, and what the answer was. It knows nothing of HTTP, nor of Dask.

    ticket = desk.ask("ann", Request("product", {"m": 4096}))
    desk.look("ann", ticket.id)        # {"state": "waiting", "position": 3, "waiting": 12, …}, later {"record": {…}}

Equal requests are one job, however many wait for it; an equal one with a good record from the same kind of device is
answered at once, unless a fresh measurement was asked for. A run that dies with its worker is told as failed and not
tried again: most often it was the cause, and a class's hour with a chip is short. Next file to read: `engine`.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from mtfcore.errors import sure
from tpu_runs.records import Record, append, read
from tpu_runs.serve.limits import Limits, Refused, Request
from tpu_runs.serve.lines import Lines
from tpu_runs.serve.tickets import Job, Ticket
from tpu_runs.serve.turns import Turns, priority

KEPT = 2000  # tickets; whoever comes later for one is answered from the records
SAME = ("platform", "device_kind")  # where a record must come from to answer for this chip …
VERSIONS = ("jax", "jaxlib", "libtpu", "meshwork")  # … and made with what


class Queue(Protocol):
    """What the desk needs of the engine."""

    def submit(self, key: str, case: str, params: dict[str, Any], priority: int) -> None: ...
    def drop(self, key: str) -> None: ...
    def ask_to_stop(self, key: str) -> None: ...
    def kill(self) -> None: ...


class Desk:
    """Requests in, records out."""

    def __init__(self, queue: Queue, limits: Limits, file: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.queue, self.limits, self.file, self.clock = queue, limits, file, clock
        self.here: dict[str, Any] = {}  # where and versions, as the worker said
        self.turns, self._numbers, self._came, self.ending = Turns(), 0, 0, False
        self.jobs: dict[str, Job] = {}  # by every key that the job was queued with
        self.tickets: OrderedDict[str, Ticket] = OrderedDict()
        self.changed: Callable[[], None] = lambda: None
        self.lines = Lines()  # for the owner's terminal
        self.trouble = ""  # why records could not be kept, if so
        self._known: dict[str, Record] = {}
        self.remember_earlier(read(file)[0] if file.exists() else [])

    def remember(self, records: Iterable[Record]) -> None:
        """Good measurements that may answer equal requests; later ones count."""
        good = (record for record in records if record.status == "ok" and record.origin == "measured")
        self._known |= {record.asked: record for record in good}

    def remember_earlier(self, records: Iterable[Record]) -> None:
        """The same, of earlier owners; but one device's share then may be the whole now, with more devices here."""
        self.remember(record for record in records if record.share is None)

    # ---- what clients ask ----

    def ask(self, client: str, request: Request) -> Ticket:
        """A ticket for a checked request: answered already, joined to an equal one, or queued."""
        record = None if request.fresh else self._from_records(request)
        if record is not None:
            ticket = self._ticket(client, 0, record=record, source="records")
            self.lines.say(ticket, request.case, "answered from the records")
            return ticket
        mine = [ticket for ticket in self.tickets.values() if ticket.client == client and ticket.job]
        self._room(mine)
        round = self.turns.place(client, [ticket.round for ticket in mine])
        self._numbers += 1
        place = (round, self._numbers)
        job = self._equal(request)
        if job is None:
            job = self._queue(Job("", request, place, client))
        elif job.started is None and place < job.place:  # an earlier turn than that of whoever asked first
            self.queue.drop(job.key)
            job.place, job.client = place, client
            self._queue(job)
        ticket = self._ticket(client, round, job=job)
        job.tickets[ticket.id] = ticket
        self.lines.taken(ticket, job, self.waiting())
        self.changed()
        return ticket

    def look(self, client: str, id: str) -> dict[str, Any]:
        """How a ticket stands, as JSON."""
        ticket = self._mine(client, id)
        ticket.looked = self.clock()
        told: dict[str, Any] = {"id": id, "state": "done" if ticket.record else "waiting"}
        if ticket.record:
            return {**told, "source": ticket.source, "record": json.loads(ticket.record.line())}
        job = sure(ticket.job)
        if job.started is not None:
            return {**told, "state": "running", "position": 0, "progress": job.progress}
        queue = self.waiting()
        going = self.running() is not None
        return {**told, "position": 1 + queue.index(job), "waiting": len(queue), "running": going}

    def cancel(self, client: str, id: str) -> None:
        """Take a request back: told at once; its run ends before the next repetition, if nobody else waits for it."""
        ticket = self._mine(client, id)
        if ticket.job:
            self._give_up(ticket, "taken back by whoever asked")

    def waiting(self) -> list[Job]:
        """The jobs that have not started, in the order of their turns."""
        waiting = {job.place: job for job in self.jobs.values() if job.started is None}
        return [waiting[place] for place in sorted(waiting)]

    def running(self) -> Job | None:
        """The job that has the chip."""
        return next((job for job in self.jobs.values() if job.started is not None), None)

    # ---- what the engine tells ----

    def event(self, told: dict[str, Any]) -> None:
        """A run started, went on, or ended."""
        job = self.jobs.get(told["key"])
        if job is None:
            if told["what"] == "started":  # taken back in the very moment in which its turn came
                self.queue.ask_to_stop(told["key"])
            return
        if told["what"] == "started":
            self._start(job, told["key"])
        elif told["what"] == "progress":
            job.progress = {name: told[name] for name in ("done", "total", "text")}
        elif told["what"] == "finished":
            self._answer(job, Record(**json.loads(told["record"])))
        elif told["what"] == "failed":
            self._answer(job, self._row(job, "failed", told["reason"], trace=told["trace"]))
        elif told["what"] == "stopped":
            self._answer(job, self._row(job, "stopped", f"asked to stop after {told['done']} of {told['total']}"))
        self.changed()

    def died(self) -> None:
        """The worker ended: what it ran is told as failed; what waits is the scheduler's and waits on."""
        if job := self.running():
            status = "stopped" if job.ended and not self.ending else "failed"
            words = job.ended or "its worker process ended in the middle of it (out of memory, or the compiler gave up)"
            next_ = "" if self.ending else "; the worker is started again, ask again to try again"
            self._answer(job, self._row(job, status, f"{words}{next_}"))
            self.changed()

    def end(self) -> None:
        """The owner ends, and the worker with it: what it runs says so."""
        self.ending = True
        if job := self.running():
            job.ended = job.ended or "the class's owner was ended"

    def tick(self) -> None:
        """Now and then: end a run past its limit, and give up what nobody waits for any more."""
        job, now = self.running(), self.clock()
        if job and not job.ended and now - sure(job.started) > self.limits.run_seconds:
            job.ended = f"it ran past the class's limit of {self.limits.run_seconds:g} s"
            self.queue.kill()
        for ticket in list(self.tickets.values()):
            if ticket.job and now - ticket.looked > self.limits.patience_seconds:
                self._give_up(ticket, f"nobody looked for it in {self.limits.patience_seconds:g} s")

    # ---- inside ----

    def _start(self, job: Job, key: str) -> None:
        """A job runs, by the key that it was queued with last, or by an earlier one if that was on its way already."""
        if key != job.key:
            self.queue.drop(job.key)
            job.key = key
        job.started = self.clock()
        self.turns.serve(job.client, job.place[0])

    def _from_records(self, request: Request) -> Record | None:
        record = self._known.get(request.asked)
        where, versions = self.here.get("where", {}), self.here.get("versions", {})
        if record is None or record.where.get("devices", 1) > where.get("devices", 1):
            return None
        same = all(record.where.get(name) == where.get(name) for name in SAME)
        return record if same and all(record.versions.get(n) == versions.get(n) for n in VERSIONS) else None

    def _room(self, mine: list[Ticket]) -> None:
        if len(mine) >= self.limits.queued_per_client:
            raise Refused(429, f"you have {len(mine)} requests here, the most one may have: wait for one, or cancel it")
        if len(self.waiting()) >= self.limits.queued:
            raise Refused(503, f"{self.limits.queued} requests wait, the most this class keeps: try in a minute")

    def _equal(self, request: Request) -> Job | None:
        """A job that will answer this too: none that is about to end."""
        going = (job for job in self.jobs.values() if not job.stopping and not job.ended)
        return next((job for job in going if job.request.asked == request.asked), None)

    def _queue(self, job: Job) -> Job:
        """Into Dask's queue, by a name never used before."""
        job.key = uuid.uuid4().hex
        self.jobs[job.key] = job
        self.queue.submit(job.key, job.request.case, job.request.params, priority(*job.place))
        return job

    def _leave(self, job: Job) -> None:
        self.jobs = {key: other for key, other in self.jobs.items() if other is not job}
        self.queue.drop(job.key)

    def _ticket(self, client: str, round: int, **more: Any) -> Ticket:
        self._came += 1
        ticket = Ticket(uuid.uuid4().hex, client, round, now := self.clock(), self._came, now, **more)
        self.tickets[ticket.id] = ticket
        if len(self.tickets) > KEPT:  # one in, one out
            del self.tickets[next(id for id, old in self.tickets.items() if old.record or old is ticket)]
        return ticket

    def _mine(self, client: str, id: str) -> Ticket:
        ticket = self.tickets.get(id)
        if ticket is None or ticket.client != client:
            raise Refused(404, "no such request of yours; perhaps the owner was started again: ask again")
        return ticket

    def _give_up(self, ticket: Ticket, why: str) -> None:
        """One ticket less; a job that nobody waits for leaves the queue, or ends before its next repetition."""
        job, ticket.job, ticket.source = sure(ticket.job), None, "cancelled"
        ticket.record = self._row(job, "stopped", why)
        self.lines.answered(ticket, job, self.clock())
        del job.tickets[ticket.id]
        if not job.tickets and job.started is None:
            self._leave(job)
        elif not job.tickets:
            job.stopping = True
            self.queue.ask_to_stop(job.key)
        self.changed()

    def _row(self, job: Job, status: str, reason: str, **facts: Any) -> Record:
        return Record(case=job.request.case, params=job.request.params, status=status, reason=reason, facts=facts,
                      where=self.here.get("where", {}), versions=self.here.get("versions", {}),
                      commit=self.here.get("commit", ""))  # fmt: skip

    def _answer(self, job: Job, record: Record) -> None:
        """Keep the record first, then tell all who wait for it."""
        try:
            append(record, self.file)
        except (OSError, ValueError) as fault:  # a full disk must not keep the answer from those who wait
            self.trouble = f"the last record was not kept: {fault}"
        self._leave(job)
        self.remember([record])
        for ticket in job.tickets.values():
            ticket.job, ticket.record, ticket.source = None, record, "run"
            self.lines.answered(ticket, job, self.clock())
