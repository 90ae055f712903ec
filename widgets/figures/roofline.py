"""Facts for the roofline explorer: where each step of a layer lies, and what it waits for.

    >>> step = {"name": "x W_in", "flops": 2e9, "hbm_bytes": 1e8, "compute": 7e-6, "hbm": 8e-5, "seconds": 8e-5, ...}
    >>> place(step, {"peak": 2.75e14, "hbm": 1.2e12, "link": 4.5e10})
    {'intensity': 20.0, 'rate': 2.5e13, 'bound': 'hbm', ...}

A local step lies at its FLOPs for each byte of HBM, as high as its FLOPs a second; the roof is the lesser of the peak
and what memory can feed (Williams, Waterman and Patterson, "Roofline", 2009). Collectives compute nothing: they have
no place under the roof and stand in the strip of time alone, and all of a layer's FLOPs for each byte sent is a point
of its own. Everything is modelled. Next file to read: `roofline_svg`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Facts = dict[str, Any]
BOUNDS = ("compute", "hbm", "link", "hops", "launch")
WORDS = {"compute": "computing", "hbm": "HBM", "link": "links", "hops": "hops", "launch": "starting"}


def place(step: Mapping[str, Any], roof: Mapping[str, float]) -> Facts:
    """A step with its place: intensity, rate, what it waits for, and how near the roof it comes."""
    bound = max(BOUNDS, key=lambda part: step.get(part, 0.0))
    seconds, flops, n_bytes = step["seconds"], step["flops"], step["hbm_bytes"]
    intensity = math.inf if not n_bytes else flops / n_bytes
    rate = flops / seconds if seconds else 0.0
    ceiling = min(roof["peak"], intensity * roof["hbm"])
    return {
        **step, "bound": bound, "intensity": intensity, "rate": rate,
        "is_local": bool(flops) and not step["is_collective"],
        "share_of_roof": rate / ceiling if ceiling else 0.0,
    }  # fmt: skip


def side(phase: str, steps: Sequence[Mapping[str, Any]], roof: Mapping[str, float], **about: Any) -> Facts:
    """One phase: its steps in order with their places, seconds by what they wait for, and the layer as a whole."""
    placed = [place(step, roof) | {"number": n} for n, step in enumerate(steps, 1)]
    waits = {bound: sum(step["seconds"] for step in placed if step["bound"] == bound) for bound in BOUNDS}
    flops, sent = sum(s["flops"] for s in placed), sum(s["link_bytes"] for s in placed)
    read, seconds = sum(s["hbm_bytes"] for s in placed), sum(s["seconds"] for s in placed)
    whole = {
        "flops": flops, "hbm_bytes": read, "link_bytes": sent, "seconds": seconds,
        "intensity": flops / read if read else math.inf, "link_intensity": flops / sent if sent else math.inf,
        "rate": flops / seconds if seconds else 0.0, "link_seconds": sum(s.get("link", 0.0) for s in placed),
    }  # fmt: skip
    return {"phase": phase, "steps": placed, "waits": waits, "layer": whole, **about}


def ridge(roof: Mapping[str, float]) -> float:
    """FLOPs a byte at which computing and reading take equally long."""
    return roof["peak"] / roof["hbm"]


def chosen(facts: Facts, name: str) -> tuple[str, Facts] | None:
    """The step that a name such as `decode:3` points at."""
    phase, _, number = name.partition(":")
    found = [step for step in facts.get(phase, {}).get("steps", ()) if str(step["number"]) == number]
    return (phase, found[0]) if found else None
