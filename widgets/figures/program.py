"""The facts of a program as plain JSON: its steps in order, its totals, and what the other choice would do.

    >>> f = program_facts(mtf.plan(two_layers, mesh, layout, sizes=sizes))
    >>> f["steps"][3]["label"], f["steps"][3]["sent"], f["totals"]["by_axis"]
    ('all-reduce over cols', 32768, {'rows': 0, 'cols': 32768})

Everything is read off the steps that also run, so the picture cannot disagree with the run. Bytes and FLOPs are
those of one device, modelled ("Mesh-TensorFlow", arXiv 1811.02084, section 4; arXiv 2211.05102, appendix A.1).
Next file to read: `program_html`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import mtfcore as mtf
from mtfcore.source.names import Names
from mtfcore.steps import Step, held_bytes, listed
from mtfcore.traffic import plain_bytes, split_by_axis
from widgets.figures.words import differing, label, sum_words
from widgets.numbers import count, modelled

Facts = dict[str, Any]
Path = tuple[int, ...]
CHOICES = ("default", "search")


@functools.lru_cache(maxsize=64)
def program_facts(program: mtf.Program) -> Facts:
    """Every step with its numbers, and the totals. The result is shared between calls: read it only."""
    return {
        "name": program.name,
        "mesh": [[axis, size] for axis, size in program.mesh.axes],
        "steps": [_row(program.mesh, *each) for each in walk(program)],
        "totals": totals(program),
        "inputs": [port.name for port in program.inputs],
    }


def walk(program: mtf.Program, names: Names | None = None, path: Path = ()) -> Iterator[tuple[Path, Step, Names, int]]:
    """(path, step, names of its values, times) for every step in order, those of a loop after their loop."""
    names = names or Names(program)
    for number, step in enumerate(program.steps):
        yield (*path, number), step, names, step.times
        if step.body is not None:
            for inner, within, known, times in walk(step.body, names.inside(step), (*path, number)):
                yield inner, within, known, times * step.times


def totals(program: mtf.Program) -> Facts:
    """What one device computes, sends and holds in all."""
    sent = program.link_bytes()
    return {
        "flops": program.flops(),
        "sent": sent.total,
        "by_axis": dict(sent.by_axis),
        "held": program.memory(),
        "collectives": sum(step.times for step in program.collectives()),
        "steps": sum(step.times for step in program.walk()),
    }


def _row(mesh: mtf.Mesh, path: Path, step: Step, names: Names, times: int) -> Facts:
    by_axis = split_by_axis(step, mesh) if step.is_collective else {}
    dtypes = names.program.dtypes
    return {
        "path": list(path),
        "kind": step.kind,
        "label": label(step),
        "collective": step.is_collective,
        "arrow": step.arrow(),
        "before": [_value(names[n], s, mesh, dtypes[n]) for n, s in zip(step.inputs, step.before, strict=True)],
        "after": _value(names[step.output], step.after, mesh, step.dtype),
        "axes": list(step.axes),
        "group": step.group,
        "held": step.n_bytes if step.is_collective else held_bytes(step.after, mesh, step.dtype),
        "sent": plain_bytes(step.link_bytes),
        "by_axis": {axis: plain_bytes(sent) for axis, sent in by_axis.items()},
        "flops": step.flops,
        "times": times,
        "why": step.why,
        "summed": [sum_words(s) for s in step.before if s.partial],
    }


def _value(name: str, sharding: mtf.Sharding, mesh: mtf.Mesh, dtype: str) -> Facts:
    local = sharding.local_shape(mesh)
    return {"name": name, "lies": sharding.text() or "()", "shape": f"{dtype}[{', '.join(map(str, local))}]"}


def compared(shown: Facts, other: Facts, search: bool) -> Facts:
    """Both choices side by side; `differs` numbers the steps of each that the other lacks."""
    mine, theirs = differing(*([(row["label"], row["arrow"]) for row in facts["steps"]] for facts in (shown, other)))
    here, there = (CHOICES[search], CHOICES[not search])
    return {
        **shown,
        "choice": here,
        "choices": {here: shown["totals"], there: other["totals"]},
        "differs": {
            here: [f"step {n + 1} {shown['steps'][n]['label']}" for n in mine],
            there: [f"step {n + 1} {other['steps'][n]['label']}" for n in theirs],
        },
        "apart": mine,
    }


def table(facts: Facts) -> list[tuple[str, ...]]:
    """What the picture says, row by row."""
    head = ("step", "does", "where, before and after", "local shapes", "holds", "sends", "FLOPs", "why")
    rows = [head, *(_line(n, row) for n, row in enumerate(facts["steps"], 1))]
    for choice in CHOICES:
        every = facts["choices"][choice]
        about = f"{NAMES[choice]}: {count(every['steps'], 'step')}, {count(every['collectives'], 'collective')}"
        held, sent = modelled(every["held"], "iB"), modelled(every["sent"], "iB")
        rows.append(("all", about, "", "", f"at most {held}", sent, modelled(every["flops"], "FLOP"), ""))
    return rows


NAMES = {"default": "default choice", "search": "free search"}


def _line(number: int, row: Facts) -> tuple[str, ...]:
    shapes = f"{listed([each['shape'] for each in row['before']])} → {row['after']['shape']}"
    times = f" ×{row['times']}" if row["times"] > 1 else ""
    sent = modelled(row["sent"], "iB") if row["collective"] else "-"
    flops = modelled(row["flops"], "FLOP") if row["flops"] else "-"
    held = modelled(row["held"], "iB")
    return (str(number), row["label"] + times, row["arrow"], shapes, held, sent, flops, row["why"])


def why(steps: Sequence[Facts], at: int) -> str:
    """One sentence for one step: what it does, why, and its numbers."""
    row = steps[at]
    times = f", {row['times']} times" if row["times"] > 1 else ""
    head = f"Step {at + 1} of {len(steps)}, {row['label']}{times}: "
    reason = row["why"] or "each device works on what it holds"
    if not row["collective"]:
        flops = f" and computes {modelled(row['flops'], 'FLOP')}" if row["flops"] else ""
        held = f"{modelled(row['held'], 'iB')} of {row['after']['name']}"
        return f"{head}{reason}. Each device holds {held}{flops}; {_inside(steps, at)}."
    maker = next((each for each in steps[:at][::-1] if each["after"]["name"] == row["before"][0]["name"]), None)
    cause = maker["why"].split("; ")[0] if maker and row["summed"] and "partial sums" in maker["why"] else ""
    cause = cause or next(iter(row["summed"]), "")
    cause = f"{cause}; " if cause else ""
    each = " each time" if row["times"] > 1 else ""
    return (
        f"{head}{cause}{reason}. Each device holds {modelled(row['held'], 'iB')} and sends "
        f"{modelled(row['sent'], 'iB')}{each}, in groups of {row['group']}."
    )


def _inside(steps: Sequence[Facts], at: int) -> str:
    """What a step sends that is no collective: nothing, unless it is a loop with collectives in its turns."""
    path = steps[at]["path"]
    turns = [row for row in steps[at + 1 :] if row["path"][: len(path)] == path]
    sent = sum(row["sent"] * row["times"] for row in turns)
    return f"all its turns together send {modelled(sent, 'iB')}" if sent else "it sends nothing"
