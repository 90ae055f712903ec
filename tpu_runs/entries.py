"""What a record keeps of a measurement and of a compiler's report: the same for cases, papers' machines and explorers.

    Record(case="product", params=params, commit=commit(), **measured_fields(measured))
    Record(case="paper", params=params, commit=commit(), **compiled_fields(report))
    by_axis(record, program)              # {'x': 5242880, 'y': 0}: compiled bytes that a device sends over each axis

Seconds of what was compiled stand in `facts`, since nothing ran. Loads no JAX. Next file to read: `run`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from mtfcore.counting.facts import sent_bytes
from mtfcore.errors import LayoutError, sure
from mtfcore.measuring.places import versions
from mtfcore.notation import format_axes, parse_axes
from mtfcore.steps import Program
from mtfcore.topologies import Topology
from mtfcore.traffic import split_by_axis
from tpu_runs.commits import commit
from tpu_runs.plainness import plain
from tpu_runs.records import Record

if TYPE_CHECKING:
    from mtfcore.compiling import CompiledReport
    from mtfcore.measuring import Measured

TIMES = ("seconds", "compute_seconds", "link_seconds", "exposed_link_seconds")
SHARE = ("mesh", "left_out", "topology", "modelled_link_seconds", "model", "words")


def measured_fields(measured: Measured) -> dict[str, Any]:
    """A measurement: where, how often, how checked, and of a share what was left out."""
    share = measured.share
    return {
        "where": dict(measured.where), "versions": dict(measured.versions), "check": dict(measured.check),
        "compile_seconds": measured.compile_seconds, "warm_up": measured.warm_up, "seconds": list(measured.seconds),
        "counts": dict(measured.counts), "share": share and {name: getattr(share, name) for name in SHARE},
    }  # fmt: skip


def compiled_fields(report: CompiledReport, picture: bool = True) -> dict[str, Any]:
    """A compiler's report, or its refusal; `picture`: one layer in time as well."""
    found: dict[str, Any] = {"origin": "compiled", "where": compiler_where(report.topology), "versions": versions(),
             "compile_seconds": round(report.compile_seconds, 2), "facts": _facts(report)}  # fmt: skip
    if report.refusal:
        return found | {"status": "refused", "reason": f"the compiler finds no room: it {report.refusal}"[:300]}
    found["facts"] |= {"timeline": _picture(report)} if picture else {}
    return found | {"counts": {"flops": report.counts.flops, "link_bytes": report.link_bytes}}


def compiler_where(slice_: Topology) -> dict[str, Any]:
    """The slice that was compiled for; no device of it was touched."""
    return {"platform": "compiler", "device_kind": slice_.chip.title, "devices": slice_.devices,
            "topology": str(slice_)}  # fmt: skip


def _facts(report: CompiledReport) -> dict[str, Any]:
    """What of a report stands in no other field."""
    found: dict[str, Any] = {"planned_link_bytes": report.program.link_bytes().total}
    if report.refusal:
        needs = {"needed_bytes": report.refusal.needed_bytes, "available_bytes": report.refusal.available_bytes}
        return found | {"refusal": needs}
    found |= {name: getattr(report, name) for name in (*TIMES, "cycles")}
    memory = sure(report.memory)
    found["memory"] = vars(memory) | {"total": memory.total}
    found["collectives"] = _collectives(report)
    found["by_axis"] = sent_by_axis((_Sent(one.kind, one.axes, one.link_bytes, one.times) for one in
                                     report.collectives), report.program)  # fmt: skip
    if not report.partitioned:
        found["differences"] = _tally(word for _, how in report.differences for word in how.words)
    return found


def _collectives(report: CompiledReport) -> list[list[Any]]:
    """As compiled: kind, mesh axes, bytes that a device holds before, asynchronous or not; how often."""
    alike: dict[tuple, int] = {}
    for each in report.collectives:
        key = (each.kind, format_axes(each.axes), each.n_bytes, each.is_async)
        alike[key] = alike.get(key, 0) + each.times
    return [[*key, times] for key, times in alike.items()]


def _tally(words: Iterable[str]) -> dict[str, int]:
    """How often each is there."""
    found: dict[str, int] = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return found


def _picture(report: CompiledReport) -> Any:
    """One layer in time; where there is no loop over layers, the step itself."""
    from mtfcore.compiling.timeline import timeline

    with contextlib.suppress(LayoutError):
        return timeline(report, "layer").to_json()
    return timeline(report, "step").to_json()


# ---- bytes over each axis of the mesh -------------------------------------------------------------------------------


class _Sent(NamedTuple):
    """A compiled collective: all that tells how its bytes fall on the mesh's axes."""

    kind: str
    axes: tuple[str, ...]
    link_bytes: int | Fraction  # each time
    times: int


def by_axis(record: Record, program: Program) -> dict[str, Any]:
    """Bytes that a device sends over each axis, of a compiled record of this program; empty where it does not tell.

    Records made before these were kept have their collectives: each one's axes and bytes tell the same, unless groups
    were only parts of those axes. Then they do not add up to the record's own sum.
    """
    kept = record.facts.get("collectives")
    if "by_axis" in record.facts or not isinstance(kept, list):
        return dict(record.facts.get("by_axis", {}))
    found = sent_by_axis([_of_line(line, program) for line in kept], program)
    told = float(sum(found.values())) == record.counts.get("link_bytes")
    return plain(found, "by_axis") if told else {}


def _of_line(line: list[Any], program: Program) -> _Sent:
    kind, axes, n_bytes, _, times = line
    over = parse_axes(axes)
    return _Sent(kind, over, sent_bytes(kind, n_bytes, program.mesh.group_size(over)), times)


def sent_by_axis(collectives: Iterable[_Sent], program: Program) -> Mapping[str, Fraction]:
    """Their bytes over each axis; several axes share as they do in the plan, which has an order of them."""
    orders = {frozenset(step.axes): step.axes for step in program.collectives()}
    found = dict.fromkeys(program.mesh.names, Fraction(0))
    for sent in collectives:
        in_order = sent._replace(axes=orders.get(frozenset(sent.axes), sent.axes))
        for axis, n_bytes in split_by_axis(in_order, program.mesh).items() if sent.axes else ():
            found[axis] += n_bytes * sent.times
    return found


__all__ = ["by_axis", "commit", "compiled_fields", "compiler_where", "measured_fields", "sent_by_axis"]
