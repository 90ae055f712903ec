"""From `make lab` to the first picture: the server, the page, the kernel, the first lesson's setup cell, an explorer.

JupyterLab is started as `make lab` starts it once everything is installed, on folders of its own. Next file to read:
limits.py.
"""

from __future__ import annotations

import json
import time
from typing import Any

from .lessons import RUN_CELLS, first_picture, setup_cells
from .pages import ROOT, a_browser, a_lab, end_kernel, new_page, open_notebook, wait_ready

REPEATS = 2
FIRST_LESSON = "00_start_here.ipynb"


def measured() -> list[dict[str, float]]:
    """Seconds of each part, several times over."""
    rows = []
    for _ in range(REPEATS):
        with a_browser() as browser:
            rows.append(once(browser))
        print(line(rows[-1]), flush=True)
    return rows


def line(row: dict[str, float]) -> str:
    """A row while it is measured."""
    return "  " + ", ".join(f"{name.replace('_', ' ')} {seconds:.1f} s" for name, seconds in row.items())


def once(browser: Any) -> dict[str, float]:
    """Seconds from nothing to the first lesson's first picture."""
    text = (ROOT / "lessons" / FIRST_LESSON).read_text(encoding="utf-8")
    begun = time.perf_counter()
    with a_lab() as lab:
        up = time.perf_counter()
        (lab.root / FIRST_LESSON).write_text(text, encoding="utf-8")
        page = new_page(browser)
        open_notebook(page, lab, FIRST_LESSON)
        shown = time.perf_counter()
        wait_ready(page)
        ready = time.perf_counter()
        notebook = json.loads(text)
        page.evaluate(RUN_CELLS, setup_cells(notebook))
        ran = time.perf_counter()
        picture = first_picture(page, notebook, up)
        end_kernel(page)
    assert picture is not None
    return {
        "server": up - begun, "notebook": shown - up, "kernel": ready - shown, "setup_cell": ran - ready,
        "first_picture": picture, "all": up - begun + picture,
    }  # fmt: skip
