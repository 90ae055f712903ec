"""`python -m tpu_runs compare`: two sets of records side by side, or one beside what was modelled and compiled.

    python -m tpu_runs compare a.jsonl b.jsonl        # equal cases and parameters, newest of each
    python -m tpu_runs compare 3f2a 91bc              # two records by the beginnings of their ids
    python -m tpu_runs compare mine                   # measured beside modelled, and compiled where that is recorded
    python -m tpu_runs compare mine --compile         # compile them now (TPU slices only)

An error is the prediction as a share of what was measured, less one. What else differs between two records (chip,
versions, commit, parameters) is said under the table. Times of simulated devices are set beside each other, and never
beside a model of hardware. Next file to read: `against`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mtfcore.costs.pricing.constants import Constants
from mtfcore.costs.pricing.rates import MODELS
from mtfcore.errors import LayoutError, nearest, sure
from mtfcore.numbers import count, format_seconds
from mtfcore.tables import Column, Row, Table
from mtfcore.topologies import topology as as_topology
from tpu_runs import records
from tpu_runs.against import against
from tpu_runs.cases import CASES
from tpu_runs.listing import differing
from tpu_runs.records import COMMITTED, Record, own_place, read

LEAST_ID = 4  # letters of an id that name a record
SETTINGS = {  # what two runs of the same case may differ in, in words
    "device": lambda r: r.where.get("device_kind"), "devices": lambda r: r.where.get("devices"),
    "hosts": lambda r: r.where.get("hosts"), "topology": lambda r: r.where.get("topology"),
    "jax": lambda r: r.versions.get("jax"), "libtpu": lambda r: r.versions.get("libtpu"),
    "commit": lambda r: r.commit, "share": lambda r: r.share and r.share.get("mesh"), "origin": lambda r: r.origin,
}  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tpu_runs compare", description="Records side by side.")
    parser.add_argument("one", help="a file, a folder, an id, 'mine' or 'committed'")
    parser.add_argument("other", nargs="?", help="the same; left out: what is modelled and compiled")
    parser.add_argument("--topology", help="the slice to model, where a record does not say its own")
    parser.add_argument(
        "--model", default="calibrated", help="of time: physical, calibrated, paper, or a file of constants"
    )
    parser.add_argument("--compile", action="store_true", help="compile each program for its slice now")
    asked = parser.parse_args(words)
    if asked.topology:
        as_topology(asked.topology)
    if asked.other:
        print(side_by_side(load(asked.one), load(asked.other), (asked.one, asked.other)))
    else:
        print(beside_models(load(asked.one), asked.topology, model_of(asked.model), asked.compile))
    return 0


def load(source: str) -> list[Record]:
    """The records that a word names; notes on what could not be read go to stderr."""
    places = {"mine": own_place(), "committed": COMMITTED}
    path = places.get(source, Path(os.path.expanduser(source)))
    if source in places or os.path.exists(path):
        found, notes = read(path)
    elif len(source) >= LEAST_ID and set(source) <= set("0123456789abcdef"):
        found, notes = [r for r in (*records.mine(), *records.committed()) if r.id.startswith(source)], []
    else:
        found, notes = [], []
    for note in notes:
        print(note, file=sys.stderr)
    if not found:
        raise LayoutError(f"no records in {source!r}; give a file, a folder, an id's beginning, 'mine' or 'committed'")
    return found


def model_of(word: str) -> str | Constants:
    """A model of time by name, or the constants that `calibrate` kept in a file."""
    if not word.endswith(".json"):
        if word not in MODELS:
            raise LayoutError(f"no model of time {word!r:.100}; {nearest(word, MODELS)}, or a file of constants")
        return word
    try:
        return Constants.from_json(Path(word).expanduser().read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise LayoutError(f"{word} holds no constants of `calibrate --out` ({fault})") from None


def newest(found: Iterable[Record], key: Callable[[Record], Any] = lambda r: r.asked) -> dict[Any, Record]:
    """Case and parameters → the newest record that has a time."""
    return {key(r): r for r in sorted(found, key=lambda r: r.when) if seconds_of(r) is not None}


def seconds_of(record: Record) -> float | None:
    """A record's one number: the median measured, or what its compiled schedule takes."""
    return record.median if record.origin == "measured" else record.facts.get("seconds")


