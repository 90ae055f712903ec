"""`python -m tpu_runs run`: run cases, one after the other; each record is on the disk before the next begins.

    python -m tpu_runs run product m=1024 k=1024 n=1024        # one run on the attached TPU or GPU
    python -m tpu_runs run --sweep chip                        # everything for one chip, under 8 minutes
    python -m tpu_runs run layer --sweep simulated --on simulated
    python -m tpu_runs run layer model=palm-540b heads=64 'mesh=x:4 y:4 z:4' --share --topology v4:4x4x4

Nothing ever falls back to the CPU: without a chip it says so and ends, and simulated devices are asked for by name.
Ctrl-C keeps what was measured. On many hosts the same command runs on each (`hosts`). Next file to read: `hosts`.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mtfcore.errors import DeviceError, LayoutError, refuse, sure
from mtfcore.measuring.chip_state import chip_state
from mtfcore.numbers import count, format_seconds
from mtfcore.topologies import topology
from tpu_runs import hosts, joining
from tpu_runs.cases import CASES, SWEEPS, Case, case, check
from tpu_runs.commits import commit
from tpu_runs.listing import differing
from tpu_runs.records import Record, append, own_file, why_no_file
from tpu_runs.run import finish, is_from_elsewhere, rows, stopped

Asked = argparse.Namespace
Run = tuple[Case, dict[str, Any]]


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(prog="python -m tpu_runs run", description="Run cases and keep their records.")
    made.add_argument("words", nargs="*", metavar="CASE NAME=VALUE", help="a case and its parameters; no case: all")
    made.add_argument("--on", choices=("attached", "simulated"), default="attached", help="on what (default: attached)")
    made.add_argument("--sweep", choices=tuple(SWEEPS), help="a list of runs instead of one")
    made.add_argument("--share", action="store_true", help="one device's share, even where there are enough devices")
    made.add_argument("--topology", help="the slice on which a share's links are modelled, such as v4:4x4x4")
    made.add_argument("--repeats", type=int, default=5)
    made.add_argument("--warm-up", type=int, default=1)
    made.add_argument("--minutes", type=float, default=math.inf, help="begin no run later than this, and say which")
    made.add_argument("--no-check", action="store_true", help="do not check answers; the records say so")
    made.add_argument("--out", type=Path, help="the file to add records to (default: your own, one a month)")
    many = made.add_argument_group("many hosts")
    many.add_argument("--hosts", type=int, default=1, help="how many; run the same command on each")
    many.add_argument("--host", type=int, default=0, help="which one this is, from 0")
    many.add_argument("--coordinator", help="address:port of host 0, reachable by all")
    many.add_argument("--devices", type=int, default=2, help="simulated devices of one host")
    many.add_argument("--patience", type=int, default=20, help="seconds without a sign of life: a host has gone")
    many.add_argument("--limit", type=float, default=900, help="seconds without any progress: this host ends")
    made.set_defaults(together=0, lost=0)  # devices of all hosts, once they have met; records that no file took
    return made


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked; 0 if every record is ok."""
    words = list(sys.argv[2:] if words is None else words)
    asked = parser().parse_intermixed_args(words)
    named, given = _read(asked.words)
    _expect(asked, named, given)
    if asked.hosts > 1 and hosts.CHILD not in os.environ:
        return hosts.watch(["run", *words], asked.hosts, asked.host, asked.patience, asked.limit)
    if asked.hosts > 1:
        return _among_others(asked, named, given)
    if asked.on == "attached":
        try:
            chip_state().expect_ready()
        except DeviceError as fault:
            raise DeviceError(f"{fault}; to practise without a chip: --on simulated") from None
    return _all(asked, _planned(asked, named, given, _devices(asked)))


