"""The program of the run explorer's settings, kept by what it depends on; and the same kind at a small size.

    >>> program_of({**START, "what": "decode layer"}).name
    'decode'
    >>> small({**START})["mesh"]                          # what simulated devices can run in a moment
    'x:2 y:2 z:2'

Whole phases come from `mtf.model.plan_phase`, layers are the same with one layer and a small vocabulary, a feedforward
layer is that of explorer 8, attention that of explorer 9. Next file to read: `run_published`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import mtfcore as mtf
from mtfcore.costs.second_paper import programs as feedforward_programs
from mtfcore.model.configs import Config
from mtfcore.model.phases import activations
from mtfcore.notation import format_axes, parse_axes
from mtfcore.planned_collective import planned_collective
from widgets.explorers import plan_inputs
from widgets.explorers.attention_program import attention_program
from widgets.explorers.examples import two_layers
from widgets.explorers.layer_steps import lengths
from widgets.explorers.mesh_controls import grid_of
from widgets.explorers.planned import planned
from widgets.explorers.run_inputs import MODELS, asked
from widgets.state import State

VOCAB = 8  # ids a device in one layer's program, so that looking up and choosing take next to nothing
TINY = {"multihead": "tiny-lm", "grouped": "tiny-grouped", "multiquery": "tiny-palm"}  # by how heads share keys
SMALL_SLICE = ("x:2 y:2 z:2", "v4:2x2x2")


def program_of(state: State) -> mtf.Program:
    """The plan; `LayoutError` in the library's words where it cannot be."""
    return _planned(tuple(asked(state).items()))


@lru_cache(maxsize=64)
def _planned(items: tuple[tuple[str, Any], ...]) -> mtf.Program:
    state = dict(items)
    what = state["what"]
    if what == "two_layers":
        return planned(two_layers, state["mesh"], state["layout"], state["sizes"], dtype=state["dtype"])[0]
    if what == "collective":
        return planned_collective(state["kind"], state["mesh"], parse_axes(state["axes"]), state["n_bytes"], "f32")
    return _of_a_model(what, plan_inputs.read_model(state["model"]), state)


def _of_a_model(what: str, cfg: Config, state: State) -> mtf.Program:
    ffn, _, attention = state["partition"].rpartition("-")
    mesh, batch, tokens, weights = mtf.Mesh(state["mesh"]), state["batch"], state["tokens"], state["weights"]
    if what == "feedforward":
        return feedforward_programs.planned(
            ffn, grid_of(mesh), batch, tokens, cfg.d_model, cfg.d_ff, cfg.gated, activations(weights),
            "i8" if weights == "int8" else "",
        )  # fmt: skip
    if what == "attention":
        return attention_program(cfg, str(mesh), batch, tokens, attention, activations(weights), state["cache"])
    phase, _, one = what.partition(" ")
    cfg = cfg.but(layers=1, vocab=VOCAB * mesh.size) if one else cfg
    return mtf.model.plan_phase(cfg, phase, mesh, ffn=ffn, attention=attention, batch=batch, weights=weights,
                                cache=state["cache"], **lengths(phase, tokens))  # fmt: skip


# ---- a size that simulated devices can hold


def small(state: State) -> State:
    """The settings that change where a run would be too large here; nothing where this kind has no smaller size."""
    what = state["what"]
    if what in MODELS:
        model = TINY[plan_inputs.read_model(state["model"]).attention]  # a model by name, as a class takes it too
        mesh, topology = SMALL_SLICE
        return {"model": model, "mesh": mesh, "topology": topology, "batch": 8, "tokens": 16}
    if what == "two_layers":
        return {"sizes": "batch:64 io:128 hidden:256", "mesh": "rows:4 cols:2", "topology": "v4:2x2x2"}
    if what == "collective":
        over = parse_axes(state["axes"])
        mesh = " ".join(f"{axis}:2" for axis in over[:3])
        return {"n_bytes": 1 << 16, "mesh": mesh, "topology": _cube(len(over[:3])), "axes": format_axes(over[:3])}
    return {}


def _cube(axes: int) -> str:
    return f"v4:{'x'.join(['1'] * (3 - axes) + ['2'] * axes)}"
