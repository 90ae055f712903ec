"""What a choice gains, by compiling it both ways: serial blocks, loops, and the compiler's own partitioner.

    >>> print(table(kept()))

The second paper prints two of them: decoding with serial blocks takes 14 % longer (section 4.3), and all its low-level
optimisations together, loops among them, make a step 1.4 times as fast as what a compiler of 2022 partitioned and
scheduled by itself (section 3.5). Next file to read: `explained`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import mtfcore as mtf
from mtfcore.costs.serving.grids import orientations
from mtfcore.counting.facts import sent_bytes
from mtfcore.notation import parse_axes
from mtfcore.numbers import format_bytes, format_seconds
from mtfcore.reference import rows as published_rows
from mtfcore.tables import Column, Row, Table
from tpu_runs.papers.inference import by_compiler, changed, looping, machine
from tpu_runs.papers.machine import Machine
from tpu_runs.records import Record

SERIAL, FASTER = "more latency", "speed"  # the quantities of the two published figures
PHASES = {
    "decode, 64 sequences, int8": ("decode", "ws2d", "batch", 64, "int8"),
    "decode, 512 sequences, bf16": ("decode", "ws2d", "batch", 512, "bf16"),
    "prefill of 1 x 2,048 tokens, int8": ("prefill", "ws2d", "heads", 1, "int8"),
    "prefill of 64 x 2,048 tokens, bf16, weights gathered": ("prefill", "wg_xyz", "batch", 64, "bf16"),
}
LOOPS = (("latency", 2, "x"), ("latency", 3, ""))  # form, so many of the largest, of those along these axes
GATHERED = (("latency", 5, ""), ("throughput", 5, ""))
PARTITIONED = tuple(PHASES)[:3]  # of weights that are gathered the partitioner makes other programs altogether
MOVING = ("all_gather", "all_to_all")  # what can carry weights: they are never summed


@dataclass(frozen=True)
class Effect:
    """One program beside others that do the same otherwise."""

    name: str
    base: Machine
    others: tuple[tuple[str, Machine], ...]
    published: str = ""


@cache
def effects() -> tuple[Effect, ...]:
    """All of them, on 64 chips."""
    bases = {name: _base(*what) for name, what in PHASES.items()}
    said = {row.quantity: row.printed for row in published_rows("second", "Headlines")}
    name = "decode, 512 sequences, bf16"
    serial = replace(changed(bases[name], block="serial"), timeline=False)
    one = Effect(name, bases[name], (("serial blocks", serial),), f"{said[SERIAL]} % longer")
    return (one, *(_loops(name, base, said[FASTER]) for name, base in bases.items()))


def _base(phase: str, ffn: str, attention: str, batch: int, weights: str) -> Machine:
    setup: dict[str, Any] = {
        "model": "palm-540b", "changes": {"heads": 64}, "topology": "v4:4x4x4", "input_tokens": 2048,
        "output_tokens": 64, "ffn": ffn, "batch": batch, "weights": weights, "cache": "bf16",
    }  # fmt: skip
    (wired,) = orientations(mtf.topology(setup["topology"]), ffn)
    return replace(machine(setup, phase, attention, wired), timeline=True)


def _loops(name: str, base: Machine, faster: str) -> Effect:
    kinds = GATHERED if base.params["ffn"] == "wg_xyz" else LOOPS
    loops = [(_words(*what), looping(base, *what)) for what in kinds]
    whole = [("left to the compiler's partitioner", by_compiler(base))] if name in PARTITIONED else []
    said = f"{faster} times as fast as a partitioner of 2022, with all optimisations" if whole else ""
    pictured = (loops[0][1].name,)
    others = ((words, replace(one, timeline=one.name in pictured)) for words, one in (*loops, *whole))
    return Effect(name, base, tuple(others), said)


def _words(form: str, largest: int, axes: str) -> str:
    return f"the {largest} largest{f' over {axes}' if axes else ''} looped, {form}"


def machines() -> Iterator[Machine]:
    """Everything that is compiled for these."""
    for effect in effects():
        yield from (effect.base, *(one for _, one in effect.others))


# ---- for people -----------------------------------------------------------------------------------------------------

COLUMNS = (
    Column("name", "phase", wraps=True),
    Column("how", "how", wraps=True),
    Column("cycles", "cycles alone", format_seconds, is_number=True),
    Column("exposed", "links, exposed", format_seconds, is_number=True),
    Column("seconds", "together", format_seconds, is_number=True),
    Column("ratio", "of the first", "{:.3f}".format, is_number=True),
    Column("sends", "a device sends", format_bytes, is_number=True),
    Column("temporaries", "temporaries", format_bytes, is_number=True),
    Column("said", "", below=True),
)


def table(records: Mapping[str, Record]) -> Table:
    """Each program beside the others that do the same."""
    title = "What a choice gains, 540B on v4:4x4x4 (modelled from compiled schedule; bytes compiled)"
    return Table(COLUMNS, [line for effect in effects() for line in _lines(effect, records)], title)


def _lines(effect: Effect, records: Mapping[str, Record]) -> Iterator[Row]:
    base = records.get(effect.base.name)
    for n, (how, one) in enumerate((("parallel blocks, as planned", effect.base), *effect.others)):
        record = records.get(one.name)
        if base is None or record is None or record.status != "ok":
            yield {"name": effect.name, "how": how, "said": record.reason if record else "no record: --make compiles"}
            continue
        said = _said(effect, record, base) if effect.published and n == len(effect.others) else ""
        yield {"name": "" if n else effect.name, "how": how, **_numbers(record, base), "said": said}


def _said(effect: Effect, record: Record, base: Record) -> str:
    """What is published of the last of them, and of a partitioner what makes it slow."""
    if not record.params["partitioned"]:
        return f"published: {effect.published}"
    more = record.counts["link_bytes"] / base.counts["link_bytes"]
    return (f"published: {effect.published}; of today's, a device sends {more:.1f} times as much: "
            f"{sends(effect, record)}")  # fmt: skip


def sends(effect: Effect, record: Record) -> str:
    """What a partitioner's program sends: how much of it is as large as weights of a layer, and the most of one kind.

    A plan that keeps weights where they are moves activations; a partitioner may move weights instead.
    """
    program = effect.base.program()
    uses, mesh, moved, sent = weight_uses(program), program.mesh, 0, []
    for kind, axes, n_bytes, _, times in record.facts["collectives"]:
        each = sent_bytes(kind, n_bytes, mesh.group_size(parse_axes(axes)))
        moved += each * min(times, uses[n_bytes]) if kind in MOVING else 0
        sent.append((each * times, f"{times} times {kind} over {axes} of {format_bytes(n_bytes)}"))
    most, words = max(sent)
    return (f"{format_bytes(moved)} of it as large as weights of a layer, gathered or exchanged at each use; the most, "
            f"{format_bytes(most)}, {words}")  # fmt: skip


def weight_uses(program: mtf.Program) -> Counter[int]:
    """Bytes of a device's part of a layer's matrix, in bf16, in which it is multiplied → how often there is one."""
    found: Counter[int] = Counter()
    for port in program.inputs:
        if port.name.startswith("w") and not port.name.endswith("_scale"):
            layers, *part = port.sharding.local_shape(program.mesh)
            found[2 * math.prod(part)] += layers
    return found


def _numbers(record: Record, base: Record) -> Row:
    facts = record.facts
    return {
        "cycles": facts["compute_seconds"], "exposed": facts["exposed_link_seconds"], "seconds": facts["seconds"],
        "ratio": facts["seconds"] / base.facts["seconds"], "sends": record.counts["link_bytes"],
        "temporaries": facts["memory"]["temporaries"],
    }  # fmt: skip
