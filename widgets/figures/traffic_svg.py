"""The picture of a collective after some hops, as SVG: devices with what they hold, links with what they have carried.

    >>> traffic_svg(facts, places(facts), hop=3)[:4]
    '<svg'

A link has its axis's colour and grows with the bytes it has carried; what moves in this step lies on it. Each device
shows one bar for each block, filled as far as it has the block (of a sum: its addends), hollow if it only waits
there. The same text is the live picture's start, the still one and the saved file. Next file to read:
`../views/traffic_view`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from widgets.figures.svg import number, tag, text
from widgets.figures.traffic import DIGITS, Facts, carried
from widgets.numbers import quantity
from widgets.theme import GROUND, INK, LINKS, MEMORY, axis_colours

Picture = dict[str, Any]
THIN = 1.2  # of a link that has carried nothing
THICK = {True: 5.0, False: 2.6}  # of the busiest one, where devices have room for bars or not
CELL = 14.0  # height of a block's bar
REST = 0.68  # where on its link a message stands still
MOST_LABELS = 24  # links up to which each says its bytes


def traffic_svg(facts: Facts, picture: Picture, hop: int, together: bool = False) -> str:
    """Links, devices, then what moves; `together` makes one path of links that look alike, and one of messages."""
    size = {"width": picture["width"], "height": picture["height"]}
    what = f"{facts['name']} on {facts['n_devices']} devices after step {hop} of {facts['steps']}"
    links, tokens = (_alike, _dots) if together else (_links, _tokens)
    return tag(
        "svg", *links(facts, picture, hop), *_nodes(facts, picture, hop), *tokens(facts, picture, hop),
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {number(picture['width'])} {number(picture['height'])}",
        cls="mw-hops", role="img", aria_label=what, data_hop=hop, font_family="system-ui, sans-serif", **size,
    )  # fmt: skip


def _links(facts: Facts, picture: Picture, hop: int) -> Iterator[str]:
    colours = axis_colours(axis for axis, _ in facts["mesh"])
    so_far, most = carried(facts, hop), facts["busiest"] or 1
    few, thick = len(facts["links"]) <= MOST_LABELS, THICK[picture["cells"]]
    for place, (source, target, axis, _) in enumerate(facts["links"]):
        name, sent = facts["mesh"][axis][0], so_far[place]
        yield tag(
            "path", tag("title", f"{source} → {target}: {quantity(sent, 'iB')} so far"),
            d=curve(picture["links"][place]), fill="none", stroke=colours[name], cls="mw-link",
            stroke_width=THIN + (thick - THIN) * sent / most, data_link=place, data_bytes=number(sent),
            data_axis=name, opacity=1.0 if sent else 0.4,
        )  # fmt: skip
        if few:
            x, y = label_place(picture["links"][place])
            words = quantity(sent, "iB") if sent else ""
            yield text(words, x, y, size=9, text_anchor="middle", cls="mw-carried", data_carried=place)


def _alike(facts: Facts, picture: Picture, hop: int) -> Iterator[str]:
    """Links of one colour and width as one path."""
    colours, most = axis_colours(axis for axis, _ in facts["mesh"]), facts["busiest"] or 1
    found: dict[tuple[str, int], list[str]] = {}
    for points, (_, _, axis, _), sent in zip(picture["links"], facts["links"], carried(facts, hop), strict=True):
        found.setdefault((colours[facts["mesh"][axis][0]], round(8 * sent / most)), []).append(curve(points))
    thick = THICK[picture["cells"]]
    for (colour, level), ways in found.items():
        look = {"fill": "none", "stroke": colour, "opacity": 1.0 if level else 0.4}
        yield tag("path", d="".join(ways), stroke_width=THIN + (thick - THIN) * level / 8, **look)


def _dots(facts: Facts, picture: Picture, hop: int) -> Iterator[str]:
    """All messages of a step as one path of round ends, over a darker one that edges them."""
    moves = facts["moves"][hop - 1] if hop else ()
    spots = (along(picture["links"][link], REST) for link, *_ in moves)
    drawn = "".join(f"M{number(x)} {number(y)}h0" for x, y in spots)
    for colour, width in (("#333", 8), (LINKS, 6.6)):
        yield tag("path", d=drawn, fill="none", stroke=colour, stroke_width=width, stroke_linecap="round")


def curve(points: list[list[float]]) -> str:
    """A link's way as the data of a path."""
    (x0, y0), (x1, y1), (x2, y2) = points
    return f"M{number(x0)} {number(y0)}Q{number(x1)} {number(y1)} {number(x2)} {number(y2)}"


