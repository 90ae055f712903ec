"""A model on its devices, ready to be launched: weights, both caches, and every program that has been needed so far.

    there = Launches(read, kept, params)                         # two `Shape`s; weights are put there one by one
    token = there.read(tokens, length, count)                     # prefill of a chunk: i32[P]
    there.give(slot)                                              # prompts into slots
    tokens = there.decode(last, length, live, turns=4)            # i32[4, B]

Nothing comes to this computer but tokens. A cache is donated to the launch that writes into it, so it exists once; one
that is made anew (by `give_whole`, `take` and `move`) stands beside the old one for that launch. A launch is never cut
in two: Ctrl-C waits until its results are in their places. Next file to read: `progress`.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import mtfcore as mtf
from mtfcore.model.engine.moving_caches import PROMPT, given_whole, giving, moving, prompt_name, sampling, taking
from mtfcore.model.engine.programs import Shape, decoding, reading
from mtfcore.model.phases import activations
from mtfcore.model.storing import FUSED, stored_arguments, stored_one_by_one
from mtfcore.runs import Run
from mtfcore.steps import Program

Key = tuple[object, ...]
MADE = {both for both, _ in FUSED.values()}  # arrays that were put together here: nobody else has them


class Launches:
    """Arrays on the devices, and the runs that change them."""

    def __init__(
        self, read: Shape, kept: Shape, params: Mapping[str, Any], attached: bool = False, looped: str | None = None
    ) -> None:  # fmt: skip
        self.read_shape, self.kept_shape, self.attached, self.looped = read, kept, attached, looped
        self.runs: dict[Key, Run] = {}
        self.sent = dict.fromkeys(kept.mesh.names, 0.0)  # bytes of one device by mesh axis, of all launches
        self.n_launches = 0
        self.weights = self._put_weights(params)
        self.prompts = self._zeros(PROMPT)
        self.cache = self._zeros("cache_")

    # ---- the launches -----------------------------------------------------------------------------------------

    def read(self, tokens: np.ndarray, length: np.ndarray, count: np.ndarray, drawing: Mapping[str, Any]) -> np.ndarray:
        """A chunk of every prompt, i32[P, L], behind `length` kept tokens → the next token of each, i32[P]."""
        run = self.run("prefill", tokens.shape[1], bool(drawing))
        parts = {f"cache_{name.removeprefix(PROMPT)}": t for name, t in self.prompts.items()}
        small = {"tokens": tokens, "length": length, "count": count, **drawing}
        with uninterrupted():
            found = self._launch(run, {**small, **self.weights}, parts)
            self.prompts = {prompt_name(name): found[name] for name in parts}
            return run.fetch(found["token"])

    def decode(
        self, tokens: np.ndarray, length: np.ndarray, live: np.ndarray, drawing: Mapping[str, Any], turns: int = 1
    ) -> np.ndarray:
        """The next `turns` tokens of every slot, i32[turns, B]."""
        run = self.run("decode", turns, bool(drawing))
        small = {"tokens": tokens, "length": length, "live": live, **drawing}
        with uninterrupted():
            found = self._launch(run, {**small, **self.weights}, self.cache)
            self.cache = {name: found[name] for name in self.cache}
            return run.fetch(found["tokens"])

    def give(self, slot: np.ndarray) -> Program:
        """Prompts into slots, i32[P]; a slot of B and above is none."""
        return self._give(self.run("give"), {"slot": slot})

    def give_samples(self, source: np.ndarray) -> Program:
        """Copies of prompts into slots: i32[B], the prompt of each slot, or -1 where it stays what it was."""
        return self._give(self.run("give_samples"), {"source": source})

    def _give(self, run: Run, small: Mapping[str, np.ndarray]) -> Program:
        with uninterrupted():
            self.cache = self._launch(run, {**small, **self.prompts}, self.cache)
        return run.program

    def give_whole(self) -> Program:
        """Every prompt to the slot of its number, which are all slots: a reshard."""
        run = self.run("give_all")
        with uninterrupted():
            self.cache = self._launch(run, self.prompts, {})
        return run.program

    def take(self, slot: np.ndarray) -> Program:
        """Slots back into prefill's cache: i32[P]."""
        run = self.run("take")
        with uninterrupted():
            self.prompts = self._launch(run, {"slot": slot, **self.cache}, {})
        return run.program

    def move(self, read: Shape, kept: Shape) -> Program | None:
        """The kept tokens to another partition, and prefill under another; weights stay."""
        run = self._moving(kept) if kept != self.kept_shape else None
        with uninterrupted():
            if run is not None:
                self.cache = self._launch(run, self.cache, {})
            self.read_shape, self.kept_shape = read, kept
            self.prompts = self._zeros(PROMPT)
        return run.program if run else None

    def _moving(self, kept: Shape) -> Run:
        key = ("move", self.kept_shape, kept)
        if key not in self.runs:
            self.runs[key] = self._made(moving(self.kept_shape, kept))
        return self.runs[key]

    def _launch(self, run: Run, given: Mapping[str, Any], donated: Mapping[str, Any]) -> dict[str, Any]:
        found = run.resident(**given, **donated, donate=tuple(donated))
        for axis, sent in run.program.link_bytes().by_axis.items():
            self.sent[axis] += sent
        self.n_launches += 1
        return found

    # ---- programs, each planned and compiled when it is first needed ---------------------------------------------

    def run(self, kind: str, size: int = 0, drawn: bool = False) -> Run:
        """The run of a kind of launch: prefill of `size` tokens, decode of `size` turns.

        What was compiled for other partitions stays, for whoever moves back.
        """
        key = (kind, size, drawn, self.read_shape if kind != "decode" else None, self.kept_shape)
        if key not in self.runs:
            self.runs[key] = self._made(self.planned(kind, size, drawn))
        return self.runs[key]

    def planned(self, kind: str, size: int = 0, drawn: bool = False) -> Program:
        """Its program."""
        read, kept = self.read_shape, self.kept_shape
        made: dict[str, Callable[[], Program]] = {
            "prefill": lambda: reading(read, size, drawn), "decode": lambda: decoding(kept, size, drawn),
            "give": lambda: giving(read, kept), "give_samples": lambda: sampling(read, kept),
            "give_all": lambda: given_whole(read, kept),
            "take": lambda: taking(read, kept),
        }  # fmt: skip
        program = made[kind]()
        overlaps = self.looped is not None and kind in ("prefill", "decode") and program.collectives()
        return mtf.looped(program, form=self.looped) if overlaps else program

    def _made(self, program: Program) -> Run:
        return mtf.attach(program) if self.attached else mtf.simulate(program)

    # ---- arrays --------------------------------------------------------------------------------------------------

    def _put_weights(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Each parameter as it is stored, one at a time, so that the host never holds two of them."""
        run, found = self.run("decode", 1), dict[str, Any]()
        weights = self.kept_shape.weights
        for name, array in stored_one_by_one(self.kept_shape.cfg, params, weights, activations(weights)):
            found |= run.put({name: array}, owned=name in MADE)
        assert found.keys() == stored_arguments(self.kept_shape.cfg, self.kept_shape.weights, "f32")[0].keys()
        return found

    def _zeros(self, prefix: str) -> dict[str, Any]:
        """An empty cache of prefill or decode, made where it lies."""
        import jax
        import jax.numpy as jnp

        from mtfcore.device_pool import launch
        from mtfcore.dtypes import long_name
        from mtfcore.resident import input_sharding

        run = self.run("give")
        ports = [port for port in run.program.inputs if port.name.startswith(prefix)]
        there = {port.name: input_sharding(run, port) for port in ports}
        make = jax.jit(
            lambda: {port.name: jnp.zeros(port.sharding.shape, long_name(port.dtype)) for port in ports},
            out_shardings=there,
        )
        return launch(make)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C inside is raised behind: what a launch was given may be gone, so its results must be kept first."""
    if threading.current_thread() is not threading.main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        yield
        return
    asked: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *signal_and_frame: asked.append(signal_and_frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked and callable(before):
        before(*asked[0])
