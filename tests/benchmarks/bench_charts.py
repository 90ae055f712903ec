"""What our plot view costs beside plotly's own FigureWidget, in a real browser: first draw, and data for the page.

How soon pictures follow a slider is measured by `python -m tests.benchmarks.in_browser` (`make speed`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mtfcore.numbers import format_bytes, format_seconds

from .in_browser.pages import ask, browser_and_lab
from .pairs import report

CHARTS = {
    "our PlotView": "from widgets import PlotView\ncharts = [PlotView(figure) for _ in range({n})]",
    "plotly's FigureWidget": "from plotly.graph_objects import FigureWidget\n"
    "charts = [FigureWidget(figure) for _ in range({n})]",
}
FIGURE = 'figure = {"data": [{"type": "bar", "x": ["x", "y"], "y": [1, 2]}], "layout": {"height": 200}}'
STATE = "sum(len(__import__('json').dumps(chart.get_state(), default=str)) for chart in charts)"
RUN_CHARTS = """async n => {
  const begun = performance.now();
  await window.jupyterapp.commands.execute('notebook:run-all-cells');
  while (document.querySelectorAll('.main-svg .bars path, .main-svg .point path').length < 2 * n)
    await new Promise(requestAnimationFrame);
  return (performance.now() - begun) / 1000;
}"""


def charts(open_page: Callable[..., Any]) -> None:
    """First draw and data of n charts, ours and FigureWidget."""
    for n in (1, 4):
        for what, source in CHARTS.items():
            cell = f"{FIGURE}\n{source.format(n=n)}\nimport ipywidgets\nipywidgets.VBox(charts)"
            page = open_page(f"charts_{n}_{what[:3]}.ipynb", cell)
            seconds = page.evaluate(RUN_CHARTS, n)
            size = int(ask(page, STATE))
            found = f"{format_seconds(seconds)}, {format_bytes(size, decimal=True)} of widget state"
            report(f"{n} × {what}: Run to drawn", found, "well under FigureWidget's")
            page.close()


def main() -> None:
    with browser_and_lab() as open_page:
        charts(open_page)


if __name__ == "__main__":
    main()
