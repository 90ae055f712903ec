"""How long pricing a planned program takes: the first time, again, and written as a table.

A whole step of a 540B model, a training step of a small Transformer, and the five operations of two layers.
"""

from __future__ import annotations

import mtfcore as mtf
from mtfcore.costs.first_paper.two_layers import ROWS, Sizes
from mtfcore.costs.first_paper.two_layers_programs import planned
from mtfcore.costs.links import permute_routes
from mtfcore.costs.pricing import asking

from .pairs import repeated, report

CACHES = (asking._asks, asking._works, permute_routes._route)


def programs() -> dict[str, tuple[mtf.Program, str]]:
    """Programs with the slices that they are priced on."""
    palm = mtf.model.config("palm-540b", heads=64)
    how = {"ffn": "ws2d", "attention": "batch", "batch": 512, "cached_tokens": 2048}
    loss = mtf.model.loss(mtf.model.config("mtf-lm-4.9b"))
    layout, sizes = mtf.model.read_layout("mtf-2d"), "B:256 L:256"
    return {
        "decode of 540B": (mtf.model.plan_phase(palm, "decode", "x:4 y:4 z:4", **how), "v4:4x4x4"),
        "loss of 4.9B": (mtf.plan(loss, "rows:16 cols:32", layout, sizes=sizes, dtype="bf16"), "v2:16x16"),
        "two layers": (planned(ROWS["batch:rows hidden:cols"], Sizes(8192, 4096, 131072), 16, 32), "v2:16x16"),
    }


def forget() -> None:
    """Know nothing of any program."""
    for cache in CACHES:
        cache.cache_clear()


def main() -> None:
    """Print the times of each."""
    for name, (prog, where) in programs().items():
        cost = mtf.price(prog, where)
        about = f"{name}, {len(cost.steps)} steps"
        price = lambda p=prog, w=where: mtf.price(p, w)  # noqa: E731
        report(f"{about}, first", repeated(price, 20, before=forget).seconds(), "5 ms")
        report("the same again", repeated(price, 50).seconds(), "1 ms")
        report("its table", repeated(lambda c=cost: str(c), 20).seconds(), "20 ms")
