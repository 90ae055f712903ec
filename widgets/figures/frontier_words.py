"""What the frontier explorer says: the two ends of the lines, the chosen plan, a published point; the table.

    >>> sentence(facts)[:56]
    'Soonest: palm-8b int8 v4 on 16 chips, batch 1: 1.9 ms a'

Next file to read: `roofline`.
"""

from __future__ import annotations

from collections.abc import Iterator

from widgets.figures.frontier import AT, PHASES, Facts
from widgets.numbers import count, origin, quantity


def sentence(facts: Facts) -> str:
    """Where a token comes soonest, where it costs least; or the chosen plan."""
    said = [*_chosen(facts), *(_ends(facts) if facts["points"] else [_nothing(facts)])]
    if facts["points"] and facts["n_waiting"]:
        said.append(f"So far: {count(facts['n_waiting'], 'slice')} to go.")
    return " ".join(said)


def _nothing(facts: Facts) -> str:
    if facts["n_waiting"]:
        return f"Looking at {count(facts['n_waiting'], 'slice')} at every batch."
    if not facts["n_slices"]:
        return "No slice that is allowed holds the weights in its memory: more chips, or int8 weights, may."
    return f"None of {count(facts['n_trials'], 'plan')} fits in memory: more chips, or int8 weights, may."


def _ends(facts: Facts) -> Iterator[str]:
    biggest = facts["models"][0]
    own = [point for point in facts["points"] if point["model"] == biggest and point["fits_in"]["decode"]]
    if not own:
        yield f"No plan of {biggest} fits{' of those looked at' if facts['n_waiting'] else ''}."
        return
    soon = min(own, key=lambda point: (point["step"], point["chip_seconds"]))
    cheap = min(own, key=lambda point: (point["chip_seconds"], point["step"]))
    yield f"{biggest}, soonest: {_one(soon)}. Cheapest: {_one(cheap)}."
    ratio, slower = soon["chip_seconds"] / cheap["chip_seconds"], cheap["step"] / soon["step"]
    if slower > 1:
        words = origin(f"{quantity(slower)} times as long and is {quantity(ratio)} times cheaper", "modelled")
        yield f"From end to end a token takes {words}: batch shares the weights' bytes."


def _one(point: Facts) -> str:
    cost = quantity(point["chip_seconds"], "s").replace(" ", " chip-")
    numbers = origin(f"{quantity(point['step'], 's')}, {cost}", "modelled")
    return f"{point['topology']}, batch {point['batch']:,}, {point['weights']}, {numbers}"


def _chosen(facts: Facts) -> Iterator[str]:
    if found := facts.get("against"):
        error = 100 * (found["seconds"] / found["published"]["seconds"] - 1)
        printed = origin(quantity(found["published"]["seconds"], "s"), "published")
        ours = origin(f"{quantity(found['seconds'], 's')}, {error:+.1f} %", "modelled")
        yield f"{found['published']['where']}: {printed}; our plan of the same takes {ours}. The planner has it."
        return
    for point in facts["points"]:
        if point["key"] == facts["chosen"]:
            yield f"Chosen: {point['model']} on {_one(point)}. The planner has it."


def table(facts: Facts) -> list[tuple[str, ...]]:
    """The lines' plans, and what was published."""
    head = ("phase", "series", "slice", "batch", "lies as", "time", "cost a token")
    return [head, *_plans(facts), *_printed(facts)]


def _plans(facts: Facts) -> Iterator[tuple[str, ...]]:
    for phase in PHASES:
        x, y = AT[phase]
        for line in facts["lines"][phase]:
            for n in line["at"]:
                point = facts["points"][n]
                cost = quantity(point[y], "s").replace(" ", " chip-")
                yield (phase, line["name"], point["topology"], f"{point['batch']:,}", point["layouts"][phase],
                       origin(quantity(point[x], "s"), "modelled"), origin(cost, "modelled"))  # fmt: skip


def _printed(facts: Facts) -> Iterator[tuple[str, ...]]:
    for point in facts["published"]:
        cost = quantity(point["chip_seconds"], "s").replace(" ", " chip-")
        yield (point["phase"], point["where"], point["topology"], f"{point['batch']:,}", point["partition"],
               origin(quantity(point["seconds"], "s"), "published"), origin(cost, "published"))  # fmt: skip
