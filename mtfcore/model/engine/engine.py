"""The engine: reads prompts, writes on, on any mesh and under any of the second paper's partitions.

    eng = mtf.model.Engine(cfg, params, "x:2 y:2 z:2", prefill="auto", decode="ws2d-batch", slots=8, length=512)
    for now in eng.generate(prompts, max_new_tokens=64):         # prompts: lists of token ids
        print(now.phase, now.tokens, now.traffic)

Prompts are read in chunks, a few at a time, into a small cache of their own, and given to slots of decode's cache; all
slots go on together, each from its own place. Whoever has finished leaves its slot to the next, and nothing is compiled
anew: the sizes of chunks are few, and lengths are data. Tokens depend on the model and the prompt alone, not on mesh,
partition, chunks or company (greedy, up to rounding); drawn ones on the seed and the sequence's number besides. Every
launch is one planned program, those of `plans`. Source: arXiv 2211.05102, sections 2, 3 and 4.4. Next file to read:
`conversation`.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mtfcore.errors import LayoutError, sure
from mtfcore.mesh import Mesh, as_mesh
from mtfcore.model.configs import Config, config
from mtfcore.model.engine.asking import (
    check_drawing,
    check_engine,
    check_prompts,
    check_requests,
    check_sequence,
    check_stop,
    check_turns,
)  # fmt: skip
from mtfcore.model.engine.choosing import Choice, Sizes, choose, least_prompts
from mtfcore.model.engine.conversation import Conversation
from mtfcore.model.engine.launches import Launches, uninterrupted
from mtfcore.model.engine.programs import Shape
from mtfcore.model.engine.progress import Progress
from mtfcore.model.engine.queue import Queue
from mtfcore.model.engine.slots import Request, Slots
from mtfcore.model.phases import activations
from mtfcore.model.serving import SERVING
from mtfcore.model.storing import stored_dtype
from mtfcore.steps import Program


class Engine:
    """A model being served; see the module."""

    def __init__(
        self, cfg: Config | str, params: Mapping[str, Any], mesh: Mesh | str, prefill: str = "auto",
        decode: str = "auto", *, slots: int = 8, length: int = 1024, chunk: int = 64, prompts: int | None = None,
        weights: str = "f32", cache: str | None = None, topology: object = None, n_tokens: int | None = None,
        attached: bool = False, looped: str | None = None,
    ) -> None:  # fmt: skip
        """Put a model on a mesh (simulated devices, or `attached` ones) and plan its phases.

        `params` maps names to arrays as `mtf.model.initial(cfg)` does, and is asked for one at a time. There are
        `slots` sequences of up to `length` tokens; `prompts` of them are read at a time, in chunks of up to `chunk`.
        `weights` and `cache` are f32, bf16 or int8. `topology` is what "auto" prices for; ids from `n_tokens` on only
        pad the vocabulary. `looped` writes collectives beside products as rings that overlap with them, in the form
        "throughput" or "latency" (`mtf.looped`).
        """
        self.cfg, self.mesh = config(cfg), as_mesh(mesh)
        check_engine(self.cfg, slots, length, chunk, prompts, n_tokens, attached, looped)
        slots, length, chunk = int(slots), int(length), int(chunk)
        self.n_slots, self.length, self.chunk = slots, length, min(chunk, length)
        self.weights = stored_dtype(weights, "weights")
        self.cache_dtype = stored_dtype(activations(self.weights) if cache is None else cache, "cache")
        self.n_tokens, self.topology, self._prompts = int(n_tokens or self.cfg.vocab), topology, int(prompts or 0)
        (self.prefill, self.decode, self.why), read, kept = self._shapes(prefill, decode)
        self.launches = Launches(read, kept, params, attached, looped)
        self.queue = Queue(self.launches, Slots(slots, self._blocks()), self.chunk, self.n_tokens)
        self._numbers = itertools.count()
        self._last: Progress | None = None

    # ---- what it is made of -------------------------------------------------------------------------------------

    @property
    def simulated(self) -> bool:
        """Whether its devices are simulated: then no time that it measures is hardware's."""
        return not self.launches.attached

    @property
    def plans(self) -> dict[str, Program]:
        """The programs that it launches, at their usual sizes: prefill, give, take, decode."""
        sizes = {"prefill": self.chunk, "decode": 1, "give": 0, "take": 0}
        return {kind: self.launches.run(kind, size).program for kind, size in sizes.items()}

    def _shapes(self, prefill: str, decode: str, at_rest: str = "") -> tuple[Choice, Shape, Shape]:
        """Choose the partitions, those that store the weights like another where they can, and say why."""
        prompts = self._prompts or least_prompts(self.cfg, self.mesh, prefill, self.chunk)
        sizes = Sizes(self.n_slots, prompts, self.chunk, self.length, self.weights, self.cache_dtype)
        choice = choose(self.cfg, self.mesh, prefill, decode, sizes, self.topology, at_rest)
        return choice, self._shape(choice.prefill, prompts), self._shape(choice.decode, self.n_slots)

    def _shape(self, partition: str, sequences: int) -> Shape:
        return Shape(self.cfg, self.mesh, partition, sequences, self.length, self.weights, self.cache_dtype,
                     self.n_tokens)  # fmt: skip

    def _blocks(self) -> int:
        """Into how many parts decode cuts the slots."""
        return self.mesh.group_size(tuple(self.launches.kept_shape.where("decode").core.batch))

    # ---- requests -----------------------------------------------------------------------------------------------

    def generate(
        self, prompts: Sequence[Sequence[int]], max_new_tokens: int = 64, *, samples: int = 1,
        tokens_per_launch: int = 1, **options: Any,
    ) -> Iterator[Progress]:  # fmt: skip
        """Go on from each prompt, telling of every launch; request n is prompt n // samples.

        Options are those of `submit`. Ending the loop early leaves the requests where they are and forgets them.

        `prompts`: lists of token ids; each goes on for at most `max_new_tokens`, `samples` times, with
        `tokens_per_launch` decoded at once; `options`: temperature, top_k and others of `submit`.

        Raises `LayoutError` for prompts without tokens, or with more than there is room for.
        """
        check_turns(tokens_per_launch, "tokens_per_launch")
        asked = self.asked(prompts, max_new_tokens, samples=samples, **options)
        return self._generated(asked, tokens_per_launch)

    def _generated(self, asked: list[Request], turns: int) -> Iterator[Progress]:
        """Nobody waits in the queue for a loop that never begins."""
        try:
            self.queue.add(asked)
            yield from self.told(asked, turns)
        finally:
            self.forget(asked)

    def told(self, requests: Sequence[Request], turns: int) -> Iterator[Progress]:
        """Launch until they are done, and tell what each made, in launches of other loops too.

        `requests`: those of `submit`; `turns`: tokens decoded in one launch.
        """
        while any(not request.done for request in requests):
            yield self.step(turns).of(requests)
        if any(request.n_told < len(request.made) for request in requests):  # the last in another loop's launch
            yield dataclasses.replace(sure(self._last), seconds=0.0, n_read=0).of(requests)

    def complete(self, prompts: Sequence[Sequence[int]], max_new_tokens: int = 64, **options: Any) -> list[list[int]]:
        """What `generate` makes of each prompt (or sample), all at once.

        `prompts`, `max_new_tokens` and `options` as in `generate`; the result has the new tokens of each.
        """
        found: dict[int, list[int]] = {}
        for now in self.generate(prompts, max_new_tokens, **options):
            for number, tokens in now.tokens.items():
                found.setdefault(number, []).extend(tokens)
        return [found[number] for number in sorted(found)]

    def submit(
        self, prompts: Sequence[Sequence[int]], max_new_tokens: int = 64, *, samples: int = 1, temperature: float = 0.0,
        top_k: int | None = None, top_p: float | None = None, seed: int = 0, stop: Sequence[int] = (),
        first_sequence: int = 0,
    ) -> list[Request]:  # fmt: skip
        """Put prompts in the queue; `step` serves it. Token n of sequence s is drawn by (seed, s, n) alone.

        Each prompt is gone on from `samples` times; it is read once.

        `prompts`: lists of token ids; `max_new_tokens`: of each; `temperature`: 0 takes the likeliest; `top_k` and
        `top_p`: what may be drawn; `stop`: tokens that end a sequence; `first_sequence`: the number s of the first.

        Raises `LayoutError` for what cannot be.
        """
        asked = self.asked(prompts, max_new_tokens, samples=samples, temperature=temperature, top_k=top_k, top_p=top_p,
                           seed=seed, stop=stop, first_sequence=first_sequence)  # fmt: skip
        self.queue.add(asked)
        return asked

    def asked(
        self, prompts: Sequence[Sequence[int]], max_new_tokens: int, *, samples: int = 1, temperature: float = 0.0,
        top_k: int | None = None, top_p: float | None = None, seed: int = 0, stop: Sequence[int] = (),
        first_sequence: int = 0,
    ) -> list[Request]:  # fmt: skip
        """The requests of `submit`, checked, in no queue yet.

        The arguments are those of `submit`: `prompts`, `max_new_tokens`, `samples`, `temperature`, `top_k`, `top_p`,
        `seed`, `stop`, `first_sequence`.

        Raises `LayoutError` with every fault at once.
        """
        tokens = check_prompts(prompts, self.n_tokens, self.length, max_new_tokens, samples, self.n_slots)
        drawing = check_drawing(self.n_tokens, temperature, top_k, top_p, seed)
        ends, sequences = check_stop(stop), itertools.count(check_sequence(first_sequence))
        made = []
        for prompt in tokens:
            group = [Request(next(self._numbers), list(prompt), int(max_new_tokens), drawing, ends, next(sequences))
                     for _ in range(samples)]  # fmt: skip
            group[0].others = tuple(group[1:])
            made += group
        return made

    def conversation(self) -> Conversation:
        """One sequence that goes on from turn to turn in a slot of its own."""
        return Conversation(self)

    def forget(self, requests: Sequence[Request]) -> None:
        """Leave their slots to others; what a conversation holds stays as it was before what was being read.

        `requests`: those of `submit`, at whatever stage.
        """
        self.queue.forget(check_requests(requests))

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do."""
        return self.queue.idle

    def step(self, turns: int = 1) -> Progress:
        """The next launch: reading and decoding take turns where both have something to do."""
        check_turns(turns)
        began = time.perf_counter()
        done = self.queue.step(int(turns))
        cache = self.queue.n_kept, self.n_slots * self.length
        seconds = time.perf_counter() - began
        self._last = Progress(done.phase, done.tokens, done.finished, seconds, done.n_read, dict(self.launches.sent),
                              cache, done.program, done.times)  # fmt: skip
        return self._last

    def move(self, prefill: str = "auto", decode: str = "auto") -> Program | None:
        """Other partitions from the next launch on: what is kept moves, weights do not; the program that moves it.

        `prefill` and `decode`: names such as "ws2d-heads", or "auto".

        Raises `LayoutError` for a partition that cannot be.
        """
        before = self.launches.kept_shape
        choice, read, kept = self._shapes(prefill, decode, before.partition)
        stored = [SERVING[shape.partition].ffn for shape in (before, kept)]
        if stored[0].stored_f != stored[1].stored_f:
            raise LayoutError(f"{before.partition} and {kept.partition} store the weights in different places, and an "
                              "engine moves none; make another engine for ws1d")  # fmt: skip
        self.queue.read_again()
        with uninterrupted():
            program = self.launches.move(read, kept)
            self.prefill, self.decode, self.why = choice
            self.queue.slots.blocks = self._blocks()
        return program
