"""What the feedforward explorer says: which layout moves least, by how much, why, and what comes next; and the table.

    >>> sentence(layer_facts(Layer(18432, 73728, batch=512), (4, 4, 4)))[:60]
    '2D weight-stationary (ws2d) moves least for 512 tokens: 15.2'

Next file to read: `../explorers/feedforward`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mtfcore.costs.second_paper import devices_from_which_2d_wins
from widgets.figures.feedforward import Facts, next_crossing, winner_at
from widgets.figures.feedforward_svg import PARTS, crossing_words
from widgets.numbers import count, modelled, origin, quantity

TITLES = {
    "ws1d": "1D weight-stationary", "ws2d": "2D weight-stationary", "wg_x": "X-weight-gathered",
    "wg_xy": "XY-weight-gathered", "wg_xyz": "XYZ-weight-gathered",
}  # fmt: skip


def sentence(facts: Facts) -> str:
    """The winner and its lead, why, and where the next one takes over; of another choice, how far it is behind."""
    return " ".join([_winner(facts), *_other(facts), _why(facts), *_next(facts)])


def _row(facts: Facts, layout: str) -> Facts:
    return next(row for row in facts["rows"] if row["layout"] == layout)


def _winner(facts: Facts) -> str:
    best = _row(facts, facts["best"])
    head = f"{TITLES[best['layout']]} ({best['layout']}) moves least for {count(facts['tokens'], 'token')}"
    if facts["devices"] == 1:
        return "One device has nobody to send to, so all five layouts are the same."
    others = [row for row in facts["rows"] if row is not best and not row["reason"]]
    second = min(others, key=lambda row: row["n_bytes"], default=None)
    sent = f"{modelled(best['n_bytes'])} a device"
    if second is None:
        return f"{head}: {sent}; no other can cut {count(facts['batch'], 'sequence')}."
    if second["n_bytes"] <= best["n_bytes"] * (1 + 1e-9):
        return f"{head}: {sent}; {second['layout']} moves the same here."
    return f"{head}: {sent}; {second['layout']}, the next, moves {_times(second['n_bytes'] / best['n_bytes'])} that."


def _times(ratio: float) -> str:
    return f"{quantity(ratio)} times"


def _other(facts: Facts) -> Iterator[str]:
    """The pinned layout beside the best one."""
    if facts["chosen"] != facts["best"]:
        mine, best = _row(facts, facts["chosen"])["n_bytes"], _row(facts, facts["best"])["n_bytes"]
        behind = "as much" if mine <= best * (1 + 1e-9) else _times(mine / best) + " as much" if best else "more"
        yield f"Your {facts['chosen']} moves {modelled(mine)}, {behind}."


def _why(facts: Facts) -> str:
    """Activations against weights for the winner."""
    weights, x = quantity(facts["matrix_bytes"], "iB"), quantity(facts["x_bytes"], "iB")
    sizes = origin(f"x is {x} in all, the matrices {weights}", "modelled")
    many = count(facts["batch"], "sequence")
    best = facts["best"]
    if facts["devices"] == 1:
        return f"For the record: {sizes}."
    if best == "ws1d":
        enough = origin(f"4F/E = {quantity(devices_from_which_2d_wins(facts['d_model'], facts['d_ff']))}", "modelled")
        return f"Why: {sizes}, so weights stay; cutting E too pays from about {enough} devices on."
    if best == "ws2d":
        return f"Why: at {many} activations are cheaper to move than weights: {sizes}; and each moves only in part."
    if best == "wg_xyz":
        return f"Why: at {many} weights are cheaper to move than activations: {sizes}; and no activation moves at all."
    gathered = {"wg_x": facts["mesh"][0], "wg_xy": facts["mesh"][0] * facts["mesh"][1]}[best]
    return (
        f"Why: at {many} it pays to gather {gathered} of {facts['devices']} parts of the weights, for then only "
        f"1/{gathered} of the sequences move on each device: {sizes}."
    )


def _next(facts: Facts) -> Iterator[str]:
    later, would = next_crossing(facts), winner_at(facts, facts["tokens"])
    if needs := _row(facts, would)["reason"]:
        yield f"{would} would move less, but {needs}."
    elif later is not None and facts["devices"] > 1:
        begins = origin(crossing_words(facts, later["tokens"]), "modelled")
        yield f"{later['layout']} moves least from {begins} tokens on."


# ---- the table


def table(facts: Facts) -> list[tuple[str, ...]]:
    """Everything that the charts show, as text."""
    head = ("layout", "moves, one device", *(words for words, _ in PARTS.values()), "closed form", "times the best",
            "moves whatever the batch", "and for each token", "can be")  # fmt: skip
    rows = [head, *(_line(facts, row) for row in facts["rows"])]
    rows += [(each["layout"], f"moves least from {crossing_words(facts, each['tokens'])} tokens on", *[""] * 8)
             for each in facts["crossings"]]  # fmt: skip
    rows += [
        (
            p["layout"],
            origin(quantity(p["n_bytes"], "B"), "published"),
            f"{p['tokens']:,} tokens",
            p["where"],
            *[""] * 6,
        )
        for p in facts["published"]
    ]
    return rows


def _line(facts: Facts, row: Facts) -> tuple[str, ...]:
    best = _row(facts, facts["best"])["n_bytes"]
    fixed, each = row["line"] or (0.0, 0.0)
    lines = (modelled(fixed), modelled(each)) if row["line"] else ("-", "-")
    if row["reason"]:
        return (row["layout"], *["-"] * 6, *lines, row["reason"])
    times = quantity(row["n_bytes"] / best) if best else "1"
    parts = (modelled(row["parts"][part]) for part in PARTS)
    return (row["layout"], modelled(row["n_bytes"]), *parts, modelled(row["closed"]), times, *lines, "yes")
