"""Measure and print; of everything, write docs/speed.md and docs/speed.json too; 1 where a limit is missed.

Next file to read: sliders.py, how a move is timed.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import sys
import time

from . import lessons, sliders, starting
from .limits import missed
from .pages import ROOT
from .table import page

PARTS = {"start": lambda names: starting.measured(), "sliders": sliders.measured, "lessons": lessons.measured}
PACKAGES = ("jupyterlab", "ipywidgets", "anywidget", "jax")
MACHINE = "{cores} cores, Chromium without a window, no GPU ({system}, {processor})"


def machine() -> str:
    """What it was measured on, in words."""
    return MACHINE.format(cores=os.cpu_count(), system=platform.system(), processor=platform.machine())


def versions() -> str:
    """Python's and the packages'."""
    named = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    return ", ".join([f"Python {platform.python_version()}", *named])


def main(words: list[str]) -> int:
    """One part or all of them."""
    parser = argparse.ArgumentParser(prog="make speed", description=__doc__, allow_abbrev=False)
    parser.add_argument("part", nargs="?", choices=["all", *PARTS], default="all", help="what to measure (all)")
    parser.add_argument("names", nargs="*", help="beginnings of the names of explorers, or of lessons")
    parser.add_argument("--machine", default=machine(), help="what it runs on, in your words")
    given = parser.parse_args(words)
    found, begun = {}, time.perf_counter()
    for part in PARTS if given.part == "all" else [given.part]:
        print(part, flush=True)
        found[part] = PARTS[part](given.names)
    wrong = missed(found)
    text = page(found, given.machine, f"{datetime.date.today():%d %B %Y}", versions(), wrong)
    print(f"\n{text}\nmeasured in {time.perf_counter() - begun:.0f} s")
    if given.part == "all" and not given.names:
        (ROOT / "docs" / "speed.md").write_text(text, encoding="utf-8")
        (ROOT / "docs" / "speed.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
