"""A conversation and what it costs as HTML: turns, phases, bytes by axis, the cache slot by slot, times.

    >>> picture(planned_facts)[:32]
    '<div class="mw-writing-parts" da'

Facts are those of `explorers/generate`: what is asked and modelled always, what has happened once something has.
Everything from outside is escaped. Colour never stands alone. Next file to read: `generate_words`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

import mtfcore as mtf
from widgets.figures.on_device import device_html
from widgets.figures.program_html import swatch
from widgets.numbers import count, quantity, tagged_html
from widgets.theme import axis_colours

Facts = dict[str, Any]
PHASES = {"move": "to another partition", "take": "slot → prefill", "prefill": "read", "give": "prefill → slot",
          "decode": "write"}  # fmt: skip
NAMES = {"you": "you", "model": "the model", "note": ""}


def picture(facts: Facts) -> str:
    """All of it."""
    live = facts["live"]
    costs = (_phases(live), _axes(facts), _cache(facts), _times(facts))
    return (
        f'<div class="mw-writing-parts" data-state="{live["state"] if live else "planned"}">'
        f'<div class="mw-writing-talk">{_log(live)}{_others(facts)}</div>'
        f'<div class="mw-writing-costs">{"".join(f"<div>{part}</div>" for part in costs)}</div></div>'
    )


# ---- the conversation


def _log(live: Facts | None) -> str:
    turns = list(_turns(live)) if live else []
    inside = "".join(turns) or '<div class="mw-turn mw-note">Nothing has been said. Press Write.</div>'
    about = 'data-end="" tabindex="0" role="log" aria-label="the conversation"'
    return f'<div class="mw-writing-log" {about}>{inside}</div>'


def _turns(live: Facts) -> Iterator[str]:
    last = len(live["log"]) - 1
    for n, (who, text) in enumerate(live["log"]):
        writing = " mw-now-writing" if n == last and who == "model" and live["state"] == "running" else ""
        name = f"<b>{NAMES[who]}</b>" if NAMES[who] else ""
        inside = tagged_html(text.replace("(counted)", "[counted]")) if who == "note" else html.escape(text)
        said = f'<span class="mw-said{writing}">{inside}</span>'
        yield f'<div class="mw-turn mw-{who}" data-turn="{n}">{name}{said}</div>'


def _others(facts: Facts) -> str:
    said = facts["live"]["others"] if facts["live"] else []
    rows = "".join(f"<div><i>{html.escape(question)}</i> {html.escape(text)}</div>" for question, text in said)
    nobody = "Nobody else is served." if not facts["others"] else "The others join with your next turn."
    return f'<div class="mw-others" aria-label="others beside you">{rows or nobody}</div>'


# ---- phases, bytes


def _phases(live: Facts | None) -> str:
    head, phases = tagged_html("This turn, launch by launch [counted]"), "".join(_phase(name, live) for name in PHASES)
    return f'<div class="mw-part-head">{head}</div><div class="mw-phases">{phases}</div>'


def _phase(name: str, live: Facts | None) -> str:
    found = live["phases"].get(name) if live else None
    if name == "move" and live and live["moved"]:
        found = {"launches": 0, "tokens": 0, "sent": live["moved"]}
    state = "now" if live and live["phase"] == name else "was" if found else "waits"
    lines, counts = [PHASES[name]], ""
    if found:
        what = count(found["tokens"], "token") if found["tokens"] else ""
        times = f"{found['launches']:,}×" if found["launches"] else "so far"
        lines = [" ".join(filter(None, (times, what))), f"sent {quantity(found['sent'], 'iB')}"]
        counts = f' data-launches="{found["launches"]}" data-tokens="{found["tokens"]}"'
    return f'<div class="mw-phase mw-{state}" data-phase="{name}"{counts}><b>{name}</b>{"<br>".join(lines)}</div>'


def _axes(facts: Facts) -> str:
    """A token of every slot and all so far, by axis; a token's bytes are modelled until one was decoded."""
    live, modelled = facts["live"], facts["modelled"]
    here = bool(live and live["a_token"])
    a_token = live["a_token"] if here else (modelled or {}).get("token_by_axis", {})
    so_far = live["so_far"] if live else {}
    mesh = live["mesh"] if here else facts["mesh"]
    colours, most = axis_colours(axis for axis, _ in mesh), max(a_token.values(), default=0) or 1
    heads = (f"a token [{'counted' if here else 'modelled'}]", "so far [counted]")
    named = "".join(f"<span>{tagged_html(words)}</span>" for words in ("", "", *heads))
    rows = "".join(
        _axis(axis, size, colours[axis], a_token.get(axis, 0), most, so_far.get(axis, 0)) for axis, size in mesh
    )
    return (
        '<div class="mw-part-head">Sent by one device, by mesh axis</div>'
        f'<div class="mw-axis-row mw-heads">{named}</div>{rows}'
    )


