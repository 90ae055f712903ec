"""A plotly chart that moves with a slider: the bundle once a page, then only figure JSON.

    view = PlotView()
    view.show({"data": [{"type": "scatter", "x": [1, 2], "y": [3, 4]}], "layout": {"title": {"text": "bytes"}}})

`show` takes a dictionary or a `go.Figure`. The first view of a page asks the kernel for plotly's own bundle, which it
gets compressed over the widget's channel (no address is fetched, nothing is saved in the notebook); all charts of the
page share it. Text colour follows the theme, which static charts cannot do. Plotly's Python is not needed, nor its
seconds of imports. Without a kernel `still_charts` stands in its place, drawn by us (`figures/chart_svg`).

Measured by `python -m tests.benchmarks charts` (JupyterLab 4.6.6, plotly 7.1.0, Chromium, two cores that were busy
besides): from Run All to four charts drawn 3.6 s and 20 kB of widget state, with the bundle sent once as 1.5 MB;
four `FigureWidget`s took 25.6 s and 20.3 MB, since each carries the bundle. Next file to read: `../static`.
"""

from __future__ import annotations

import functools
import gzip
import importlib.resources
import pathlib
from collections.abc import Iterable
from typing import Any

import anywidget
import traitlets as t

from widgets.figures.chart_svg import Facts, chart_svg
from widgets.figures.svg import tag
from widgets.theme import GROUND, INK, plotly_template

HERE = pathlib.Path(__file__).parent


@functools.cache
def bundle() -> bytes:
    """Plotly's JavaScript from the installed package, gzipped; plotly's Python is not imported for it."""
    source = importlib.resources.files("plotly.package_data") / "plotly.min.js"
    return gzip.compress(source.read_bytes(), compresslevel=6)


class PlotView(anywidget.AnyWidget):
    """`figure` goes to the page; `height` in pixels stays fixed."""

    _esm = HERE / "plot_view.js"
    figure = t.Dict({}).tag(sync=True)
    height = t.Int(320).tag(sync=True)
    label = t.Unicode("chart").tag(sync=True)

    def __init__(self, figure: Any = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.on_msg(self._answer)
        if figure is not None:
            self.show(figure)

    def show(self, figure: Any) -> None:
        """Draw this figure; one message."""
        plain = figure if isinstance(figure, dict) else figure.to_plotly_json()
        layout = {"template": plotly_template(), **plain.get("layout", {})}
        self.figure = {"data": list(plain.get("data", ())), "layout": layout}

    def _answer(self, widget: Any, content: Any, buffers: Any) -> None:
        if content.get("want") == "plotly":
            self.send({"plotly": True}, [bundle()])


def still_charts(figures: Iterable[Facts]) -> str:
    """Charts as plain HTML, live in a `PictureView` or for a page without a kernel; they wrap."""
    drawn = (chart_svg(figure, 420.0, 240.0) for figure in figures)
    slots = "".join(f'<div style="flex:1 1 400px;max-width:560px">{chart}</div>' for chart in drawn)
    return f'<style>.mw-chart{{width:100%;height:auto}}</style><div style="display:flex;flex-wrap:wrap">{slots}</div>'


def saved_charts(figures: Iterable[Facts], width: float = 480.0, height: float = 260.0) -> str:
    """The same charts as one SVG file, two in a row."""
    places = [(n % 2 * width, n // 2 * height, figure) for n, figure in enumerate(figures)]
    inside = (tag("g", chart_svg(figure, width, height), transform=f"translate({x} {y})") for x, y, figure in places)
    size = {"width": width * min(len(places), 2), "height": height * -(-len(places) // 2)}
    return tag("svg", tag("rect", **size, fill=GROUND), *inside, **size, color=INK, xmlns="http://www.w3.org/2000/svg")
