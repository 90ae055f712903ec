"""From a moved slider to the drawn picture, in a real browser; and what our plot view costs beside FigureWidget.

Times are taken in the page by its own clock: from the input event until the new picture is in the document, and
until the frame after it has been painted. A timed test would fail on a busy computer; this only prints.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from mtfcore.numbers import format_bytes, format_seconds

from .pairs import Spread, report

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "browser")]

MOVES, DRAGS = 20, 5
MESHES = {8: "x:2 y:2 z:2", 64: "x:4 y:4 z:4", 512: "x:8 y:8 z:8"}
SLICES = """from widgets import slices
e = slices("B:64 E:4096 F:16384", {mesh!r}, "B:x F:zy", tensors="x: B E; w: E F; h: B F")
e"""

# → [milliseconds to the document, milliseconds to paint] of each move
MOVE = """async n => {
  const slider = document.querySelector("[data-control='size.E'] input[type=range]");
  const root = document.querySelector('.mw-slices'), found = [];
  for (let k = 0; k < n; k++) {
    await new Promise(done => setTimeout(done, 150));
    const drawn = new Promise(done => {
      const watch = new MutationObserver(() => { watch.disconnect(); done(performance.now()); });
      watch.observe(root, { attributes: true, attributeFilter: ['data-number'] });
    });
    const begun = performance.now();
    slider.value = 8 + k % 5;
    slider.dispatchEvent(new Event('input'));
    const there = await drawn - begun;
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    found.push([there, performance.now() - begun]);
  }
  return found;
}"""

# → milliseconds from the release of a drag of 40 values in a second to the last value's picture
DRAG = """async last => {
  const slider = document.querySelector("[data-control='size.E'] input[type=range]");
  const held = () => document.querySelector(".mw-slices [data-tensor=x]").dataset.local.split(',')[1];
  for (let k = 0; k < 40; k++) {
    slider.value = 8 + k % 4;
    slider.dispatchEvent(new Event('input'));
    await new Promise(done => setTimeout(done, 25));
  }
  slider.value = last;
  slider.dispatchEvent(new Event('input'));
  slider.dispatchEvent(new Event('change'));
  const begun = performance.now();
  while (held() !== String(2 ** last)) await new Promise(requestAnimationFrame);
  return performance.now() - begun;
}"""

# → milliseconds from a moved control until every picture has changed and the frame after that is painted
ANY_MOVE = """async ([control, pictures, low, n]) => {
  const slider = document.querySelector(control), found = [];
  for (let k = 0; k < n; k++) {
    await new Promise(done => setTimeout(done, 400));
    const drawn = [...document.querySelectorAll(pictures)].map(root => new Promise(done => {
      const watch = new MutationObserver(() => { watch.disconnect(); done(); });
      watch.observe(root, { attributes: true, childList: true, characterData: true, subtree: true });
    }));
    const begun = performance.now();
    slider.value = low + k % 3;
    slider.dispatchEvent(new Event('input'));
    await Promise.all(drawn);
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    found.push(performance.now() - begun);
  }
  return found;
}"""

EXPLORERS = {  # the cell, the control that moves from a value upward, the pictures that must all follow
    "layouts, four charts": (
        "from widgets import layouts\ne = layouts()\ne", "[data-control=batch] input[type=range]", ".js-plotly-plot", 9
    ),
    "traffic, hops of 64 devices": (
        "from widgets import traffic\ne = traffic(mesh='x:4 y:4 z:4')\ne", ".mw-live .mw-hop-bar input[type=range]",
        ".mw-live .mw-hop-stage svg", 1,
    ),
    "planner, answers and four charts": (
        "from widgets import planner\ne = planner()\ne.queue.join(120)\ne", "[data-control=batch] input[type=range]",
        ".mw-live.mw-picks", 4,
    ),
    "frontier, six lines in two charts": (
        "from widgets import frontier\ne = frontier(most_chips=64)\ne.queue.join(120)\ne",
        "[data-control=most_batch] input[type=range]", ".mw-live.mw-picks", 6,
    ),
    "roofline, two charts": (
        "from widgets import roofline\ne = roofline()\ne", "[data-control=batch] input[type=range]",
        ".mw-live.mw-picks", 5,
    ),
}  # fmt: skip

CHARTS = {
    "our PlotView": "from widgets import PlotView\ncharts = [PlotView(figure) for _ in range({n})]",
    "plotly's FigureWidget": "from plotly.graph_objects import FigureWidget\n"
    "charts = [FigureWidget(figure) for _ in range({n})]",
}
FIGURE = 'figure = {"data": [{"type": "bar", "x": ["x", "y"], "y": [1, 2]}], "layout": {"height": 200}}'
STATE = "import json; print(sum(len(json.dumps(chart.get_state(), default=str)) for chart in charts))"
RUN_CHARTS = """async n => {
  const begun = performance.now();
  await window.jupyterapp.commands.execute('notebook:run-all-cells');
  while (document.querySelectorAll('.main-svg .bars path, .main-svg .point path').length < 2 * n)
    await new Promise(requestAnimationFrame);
  return (performance.now() - begun) / 1000;
}"""


@contextmanager
def pages() -> Iterator[object]:
    """A way to open a notebook with given cells in a new page; one JupyterLab and one browser for all."""
    from explorer_page import write_notebook
    from playwright.sync_api import sync_playwright

    from lab_browser import find_browser, launch, open_notebook, wait_ready
    from lab_server import lab_server

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        root, state = pathlib.Path(folder, "notebooks"), pathlib.Path(folder, "state")
        root.mkdir(), state.mkdir()
        browser = launch(playwright, find_browser())
        with lab_server(root, state, environment={"PYTHONPATH": str(ROOT)}) as lab:

            def open_page(name: str, *cells: str) -> object:
                write_notebook(root / name, *cells)
                page = browser.new_page(viewport={"width": 1300, "height": 1000})
                open_notebook(page, lab, name)
                wait_ready(page)
                return page

            yield open_page
        browser.close()


def slider(open_page) -> None:
    """The two numbers that issue the explorers' feel."""
    from lab_browser import run_all, wait_done

    for devices, mesh in MESHES.items():
        page = open_page(f"slices_{devices}.ipynb", SLICES.format(mesh=mesh))
        run_all(page)
        wait_done(page)
        page.wait_for_selector(".mw-slices svg")
        page.evaluate(MOVE, 3)
        moves = page.evaluate(MOVE, MOVES)
        for what, place in (("document", 0), ("paint", 1)):
            spread = Spread.of(move[place] / 1e3 for move in moves)
            report(f"slider to {what}, {devices} devices", spread.seconds(), "median under 100 ms at 64 devices")
        settled = Spread.of(page.evaluate(DRAG, 12 - n % 2) / 1e3 for n in range(DRAGS))
        report(f"40 values in a second, then settled, {devices} devices", settled.seconds(), "within 600 ms")
        page.close()


