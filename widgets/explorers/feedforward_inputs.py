"""What the feedforward explorer asks for: its settings, their controls, and what cannot be, with ways out.

    >>> layer_of({**START, "batch": 64}).tokens, mesh_of(START)
    (64, (4, 4, 4))

Next file to read: `feedforward`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mtfcore.costs.second_paper import LAYOUTS
from mtfcore.errors import LayoutError, nearest
from mtfcore.model.published import CONFIGS
from widgets.controls import Choice, Control, IntBox, most
from widgets.explorers.plan_inputs import presets, read_model
from widgets.figures.feedforward import COUNTS, Facts, Layer, Mesh3, parts_of, reason, winner_at
from widgets.figures.feedforward_words import TITLES
from widgets.shown import Offer, Refused
from widgets.state import State

START: State = {
    "d_model": 18432, "d_ff": 73728, "batch": 512, "length": 1, "x": 4, "y": 4, "z": 4, "layout": "best",
    "gated": "no", "weights": "bf16", "counted": "sent", "chart": "layer", "step": 0,
}  # fmt: skip
MOST_DEVICES, MOST_BATCH, MOST_LENGTH, LARGEST = 256, 1 << 13, 1 << 13, 1 << 20
GATES = (("no", "none, as the paper counts"), ("yes", "with a gate (SwiGLU)"))
WEIGHTS = (("bf16", "bf16"), ("int8", "int8"))
CHARTS = (
    ("layer", "this layer by tokens"), ("Figure 6", "Figure 6: decode on more chips"),
    ("Figure 7", "Figure 7: prefill of more tokens"),
)  # fmt: skip
COUNTED = (("sent", "as they are sent"), ("paper", "as the paper does"))
WORDS = {
    "layout": ("best", *LAYOUTS),
    "gated": ("no", "yes"),
    "weights": ("bf16", "int8"),
    "counted": COUNTS,
    "chart": tuple(dict(CHARTS)),
}
ENDS = {
    "d_model": (1, LARGEST), "d_ff": (1, LARGEST), "batch": (1, MOST_BATCH), "length": (1, MOST_LENGTH),
    "x": (1, MOST_DEVICES), "y": (1, MOST_DEVICES), "z": (1, MOST_DEVICES),
}  # fmt: skip
OF_FIGURE_3, OWN = (16384, 65536), "own sizes"


def controls(state: State) -> list[Control]:
    """Everything that can be set, in groups."""
    known = sizes_of_presets()
    mine = (state["d_model"], state["d_ff"])
    model = next((name for name, sizes in known.items() if sizes == mine), OWN)
    names = [*known, *([OWN] if model == OWN else [])]
    best = (("best", "the best"), *((name, f"{name}: {TITLES[name]}") for name in LAYOUTS))
    return [
        IntBox("batch", state["batch"], "batch", "Tokens", "sequences at a time", high=MOST_BATCH),
        IntBox("length", state["length"], "new tokens of each", "Tokens", "1 is a decode step", high=MOST_LENGTH),
        *(IntBox(axis, state[axis], axis, "Mesh", high=_room(state, axis)) for axis in "xyz"),
        Choice("layout", state["layout"], "layout", "Layer", options=best),
        Choice("model", model, "sizes of", "Layer", options=tuple((name, name) for name in names)),
        IntBox("d_model", state["d_model"], "E", "Layer", "d_model", high=LARGEST),
        IntBox("d_ff", state["d_ff"], "F", "Layer", "d_ff", high=LARGEST),
        Choice("gated", state["gated"], "gate", "Layer", options=GATES),
        Choice("weights", state["weights"], "weights", "Layer", options=WEIGHTS),
        Choice("chart", state["chart"], "chart", "Layer", options=CHARTS),
        Choice("counted", state["counted"], "count bytes", "Layer", "the paper lets (K-1)/K be 1", options=COUNTED),
    ]  # fmt: skip


def _room(state: State, axis: str) -> int:
    return most(MOST_DEVICES, *(state[other] for other in "xyz" if other != axis))


def with_sizes_of(state: State, model: str) -> State:
    """The state with a named model's E and F; as it is where no model is named."""
    sizes = sizes_of_presets().get(model)
    return {**state, "d_model": sizes[0], "d_ff": sizes[1]} if sizes else state