def _read(words: Sequence[str]) -> tuple[Case | None, dict[str, str]]:
    """The case that is named first, and name=value for each parameter; all faults at once."""
    named = case(words[0]) if words and "=" not in words[0] else None
    pairs = [word.partition("=") for word in words[1 if named else 0 :]]
    if wrong := [name for name, equals, _ in pairs if not equals]:
        raise LayoutError(f"{', '.join(map(repr, wrong))}: parameters are given as name=value, such as m=1024")
    names = [name for name, _, _ in pairs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise LayoutError(f"{', '.join(twice)}: given more than once; each parameter once")
    return named, {name: value for name, _, value in pairs}


def _expect(asked: Asked, named: Case | None, given: dict[str, str]) -> None:
    if named is None and (given or not asked.sweep):
        raise LayoutError(f"name a case ({', '.join(CASES)}), or a list: --sweep {' | '.join(SWEEPS)}")
    if asked.topology:
        topology(asked.topology)
    refuse([fault for wrong, fault in _wrong(asked) if wrong], "run")


def _wrong(asked: Asked) -> Iterator[tuple[bool, str]]:
    """Each option that can be wrong: whether it is, and the words for it."""
    yield not asked.minutes >= 0, f"--minutes {asked.minutes:g}: a number of minutes, such as 8"
    place = asked.out or own_file()
    why = why_no_file(place) if asked.host == 0 else ""  # the others keep none
    yield bool(why), f"{'--out ' if asked.out else 'your own records: '}{place} {why}"
    yield asked.hosts < 1, f"--hosts {asked.hosts}: how many, 1 or more"
    if asked.hosts <= 1:
        return
    address = re.fullmatch(r"(\S+):(\d{1,5})", asked.coordinator or "")
    yield address is None, ("--hosts needs --coordinator ADDRESS:PORT, an address of host 0 that all hosts reach"
                          + (f"; it is {asked.coordinator!r:.80}" if asked.coordinator else ""))  # fmt: skip
    yield not 0 <= asked.host < asked.hosts, f"--host {asked.host}: hosts are numbered from 0 to {asked.hosts - 1}"
    yield asked.devices < 1, f"--devices {asked.devices}: simulated devices of one host, 1 or more"
    yield asked.patience < 1, f"--patience {asked.patience}: seconds, 1 or more"
    yield not asked.limit > 0, f"--limit {asked.limit:g}: seconds, more than 0"


def _planned(asked: Asked, named: Case | None, given: dict[str, str], devices: int) -> list[Run]:
    """Every run in order, as (case, parameters)."""
    if not asked.sweep:
        one = sure(named)
        return [(one, check(one, given))]  # a slip of the pen is no run that failed
    cases = [named] if named else list(CASES.values())
    return [(each, {**params, **given}) for each in cases for params in each.sweep(asked.sweep, devices)]


def _devices(asked: Asked) -> int:
    """How many devices there are, for lists that take all; starts JAX."""
    from mtfcore.device_pool import attached_devices, devices

    return len(attached_devices()) if asked.on == "attached" else devices(64).simulated


def _among_others(asked: Asked, named: Case | None, given: dict[str, str]) -> int:
    """As one of many hosts: the same runs in the same order on all; host 0 keeps the records."""
    try:
        total = joining.join(asked.hosts, asked.host, asked.coordinator, asked.on, asked.devices, asked.patience)
        runs = _planned(asked, named, given, total)
        joining.expect_same(f"{commit()} {[(each.name, params) for each, params in runs]}")
        asked.together = total
        status = _all(asked, runs)
        joining.leave(status)
        return status
    except Exception as fault:
        if is_from_elsewhere(fault):
            joining.lost(str(fault))
        return joining.failed(fault)


def _all(asked: Asked, runs: list[Run]) -> int:
    """One after the other; each record is kept as soon as it is made."""
    made: list[Record] = []
    try:
        for number, (each, params) in enumerate(_in_time(asked, runs), 1):
            made.append(_kept(asked, _one(asked, each, params, f"{number}/{len(runs)}")))
    except KeyboardInterrupt:
        _kept(asked, stopped(each, params, asked.on, "stopped by Ctrl-C"))
        print(f"\nStopped: {count(len(made), 'record')} and this one's beginning are kept.", file=sys.stderr)
        return 130
    if asked.host == 0:
        print(f"{count(len(made) - asked.lost, 'record')} in {asked.out or own_file()}")
    return 0 if made and not asked.lost and all(record.status == "ok" for record in made) else 1


def _in_time(asked: Asked, runs: list[Run]) -> Iterator[Run]:
    """Those that may still begin; where the minutes are over, how many are left."""
    last = time.monotonic() + 60 * asked.minutes
    for begun, run in enumerate(runs):
        over = time.monotonic() > last
        if joining.any_of(over) if asked.hosts > 1 else over:
            print(f"{asked.minutes:g} minutes are over: {count(len(runs) - begun, 'run')} of {len(runs)} not begun")
            return
        yield run


def _one(asked: Asked, each: Case, params: dict[str, Any], number: str) -> Record:
    """One run, told part by part."""
    share: Any = True if asked.share else "auto"
    going = rows(each, params, asked.on, repeats=asked.repeats, warm_up=asked.warm_up, share=share,
                 check=not asked.no_check, topology=asked.topology, together=asked.together)  # fmt: skip
    if asked.hosts > 1:
        going = joining.in_step(going, lambda why: stopped(each, params, asked.on, why))
    with _one_line() as show:
        record = finish(going, lambda now: show(f"{number} {each.name}: {now.text}"))
    if asked.host == 0:
        print(line_of(record, number), flush=True)
    elif record.status != "ok":
        print(f"host {asked.host}: {line_of(record, number)}", file=sys.stderr, flush=True)
    return record


@contextlib.contextmanager
def _one_line() -> Iterator[Any]:
    """Where a run stands: to whoever watches this host, or in one line of a terminal that is wiped at the end."""
    if hosts.CHILD in os.environ:
        yield joining.tell
    elif sys.stderr.isatty():
        yield lambda words: print(f"\r\x1b[2K{words}", end="", file=sys.stderr, flush=True)
        print("\r\x1b[2K", end="", file=sys.stderr, flush=True)
    else:
        yield lambda words: None


def _kept(asked: Asked, record: Record) -> Record:
    """Host 0 keeps it; where no file takes it, it stands in the output."""
    if asked.host == 0:
        try:
            append(record, asked.out)
        except (OSError, ValueError) as fault:
            asked.lost += 1
            print(f"not kept in a file ({fault}); add this line to one:\n{record.line()}", flush=True)
    return record


def line_of(record: Record, number: str = "") -> str:
    """A record in one line: its case, its settings, its time or why there is none."""
    settings = differing(CASES[record.case], record.params) if record.case in CASES else ""
    head = f"{number} {record.case} {settings}".strip()
    if record.median is None:
        return f"{head}: {record.status}: {record.reason}"
    own = ", this computer's time, never hardware speed" if record.simulated else ""
    error = record.check.get("error")
    checked = f"error {error:.2g}" if error is not None else f"not checked: {record.check.get('against', '')}"
    share = f"; one device's share of {record.share['mesh']}" if record.share else ""
    return (f"{head}: {format_seconds(record.median)} median of {len(record.seconds)}, spread {record.spread or 0:.0%}"
            f"{own}; compiled in {format_seconds(record.compile_seconds or 0)}; {checked}{share}")  # fmt: skip