def side_by_side(one: Sequence[Record], other: Sequence[Record], names: tuple[str, str] = ("a", "b")) -> Table:
    """Equal cases and parameters of both; two single records are set side by side whatever they ran."""
    left, right = newest(one), newest(other)
    pairs = [(left[key], right[key]) for key in left if key in right]
    if not pairs and len(left) == len(right) == 1:
        pairs = [(next(iter(left.values())), next(iter(right.values())))]
    rows = [_pair_row(a, b) for a, b in pairs]
    alone = [f"{count(len(has.keys() - lacks.keys()), 'run')} of {name} without a partner" for has, lacks, name in
             ((left, right, names[0]), (right, left, names[1])) if has.keys() - lacks.keys() and pairs]  # fmt: skip
    columns = (Column("case", "case"), Column("settings", "settings"), _time("a", names[0]), _time("b", names[1]),
               _share("error", "second / first - 1"), Column("spread", "spreads"))  # fmt: skip
    notes = dict.fromkeys(note for a, b in pairs for note in differences(a, b))
    return Table(columns, rows, f"{count(len(rows), 'run')} in both", notes=(*notes, *alone))


def differences(a: Record, b: Record) -> Iterator[str]:
    """What differs between two records besides their times, in words."""
    for name, of in SETTINGS.items():
        if (of(a) or "") != (of(b) or ""):
            yield f"different {name}: {of(a) or 'none'} and {of(b) or 'none'}"
    if a.case != b.case:
        yield f"different cases: {a.case} and {b.case}"
    for name in dict.fromkeys((*a.params, *b.params)):
        if a.params.get(name) != b.params.get(name):
            yield f"different {name}: {a.params.get(name, 'none')} and {b.params.get(name, 'none')}"
    if a.simulated != b.simulated:
        yield "one of them ran on simulated devices: its times are this computer's, never hardware speed"


def beside_models(found: Iterable[Record], topology: Any = None, model: Any = "calibrated", now: bool = False) -> Table:
    """Measured, modelled and compiled, with errors; `now`: compile those of which there is no compiled record."""
    found = list(found)
    by_chip = newest((r for r in found if r.origin == "measured"), lambda r: (r.asked, str(r.where), bool(r.share)))
    measured = list(by_chip.values())
    compiled = [r for r in (*found, *records.committed()) if r.origin == "compiled"]
    simulated = [r for r in measured if r.simulated]
    told = [(r, against(r, compiled, topology, model, now)) for r in measured if not r.simulated]
    rows = [{"case": r.case, "settings": _settings(r), "measured": r.median, "spread": r.spread,
             "device": r.where.get("device_kind"), **beside.row(sure(r.median))} for r, beside in told]  # fmt: skip
    columns = (
        Column("case", "case"), Column("settings", "settings"), Column("device", "on"), _time("measured", "measured"),
        _share("spread", "spread"), _time("modelled", "modelled"), _share("modelled_error", "its error"),
        _time("compiled", "compiled"), _share("compiled_error", "its error"), Column("words", "", below=True),
    )  # fmt: skip
    return Table(columns, rows, f"{count(len(rows), 'run')} measured", notes=_left_out(len(simulated), not rows))


def _left_out(simulated: int, alone: bool) -> tuple[str, ...]:
    """What is said of simulated runs; where there is nothing else, also what can be done with them."""
    if not simulated:
        return ()
    said = (f"{count(simulated, 'run')} on simulated devices left out: those times are this computer's, never "
            "hardware speed, and no model of hardware is set beside them")  # fmt: skip
    beside = "two files of such runs can be set beside each other: python -m tpu_runs compare A.jsonl B.jsonl"
    return (said, beside) if alone else (said,)


def _pair_row(a: Record, b: Record) -> Row:
    first, second = sure(seconds_of(a)), sure(seconds_of(b))
    spreads = " / ".join("-" if r.spread is None else f"{r.spread:.0%}" for r in (a, b))
    return {"case": a.case, "settings": _settings(a), "a": first, "b": second, "spread": spreads,
            "error": second / first - 1 if first else None}  # fmt: skip


def _settings(record: Record) -> str:
    return differing(CASES[record.case], record.params) if record.case in CASES else str(record.facts.get("name", ""))


def _time(key: str, title: str) -> Column:
    return Column(key, title, format_seconds, True)


def _share(key: str, title: str) -> Column:
    return Column(key, title, lambda share: f"{share:+.1%}" if key.endswith("error") else f"{share:.0%}", True)
