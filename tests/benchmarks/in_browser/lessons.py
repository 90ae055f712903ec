"""Every lesson as a student runs it: opened, Run All, its first explorer, its seconds of CPU, its file when saved.

The solved notebooks are run: a student's when all exercises are done, so nothing a student runs takes longer. CPU is
that of the kernel and of every process that it started. The first picture is timed from the moment the lesson's
address is opened until its first explorer is painted: the setup cell is run as soon as the kernel is ready, then the
explorer's own cell and those that it needs (needed.py). Then comes Run All. Next file to read: starting.py.
"""

from __future__ import annotations

import ast
import json
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from .needed import assigned, needed
from .pages import (
    ROOT,
    Lab,
    a_browser,
    a_lab,
    ask,
    end_kernel,
    error_outputs,
    new_page,
    open_notebook,
    run_all,
    wait_done,
    wait_ready,
)
from .subjects import SUBJECTS

SECONDS = 300.0  # a lesson that hangs is an error, not a time
CPU = """(lambda psutil: sum(sum(one.cpu_times()[:4]) for one in [psutil.Process()])
  + sum(sum(one.cpu_times()[:2]) for one in psutil.Process().children(recursive=True)))(__import__('psutil'))"""
RUN_CELLS = """async places => {
  const { content } = window.jupyterapp.shell.currentWidget;
  for (const place of places) {
    content.activeCellIndex = place;
    await content.scrollToItem(place);
    await window.jupyterapp.commands.execute('notebook:run-cell');
  }
}"""
# resolves when the picture has been painted
PAINTED = """async () => {
  const views = () => [...document.querySelectorAll('.mw-live:not(.mw-top)')];
  const stands = () => views().some(view => view.innerHTML.length > 200);
  const end = performance.now() + 240_000;
  while (!stands() && performance.now() < end) await new Promise(requestAnimationFrame);
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  return stands();
}"""
SAVE = "() => window.jupyterapp.commands.execute('docmanager:save')"


def measured(names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A row of each lesson, or of those whose names begin with one of these."""
    found = sorted((ROOT / "lessons" / "solutions").glob("[0-9][0-9]_*.ipynb"))
    rows = []
    with a_browser() as browser, a_lab() as lab:
        for path in (path for path in found if not names or path.name.startswith(tuple(names))):
            rows.append({"name": path.stem, **row_of(browser, lab, path)})
            print(line(rows[-1]), flush=True)
    return rows


def line(row: dict[str, Any]) -> str:
    """A row while it is measured."""
    first = f"{row['first_picture']:.1f} s" if row["first_picture"] else "none"
    return (
        f"  {row['name']:<36} CPU {row['cpu']:5.1f} s, wall {row['wall']:5.1f} s, "
        f"first picture {first}, {row['n_bytes'] / 1e3:,.0f} kB"
    )


def row_of(browser: Browser, lab: Lab, path: Path) -> dict[str, Any]:
    """One lesson."""
    copy, text = lab.root / path.name, path.read_text(encoding="utf-8")
    copy.write_text(text, encoding="utf-8")
    page, begun = new_page(browser), time.perf_counter()
    open_notebook(page, lab, path.name)
    wait_ready(page)
    first = first_picture(page, json.loads(text), begun)
    started = time.perf_counter()
    run_all(page)
    wait_done(page, SECONDS)
    wall, cpu = time.perf_counter() - started, float(ask(page, CPU))
    if wrong := error_outputs(page):
        raise RuntimeError(f"{path.name}: {'; '.join(wrong)}")
    page.evaluate(SAVE)
    end_kernel(page)
    return {"wall": wall, "cpu": cpu, "first_picture": first, "n_bytes": copy.stat().st_size}


def first_picture(page: Page, notebook: dict[str, Any], begun: float) -> float | None:
    """Seconds until the first explorer's picture stands in the page; None where a lesson has none."""
    cells, places = notebook["cells"], explorers(notebook)
    if not places:
        return None
    texts = ["".join(cell["source"]) if cell["cell_type"] == "code" else "" for cell in cells]
    page.evaluate(RUN_CELLS, sorted({*setup_cells(notebook), *needed(texts, places[0])}))
    if not page.evaluate(PAINTED):
        raise RuntimeError("the first explorer has drawn nothing")
    return time.perf_counter() - begun


def setup_cells(notebook: dict[str, Any]) -> list[int]:
    """Where the setup cell is."""
    return [n for n, cell in enumerate(notebook["cells"]) if "setup" in cell["metadata"].get("tags", ())]


def explorers(notebook: dict[str, Any]) -> list[int]:
    """Places of the cells that end in an explorer's call."""
    return list(_explorers(notebook["cells"]))


def _explorers(cells: Sequence[dict[str, Any]]) -> Iterator[int]:
    """A lesson's own `run = mtf.simulate(plan)` is no explorer, though it has the name of one."""
    named = re.compile(rf"^({'|'.join({one.explorer for one in SUBJECTS.values()})})\(", re.MULTILINE)
    own: set[str] = set()
    for place, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            text = "".join(cell["source"])
            own |= assigned(ast.parse(text))
            if set(named.findall(text)) - own:
                yield place
