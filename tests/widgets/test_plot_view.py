"""The plot view without a page: one message a figure, one bundle for all."""

from __future__ import annotations

import gzip
import json

from widgets.theme import plotly_template
from widgets.views.plot_view import PlotView, bundle

FIGURE = {"data": [{"type": "bar", "x": ["x"], "y": [3]}], "layout": {"title": {"text": "bytes"}}}


def test_a_figure_carries_the_template_and_nothing_of_plotly():
    view = PlotView(FIGURE)
    assert view.figure["layout"]["template"] == plotly_template()
    assert len(json.dumps(view.get_state(), default=str)) < 10_000


def test_a_layout_may_bring_its_own_template():
    assert PlotView({"data": [], "layout": {"template": {}}}).figure["layout"]["template"] == {}


def test_six_changes_of_data_are_one_message():
    """12 messages elsewhere."""
    view, pushed = PlotView(FIGURE), []
    view.observe(pushed.append, "figure")
    view.show({"data": [{"type": "scatter", "x": [n], "y": [n]} for n in range(6)], "layout": {}})
    assert len(pushed) == 1


def test_the_bundle_is_plotlys_own_and_goes_out_only_when_asked():
    assert b"Plotly" in gzip.decompress(bundle())[-300_000:] or b"plotly.js" in gzip.decompress(bundle())[:300]
    view, sent = PlotView(FIGURE), []
    view.send = lambda content, buffers: sent.append((content, buffers))
    view._answer(view, {"want": "something else"}, [])
    view._answer(view, {"want": "plotly"}, [])
    assert sent == [({"plotly": True}, [bundle()])] and 1e6 < len(bundle()) < 2e6


def test_go_figures_are_taken_too():
    import plotly.graph_objects as go

    view = PlotView(go.Figure(data=[go.Bar(x=["x"], y=[3])], layout={"title": {"text": "bytes"}}))
    assert view.figure["data"][0]["type"] == "bar" and view.figure["layout"]["title"]["text"] == "bytes"
