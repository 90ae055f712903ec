"""A conversation as the explorer holds it: turns on a worker, told launch by launch, with everything that was sent.

    writer = Writer()
    for progress in writer.turn({**START, "prompt": "Where do tides come from?"}):
        progress.value["text"], progress.value["cache"]          # facts of what has happened so far, all counted

`mtfcore.model.chat` does the work and loads JAX, so it is fetched when a turn begins. Settings that changed between two
turns are taken up at the beginning of the next: other partitions move the cache, another mesh reads all of it again.
Others beside the reader's conversation come and go in the slots that are free. Next file to read:
`../figures/generate_html`.
"""

from __future__ import annotations

import statistics
from collections.abc import Generator
from functools import cache
from typing import TYPE_CHECKING, Any

from mtfcore.errors import LayoutError, sure
from widgets.explorers.attention_times import slice_for
from widgets.explorers.generate_inputs import CHUNK, LENGTH, model_here
from widgets.frame import Progress
from widgets.state import State

if TYPE_CHECKING:
    from mtfcore.model.chat import Chat
    from mtfcore.model.chat_traffic import Sent
    from mtfcore.model.engine.progress import Progress as Launch
    from mtfcore.model.engine.slots import Request
    from mtfcore.model.files import LoadedModel

Facts = dict[str, Any]
QUESTIONS = (
    "Name three rivers.", "What is a prime number?", "Who wrote Hamlet?", "Why is the sky blue?", "What do bees eat?",
    "How tall is Mont Blanc?", "What is a sonnet?", "Say hello in French.",
)  # fmt: skip
KEPT = ("model", "slots", "on")  # settings that a conversation's engine is made for; others change between turns
MOVING = ("mesh", "prefill", "decode", "chip")


@cache
def opened(model: str) -> LoadedModel:
    """A model, read once in this kernel."""
    from mtfcore.model.chat import open_model

    return open_model(model)


