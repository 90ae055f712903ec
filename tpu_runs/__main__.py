"""Commands for runs:

    python -m tpu_runs list                  # the cases, their parameters and lists
    python -m tpu_runs run product m=1024    # run one, or a list of them; --on simulated for practice
    python -m tpu_runs compare A [B]         # two sets of records, or measured beside modelled and compiled
    python -m tpu_runs calibrate             # fit the cost model's constants to what was measured
    python -m tpu_runs papers                # the papers' own machines: published beside compiled

Each command is a module with a `main`; a new one is a line in `COMMANDS`. Next file to read: `run`.
"""

from __future__ import annotations

import os
import sys

from mtfcore.commands import run

COMMANDS = {  # name → (module with main(words) → exit status, what it does)
    "list": ("tpu_runs.listing", "the cases, their parameters and lists of runs"),
    "run": ("tpu_runs.running", "run a case, or a list of them, on attached or simulated devices"),
    "compare": ("tpu_runs.compare", "two sets of records, or measured beside modelled and compiled"),
    "calibrate": ("tpu_runs.calibrate", "fit the cost model's constants to measured products and collectives"),
    "papers": ("tpu_runs.papers.__main__", "the papers' own machines: published beside compiled"),
}


def main(words: list[str]) -> int:
    """Do what the command line asks; the exit status."""
    try:
        return run("tpu_runs", COMMANDS, words)
    except OSError as fault:  # our output has no reader any more, as behind `head`, or no room; or a file named to us
        broken = isinstance(fault, BrokenPipeError)
        if fault.filename is None:  # what is still to be printed would fail again at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not broken:
            print(f"{fault.filename or 'the output'}: {fault.strerror}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
