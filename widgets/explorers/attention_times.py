"""Time of a decode step over the context, by heads and by batch; and what Figure 8 prints.

    >>> step_ms(cfg, "x:4 y:4 z:4", "v4:4x4x4", 256, 8192, "batch", "bf16", "bf16")
    56.6...

A whole decode step is planned and priced for each context, some 10 ms each, so a worker does it and every answer is
kept. Figure 8 runs 8 of PaLM's layers, which are shown where the settings are the figure's. Next file to read:
`attention_run`.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import mtfcore as mtf
from mtfcore.errors import LayoutError
from mtfcore.model.configs import Config
from mtfcore.reference import Published, rows
from widgets.explorers import plan_inputs
from widgets.explorers.attention_inputs import BY
from widgets.explorers.attention_program import FFN
from widgets.state import State

Facts = dict[str, Any]
CONTEXTS = (128, 512, 2048, 8192, 32768)
FIGURE = "Figure 8"
_known: dict[tuple[Any, ...], float | None] = {}
_asking = threading.RLock()


def step_ms(
    cfg: Config, mesh: str, topology: str, batch: int, context: int, by: str, weights: str, cache: str
) -> float | None:  # fmt: skip
    """Milliseconds of a decode step (modelled), None where it cannot be; kept by what was asked."""
    key = (cfg, mesh, topology, batch, context, by, weights, cache)
    with _asking:
        if key not in _known:
            _known[key] = None
            with contextlib.suppress(LayoutError):  # what cannot be has no time; the sentence says why
                program = mtf.model.plan_phase(cfg, "decode", mesh, ffn=FFN, attention=by, batch=batch,
                                               cached_tokens=context, weights=weights, cache=cache)  # fmt: skip
                _known[key] = 1e3 * mtf.price(program, topology, model="calibrated").seconds
    return _known[key]


def step_program(state: State) -> tuple[mtf.Program, str]:
    """The step of a state's own context and way, and the slice that it is priced for."""
    cfg = figure_model(state, plan_inputs.read_model(state["model"]))
    program = mtf.model.plan_phase(cfg, "decode", state["mesh"], ffn=FFN, attention=state["by"], batch=state["batch"],
                                   cached_tokens=state["context"], weights=state["weights"],
                                   cache=state["cache"])  # fmt: skip
    return program, slice_for(state)


def asked(state: State, cfg: Config) -> list[tuple[Any, ...]]:
    """What the chart needs, both ways at each context."""
    topology = slice_for(state)
    if not topology:
        return []
    given = (figure_model(state, cfg), state["mesh"], topology, state["batch"])
    return [(*given, context, by, state["weights"], state["cache"]) for by in BY for context in CONTEXTS]


def missing(state: State, cfg: Config) -> list[tuple[Any, ...]]:
    """What nobody has asked for yet."""
    return [key for key in asked(state, cfg) if key not in _known]


def times(state: State, cfg: Config) -> Facts:
    """What is known so far, and the figure's points where the settings are the figure's."""
    lines: dict[str, list[tuple[int, float]]] = {by: [] for by in BY}
    for key in asked(state, cfg):
        if (ms := _known.get(key)) is not None:
            lines[key[5]].append((key[4], ms))
    layers = figure_model(state, cfg).layers
    whole = "" if layers == cfg.layers else f", {layers} of {cfg.layers} layers"
    topology = slice_for(state)
    waits = "planning and pricing …" if topology else f"no {state['chip']} slice of this many devices"
    published = [(row.setup["context"], row.value) for row in figure_rows()] if whole else []
    title = f"Time of a decode step{whole} (modelled)"
    return {"lines": lines, "published": published, "title": title, "waits": waits, "few": bool(whole)}


def figure_rows() -> tuple[Published, ...]:
    """The two ends of the published curve."""
    return rows(table=FIGURE, quantity="step latency")


def figure_model(state: State, cfg: Config) -> Config:
    """The model that is timed: the figure's few layers where all else is as there, else the whole model."""
    setup = figure_rows()[0].setup
    name, changes = plan_inputs.split_model(state["model"])
    own = (name, changes, state["batch"], slice_for(state), state["cache"], state["weights"])
    few = dict(setup["changes"])
    layers = few.pop("layers")
    same = own == (setup["model"], few, setup["batch"], setup["topology"], setup["cache"], "bf16")
    return cfg.but(layers=layers) if same else cfg


def slice_for(state: State) -> str:
    """The slice of the chip with as many devices as the mesh; nothing if there is none."""
    size = mtf.Mesh(state["mesh"]).size
    found = [each for each in plan_inputs.slices_of(state["chip"]) if each.devices == size]
    return str(found[0]) if found else ""
