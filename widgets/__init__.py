"""What a lesson shows and what a student moves: explorers, the frame they share, and their views.

    from widgets import slices
    slices(dims="batch:64 io:512 hidden:2048", mesh="rows:4 cols:2", layout="batch:rows hidden:cols")

Write `from widgets import …`, since `import widgets` and `import ipywidgets as widgets` collide. Nothing here
loads JAX; running is done by an object of `mtfcore`, fetched when a button is pressed. Names are loaded when
first asked for, so `import widgets` alone costs next to nothing; the first explorer costs ipywidgets and
anywidget. Next file to read: `frame`, the shell every explorer shares.
"""

from __future__ import annotations

import importlib

# public name -> the module that defines it, in lesson order
_HOME = {
    "slices": "widgets.explorers.slices",
    "program": "widgets.explorers.program",
    "traffic": "widgets.explorers.traffic",
    "layouts": "widgets.explorers.layouts",
    "iteration_space": "widgets.explorers.iteration_space",
    "planner": "widgets.explorers.planner",
    "frontier": "widgets.explorers.frontier",
    "roofline": "widgets.explorers.roofline",
    "feedforward": "widgets.explorers.feedforward",
    "attention": "widgets.explorers.attention",
    "generate": "widgets.explorers.generate",
    "run": "widgets.explorers.run",
    "timeline": "widgets.explorers.timeline",
    "Frame": "widgets.frame",
    "Shown": "widgets.frame",
    "Refused": "widgets.frame",
    "Offer": "widgets.frame",
    "IntBox": "widgets.controls",
    "Choice": "widgets.controls",
    "TextBox": "widgets.controls",
    "RunQueue": "widgets.queue",
    "SlicesView": "widgets.views.slices_view",
    "PlotView": "widgets.views.plot_view",
    "LossCurve": "widgets.loss_curve",
    "predict": "widgets.learning",
    "check": "widgets.learning",
    "progress": "widgets.learning.progress_view",
    "classroom": "widgets.learning.classroom",
}

__all__ = list(_HOME)
EXPLORERS = tuple(name for name, home in _HOME.items() if home.startswith("widgets.explorers."))


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'widgets' has no attribute {name!r}; it has {', '.join(__all__)}")
    found = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
