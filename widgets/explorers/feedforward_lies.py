"""Where the chosen layout's tensors lie, as facts for the slices, and the totals beside its steps.

    >>> [tensor["name"] for tensor in lying("ws2d", Layer(18432, 73728), (4, 4, 4))]
    ['x rests', 'x used', 'W_in rests', 'W_in used', 'hidden used', 'W_out used']

Batch and length are drawn as one dimension of tokens. Next file to read: `feedforward`.
"""

from __future__ import annotations

from html import escape

import mtfcore as mtf
from mtfcore.model.serving import FEEDFORWARD
from widgets.figures.feedforward import Layer, Mesh3
from widgets.figures.program import Facts, why
from widgets.figures.program_html import traffic_html
from widgets.figures.slices import facts
from widgets.numbers import origin, quantity, tagged_html

SHOWN = {
    "x rests": "residual", "x used": "x", "W_in rests": "stored", "W_in used": "w_in",
    "hidden used": "h", "W_out used": "w_out",
}  # fmt: skip


def lying(layout: str, layer: Layer, mesh: Mesh3) -> list[Facts]:
    """The tensors of a layer, between layers and while they are multiplied."""
    grid = mtf.Mesh("x:{} y:{} z:{}".format(*mesh))
    sites, sizes = FEEDFORWARD[layout].sites, {"tokens": layer.tokens, "E": layer.d_model, "F": layer.d_ff}
    narrow = "i8" if layer.weights == "int8" else "bf16"
    return [facts(_flat(sites[site], sizes), grid, narrow if name.startswith("W") else "bf16", name)
            for name, site in SHOWN.items()]  # fmt: skip


def _flat(text: str, sizes: dict[str, int]) -> mtf.Sharding:
    """`B:x L E:yz` as `tokens:x E:yz`, with its sizes."""
    where = text.replace("B", "tokens", 1).replace(" L", "", 1) if text.startswith("B") else text
    names = [item.partition(":")[0] for item in where.split()]
    return mtf.Sharding(" ".join(f"{name}:{sizes[name]}" for name in names), where)


def totals_html(program: Facts, at: int) -> str:
    """Bytes by axis, what a device does in all, and why the chosen step is there."""
    totals = program["totals"]
    words = [
        f"{totals['steps']} steps, {totals['collectives']} collectives",
        origin(
            f"computes {quantity(totals['flops'], 'FLOP')}, holds at most {quantity(totals['held'], 'iB')}", "modelled"
        ),
    ]
    lines = "".join(f"<div>{tagged_html(each)}</div>" for each in words)
    reason = tagged_html(why(program["steps"], at)) if program["steps"] else ""
    title = escape(program["name"])
    return f'{traffic_html(program)}<div><b>{title}</b></div>{lines}<div class="mw-differ"><br>{reason}</div>'
