"""Solved lessons as HTML pages, to read with no server, no network and no installation: `make previews`.

    stamp(source)                # what the page of a lesson must be made from, without running anything
    target(source)               # lessons/previews/02_layouts.html

Each page is a solved notebook after it was run, with the still picture of each explorer. It holds no script, fetches
nothing, and names what it was made from, so a test sees in a moment which page is out of date. Only changes of a
lesson are seen so; after a change of the library, `python -m lessons.previews --all` makes every page again.
Next file to read: `running.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

from lessons import notebooks
from lessons.setting_up import typed

HERE = Path(__file__).parent
MARK = "meshwork-source"
_STATED = re.compile(rf'<meta name="{MARK}" content="([0-9a-f]{{12}})">')


def target(source: Path) -> Path:
    """Where a lesson's page lies."""
    return HERE / f"{source.stem}.html"


def stamp(source: Path) -> str:
    """Twelve hex digits that stand for the text of the solved notebook's cells."""
    return typed.digest(notebooks.notebook(source, "solved")["cells"])


def stated(path: Path) -> str:
    """The stamp that a page was made from; empty where there is no page or no stamp."""
    found = _STATED.search(path.read_text(encoding="utf-8")) if path.is_file() else None
    return found[1] if found else ""
