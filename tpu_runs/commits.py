"""Which state of the project made a record: its commit, marked where files have changed since.

    >>> commit()
    'e24bf38+'

Next file to read: `entries`.
"""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = ("mtfcore", "tpu_runs", "widgets/explorers", "pyproject.toml")  # what decides a number; lessons do not


@cache
def commit(root: Path = ROOT) -> str:
    """The commit, with + where code differs from it; empty outside a checkout or without git."""
    if not (root / ".git").exists():
        return ""
    number = _git(root, "rev-parse", "--short=7", "HEAD")
    changed = _git(root, "status", "--porcelain", "--", *CODE) if number else ""
    return f"{number}+" if changed else number


def _git(root: Path, *words: str) -> str:
    """What git says, or nothing: a record without a commit is better than none."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
