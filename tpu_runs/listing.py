"""`python -m tpu_runs list`: every case, its parameters, and how many runs each list has; a list with its bytes.

    python -m tpu_runs list
    python -m tpu_runs list layer                     # with all that is legal
    python -m tpu_runs list layer --sweep chip        # each run of the list, with what one device would hold

Next file to read: `running`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from mtfcore.numbers import count, format_bytes
from tpu_runs.cases import CASES, SWEEPS, Case, case, check


def main(words: Sequence[str] | None = None) -> int:
    """Print it."""
    parser = argparse.ArgumentParser(prog="python -m tpu_runs list", description="What can be run.")
    parser.add_argument("case", nargs="?", help="one case; none: all")
    parser.add_argument("--sweep", choices=tuple(SWEEPS), help="the runs of this list, one a line")
    parser.add_argument("--devices", type=int, default=1, help="for how many devices (list slice)")
    asked = parser.parse_args(words)
    for found in [case(asked.case)] if asked.case else CASES.values():
        lines = _runs(found, asked.sweep, asked.devices) if asked.sweep else _about(found, bool(asked.case))
        print("\n".join(lines))
    return 0


def _about(found: Case, whole: bool = True) -> Iterator[str]:
    """The case in words; beside others, not all that is legal of each parameter."""
    sizes = ", ".join(f"{name}: {count(len(found.sweeps.get(name, ())), 'run')}" for name in SWEEPS)
    yield f"{found.name}: {found.about} ({sizes})"
    for name, param in found.params.items():
        legal = param.legal if whole or len(param.legal) < 60 else f"{param.legal[:57].rpartition(', ')[0]}, …"
        yield f"  {f'{name}={param.default}':20} {param.words} ({legal})"


def _runs(found: Case, sweep: str, devices: int) -> Iterator[str]:
    """Each run of a list, with what one device holds at its fullest moment (modelled)."""
    for params in found.sweep(sweep, devices):
        full = check(found, params)
        yield f"{found.name} {differing(found, full)}: {format_bytes(found.bytes(full))} a device (modelled)"


def differing(found: Case, params: dict[str, object]) -> str:
    """The parameters that are not at their defaults, as the command line takes them."""
    said = [f"{name}={value}" for name, value in params.items()
            if name not in found.params or value != found.params[name].default]  # fmt: skip
    return " ".join(f"'{word}'" if " " in word else word for word in said) or "(defaults)"