def along(points: list[list[float]], share: float) -> tuple[float, float]:
    """A point of a link's way."""
    a, b, c = (1 - share) ** 2, 2 * share * (1 - share), share**2
    x, y = (a * points[0][n] + b * points[1][n] + c * points[2][n] for n in (0, 1))
    return x, y


def label_place(points: list[list[float]]) -> tuple[float, float]:
    """Beside a link, on its own side, behind the message."""
    (x, y), (dx, dy) = along(points, 0.4), (points[2][0] - points[0][0], points[2][1] - points[0][1])
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    return x + 22 * dy / length, y - 14 * dx / length + 3


def _nodes(facts: Facts, picture: Picture, hop: int) -> Iterator[str]:
    for device, (x, y) in enumerate(picture["nodes"]):
        where = f"translate({number(x)} {number(y)})"
        yield tag("g", *_node(facts, picture, hop, device), transform=where, data_device=device)


def _node(facts: Facts, picture: Picture, hop: int, device: int) -> Iterator[str]:
    width, height = picture["box"]
    frame = {"x": -width / 2, "y": -height / 2, "width": width, "height": height, "rx": 4.0}
    yield tag("rect", cls="mw-node", fill=GROUND, stroke=INK, **frame)
    if not picture["cells"]:
        most = max(map(max, facts["counts"])) or 1
        full = height * facts["counts"][hop][device] / most
        side = {"x": -width / 2, "width": width, "rx": 4.0}
        yield tag("rect", cls="mw-gauge", y=height / 2 - full, height=full, fill=MEMORY, **side)
        yield text(str(device), 0, 3.5, size=10, text_anchor="middle", cls="mw-name")
        return
    yield text(str(device), 0, -height / 2 + 12, size=11, text_anchor="middle", cls="mw-name", font_weight="700")
    letters, n = facts["held"][hop][device], facts["n_devices"]
    yield tag("g", *(_cell(letter, block, n) for block, letter in enumerate(letters)), data_held=letters)


def _cell(letter: str, block: int, n: int) -> str:
    """A bar that fills as far as the device has this block; hollow where the block waits for another device."""
    x, high = (block - n / 2) * 8 + 0.5, CELL * (1.0 if letter == "-" else DIGITS.index(letter) / 35)
    place = {"x": x, "width": 7}
    room = tag("rect", cls="mw-cell", y=13 - CELL, height=CELL, fill="none", stroke="#999", stroke_width=0.6, **place)
    how = {"fill": "none" if letter == "-" else MEMORY, "stroke": MEMORY if letter == "-" else "none"}
    return room + tag("rect", cls="mw-fill", y=13 - high, height=high, data_block=block, **place, **how)


def _tokens(facts: Facts, picture: Picture, hop: int) -> Iterator[str]:
    """What moves in this step, near its end: it has just arrived."""
    for link, _, label, combine in facts["moves"][hop - 1] if hop else ():
        x, y = along(picture["links"][link], REST)
        words = f"+{label}" if combine == "add" else label
        where = f"translate({number(x)} {number(y)})"
        inside = _labelled(words) if picture["cells"] else _DOT
        yield tag("g", inside, cls="mw-token", transform=where, data_token=link, data_label=words)


_SHAPE = {"fill": LINKS, "stroke": "#333", "stroke_width": 0.8}
_DOT = tag("circle", r=3.5, **_SHAPE)


def _labelled(words: str) -> str:
    wide = max(16.0, 5.2 * len(words) + 7)
    shape = tag("rect", x=-wide / 2, y=-8, width=wide, height=16, rx=8, **_SHAPE)
    return shape + text(words, 0, 3, size=8.5, text_anchor="middle", fill="#111")
