"""Table 1 of the paper beside ours, and the settings that each of its rows stands for.

    >>> table_1()[4]["printed"], table_1()[4]["ours"]
    ('43,000', 42653)

Longest contexts on 64 TPU v4, 30 % of whose memory is the cache's. Source: arXiv 2211.05102, Table 1. Next file to
read: `attention`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import mtfcore as mtf
from mtfcore.costs.serving_memory.memory_limits import longest_context
from mtfcore.reference import rows
from widgets.explorers import plan_inputs
from widgets.explorers.attention_inputs import START
from widgets.explorers.attention_program import FFN
from widgets.state import State

Facts = dict[str, Any]
MESH = "x:4 y:4 z:4"  # of the grid that the row assumes


@cache
def table_1() -> tuple[Facts, ...]:
    """Each row: name, batch, what is printed, ours, and the settings."""
    found = []
    for row in rows(table="Table 1", quantity="context"):
        setup = row.setup
        settings: State = {
            "model": plan_inputs.model_text(setup["model"], dict(setup["changes"])), "mesh": MESH, "room": "table",
            "chip": mtf.topology(setup["topology"]).chip.name, "batch": setup["batch"], "by": setup["attention"],
            "cache": setup["cache"],
        }  # fmt: skip
        ours = _ours(settings, setup["cache_share"])
        found.append({"name": row.name.partition(",")[0], "batch": setup["batch"], "printed": row.printed,
                      "value": row.value, "ours": ours, "settings": settings})  # fmt: skip
    return tuple(found)


def _ours(settings: State, share: float) -> int:
    cfg, capacity = plan_inputs.read_model(settings["model"]), mtf.chip(settings["chip"]).hbm_bytes_per_device
    return longest_context(cfg, (4, 4, 4), capacity=capacity, cache_share=share, batch=settings["batch"], ffn=FFN,
                           attention=settings["by"])  # fmt: skip


def published_here(state: State) -> list[tuple[int, str, float]]:
    """(batch, name, tokens) of the rows that belong to these settings, whatever the batch and the way."""
    same = ("model", "mesh", "room", "chip", "cache")
    return [(row["batch"], row["name"], row["value"]) for row in table_1()
            if all(row["settings"][name] == state[name] for name in same)]  # fmt: skip


def settings_of(number: int) -> State:
    """What a row of the table loads; the context is the row's own."""
    row = table_1()[number]
    return {**START, **row["settings"], "context": int(row["value"])}