def sizes_of_model(model: str) -> State:
    """E and F of a preset, of `Figure 3`, or of a config file."""
    if model in sizes_of_presets():
        return with_sizes_of({}, model)
    cfg = read_model(model)
    return {"d_model": cfg.d_model, "d_ff": cfg.d_ff}


def sizes_of_presets() -> dict[str, tuple[int, int]]:
    """Model → E and F; and Figure 3's own."""
    return {**{name: (CONFIGS[name].d_model, CONFIGS[name].d_ff) for name in presets()}, "Figure 3": OF_FIGURE_3}


def layer_of(state: State) -> Layer:
    """The layer that a state describes."""
    names = ("d_model", "d_ff", "batch", "length", "weights", "counted")
    return Layer(**{name: state[name] for name in names}, gated=state["gated"] == "yes")


def mesh_of(state: State) -> tuple[int, int, int]:
    """Its mesh."""
    return state["x"], state["y"], state["z"]


def mesh_text(mesh: tuple[int, int, int]) -> str:
    """As the library writes it."""
    return "x:{} y:{} z:{}".format(*mesh)


# ---- what cannot be


def check(state: State) -> None:
    """Refuse words and sizes that cannot be, all at once, with the nearest that can."""
    for name, legal in WORDS.items():
        if state[name] not in legal:
            raise LayoutError(f"no {name} {state[name]!r:.100}; {nearest(state[name], legal)}")
    outside = {name: ends for name, ends in ENDS.items() if not ends[0] <= state[name] <= ends[1]}
    if outside:
        words = [
            f"{name} is {state[name]:,}; it goes from {low:,} to {high:,}" for name, (low, high) in outside.items()
        ]
        inside = {name: min(max(state[name], low), high) for name, (low, high) in outside.items()}
        n = math.prod({**state, **inside}[axis] for axis in "xyz")
        inside |= {name: _multiple(inside[name], n) for name in inside.keys() & {"d_model", "d_ff"}}
        label = ", ".join(f"{name} {n:,}" for name, n in inside.items())
        raise Refused("\n".join(words), [Offer(f"use {label}", inside)])
    if (devices := state["x"] * state["y"] * state["z"]) > MOST_DEVICES:
        raise Refused(f"x · y · z = {devices:,} devices; the most here is {MOST_DEVICES}",
                      [Offer("x:4 y:8 z:8", {"x": 4, "y": 8, "z": 8})])  # fmt: skip


def ways_to(facts: Facts, layer: Layer, mesh: Mesh3) -> Iterator[Offer]:
    """More sequences, where the layout that was asked for, or the one that would move least, has too few."""
    wanted = facts["asked"] if facts["asked"] != "best" else winner_at(facts, facts["tokens"])
    parts = parts_of(wanted, mesh)["B"]
    batch = -(-layer.batch // parts) * parts
    if layer.batch % parts and batch <= MOST_BATCH:
        yield Offer(f"batch {batch:,}", {"batch": batch})


def refuse_all(layer: Layer, mesh: Mesh3) -> None:
    """No layout divides: say why of each, and offer sizes that all of them divide."""
    n = math.prod(mesh)
    words = "\n".join(f"{layout}: {reason(layout, layer, mesh)}" for layout in LAYOUTS)
    sizes = {"d_model": _multiple(layer.d_model, n), "d_ff": _multiple(layer.d_ff, n)}
    offers = [
        Offer(f"E {sizes['d_model']:,}, F {sizes['d_ff']:,}", sizes),
        Offer("one device", dict.fromkeys("xyz", 1)),
    ]
    raise Refused(f"No layout can be here.\n{words}", offers)


def _multiple(size: int, n: int) -> int:
    return min(max(round(size / n), 1), LARGEST // n) * n
