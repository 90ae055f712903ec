"""What planner, frontier and roofline share: models and slices as a reader names them, their controls, and ways out.

    >>> read_model("palm-540b heads=64").heads        # a preset, or a config file, with fields changed
    64
    >>> [str(each) for each in slices_of("v4", 64)]
    ['v4:1x1x1', 'v4:1x1x2', 'v4:1x2x2', 'v4:2x2x2', 'v4:2x2x4', 'v4:2x4x4', 'v4:4x4x4']

A slice is offered for each power of two, with the grid whose sides are most alike; any other is typed. Next file to
read: `plan_prices`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import mtfcore as mtf
from mtfcore.chips import Chip, chips
from mtfcore.errors import LayoutError, nearest
from mtfcore.model.configs import Config
from mtfcore.model.published import CONFIGS
from mtfcore.notation import as_size, read_whole
from mtfcore.topologies import Topology, nearest_with
from widgets.controls import Choice, Control, TextBox
from widgets.shown import Offer, Refused
from widgets.state import State

MOST_CHIPS = 1024
TYPES = ("bf16", "int8", "f32")
CACHE_TYPES = ("bf16", "int8", "f32")
FEEDFORWARD, ATTENTION = ("ws1d", "ws2d", "wg_x", "wg_xy", "wg_xyz"), ("heads", "batch")
PARTITIONS = tuple(f"{ffn}-{attention}" for ffn in FEEDFORWARD for attention in ATTENTION)
Pair = tuple[tuple[str, str], ...]


# ---- models


def presets() -> list[str]:
    """Named models that generate text; those for tests are left out."""
    return [name for name, cfg in CONFIGS.items() if not cfg.encoder_layers and not name.startswith("tiny")]


def read_model(text: str) -> Config:
    """`NAME field=number …`: a preset, or the path of a config file, with some fields changed."""
    return noted_model(text)[0]


def noted_model(text: str) -> tuple[Config, tuple[str, ...]]:
    """The model, and what reading its file warned of."""
    name, changes = split_model(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", mtf.LayoutWarning)
        cfg = mtf.model.config(name, **changes)
    if cfg.encoder_layers:
        raise LayoutError(f"{name} has an encoder; a plan here is of a decoder alone, e.g. {presets()[0]}")
    return cfg, tuple(str(each.message) for each in caught if issubclass(each.category, mtf.LayoutWarning))


def split_model(text: str) -> tuple[str, dict[str, int]]:
    """The name or path, and the fields that change."""
    words = text.split()
    tail = [word for word in words if "=" in word and not is_path(word)]
    name = " ".join(word for word in words if word not in tail)
    changes: dict[str, int] = {}
    for word in tail:
        field, _, written = word.partition("=")
        if (number := read_whole(written)) is None:
            raise LayoutError(f"{word!r:.100} changes nothing; write a field and a whole number, e.g. heads=64")
        changes[field] = number
    return name, changes


def is_path(name: str) -> bool:
    """Whether it names a file and not a preset."""
    return name.endswith(".json") or "/" in name or "\\" in name


def model_text(name: str, changes: dict[str, int]) -> str:
    """What `read_model` reads back."""
    return " ".join([name, *(f"{field}={number}" for field, number in changes.items())])


def padded_heads(text: str) -> str:
    """The same model with its query heads padded to a power of two; nothing where they are one, or are grouped."""
    name, changes = split_model(text)
    cfg = read_model(text)
    padded = 1 << (cfg.heads - 1).bit_length()
    return "" if padded == cfg.heads or cfg.attention == "grouped" else model_text(name, {**changes, "heads": padded})


# ---- slices


@cache
def slices_of(chip: str, most: int = MOST_CHIPS) -> tuple[Topology, ...]:
    """One slice for each power of two up to `most` chips, sides as alike as they come."""
    record = mtf.chip(chip)
    likes = (Topology(record, _sides(record, 1 << power)) for power in range(most.bit_length()))
    found = (like if record.network == "switch" else nearest_with(like, like.devices) for like in likes)
    return tuple(one for one in found if one is not None)


def _sides(chip: Chip, n: int) -> tuple[int, ...]:
    """A power of two as a grid: whole nodes of a switch, else sides that differ by a factor of two at most."""
    if chip.network == "switch":
        node = chip.value("node_chips")
        return (n,) if n <= node else (n // node, node)
    axes, power = 3 if chip.network == "cubes" else 2, n.bit_length() - 1
    return tuple(sorted(1 << (power // axes + (k < power % axes)) for k in range(axes)))


def read_slice(text: str) -> Topology:
    """The slice; an impossible one is refused with the nearest possible ones."""
    try:
        return mtf.topology(text)
    except LayoutError as fault:
        raise Refused(str(fault), list(_slices_near(text))) from None


def _slices_near(text: str) -> Iterator[Offer]:
    name, _, grid = text.partition(":")
    name = name.strip().casefold()
    if name not in chips():
        return
    sides = map(read_whole, grid.casefold().split("x"))
    asked = math.log(math.prod(side for side in sides if side))
    near = sorted(slices_of(name), key=lambda one: abs(math.log(one.chips) - asked))[:3]
    yield from (Offer(str(one), {"topology": str(one)}) for one in near)


def with_chip(topology: str, chip: str) -> str:
    """The slice of another chip with as many chips, or the nearest number that it comes in."""
    asked = mtf.topology(topology).chips
    return str(min(slices_of(chip), key=lambda one: (abs(math.log(one.chips / asked)), one.chips)))


# ---- controls


def choices(*names: str) -> Pair:
    """Options that read as they are named."""
    return tuple((name, name) for name in dict.fromkeys(names))


def model_controls(state: State, *tiny: str) -> list[Control]:
    """A preset from a list, or a name with changes, or a file; `tiny` ones are listed too where they are run."""
    listed = [*presets(), *tiny]
    own = state["model"] if state["model"] not in listed else "-"
    options = (*choices(*listed), (own, "(typed)") if own != "-" else ("-", "…"))
    return [
        Choice("preset", state["model"] if own == "-" else own, "preset", "Model", options=options),
        TextBox("model", state["model"], "or file", "Model",
                "a preset with fields changed, e.g. palm-540b heads=64, or the path of a config.json"),
    ]  # fmt: skip


def slice_controls(state: State) -> list[Control]:
    """Chip, number of chips, and the grid as text."""
    now = mtf.topology(state["topology"])
    listed = {str(one): f"{one.chips:,}" for one in slices_of(now.chip.name)}
    listed.setdefault(str(now), f"{now.chips:,} ({'x'.join(map(str, now.grid))})")
    return [
        Choice("chip", now.chip.name, "chip", "Slice", options=choices(*chips())),
        Choice("slice", str(now), "chips", "Slice", options=tuple(listed.items())),
        TextBox("topology", state["topology"], "grid", "Slice", "chip and grid, e.g. v4:4x4x8"),
    ]


def type_controls(state: State) -> list[Control]:
    """What weights and cache are stored as."""
    return [
        Choice("weights", state["weights"], "weights", "Types", options=choices(*TYPES)),
        Choice("cache", state["cache"], "cache", "Types", options=choices(*CACHE_TYPES)),
    ]


def edited(state: State, name: str, value: Any) -> State:
    """The state after one of these controls was moved."""
    if name == "preset":
        return {**state, "model": state["model"] if value == "-" else value}
    if name == "chip":
        return {**state, "topology": with_chip(state["topology"], value)}
    return {**state, "topology" if name == "slice" else name: value}


def check_words(state: State) -> None:
    """Refuse what no menu has."""
    menus = {"weights": TYPES, "cache": CACHE_TYPES}
    faults = [f"{name} {state[name]!r}: {nearest(state[name], menu)}" for name, menu in menus.items()
              if state[name] not in menu]  # fmt: skip
    legal = ("auto", *PARTITIONS)
    faults += [f"{phase} {state[phase]!r}: {nearest(state[phase], legal)}" for phase in ("prefill", "decode")
               if phase in state and state[phase] not in legal]  # fmt: skip
    if faults:
        raise LayoutError("\n".join(faults))


def check_sizes(state: State, ends: dict[str, tuple[int, int]]) -> None:
    """Refuse numbers beyond the controls, all at once, with the nearest."""
    outside = {name: pair for name, pair in ends.items()
               if as_size(state[name] or 1) is None or not pair[0] <= state[name] <= pair[1]}  # fmt: skip
    if outside:
        words = [f"{name.replace('_', ' ')} is {state[name]:,}; it goes from {low:,} to {high:,}"
                 for name, (low, high) in outside.items()]  # fmt: skip
        legal = {name: min(max(state[name], low), high) for name, (low, high) in outside.items()}
        label = ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in legal.items())
        raise Refused("\n".join(words), [Offer(f"use {label}", legal)])
