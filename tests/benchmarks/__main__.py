"""`python -m tests.benchmarks` runs every bench_*.py here that has a `main()`; names after it choose some of them.

Each runs in a process of its own, since how JAX and the caches were used before changes what is measured. Numbers
are printed, nothing is judged: a busy computer must not fail a test. The exit status says whether all of them ran.
"""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def benchmarks(chosen: list[str]) -> list[str]:
    """The modules to run: all, or those whose names were given with or without `bench_`."""
    found = [module.name for module in pkgutil.iter_modules([str(HERE)]) if module.name.startswith("bench_")]
    unknown = [name for name in chosen if f"bench_{name.removeprefix('bench_')}" not in found]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(found)}")
    return [name for name in found if not chosen or name.removeprefix("bench_") in chosen or name in chosen]


def run(name: str) -> int:
    """One benchmark's exit status."""
    print(f"\n== {name}", flush=True)
    code = f"from tests.benchmarks import {name} as b; b.main()"
    return subprocess.run([sys.executable, "-c", code], cwd=HERE.parent.parent).returncode


if __name__ == "__main__":
    statuses = {name: run(name) for name in benchmarks(sys.argv[1:])}
    failed = [name for name, status in statuses.items() if status]
    print(f"\n{len(statuses) - len(failed)} of {len(statuses)} ran; failed: {', '.join(failed) or 'none'}")
    sys.exit(bool(failed))
