"""The command: what is kept of the papers' machines beside what was published; with --make they are compiled again.

    python -m tpu_runs papers                                # the tables, from committed records
    python -m tpu_runs papers --make                         # compile everything again: half an hour on two cores
    python -m tpu_runs papers --make palm-62b mtf-lm         # those whose names begin so
    python -m tpu_runs papers --make --missing               # those of which there is no record yet

Next file to read: `tpu_runs/README.md`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence

from mtfcore.errors import DeviceError
from tpu_runs.papers.kept import forget_others, keep, kept
from tpu_runs.papers.machine import Machine
from tpu_runs.papers.making import make
from tpu_runs.papers.rows import machines


def chosen(names: Sequence[str], missing: bool) -> list[Machine]:
    """The machines whose names begin so; all where none is named."""
    known = machines()
    unknown = [name for name in names if not any(each.startswith(name) for each in known)]
    if unknown:
        raise LookupError(f"no machine's name begins with {', '.join(map(repr, unknown))}; one is {next(iter(known))}")
    found = [one for name, one in known.items() if name.startswith(tuple(names) or "")]
    return [one for one in found if not (missing and one.name in kept())]


def remake(them: Iterable[Machine]) -> int:
    """Compile one after the other; each record is kept as soon as it is there."""
    failed = 0
    for one in them:
        try:
            record = make(one)
        except DeviceError as error:
            failed += 1
            print(f"{one.name}: {error}", file=sys.stderr, flush=True)
            continue
        keep([record])
        said = f"{record.facts['seconds']:.6g} s" if record.status == "ok" else record.reason
        print(f"{one.name}: {said}, compiled in {record.compile_seconds or 0:.1f} s", flush=True)
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, or compile."""
    about = "The papers' own machines: published beside compiled."
    parser = argparse.ArgumentParser(prog="python -m tpu_runs papers", description=about)
    parser.add_argument("--make", nargs="*", metavar="NAME", help="compile those whose names begin so; none: all")
    parser.add_argument("--missing", action="store_true", help="with --make: only those without a record")
    asked = parser.parse_args(arguments)
    if asked.make is not None:
        try:
            failed = remake(chosen(asked.make, asked.missing))
            for name in () if asked.make else forget_others(machines()):
                print(f"{name}: no longer among the machines; its record went")
            return min(failed, 1)
        except LookupError as error:
            parser.error(error.args[0])
    from tpu_runs.papers.comparing import tables

    print("\n\n".join(map(str, tables())))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
