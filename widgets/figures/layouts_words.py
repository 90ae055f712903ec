"""What the layouts explorer says: which layout is best and why, where memory runs out, and the table.

    >>> sentence(facts)[:60]
    'Best of the five: batch:rows hidden:cols io:planes. A step ta'

Next file to read: `../explorers/layouts`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mtfcore.numbers import count
from widgets.figures.layouts import Facts, runs_out
from widgets.numbers import origin, quantity

WIDER = {
    "batch": ("a larger batch", "rows"),
    "hidden": ("a wider hidden layer", "cols"),
    "io": ("a wider io", "planes"),
}


def sentence(facts: Facts) -> str:
    """One layout, its reason, and what does not fit."""
    return " ".join([_best(facts), *_memory(facts), *_growth(facts)])


def _best(facts: Facts) -> str:
    if facts["best"] is None:
        return "No layout of the five fits."
    row = facts["rows"][facts["best"]]
    seconds, share = quantity(row["seconds"], "s"), quantity(100 * row["efficiency"])
    takes = origin(f"{seconds}, {share} % of it computing", "modelled")
    return f"Best of the five: {row['layout'] or 'none'}. A step takes {takes}. {_why(facts, row)}"


def _why(facts: Facts, best: Facts) -> str:
    """Against the next best: equal, or which term of the ratio makes the difference."""
    others = [facts["rows"][n] for n in facts["possible"] if n != facts["best"]]
    if facts["devices"] == 1:
        return "One device has nobody to send to, so all five are the same."
    if not others:
        return "It is the only one that fits."
    second = min(others, key=lambda row: row["seconds"])
    if second["seconds"] == best["seconds"]:
        return f"{second['layout']} does the same here."
    if not best["terms"]:
        return "Nothing is sent, and the others send for longer than they save."
    sent, other = quantity(best["sent"], "iB"), quantity(second["sent"], "iB")
    words = origin(f"it sends {sent} a device, {second['layout'] or 'none'} {other}", "modelled")
    if second["sent"] <= best["sent"]:
        words = f"it shares the work among all {best['devices']:,} devices"
    return f"Why: {words}. {_largest_term(best)}"


def _largest_term(row: Facts) -> str:
    """The term of Table 1's ratio to work on."""
    dim = max(row["terms"], key=lambda dim: row["terms"][dim][0] / row["terms"][dim][1])
    parts, size = row["terms"][dim]
    wider, axis = WIDER[dim]
    fewer = axis if len(row["terms"]) > 1 else "devices"
    return (
        f"Most of its ratio {row['formula']} is the {parts:,}/{size:,} of {dim}: {wider}, or fewer {fewer}, would help."
    )


def _memory(facts: Facts) -> Iterator[str]:
    """Which layouts a device cannot hold, and the part that fills it."""
    full = [row for row in facts["rows"] if not row["fault"] and not row["fits"]]
    if full:
        most = max(full[-1]["memory"], key=full[-1]["memory"].get)
        listed = ", ".join(f"{row['name']} ({quantity(row['held'], 'iB')})" for row in full)
        limit = origin(quantity(facts["hbm"], "iB"), "published")
        yield f"Memory runs out for {origin(listed, 'modelled')} on a device with {limit}, mostly by {_part(most)}."
    if faults := [row["name"] for row in facts["rows"] if row["fault"]]:
        yield f"Cannot be here: {', '.join(faults)}, since a size does not divide over all devices."


def _part(part: str) -> str:
    return "optimizer state" if part == "optimizer" else part


def _growth(facts: Facts) -> Iterator[str]:
    """Where growing ends for want of memory."""
    if out := runs_out(facts["curves"]["data"]):
        there = origin(count(out["devices"], "device"), "modelled")
        yield f"Growing on with batch:all, memory ends at {there}."


def table(facts: Facts) -> list[tuple[str, ...]]:
    """Everything that the pictures show, as text."""
    head = ("layout", "mesh", "Table 1's ratio", "computing", "sending", "sending / computing", "sent by a device",
            "parameters", "gradients", "optimizer", "activations", "in all", "fits: up to hidden")  # fmt: skip
    return [head, *map(_row, facts["rows"]), *_curve_rows(facts)]


def _row(row: Facts) -> tuple[str, ...]:
    first = (row["layout"] or "none", row["mesh"])
    if row["fault"]:
        return (*first, row["formula"], *["-"] * 9, row["fault"])
    known = origin(row["formula"], "published") if row["origin"] == "published" else row["formula"]
    ratio = f"{known} = {row['printed']:.3g} [modelled]"
    numbers = (quantity(row["compute"], "s"), quantity(row["communicate"], "s"), f"{row['ratio']:.3g}")
    held = (quantity(n_bytes, "iB") for n_bytes in (row["sent"], *row["memory"].values(), row["held"]))
    fits = f"{'yes' if row['fits'] else 'no'}: {origin(format(row['widest'], ','), 'modelled')}"
    return (*first, ratio, *(origin(each, "modelled") for each in (*numbers, *held)), fits)


def _curve_rows(facts: Facts) -> Iterator[tuple[str, ...]]:
    names = {"mixed": "batch, hidden", "cubic": "batch, hidden, io", "data": "batch"}
    for key, points in facts["curves"].items():
        for point in points:
            share = origin(f"{quantity(100 * point['efficiency'])} % computing", "modelled")
            fits = "yes" if point["fits"] else "no"
            about = (f"growing: {names[key]}", f"{point['devices']:,} devices", point["sizes"], share)
            yield (*about, *[""] * 7, origin(quantity(point["held"], "iB"), "modelled"), fits)
