"""Facts for the frontier explorer: many plans as points, the line of the best, and what was published beside them.

    >>> facts = frontier_facts(trials, published, about)
    >>> facts["lines"][0]["name"], [facts["points"][n]["batch"] for n in facts["lines"][0]["at"]]
    ('palm-540b int8 v4', [1, 4, 16, 64, 256, 1024])

A plan is on the line if no other of its series answers sooner for as little or costs less and answers as soon
(Pareto). Decode goes by seconds a token, prefill by seconds of the whole prompt; both cost chip-seconds a token, as in
Figure 1 of "Efficiently Scaling Transformer Inference" (arXiv 2211.05102). Next file to read: `frontier_svg`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Facts = dict[str, Any]
PHASES = ("decode", "prefill")
AT = {"decode": ("step", "chip_seconds"), "prefill": ("prefill_seconds", "prefill_chip_seconds")}


def frontier_facts(trials: Sequence[Facts], published: Sequence[Facts], about: Mapping[str, Any]) -> Facts:
    """Points, their lines in both phases, and published points; each phase has those that fit in it."""
    fitting = (trial for trial in trials if any(trial["fits_in"].values()))
    points = [{**trial, "key": key(trial), "series": series(trial)} for trial in fitting]
    names = list(dict.fromkeys(point["series"] for point in points))
    lines = {phase: [_line(points, name, phase) for name in names] for phase in PHASES}
    return {
        "points": points, "lines": lines, "published": list(published), "n_trials": len(trials),
        "series": names, **about,
    }  # fmt: skip


def series(trial: Mapping[str, Any]) -> str:
    """What is compared on one line."""
    return f"{trial['model']} {trial['weights']} {trial['chip']}"


def key(point: Mapping[str, Any]) -> str:
    """A point's name, which `read_key` reads back."""
    return f"{point['model']} | {point['weights']} | {point['topology']} | {point['batch']}"


def read_key(text: str) -> dict[str, Any]:
    """Model, weights, slice and batch of a point's name; nothing where it is none."""
    parts = [part.strip() for part in text.split("|")]
    if len(parts) != 4 or not parts[3].isdecimal():
        return {}
    return dict(zip(("model", "weights", "topology", "batch"), (*parts[:3], int(parts[3]))))


def _line(points: Sequence[Facts], name: str, phase: str) -> Facts:
    own = [n for n, point in enumerate(points) if point["series"] == name and point["fits_in"][phase]]
    x, y = AT[phase]
    return {"name": name, "at": pareto(own, lambda n: (points[n][x], points[n][y]))}


def pareto(members: Iterable[int], place: Any) -> list[int]:
    """Members that no other beats in both, by the first number."""
    found: list[int] = []
    for member in sorted(members, key=place):
        if not found or place(member)[1] < place(found[-1])[1]:
            found.append(member)
    return found


def published_points(rows: Iterable[Any], models: Sequence[str], lengths: tuple[int, int]) -> list[Facts]:
    """Published latencies of chosen models at these lengths, as points: seconds, chip-seconds a token, where."""
    found = []
    for row in rows:
        setup = row.setup
        phase = setup.get("phase")
        if phase not in PHASES or setup.get("model") not in models or not {"topology", "batch"} <= set(setup):
            continue
        tokens = setup["output_tokens"] if phase == "decode" else setup["input_tokens"]
        if (setup["input_tokens"], setup["output_tokens"] if phase == "decode" else lengths[1]) != lengths:
            continue
        found.append(_published(row, phase, tokens))
    return found


def _published(row: Any, phase: str, tokens: int) -> Facts:
    import mtfcore as mtf

    setup = row.setup
    whole = phase == "decode" and row.quantity != "step latency"
    seconds = row.seconds / tokens if whole else row.seconds
    chips = mtf.topology(setup["topology"]).chips
    changes = "".join(f" {name}={value}" for name, value in dict(setup.get("changes", {})).items())
    return {
        "phase": phase, "base": setup["model"], "model": setup["model"] + changes, "weights": setup["weights"],
        "topology": setup["topology"], "chips": chips, "chip": setup["topology"].partition(":")[0],
        "batch": setup["batch"], "seconds": seconds,
        "chip_seconds": chips * seconds / (setup["batch"] * (1 if phase == "decode" else tokens)),
        "where": f"{row.table}: {row.name}", "printed": f"{row.printed} {row.unit}".strip(),
        "partition": f"{setup['ffn']}-{setup['attention']}" if {"ffn", "attention"} <= set(setup) else "auto",
        "input_tokens": setup["input_tokens"], "output_tokens": setup.get("output_tokens", 1),
        "cache": setup.get("cache", "bf16"),
    }  # fmt: skip
