"""What the compiler answered, kept: both timelines of a program, or why there is none.

    >>> answer = ask(program, "v4:2x2x2", compiling)
    >>> answer.lines["layer"].seconds, answer.compiler
    >>> recorded()["palm-540b/decode/…"]["plain"].lines["layer"]     # timelines that records brought

Programs are looped where the price model says that it pays (`mtfcore.overlap.pays`). Next file to
read: `../figures/timeline`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import mtfcore as mtf
from mtfcore.compiling import CompiledReport
from mtfcore.compiling.timeline import VIEWS, Timeline, timeline
from mtfcore.errors import LayoutError, sure
from mtfcore.overlap import looped, pays
from widgets.explorers.compiling import Compiling
from widgets.explorers.layer_steps import NAMES
from widgets.numbers import count, origin, quantity

KINDS = ("plain", "looped")
FORMS = ("latency", "throughput")
OF_RINGS = ("looped", "largest", "axes")  # what a record's parameters say of rings alone
MOST_KEPT = 128


@dataclass(frozen=True)
class Answer:
    """One program's."""

    lines: Mapping[str, Timeline] = field(default_factory=dict)  # "layer", "step"; some, or none
    says: str = ""  # why there is none
    about: str = ""  # compiler and memory in words
    rings: int = 0  # permutes that looping made


def ask(
    program: mtf.Program, topology: str, compiling: Compiling, kind: str = "plain", form: str = "latency"
) -> Answer:
    """Compile and keep what the picture needs; a refusal is an answer too."""
    try:
        made = program if kind == "plain" else loop(program, topology, form)
        report = compiling.report(made, topology)
    except LayoutError as fault:  # what cannot be looped, or laid on this slice
        return Answer(says=str(fault))
    if report.refusal:
        return Answer(says=f"the compiler refuses it, {report.refusal} [compiled]", about=report.version)
    found = {which: timeline(report, which) for which in (VIEWS if _has_loop(report) else ("step",))}
    memory = origin(quantity(sure(report.memory).total, "iB"), "compiled")
    return Answer(found, "", f"{report.version}, {memory} a device", permutes(made) - permutes(program))


def _has_loop(report: CompiledReport) -> bool:
    return any(slot.opcode == "while" for slot in report.schedule.slots)


def loop(program: mtf.Program, topology: str, form: str) -> mtf.Program:
    """The program with rings where they pay."""
    return looped(program, form=form, where=pays(program, topology, form=form))


def permutes(program: mtf.Program) -> int:
    """Permutes in the plan, each once."""
    inner = sum(permutes(step.body) for step in program.steps if step.body is not None)
    return inner + sum(step.kind == "permute" for step in program.steps)


def keep(kept: dict[object, Answer], key: object, answer: Answer) -> None:
    """The newest few are kept."""
    kept[key] = answer
    while len(kept) > MOST_KEPT:
        del kept[next(iter(kept))]


def said(words: str) -> str:
    """A step as people call it: `einsum B L E , E H D → B L H D` is `x Wq: E → H D`."""
    if words.startswith("repeat "):  # what a loop does by itself
        return f"takes this turn's part, loop over {words.split()[1]}"
    if not words.startswith("einsum ") or " , " not in words:
        return words.replace("_", "-")
    (left, brought), out = words.removeprefix("einsum ").split(" → ")[0].split(" , ")[:2], words.split(" → ")[1]
    summed = [name for name in brought.split() if name in left.split() and name not in out.split()]
    new = [name for name in brought.split() if name in out.split() and name not in left.split()]
    does = f"{' '.join(summed)} → {' '.join(new)}"
    return f"{NAMES[does]}: {does}" if does in NAMES else does


# ---- records


@lru_cache(maxsize=1)
def recorded() -> dict[str, dict[str, Answer]]:
    """Timelines of committed records by the plain program's name: the plain one, and the fastest of its rings."""
    groups: dict[str, dict[str, Answer]] = {}
    names: dict[str, str] = {}
    for same, name, kind, answer in _read():
        group = groups.setdefault(same, {})
        if kind == "plain" or same not in names:
            names[same] = name
        if kind not in group or _whole(answer) < _whole(group[kind]):
            group[kind] = answer
    return {names[same]: group for same, group in groups.items()}


def _whole(answer: Answer) -> float:
    return next(iter(answer.lines.values())).whole.seconds


def _read() -> Iterator[tuple[str, str, str, Answer]]:
    """(what records of one program share, name, plain or looped, timelines)."""
    from tpu_runs.records import committed

    for record in committed():
        data = {which: record.facts.get(key) for which, key in zip(VIEWS, ("timeline", "timeline_step"), strict=True)}
        try:
            lines = {which: Timeline.from_json(each) for which, each in data.items() if each is not None}
        except LayoutError:  # of another version of this library
            continue
        if lines:
            yield *_named(record.params), Answer(lines, "", record.words(), 1)


def _named(params: Mapping[str, object]) -> tuple[str, str, str]:
    inner = params.get("params")
    own = inner if isinstance(inner, Mapping) else {}
    form = own.get("looped")
    plain = {name: value for name, value in own.items() if name not in OF_RINGS}
    same = {**params, "params": plain, "name": "", "timeline": ""}
    return json.dumps(same, sort_keys=True), str(params.get("name") or "a program"), "looped" if form else "plain"


@lru_cache(maxsize=64)
def record_settings(name: str) -> Mapping[str, object]:
    """What the controls say of a record, so that they and the picture tell of one program; empty where they cannot."""
    from tpu_runs.records import committed

    for record in committed():
        asked = record.params.get("params")
        if record.params.get("name") == name and isinstance(asked, Mapping) and asked.get("phase"):
            return _settings(asked, record.params["topology"])
    return {}


def _settings(asked: Mapping[str, Any], topology: object) -> dict[str, object]:
    """A phase's parameters by the names of the controls."""
    tokens = "cached_tokens" if asked["phase"] == "decode" else "new_tokens"
    same = {name: asked[name] for name in ("phase", "batch", "weights", "cache", "mesh")}
    model = " ".join([asked["model"], *(f"{field}={value}" for field, value in asked.get("changes", {}).items())])
    partition = f"{asked['ffn']}-{asked['attention']}"
    return {**same, "model": model, "tokens": asked[tokens], "partition": partition, "topology": topology}


def record_words(name: str) -> str:
    """A record in the menu."""
    return f"{name} ({count(len(recorded()[name]), 'schedule')})"