def explorers(open_page) -> None:
    """The same for explorers with other pictures."""
    from lab_browser import run_all, wait_done

    for number, (what, (cell, control, pictures, low)) in enumerate(EXPLORERS.items()):
        page = open_page(f"explorer_{number}.ipynb", cell)
        run_all(page)
        wait_done(page)
        page.wait_for_selector(pictures)
        page.wait_for_timeout(1500)  # the first pictures
        page.evaluate(ANY_MOVE, [control, pictures, low, 3])
        moves = Spread.of(each / 1e3 for each in page.evaluate(ANY_MOVE, [control, pictures, low, MOVES]))
        report(f"slider to paint, {what}", moves.seconds(), "median under 100 ms")
        page.close()


def charts(open_page) -> None:
    """First draw and data of n charts, ours and FigureWidget."""
    from explorer_page import ASK

    for n in (1, 4):
        for what, source in CHARTS.items():
            cell = f"{FIGURE}\n{source.format(n=n)}\nimport ipywidgets\nipywidgets.VBox(charts)"
            page = open_page(f"charts_{n}_{what[:3]}.ipynb", cell)
            seconds = page.evaluate(RUN_CHARTS, n)
            size = int(page.evaluate(ASK, STATE))
            found = f"{format_seconds(seconds)}, {format_bytes(size, decimal=True)} of widget state"
            report(f"{n} × {what}: Run to drawn", found, "well under FigureWidget's")
            page.close()


def main() -> None:
    with pages() as open_page:
        slider(open_page)
        explorers(open_page)
        charts(open_page)


if __name__ == "__main__":
    main()
