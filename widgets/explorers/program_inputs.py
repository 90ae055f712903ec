"""What the program explorer asks: its settings and their controls.

    >>> [control.name for control in controls(START, ())][:3]
    ['fn', 'dtype', 'search']

Next file to read: `planned`.
"""

from __future__ import annotations

from collections.abc import Iterable

import mtfcore as mtf
from mtfcore.dims import parse_dims
from widgets.controls import Choice, Control, IntBox, TextBox
from widgets.explorers.examples import EXAMPLES
from widgets.explorers.mesh_controls import axis_boxes
from widgets.state import State

START: State = {
    "fn": "two_layers", **EXAMPLES["two_layers"].settings, "dtype": "f32", "search": False, "step": 0, "device": 0
}  # fmt: skip
MOST_DEVICES = 512
MENU_DTYPES = ("f32", "bf16", "f16", "i32", "i8")  # any other can be given in the call


def controls(state: State, own: Iterable[str]) -> list[Control]:
    """All of them; `own` are the names of the reader's functions."""
    mesh, dims = mtf.Mesh(state["mesh"]), parse_dims(state["sizes"])
    menu = {name: each.words for name, each in EXAMPLES.items()} | {name: name for name in own}
    dtypes = dict.fromkeys((*MENU_DTYPES, state["dtype"]))
    yes_no = (("default", "default choice"), ("search", "free search"))
    return [
        Choice("fn", state["fn"], "function", "Function", options=tuple(menu.items())),
        Choice("dtype", state["dtype"], "type", "Function", options=tuple((name, name) for name in dtypes)),
        Choice("search", yes_no[state["search"]][0], "steps", "Function", options=yes_no,
               hint="the default moves only axes in conflict; free search may move every axis"),
        TextBox("mesh", state["mesh"], "axes", "Mesh", "names and sizes, e.g. rows:4 cols:2"),
        *axis_boxes(mesh, MOST_DEVICES),
        TextBox("sizes", state["sizes"], "sizes", "Dimensions", "names and sizes, e.g. batch:64 io:512"),
        *(IntBox(f"size.{d.name}", d.size or 1, d.name, "Dimensions", high=1 << 18) for d in dims),
        TextBox("layout", state["layout"], "layout", "Where", "rules, e.g. batch:rows hidden:cols"),
        TextBox("place", state["place"], "inputs at", "Where", "instead of the layout, e.g. x: B L E:x", wide=True),
    ]  # fmt: skip
