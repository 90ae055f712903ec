"""What the explorer of a writing model asks: its controls, what cannot be and why, and ways out.

    >>> served("smollm2-135m", "x:2 y:2 z:2", 4)[1].heads          # padded for four groups of devices
    12
    >>> ways("smollm2-135m", "x:2 y:2 z:2", 4, "decode")["wg_xyz-heads"]
    'batch 4 does not divide over x:2 z:2 y:2, as wg_xyz needs; nearest: batch=8, …'

Every partition stands in the list; those that cannot be say why, and choosing one is answered with what would work.
Next file to read: `generate_prices`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import mtfcore as mtf
from mtfcore.errors import LayoutError, nearest
from mtfcore.model.configs import Config
from mtfcore.model.engine.choosing import least_prompts
from mtfcore.model.files import known
from mtfcore.model.head_padding import least_padding
from mtfcore.model.reasons import heads_fit, possible
from mtfcore.model.serving import PHASES, SERVING
from mtfcore.model.untrained import NAME as UNTRAINED
from mtfcore.model.untrained import untrained_config
from widgets.controls import Button, Choice, Control, IntBox, TextBox
from widgets.explorers import plan_inputs
from widgets.explorers.mesh_controls import axis_boxes, moved_axis
from widgets.explorers.watching import PLACES
from widgets.shown import Offer, Refused
from widgets.state import State

REAL = "smollm2-135m"
MODELS = (("auto", "the real one, if it is here"), (REAL, REAL), (UNTRAINED, "tiny, random weights"))
TEMPERATURES = ("0", "0.4", "0.7", "1", "1.5")
START: State = {
    "prompt": "Where do tides come from?", "mesh": "x:2 y:2 z:2", "prefill": "ws2d-heads", "decode": "ws2d-heads",
    "model": "auto", "slots": 4, "others": 0, "tokens": 48, "temperature": 0.0, "seed": 0, "chip": "v4",
    "on": "simulated",
}  # fmt: skip
LENGTH, CHUNK = 1024, 64  # tokens that a sequence has room for; read in one launch, at most
MOST_DEVICES, MOST_SLOTS, MOST_TOKENS = 64, 16, 900
ENDS = {"slots": (1, MOST_SLOTS), "others": (0, MOST_SLOTS - 1), "tokens": (1, MOST_TOKENS), "seed": (0, 1 << 30)}
CHOICES = ("auto", *SERVING)


def model_here(name: str) -> str:
    """The model that a setting means: the real one only if it was fetched."""
    return name if name != "auto" else REAL if known.path_of(REAL).is_file() else UNTRAINED


@cache
def served(model: str, mesh: str, slots: int) -> tuple[Config, Config]:
    """The model as it is, and with as many heads as divide over the mesh."""
    cfg = untrained_config() if model == UNTRAINED else mtf.model.config(model)
    if heads_fit(cfg, "ws2d", "heads", mesh, slots):
        return cfg, cfg
    more = least_padding(cfg, "ws2d", "heads", mesh, slots)
    return cfg, cfg.but(heads=more.heads, kv_heads=more.kv_heads)


@cache
def ways(model: str, mesh: str, slots: int, phase: str) -> dict[str, str]:
    """Partition → why it cannot serve a phase; nothing where it can. Of a mesh that no run here has, none is tried."""
    if mtf.Mesh(mesh).size > MOST_DEVICES:
        return {}
    _, cfg = served(model, mesh, slots)
    found = {}
    for name, way in SERVING.items():
        batch, new = slots, 1
        if phase == "prefill":
            batch, new = least_prompts(cfg, mtf.Mesh(mesh), name, CHUNK), CHUNK
        found[name] = "; ".join(possible(cfg, way.ffn.name, way.attention, mesh, batch, new, 0, phase))
    return found


# ---- controls


def controls(state: State, talking: bool) -> list[Control]:
    """All of them, in the order in which a reader needs them."""
    others = tuple((str(n), str(n)) for n in range(min(state["slots"], 8)))
    return [
        TextBox("prompt", state["prompt"], "you say", "Prompt", "taken on Enter; then press Write", wide=True),
        *axis_boxes(mtf.Mesh(state["mesh"]), MOST_DEVICES),
        *(Choice(phase, state[phase], phase, "Partition", options=_options(state, phase)) for phase in PHASES),
        IntBox("slots", state["slots"], "slots", "Served", "sequences that the cache has room for", high=MOST_SLOTS),
        Choice("others", str(state["others"]), "others beside you", "Served", "they are read and written along",
               options=others),
        IntBox("tokens", state["tokens"], "tokens at most", "Answer", high=MOST_TOKENS),
        Choice("temperature", f"{state['temperature']:g}", "temperature", "Answer", "0: always the likeliest token",
               options=plan_inputs.choices(*TEMPERATURES, f"{state['temperature']:g}")),
        IntBox("seed", state["seed"], "seed", "Answer", "what is drawn depends on it alone", low=0, high=1 << 30),
        Button("new", None, "Forget the conversation", "Answer", enabled=talking),
        Choice("model", state["model"], "model", "Model", options=MODELS),
        Choice("chip", state["chip"], "modelled on", "Model", options=plan_inputs.choices(*mtf.chips.chips())),
        Choice("on", state["on"], "runs on", "Model", options=PLACES),
    ]  # fmt: skip


def _options(state: State, phase: str) -> tuple[tuple[str, str], ...]:
    found = [("auto", "auto: the cheapest, modelled")]
    for name, reason in ways(model_here(state["model"]), state["mesh"], state["slots"], phase).items():
        short = re.split(r" over (?!none)|, |; ", reason)[0]
        found.append((name, f"{name} ({short})" if reason else name))
    return tuple(found)


def edited(state: State, name: str, value: Any) -> State:
    """The state after a control was moved."""
    what, _, which = name.partition(".")
    if what == "axis":
        return {**state, "mesh": moved_axis(state["mesh"], which, value)}
    if name == "slots":
        return {**state, "slots": value, "others": min(state["others"], value - 1)}
    if name == "temperature":
        return {**state, name: float(value)}
    return {**state, name: int(value) if name == "others" else value}


# ---- what cannot be


def check(state: State) -> None:
    """Refuse what cannot run, with ways out."""
    menus = {"model": dict(MODELS), "prefill": CHOICES, "decode": CHOICES, "on": dict(PLACES)}
    faults = [f"{name} is {state[name]!r}; {nearest(state[name], menu)}" for name, menu in menus.items()
              if state[name] not in menu]  # fmt: skip
    if not 0 <= state["temperature"] <= 100:
        faults.append(f"temperature is {state['temperature']}; it goes from 0 to 100")
    if faults:
        raise LayoutError("\n".join(faults))
    mtf.chip(state["chip"])
    plan_inputs.check_sizes(state, ENDS)
    if state["others"] >= state["slots"]:
        raise Refused(f"one of {state['slots']} slots is yours, so at most {state['slots'] - 1} others fit",
                      [Offer(f"{state['others'] + 1} slots", {"slots": state["others"] + 1})])  # fmt: skip
    _check_mesh(mtf.Mesh(state["mesh"]))
    model = model_here(state["model"])
    if model == REAL and not known.path_of(REAL).is_file():
        raise Refused(f"{REAL} is not here yet; fetch it once, in a terminal: python -m mtfcore.model fetch",
                      [Offer("the tiny random one", {"model": UNTRAINED})])  # fmt: skip
    _check_ways(state, model)


def _check_mesh(mesh: mtf.Mesh) -> None:
    if mesh.size > MOST_DEVICES:
        raise LayoutError(f"mesh '{mesh}' has {mesh.size:,} devices; a run here has up to {MOST_DEVICES}")
    if wrong := [axis for axis in mesh.names if axis not in "xyz"]:
        raise LayoutError(f"mesh '{mesh}' has {', '.join(wrong)}; these partitions lie on mesh axes x, y and z")


def _check_ways(state: State, model: str) -> None:
    """Partitions that cannot be here, or not both."""
    faults, offers = [], []
    for phase in PHASES:
        found = ways(model, state["mesh"], state["slots"], phase)
        if reason := found.get(state[phase], ""):
            faults.append(f"{phase} under {state[phase]}: {reason}")
            offers += [*_slots_for(state, model, phase), Offer(f"{phase} auto", {phase: "auto"})]
        elif state[phase] == "auto" and all(found.values()):
            faults.append(f"{phase}: no partition is possible on '{state['mesh']}'")
    if faults:
        raise Refused("\n".join(faults), offers)
    stored = {SERVING[state[phase]].ffn.stored_f for phase in PHASES if state[phase] != "auto"}
    if len(stored) > 1:
        raise Refused(
            f"prefill {state['prefill']} and decode {state['decode']} store the weights in different places, and no "
            "phase moves weights; take ws1d for both or for neither",
            [Offer(f"{phase} auto", {phase: "auto"}) for phase in PHASES],
        )


def _slots_for(state: State, model: str, phase: str) -> Iterator[Offer]:
    """The least more slots with which a partition can decode."""
    if phase == "decode":
        tried = (n for n in range(state["slots"] + 1, MOST_SLOTS + 1)
                 if not ways(model, state["mesh"], n, phase)[state[phase]])  # fmt: skip
        if n := next(tried, 0):
            yield Offer(f"{n} slots", {"slots": n})
