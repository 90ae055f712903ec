"""Which partitions an engine takes when it is told "auto": it prices its own steps under each of them.

    >>> sizes = Sizes(slots=64, prompts=1, chunk=64, length=2112, weights="int8", cache="bf16")
    >>> choose(palm, Mesh("x:4 y:4 z:4"), "auto", "auto", sizes)[:2]
    ('ws1d-heads', 'ws1d-batch')

The steps priced are those of `mtf.model.plan_phase` on the engine's own mesh, laid on a topology: the one that was
named, or TPU v4 chips in as many as the mesh has devices. Both phases must store the weights alike, since nothing moves
them; among the pairs that do, the least time of one prompt's chunk and of one token for every slot together is taken.
A cost is modelled; what it is modelled for is said. Next file to read: `engine`.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

from mtfcore.costs.pricing.price import price
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.mesh import Mesh
from mtfcore.model.configs import Config
from mtfcore.model.phases import plan_phase
from mtfcore.model.reasons import possible
from mtfcore.model.serving import AXES, PHASES, SERVING
from mtfcore.numbers import count
from mtfcore.numbers import format_seconds as in_words


class Sizes(NamedTuple):
    """What a choice depends on, besides model and mesh."""

    slots: int
    prompts: int
    chunk: int
    length: int
    weights: str
    cache: str


class Choice(NamedTuple):
    """The partitions of both phases, and the reasons in words."""

    prefill: str
    decode: str
    why: str


class Priced(NamedTuple):
    """One partition in one phase: its seconds and whether there is room for it, or why it cannot be."""

    name: str
    seconds: float
    reason: str
    fits: bool = True

    @property
    def told(self) -> str:
        return f"{self.name} {in_words(self.seconds)}{'' if self.fits else ', which does not fit'}"


def choose(
    cfg: Config, mesh: Mesh, prefill: str, decode: str, sizes: Sizes, topology: Any = None, at_rest: str = ""
) -> Choice:
    """The partitions that were asked for, or the cheapest; refuses what cannot run, with every reason.

    Where there is a choice, the weights lie as under the partition `at_rest`.
    """
    asked = {"prefill": prefill, "decode": decode}
    legal = ("auto", *SERVING)
    refuse([f"{phase} is {name!r:.100}; {nearest(name, legal)}" for phase, name in asked.items()
            if not isinstance(name, str) or name not in legal],
           f"engine of {cfg.name}")  # fmt: skip
    topology = topology if topology is not None else _nearest_slice(mesh) if "auto" in asked.values() else None
    tried = {phase: _tried(cfg, mesh, phase, asked[phase], sizes, topology) for phase in PHASES}
    refuse(_impossible(asked, tried), f"engine of {cfg.name} on mesh '{mesh}'")
    pairs = [(p, d) for p in _runs(tried["prefill"]) for d in _runs(tried["decode"]) if _stored(p) == _stored(d)]
    refuse([] if pairs else [_unlike(asked)], f"engine of {cfg.name} on mesh '{mesh}'")
    if at_rest:
        pairs = [(p, d) for p, d in pairs if _stored(p) == _at_rest(at_rest)] or pairs
    best = min(pairs, key=lambda pair: (not all(one.fits for one in pair), sum(one.seconds for one in pair)))
    why = "\n".join(_why(phase, asked[phase], won, tried[phase], sizes, topology)
                    for phase, won in zip(PHASES, best, strict=True))  # fmt: skip
    return Choice(best[0].name, best[1].name, why)


def least_prompts(cfg: Config, mesh: Mesh, prefill: str, chunk: int) -> int:
    """The smallest batch of prompts that a partition takes; 1 where there is a choice."""
    if not isinstance(prefill, str) or prefill not in SERVING:
        return 1
    way = SERVING[prefill].ffn.name, SERVING[prefill].attention
    sizes = [size for axis, size in mesh.axes if axis in AXES]  # a batch is cut over some of these axes, or none
    parts = {math.prod(some) for n in range(len(sizes) + 1) for some in itertools.combinations(sizes, n)}
    return next((n for n in sorted(parts) if not possible(cfg, *way, mesh, n, chunk, 0, "prefill")), 1)


def _tried(cfg: Config, mesh: Mesh, phase: str, asked: str, sizes: Sizes, topology: object) -> list[Priced]:
    """Every partition that may be taken: priced where there is a choice."""
    names = list(SERVING) if asked == "auto" else [asked]
    return [_priced(cfg, mesh, phase, name, sizes, topology if asked == "auto" else None) for name in names]


def _priced(cfg: Config, mesh: Mesh, phase: str, name: str, sizes: Sizes, topology: Any) -> Priced:
    ffn, attention = SERVING[name].ffn.name, SERVING[name].attention
    batch, new = (sizes.prompts, sizes.chunk) if phase == "prefill" else (sizes.slots, 1)
    faults = possible(cfg, ffn, attention, mesh, batch, new, 0, phase)
    if faults or topology is None:
        return Priced(name, 0.0, "; ".join(faults))
    room = max(1, sizes.length - new)  # a step reads all the room that its cache has, filled or not
    program = plan_phase(cfg, phase, mesh, ffn=ffn, attention=attention, batch=batch, new_tokens=new,
                         cached_tokens=room, weights=sizes.weights, cache=sizes.cache)  # fmt: skip
    cost = price(program, topology, model="calibrated")
    return Priced(name, cost.seconds, "", cost.fits)


def _nearest_slice(mesh: Mesh) -> str:
    """TPU v4 chips, as many as the mesh has devices, in the most cubic grid."""
    left, grid = mesh.size, [1, 1, 1]
    while left % 2 == 0:
        left //= 2
        grid[grid.index(min(grid))] *= 2
    if left > 1:
        raise LayoutError(
            f"auto prices the engine's steps on TPU v4 chips, which come in powers of two; mesh '{mesh}' has "
            f"{mesh.size} devices: name a topology, e.g. topology='h100:{mesh.size}', or both partitions"
        )
    return "v4:" + "x".join(map(str, sorted(grid, reverse=True)))


def _runs(tried: list[Priced]) -> list[Priced]:
    return [each for each in tried if not each.reason]


def _stored(each: Priced) -> tuple[str, str]:
    """Where the weights lie at rest: they stay there from phase to phase."""
    return _at_rest(each.name)


def _at_rest(name: str) -> tuple[str, str]:
    ffn = SERVING[name].ffn
    return ffn.stored_e, ffn.stored_f


def _impossible(asked: dict[str, str], tried: dict[str, list[Priced]]) -> list[str]:
    """Of each phase that no partition serves: the reasons."""
    faults = []
    for phase, found in tried.items():
        if not _runs(found):
            reasons = list(dict.fromkeys(each.reason for each in found))
            faults += [f"{phase}{'' if asked[phase] == 'auto' else f' under {asked[phase]}'}: {r}" for r in reasons]
    return faults


def _unlike(asked: dict[str, str]) -> str:
    prefill, decode = asked["prefill"], asked["decode"]
    return (f"prefill {prefill} and decode {decode} store the weights in different places, and an engine moves none; "
            "take ws1d for both phases or for neither, or \"auto\" for one")  # fmt: skip


def _why(phase: str, asked: str, won: Priced, tried: list[Priced], sizes: Sizes, topology: object) -> str:
    if asked != "auto":
        return f"{phase}: {won.name}, as asked"
    what = f"a chunk of {sizes.chunk} tokens" if phase == "prefill" else f"a token for {count(sizes.slots, 'sequence')}"
    others = sorted((each for each in _runs(tried) if each is not won), key=lambda each: each.seconds)
    told = [each.told for each in others]
    cannot = [f"{each.name} cannot: {each.reason}" for each in tried if each.reason]
    room = "" if won.fits else "; there is no room for it, nor for any other"
    lines = [f"{phase}: {won.name}, {in_words(won.seconds)} for {what} (modelled, {topology}){room}"]
    lines += [f"  others: {', '.join(told)}"] if told else []
    return "\n".join([*lines, *[f"  {line}" for line in cannot]])
