"""What the attention explorer says: what is copied and why, what fits, what moves instead; and the table.

    >>> sentence(facts)[:60]
    'By heads, 1 key head on 64 devices; one head cannot be cut o'

Next file to read: `../explorers/attention_times`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from widgets.figures.attention_html import answers
from widgets.figures.attention_svg import WORDS, parts_of
from widgets.numbers import count, origin, quantity

Facts = dict[str, Any]


def sentence(facts: Facts) -> str:
    """Why it lies as it does, whether it fits, and what is sent."""
    return " ".join([_lies(facts), _takes(facts), _sends(facts), *_idle(facts)])


def _lies(facts: Facts) -> str:
    core, way = facts["core"], facts["ways"][facts["by"]]
    counts = (("batch", core["batch"], count(facts["batch"], "sequence")), ("heads", core["keys"], _key_heads(facts)))
    ways = [f"{what} over {' '.join(on)}" for _, on, what in counts if on]
    uncut = f"{_key_heads(facts)} on {facts['devices']} devices"
    head = f"By {facts['by']}, {' and '.join(ways) or uncut}"
    left = [axis for axis, size in facts["mesh"] if size > 1 and axis not in core["batch"] + core["keys"]]
    if not left:
        return f"{head}: every kept key and value lies on one device."
    held = origin(f"{way['copies']} devices", "modelled")
    return f"{head}; {_why(facts)} over {' '.join(left)}, so each kept key and value lies on {held}."


def _key_heads(facts: Facts) -> str:
    return count(facts["kv_heads"], "key head")


def _why(facts: Facts) -> str:
    if facts["by"] == "batch":
        return f"neither {count(facts['batch'], 'sequence')} nor {_key_heads(facts)} can be shared out further"
    return "one head cannot be cut" if facts["kv_heads"] == 1 else f"{_key_heads(facts)} cannot be shared out further"


def _takes(facts: Facts) -> str:
    way, other = (facts["ways"][by] for by in _both(facts))
    held = origin(quantity(way["cache"], "iB"), "modelled")
    copies = f", {quantity(way['cache'] - way['once'], 'iB')} of it copies" if way["copies"] > 1 else ""
    said = f"That is {held} of cache a device{copies}"
    if way["fits"]:
        return f"{said}; it fits a {facts['chip']}."
    would = f", by {_both(facts)[1]} it would" if not other["reason"] and other["fits"] else ""
    return f"{said}; with the weights it does not fit a {facts['chip']}{would}."


def _both(facts: Facts) -> tuple[str, str]:
    """The way on show, and the other."""
    return facts["by"], next(by for by in facts["ways"] if by != facts["by"])


def _sends(facts: Facts) -> str:
    own = [step for step in facts["steps"] if step["moves"] != "x"]
    sent = origin(quantity(sum(step["bytes"] for step in own), "iB"), "modelled")
    turned = sum(step["bytes"] for step in own if step["kind"] == "all_to_all")
    of_it = f", {quantity(turned, 'iB')} of it all-to-all" if turned else ""
    return f"New q, k, v and the result take {sent} a layer{of_it}; the cache stays."


def _idle(facts: Facts) -> Iterator[str]:
    """Heads that do not divide, and what padding costs."""
    if idle := facts["core"]["idle"]:
        heads = count(facts["n_heads"], "head")
        said = f"{heads} leave {' '.join(idle)} idle: devices along it repeat each other's attention"
        yield f"{said}; {_padded(facts['padding'])}." if facts["padding"] else f"{said}."


def _padded(padding: Facts) -> str:
    of_heads = origin(f"{100 * padding['more_heads']:.0f} %", "modelled")
    of_all = f"{100 * padding['more_params']:.1f} % of the model"
    return f"{padding['heads']} heads would divide, for {of_heads} more of their weights and FLOPs, {of_all}"


def table(facts: Facts) -> list[tuple[str, ...]]:
    """Everything that the pictures show, as text."""
    return [("what", "value", "of what"), *_about(facts), *((words, number, "") for _, number, words in answers(facts)),
            *_memory(facts), *_steps(facts), *_far(facts), *_times(facts), *_printed(facts)]  # fmt: skip


def _about(facts: Facts) -> Iterator[tuple[str, ...]]:
    yield (
        "model",
        facts["model"],
        f"{facts['kind']}: {facts['n_heads']} query heads, {facts['kv_heads']} of keys, size {facts['head_size']}",
    )
    yield "mesh", " ".join(f"{axis}:{size}" for axis, size in facts["mesh"]), facts["title"]
    core = facts["core"]
    yield (
        "attention lies",
        " ".join(f"{name} over {on}" for name, on in core.items() if on) or "whole",
        f"by {facts['by']}",
    )


def _memory(facts: Facts) -> Iterator[tuple[str, ...]]:
    for by, way in facts["ways"].items():
        if way["reason"]:
            yield f"by {by}", way["reason"], ""
            continue
        for part, n_bytes in parts_of(way).items():
            yield (
                f"by {by}: {WORDS[part]}",
                origin(quantity(n_bytes, "iB"), "modelled"),
                f"{n_bytes:,.0f} bytes of a device",
            )
        yield f"by {by}: copies", origin(f"{way['copies']:,}", "modelled"), "devices with the same keys and values"
    yield "memory of a device", origin(quantity(facts["capacity"], "iB"), "published"), facts["title"]


def _steps(facts: Facts) -> Iterator[tuple[str, ...]]:
    for n, step in enumerate(facts["steps"], 1):
        yield (
            f"collective {n}: {step['moves']}",
            origin(quantity(step["bytes"], "iB"), "modelled"),
            f"{step['label']}: {step['before']} → {step['after']}",
        )


def _far(facts: Facts) -> Iterator[tuple[str, ...]]:
    for by, way in facts["ways"].items():
        for batch, tokens in way.get("curve", ()):
            yield f"longest context by {by}", origin(f"{tokens:,}", "modelled"), f"batch {batch:,}"


def _times(facts: Facts) -> Iterator[tuple[str, ...]]:
    for by, points in facts["times"]["lines"].items():
        for context, ms in points:
            yield f"a step by {by}", origin(quantity(ms / 1e3, "s"), "modelled"), f"context {context:,}"
    for context, ms in facts["times"]["published"]:
        yield "a step by batch, Figure 8", origin(quantity(ms / 1e3, "s"), "published"), f"context {context:,}"


def _printed(facts: Facts) -> Iterator[tuple[str, ...]]:
    for row in facts["table_1"]:
        ours = origin(f"{row['ours']:,}", "modelled")
        yield f"Table 1: {row['name']}, batch {row['batch']}", origin(row["printed"], "published"), f"ours {ours}"
