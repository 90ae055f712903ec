"""docs/versions.md: which versions are installed, which are supported, and what was seen with them.

Made from pyproject.toml and docs/versions_seen.json, where runs of `make versions` are written down by hand. It is made
anew by `make docs`.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from docs.writing import write

ROOT = Path(__file__).resolve().parent.parent
PAGE, SEEN = ROOT / "docs" / "versions.md", ROOT / "docs" / "versions_seen.json"
HEAD = """<!-- Made by `make docs` from pyproject.toml and docs/versions_seen.json; change those, not this file. -->
# Supported versions

`make lab` and `make test` install the pinned versions, the same on every machine. Who uses the library in an
environment of their own may have others: from the oldest below up to the pinned ones. `make versions` builds two
environments apart, .versions/oldest and .versions/newest, and runs tests with each; where the newest for this Python
are the pinned ones, it says so and runs nothing more.

Python {pythons}; on each, the test suite passes with the pins.

| package | oldest | pinned |
|---|---|---|
{rows}

JAX 0.11.2 and 0.12 are left out on purpose: their compiler ends the process when it partitions some reshards on a
2 x 3 mesh. JAX 0.7.2 ends it too: it does not know the flags, set in XLA_FLAGS, by which a stuck collective stops.

## What was seen

| which | Python | versions | tests | result |
|---|---|---|---|---|
{seen}
"""


def page() -> str:
    """All of it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    oldest = project["tool"]["meshwork"]["oldest"]
    rows = [f"| {name} | {version} | {_pinned(project, name)} |" for name, version in oldest.items()]
    seen = json.loads(SEEN.read_text(encoding="utf-8"))
    lines = ["| {which} | {python} | {versions} | {tests} | {result} |".format(**one) for one in seen]
    return HEAD.format(pythons="3.11, 3.12, 3.13", rows="\n".join(rows), seen="\n".join(lines))


def _pinned(project: dict, name: str) -> str:
    """The pin, or both where it depends on Python."""
    pins = [one for one in project["project"]["dependencies"] if re.match(rf"{name}==", one)]
    found = [re.match(r"[^=]+==([^ ;]+)(?: ; python_version (.*))?", one) for one in pins]
    return ", ".join(f"{m[1]} (Python {m[2]})".replace("'", "") if m[2] else m[1] for m in found if m)


def main() -> None:
    """Write the page if it changed."""
    write(PAGE, page())
