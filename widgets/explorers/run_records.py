"""Records as the run explorer shows them: heads of columns, notes, lines of history, and rows compiled beforehand.

    >>> heads(records, row, "calibrated")["compiled"]
    'v4:4x4x4, libtpu 0.0.52'
    >>> case_of({"what": "decode", "model": "palm-8b", ...})
    ('phase', {'model': 'palm-8b', 'phase': 'decode', …})

Next file to read: `on_device`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import mtfcore as mtf
from mtfcore.errors import sure
from mtfcore.reference import Published
from tpu_runs.records import Record, committed
from widgets.explorers import plan_inputs
from widgets.explorers.history import OF, History
from widgets.figures.run_words import off, simulated_words
from widgets.numbers import origin, quantity
from widgets.state import State

Facts = dict[str, Any]


# ---- columns


def heads(records: Mapping[str, Record], row: Published | None, constants: str) -> dict[str, str]:
    """A few words below each column's origin: which constants, which compiler, which device, which table."""
    found = {"modelled": constants, "published": row.table if row else ""}
    if (record := records.get("compiled")) is not None:
        found["compiled"] = f"libtpu {record.versions.get('libtpu', '')}".strip()
    if (record := records.get("measured")) is not None:
        share = ", one device's share" if record.share else ""
        found["measured"] = f"{record.where.get('devices', 1)} × {record.where.get('device_kind', '')}{share}"
    elif records.get("simulated") is not None:
        found["measured"] = "simulated: no times"
    return found


def notes_of(records: Mapping[str, Record], program: mtf.Program) -> Facts:
    """What the sentence says beside the numbers."""
    compiled, simulated, measured = (records.get(kind) for kind in ("compiled", "simulated", "measured"))
    said = ""
    if simulated is not None:
        counted, sent = simulated.facts.get("counted", {}), program.link_bytes().total
        same = (counted["flops"], counted["sent"]) == (program.flops(), sent) if counted else None
        check = simulated.check
        said = simulated_words(simulated.where["devices"], check.get("error"), str(check.get("against", "")),
                               sure(simulated.median), same)  # fmt: skip
    of_the_paper = measured is not None and measured.share is None
    return {
        "simulated": said, "share": measured.share.get("words", "") if measured is not None and measured.share else "",
        "refusal": compiled.reason if compiled is not None and compiled.status == "refused" else "",
        "differences": _differences(compiled), "truth": "measured or published" if of_the_paper else "published",
    }  # fmt: skip


def _differences(record: Record | None) -> list[str]:
    """Each way in which the compiled collectives are not the planned ones."""
    facts = record.facts if record is not None else {}
    found = facts.get("whys", facts.get("differences", []))
    if isinstance(found, Mapping):  # of a committed record: words and how often
        return [f"{word}, {n} times" for word, n in found.items()]
    return list(found)


# ---- history


def listed(history: History, start: State) -> list[Facts]:
    """One line a run of this explorer, the newest first."""
    return [_line(record, start) for record in history.listed("run")]


def _line(record: Record, start: State) -> Facts:
    params = record.params
    return {
        "id": record.id, "when": record.when[5:16].replace("T", " "), "what": _what(params), "gave": gave(record),
        "status": record.status, "words": f"{record.words()} · {_settings(params)}",
        "loads": {"what", "topology"} <= params.keys() <= start.keys(),
    }  # fmt: skip


def _what(params: State) -> str:
    short = {"batch": "b", "tokens": "t"}
    sizes = (f"{letter}{params[name]}" for name, letter in short.items() if name in params)
    return " ".join(filter(None, (params.get("what", ""), params.get("kind", ""), *sizes, params.get("topology", ""))))


def _settings(params: State) -> str:
    return ", ".join(f"{name} {value}" for name, value in params.items())


def gave(record: Record) -> str:
    """What a run gave, in a few words; of simulated devices never a time."""
    if record.status != "ok":
        return record.status if record.origin != "compiled" or record.status == "stopped" else "too large [compiled]"
    if record.origin == "compiled":
        return origin(quantity(record.facts["seconds"], "s"), "modelled") + " compiled"
    if record.median is None:
        return "no time"
    if record.simulated:
        error = record.check.get("error")
        return "simulated, unchecked" if error is None else f"simulated, {off(error)}"
    share = ", a share" if record.share else ""
    return f"{origin(quantity(record.median, 's'), 'measured')} on {record.where.get('device_kind', 'a device')}{share}"


# ---- compiled beforehand


def recorded(state: State) -> Record | None:
    """The committed compile record of these settings, which needs no compiler here."""
    wanted = phase_params(state)
    return _committed().get(_key({**wanted, "topology": state["topology"]})) if wanted else None


@cache
def _committed() -> dict[str, Record]:
    """Plain programs of the papers by what they are of; of ways round the mesh the quickest."""
    found: dict[str, Record] = {}
    for record in committed():
        topology = record.params.get("topology") or record.where.get("topology")
        if record.case != "paper" or record.params.get("partitioned") or not topology:
            continue
        key = _key({**record.params.get("params", record.params), "topology": topology})
        if key not in found or record.facts.get("seconds", 0.0) < found[key].facts.get("seconds", 0.0):
            found[key] = record
    return found


def _key(params: Mapping[str, Any]) -> str:
    names = ("model", "changes", "phase", "mesh", "ffn", "attention", "batch", "new_tokens", "cached_tokens", "weights",
             "cache", "topology", "looped")  # fmt: skip
    return repr([params.get(name) or None for name in names])


def phase_params(state: State) -> dict[str, Any]:
    """The settings of a whole phase as its program has them; nothing for other kinds."""
    if state["what"] not in ("prefill", "decode"):
        return {}
    name, changes = plan_inputs.split_model(state["model"])
    ffn, _, attention = state["partition"].rpartition("-")
    new, cached = (state["tokens"], 0) if state["what"] == "prefill" else (1, state["tokens"])
    return {"model": name, "changes": changes, "phase": state["what"], "mesh": state["mesh"], "ffn": ffn,
            "attention": attention, "batch": state["batch"], "new_tokens": new, "cached_tokens": cached,
            "weights": state["weights"], "cache": state["cache"]}  # fmt: skip


# ---- the class's owner


def case_of(state: State) -> tuple[str, dict[str, Any]] | None:
    """A whole phase or a collective as a case of `tpu_runs`; None for what it has none for."""
    if state["what"] == "collective":
        return "collective", {"dtype": "f32", **{name: state[name] for name in ("kind", "mesh", "axes", "n_bytes")}}
    params = phase_params(state)
    changes = params.pop("changes", {})
    if not params or changes.keys() - {"heads", "layers"} or plan_inputs.is_path(params["model"]):
        return None
    return "phase", {**params, **changes}


__all__ = ["OF", "case_of", "gave", "heads", "listed", "notes_of", "phase_params", "recorded"]