def _axis(axis: str, size: int, colour: str, token: float, most: float, so_far: float) -> str:
    cells = (
        f"{swatch(colour)}{html.escape(axis)}:{size}",
        f'<span class="mw-bar"><i style="width:{100 * token / most:.1f}%;background:{colour}"></i></span>',
        quantity(token, "iB"), quantity(so_far, "iB"),
    )  # fmt: skip
    inside = "".join(cell if n == 1 else f"<span>{cell}</span>" for n, cell in enumerate(cells))
    data = f'data-axis="{html.escape(axis)}" data-token-bytes="{token:.0f}" data-bytes="{so_far:.0f}"'
    return f'<div class="mw-axis-row" {data}>{inside}</div>'


# ---- the cache


def _cache(facts: Facts) -> str:
    live = facts["live"]
    empty = '<div class="mw-turn mw-note">Keys and values of what was read and written will lie here.</div>'
    inside = "".join(_blocks(live)) if live else empty
    room = f", {live['room']:,} tokens a slot" if live else ""
    head = tagged_html(f"Decode's cache{room} [counted]")
    part = f'<div class="mw-cache" tabindex="0" role="group" aria-label="the cache">{inside}</div>'
    return f'<div class="mw-part-head">{head}</div>{part}'


def _blocks(live: Facts) -> Iterator[str]:
    cache, sizes = live["cache"], dict(live["mesh"])
    for block in range(cache["blocks"]):
        slots = [slot for slot in cache["slots"] if slot["block"] == block]
        rows = "".join(_slot(slot, live["room"]) for slot in slots)
        where = block_words(cache["axes"], block, sizes)
        everyone = " mw-all" if cache["blocks"] == 1 else ""
        yield f'<div class="mw-block{everyone}" data-block="{block}"><div>{where}</div>{rows}</div>'


def block_words(axes: str, block: int, sizes: dict[str, int]) -> str:
    """The devices of a block of slots: their places on the axes that cut the batch, outermost first."""
    if not axes:
        return "all devices, each its heads of every slot"
    places = []
    for axis in reversed(axes):
        block, place = divmod(block, sizes[axis])
        places.append(f"{axis}={place}")
    return f"devices {' '.join(reversed(places))}"


def _slot(slot: Facts, room: int) -> str:
    mine = " mw-mine" if slot["who"] == "you" else ""
    says = f"{slot['who']} {slot['kept']:,}" if slot["who"] else "free"
    fill = f'<span class="mw-fill"><i style="width:{100 * slot["kept"] / room:.1f}%"></i></span>'
    data = f'data-slot="{slot["slot"]}" data-who="{slot["who"]}" data-kept="{slot["kept"]}"'
    return f'<div class="mw-slot-row{mine}" {data}><span>{slot["slot"]}</span>{fill}<span>{says}</span></div>'


# ---- times


def _times(facts: Facts) -> str:
    live, modelled = facts["live"], facts["modelled"]
    simulated = facts["on"] == "simulated"
    here = "here: simulated, no hardware speed [measured]" if simulated else "here, attached [measured]"
    there = f"on {facts['topology']} [modelled]" if facts["topology"] else f"no {facts['chip']} slice of this size"
    seconds = live["seconds"] if live else None
    rows = [
        ("", tagged_html(here), tagged_html(there)),
        ("a token of every slot", quantity(seconds, "s") if seconds else "…", _seconds(modelled, "token")),
        ("a chunk that is read", "–", _seconds(modelled, "chunk")),
    ]
    cells = (
        f'<span class="{"mw-first" if n == 0 else ""}" data-time="{n}.{column}">{text}</span>'
        for n, row in enumerate(rows) for column, text in enumerate(row)
    )  # fmt: skip
    strip = device_html(facts.get("device"), "A token of every slot, timed on a device")
    return f'<div class="mw-part-head">Seconds</div><div class="mw-times">{"".join(cells)}</div>{strip}'


def _seconds(modelled: Facts | None, name: str) -> str:
    if modelled is None:
        return "planning …"
    if f"{name}_seconds" not in modelled:
        return "–"
    return f"{quantity(modelled[f'{name}_seconds'], 's')}, most of it {html.escape(modelled[f'{name}_bottleneck'])}"


def mesh_pairs(mesh: str) -> list[list[Any]]:
    """Axes and sizes of a mesh's text."""
    return [list(axis) for axis in mtf.Mesh(mesh).axes]