class Writer:
    """The conversation so far; `facts` say all that a picture of it needs."""

    def __init__(self) -> None:
        self.chat: Chat | None = None
        self.asked: State = {}
        self.log: list[tuple[str, str]] = []  # (who, text): you, model, note
        self.facts: Facts | None = None
        self.others: list[tuple[str, Request]] = []
        self._seconds: list[float] = []  # of decode launches since the last change, a token each
        self._n_others = 0

    @property
    def _talk(self) -> Chat:
        """The conversation that has begun."""
        return sure(self.chat)

    def turn(self, s: State) -> Generator[Progress, None, Facts | None]:
        """Take up what has changed, read what the reader says, and write."""
        yield Progress(0, s["tokens"], "reading the model's file" if self.chat is None else "taking up the settings")
        self._take_up(s)
        from mtfcore.model.chat_traffic import Sent

        self.log += [("you", s["prompt"]), ("model", "")]
        drawing = {"temperature": s["temperature"], "seed": s["seed"]}
        pieces, sent = self._talk.say(s["prompt"], s["tokens"], **drawing), Sent()
        counts: dict[str, int] = {}
        state = "stopped"
        try:
            yield self._progress(s, counts, sent, "", "compiling what is launched first")
            for n, (piece, now) in enumerate(pieces):
                if n == 0:
                    self._invite(s)
                self._note(piece, now, counts, sent)
                yield self._progress(s, counts, sent, now.phase)
            state = "finished"
        except LayoutError:  # refused before anything was read: it was not said
            self.log = self.log if counts else self.log[:-2]
            raise
        finally:
            pieces.close()
            self._tell(counts, sent, "", state)
        return self.facts

    def begin_again(self) -> None:
        """Forget what was said; what was sent stays counted."""
        if self.chat is not None:
            self.chat.new()
        self.log, self.facts = [], None

    def _take_up(self, s: State) -> None:
        """The engine as these settings want it."""
        topology, before = slice_for(s) or None, self.chat
        if before is None or any(self.asked[name] != s[name] for name in KEPT):
            from mtfcore.model.chat import Chat

            self.chat = Chat(opened(model_here(s["model"])), s["mesh"], prefill=s["prefill"], decode=s["decode"],
                             slots=s["slots"], length=LENGTH, chunk=CHUNK, topology=topology,
                             attached=s["on"] == "attached")  # fmt: skip
            self._carry_on(before)
        elif any(self.asked[name] != s[name] for name in MOVING):
            told = sure(before).change(prefill=s["prefill"], decode=s["decode"], mesh=s["mesh"], topology=topology)
            self.log.append(("note", told))
            self._seconds = []
        self.asked = dict(s)
        if before is not None and before.engine is not self._talk.engine:
            self.others = []

    def _carry_on(self, before: Chat | None) -> None:
        """The same conversation with a new engine; with another model it begins again."""
        self.others, self._seconds = [], []
        if before is not None and before.model is self._talk.model:
            self._talk.messages = before.messages
            self.log.append(("note", "another engine: the conversation is read again"))
        elif self.log:
            self.log = [("note", f"a new conversation, with {self._talk.engine.cfg.name}")]

    def _invite(self, s: State) -> None:
        """As many others as there should be; those who have finished leave."""
        self.others = [(text, request) for text, request in self.others if not request.done]
        for _ in range(s["others"] - len(self.others)):
            question = QUESTIONS[self._n_others % len(QUESTIONS)]
            self._n_others += 1
            tokens = self._talk.model.prompt([{"role": "user", "content": question}])
            (request,) = self._talk.engine.submit([tokens], s["tokens"], temperature=s["temperature"], seed=s["seed"],
                                                 stop=self._talk.model.stop, first_sequence=self._n_others)  # fmt: skip
            self.others.append((question, request))

    def _note(self, piece: str, now: Launch, counts: dict[str, int], sent: Sent) -> None:
        self.log[-1] = ("model", self.log[-1][1] + piece)
        mine = sum(map(len, now.tokens.values()))
        counts[now.phase] = counts.get(now.phase, 0) + (now.n_read if now.phase == "prefill" else mine)
        sent.add(now.phase, now.program, now.times)
        if now.phase == "decode":
            self._seconds.append(now.seconds / now.times)

    def _progress(self, s: State, counts: dict[str, int], sent: Sent, phase: str, words: str = "") -> Progress:
        self._tell(counts, sent, phase, "running")
        made = counts.get("give", 0) + counts.get("decode", 0)
        return Progress(made, s["tokens"], words or f"{phase}: {made} of at most {s['tokens']} tokens", self.facts)

    # ---- facts --------------------------------------------------------------------------------------------------

    def _tell(self, counts: dict[str, int], sent: Sent, phase: str, state: str) -> None:
        engine = self._talk.engine
        self.facts = {
            "state": state, "phase": phase, "log": list(self.log), "text": self.log[-1][1] if self.log else "",
            "mesh": [list(axis) for axis in engine.mesh.axes], "model": engine.cfg.name,
            "prefill": engine.prefill, "decode": engine.decode, "simulated": engine.simulated,
            "phases": {name: {"launches": sent.launches[name], "tokens": counts[name],
                              "sent": sum(of_phase.values())} for name, of_phase in sent.by_phase.items()},
            "moved": sum(self._talk.sent.by_phase.get("move", {}).values()),
            "so_far": self._talk.sent.by_axis, "a_token": dict(self._talk.sent.a_token),
            "cache": self._cache(), "room": engine.length, "others": self._others(),
            "seconds": statistics.median(self._seconds) if len(self._seconds) > 2 else None,
        }  # fmt: skip

    def _cache(self) -> Facts:
        """Who has which slot, how full it is, and which devices look after it."""
        engine = self._talk.engine
        queue, blocks = engine.queue, engine.queue.slots.blocks
        reading = {request.slot: request for request in queue.reading if request.slot is not None}
        have: dict[int, Request] = {**reading, **queue.held, **queue.running}
        slots = []
        for slot in range(engine.n_slots):
            request = have.get(slot)
            who = "" if request is None else "you" if request.stays else "other"
            slots.append({"slot": slot, "block": queue.slots.block(slot), "who": who, "writes": slot in queue.running,
                          "kept": 0 if request is None else request.kept})  # fmt: skip
        axes = "".join(engine.launches.kept_shape.where("decode").core.batch)
        return {"slots": slots, "blocks": blocks, "axes": axes if blocks > 1 else ""}

    def _others(self) -> list[tuple[str, str]]:
        tokenizer = sure(self._talk.model.tokenizer)
        return [(text, tokenizer.decode(request.made)) for text, request in self.others]
