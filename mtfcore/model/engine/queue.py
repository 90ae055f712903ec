"""Continuous batching: who is read, who is written on, who waits, and what the next launch is for each of them.

    queue.waiting.append(request)
    while not queue.idle:
        done = queue.step()               # one launch: done.phase, done.tokens, done.finished

Prompts are read a few at a time: their kept tokens are taken back where a conversation goes on, then chunks are read,
all rows together, then they are given to their slots. In between, every second launch decodes, so nobody waits for long
prompts of others. What a request has kept is noted only when its slot has it: reading can be given up at any time.
Next file to read: `engine`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mtfcore.errors import LayoutError, sure
from mtfcore.model.engine.asking import drawing_arrays
from mtfcore.model.engine.launches import Launches, uninterrupted
from mtfcore.model.engine.slots import Request, Slots, bucket
from mtfcore.numbers import count
from mtfcore.steps import Program


class Done(NamedTuple):
    """What one launch did."""

    phase: str
    program: Program
    tokens: Mapping[int, list[int]] = {}
    finished: tuple[int, ...] = ()
    n_read: int = 0
    times: int = 1


class Queue:
    """The requests of an engine, and the next launch."""

    def __init__(self, launches: Launches, slots: Slots, chunk: int, n_tokens: int) -> None:
        self.launches, self.slots, self.chunk, self.n_tokens = launches, slots, chunk, n_tokens
        self.waiting: deque[Request] = deque()
        self.reading: list[Request] = []  # row → the prompt that is read there
        self.n_read = 0  # how many of their unread tokens were read, where they have so many
        self.taken = False  # whether what they had kept is in prefill's cache
        self.first: dict[int, int] = {}  # row → the token behind its prompt, once that is read
        self.running: dict[int, Request] = {}  # by slot
        self.held: dict[int, Request] = {}  # conversations between turns, by slot
        self._decode_next = False

    @property
    def idle(self) -> bool:
        return not (self.waiting or self.reading or self.running)

    @property
    def n_kept(self) -> int:
        """Tokens that somebody has in the cache."""
        return sum(request.kept for of in (self.running, self.held) for request in of.values())

    def step(self, turns: int = 1) -> Done:
        """Launch what comes next."""
        can_read = bool(self.reading) or self._next() is not None
        if not can_read and not self.running:
            raise LayoutError(self._stuck() if self.waiting else "nothing to do: submit prompts first")
        decode = bool(self.running) and (self._decode_next or not can_read)
        self._decode_next = not decode
        return self._decode(turns) if decode else self._read_on()

    def _stuck(self) -> str:
        waiting = count(len(self.waiting), "prompt") + (" waits" if len(self.waiting) == 1 else " wait")
        return f"{waiting}, and conversations hold {len(self.held)} of {self.slots.n} slots; end one of them"

    def add(self, requests: Sequence[Request]) -> None:
        """To the end of the queue, samples of one prompt together."""
        samples = {id(sample) for request in requests for sample in request.others}
        self.waiting.extend(request for request in requests if id(request) not in samples)

    def _next(self) -> Request | None:
        """Who is read next: the first, if there are slots for it; else a conversation, since it has its slot already;
        or whoever fits, if nobody is left who will leave a slot."""
        fit = [request for request in self.waiting if self._fits(request, self.slots.free)]
        if fit and (fit[0] is self.waiting[0] or not (self.running or self.reading)):
            return fit[0]
        return next((request for request in fit if request.slot is not None), None)

    # ---- reading ------------------------------------------------------------------------------------------------

    def _read_on(self) -> Done:
        if not self.reading:
            self._start_reading()
        if not self.taken and any(request.kept for request in self.reading):
            return self._take()
        most = max(len(request.to_read) for request in self.reading)
        return self._chunk(most - self.n_read) if self.n_read < most else self._give()

    def _start_reading(self) -> None:
        """As many prompts as are read at a time, each with the slots that it will go to."""
        self.n_read, self.taken, self.first = 0, False, {}
        while len(self.reading) < self.launches.read_shape.sequences and (request := self._next()):
            if self.reading and self.reading[0].others:
                break
            with uninterrupted():
                self.waiting.remove(request)
                self.reading.append(request)
                for sample in request.samples:
                    sample.slot = self.slots.take() if sample.slot is None else sample.slot

    @staticmethod
    def _fits(request: Request, free: int) -> bool:
        return sum(sample.slot is None for sample in request.samples) <= free

    def _take(self) -> Done:
        n = self.slots.n
        slots = self._by_row([sure(request.slot) if request.kept else n for request in self.reading], n)
        program = self.launches.take(slots)
        self.taken = True
        return Done("take", program)

    def _chunk(self, left: int) -> Done:
        """One chunk of every prompt that has so many tokens."""
        size = bucket(min(left, self.chunk), self.chunk)
        n_rows = self.launches.read_shape.sequences
        tokens, count = np.zeros((n_rows, size), np.int32), np.zeros(n_rows, np.int32)
        for row, request in enumerate(self.reading):
            part = request.to_read[self.n_read : self.n_read + size]
            tokens[row, : len(part)], count[row] = part, len(part)
        ends = {row: request for row, request in enumerate(self.reading)
                if count[row] and self.n_read + count[row] == len(request.unread)}  # fmt: skip
        length = self._by_row([r.kept + min(self.n_read, len(r.to_read)) for r in self.reading])
        drawing = drawing_arrays(ends, n_rows, None, self.n_tokens)
        found = self.launches.read(tokens, length, count, drawing)
        self.first |= {row: int(found[row]) for row in ends}
        self.n_read += size
        return Done("prefill", self.launches.run("prefill", size, bool(drawing)).program, n_read=int(count.sum()))

    def _give(self) -> Done:
        """All that was read to its slots; from here on they are decoded."""
        rows, n = list(enumerate(self.reading)), self.slots.n
        samples = [(row, sample) for row, request in rows for sample in request.samples]
        if len(samples) > len(rows):
            source = np.full(n, -1, np.int32)
            source[[sure(sample.slot) for _, sample in samples]] = [row for row, _ in samples]
            program = self.launches.give_samples(source)
        elif [request.slot for request in self.reading] == list(range(n)) and n == self.launches.read_shape.sequences:
            program = self.launches.give_whole()
        else:
            program = self.launches.give(self._by_row([sure(request.slot) for request in self.reading], n))
        tokens, finished = dict[int, list[int]](), list[int]()
        n_read = [len(request.to_read) for request in self.reading]
        with uninterrupted():
            for row, sample in samples:
                self._begin(sample, row, n_read[row], tokens, finished)
            self.reading = []
        return Done("give", program, tokens, tuple(finished))

    def _begin(self, request: Request, row: int, n_read: int, tokens: dict[int, list[int]], ended: list[int]) -> None:
        """A sequence whose prompt is in its slot: with its first token, or with the prompt's last one still to go."""
        slot = sure(request.slot)
        self.held.pop(slot, None)
        self.running[slot] = request
        if row not in self.first:
            request.kept, request.unread = request.kept + n_read, request.unread[n_read:]
            return
        tokens[request.number] = [self.first[row]]
        if request.accept(self.first[row], n_read):
            ended.append(request.number)
            self.leave(request)

    def _by_row(self, values: Sequence[int], rest: int = 0) -> np.ndarray:
        """i32, one number for each row of prefill; `rest` where nobody is read."""
        found = np.full(self.launches.read_shape.sequences, rest, np.int32)
        found[: len(values)] = values
        return found

    # ---- decoding -----------------------------------------------------------------------------------------------

    def _decode(self, turns: int) -> Done:
        """The next `turns` tokens of all who are running; what comes behind an end is dropped."""
        n = self.slots.n
        last, length, live = (np.zeros(n, np.int32) for _ in range(3))
        for slot, request in self.running.items():
            last[slot], length[slot], live[slot] = request.unread[-1], request.kept, 1
        for slot, request in self.held.items():
            length[slot] = request.kept
        drawing = drawing_arrays(self.running, n, turns, self.n_tokens)
        found = self.launches.decode(last, length, live, drawing, turns)
        with uninterrupted():
            tokens, finished = self._accept(found)
        return Done("decode", self.launches.run("decode", turns, bool(drawing)).program, tokens, finished, times=turns)

    def _accept(self, found: np.ndarray) -> tuple[dict[int, list[int]], tuple[int, ...]]:
        """(request → tokens that it made, who has finished) of a launch's tokens, i32[turns, B]."""
        tokens: dict[int, list[int]] = {}
        finished = []
        for slot, request in list(self.running.items()):
            made = tokens[request.number] = []
            while not request.done and len(made) < len(found):
                made.append(int(found[len(made), slot]))
                request.accept(made[-1], 1)
            if request.done:
                finished.append(request.number)
                self.leave(request)
        return tokens, tuple(finished)

    # ---- leaving ------------------------------------------------------------------------------------------------

    def leave(self, request: Request) -> None:
        """Its slot goes to the next; that of a conversation is held."""
        slot = sure(request.slot)
        self.running.pop(slot, None)
        if request.stays:
            self.held[slot] = request
        else:
            self.slots.give_back(slot)
            request.slot = None

    def forget(self, requests: Sequence[Request]) -> None:
        """Whatever they are at, they are not served any more."""
        gone = {id(request) for request in requests}
        with uninterrupted():
            if any(id(sample) in gone for request in self.reading for sample in request.samples):
                self.read_again()
            self.waiting = deque(left for request in self.waiting if (left := request.without(gone)))
            for request in requests:
                request.done = True
                if request.slot is not None and self.running.get(request.slot) is request:
                    self.leave(request)

    def pause(self, request: Request) -> None:
        """A conversation's turn ends here, wherever it is; what it has kept stays in its slot."""
        with uninterrupted():
            self.forget([request])
            if request.slot is not None:
                self.held[request.slot] = request

    def release(self, request: Request) -> None:
        """A conversation has ended: its slot is free."""
        with uninterrupted():
            self.forget([request])  # while it stays: what is given up with its reading is not its slot
            request.stays = False
            if request.slot is not None:
                self.held.pop(request.slot, None)
                self.slots.give_back(request.slot)
                request.slot = None

    def read_again(self) -> None:
        """Prompts that are being read go back to the queue, in front; their slots are free."""
        with uninterrupted():
            for request in self.reading:
                for sample in request.samples:
                    if not sample.stays:
                        self.slots.give_back(sure(sample.slot))
                        sample.slot = None
            self.waiting.extendleft(reversed(self.reading))
            self.reading = []
