"""Modelled seconds of the programs that a writing model launches, on a slice of the chosen chip.

    >>> asked = asked_of(START)
    >>> known(asked)                          # nothing yet: planning for "auto" takes half a second
    >>> modelled(asked)["token_seconds"]
    0.00067...

These are the engine's own programs (`mtfcore/model/engine/programs`), planned on the mesh of the settings and laid on
as many chips. A worker asks; every answer is kept. Next file to read: `generate_run`.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import mtfcore as mtf
from mtfcore.errors import LayoutError
from mtfcore.model.configs import Config
from mtfcore.model.engine.choosing import Sizes, choose, least_prompts
from mtfcore.model.engine.programs import Shape, decoding, reading
from mtfcore.model.head_padding import padding_words
from widgets.explorers.attention_times import slice_for
from widgets.explorers.generate_inputs import CHUNK, LENGTH, model_here, served
from widgets.state import State

Facts = dict[str, Any]


class Asked(NamedTuple):
    """What prices depend on."""

    own: Config
    cfg: Config
    mesh: str
    prefill: str
    decode: str
    slots: int
    topology: str  # empty: no such slice


_known: dict[Asked, Facts] = {}
_asking = threading.RLock()


def asked_of(state: State) -> Asked:
    """What these settings ask."""
    own, cfg = served(model_here(state["model"]), state["mesh"], state["slots"])
    return Asked(own, cfg, state["mesh"], state["prefill"], state["decode"], state["slots"], slice_for(state))


def known(asked: Asked) -> Facts | None:
    """What has been found out already."""
    return _known.get(asked)


def modelled(asked: Asked) -> Facts:
    """Partitions, bytes and seconds; where there is no such slice, no seconds."""
    with _asking:
        if asked not in _known:
            _known[asked] = _find(asked)
        return _known[asked]


def _find(asked: Asked) -> Facts:
    mesh = mtf.Mesh(asked.mesh)
    prompts = least_prompts(asked.cfg, mesh, asked.prefill, CHUNK)
    sizes = Sizes(asked.slots, prompts, CHUNK, LENGTH, "f32", "f32")
    try:
        chosen = choose(asked.cfg, mesh, asked.prefill, asked.decode, sizes, asked.topology or None)
    except LayoutError as fault:
        return {"reason": str(fault)}
    programs = {
        "chunk": reading(_shape(asked, chosen.prefill, prompts), CHUNK),
        "token": decoding(_shape(asked, chosen.decode, asked.slots)),
    }
    padding = padding_words(asked.own, asked.cfg) if asked.own != asked.cfg else ""
    found = {"reason": "", "prefill": chosen.prefill, "decode": chosen.decode, "why": chosen.why, "prompts": prompts,
             "padding": padding, "topology": asked.topology}  # fmt: skip
    for name, program in programs.items():
        found[f"{name}_by_axis"] = dict(program.link_bytes().by_axis)
        if asked.topology:
            cost = mtf.price(program, asked.topology)
            found |= {f"{name}_seconds": cost.seconds, f"{name}_bottleneck": cost.bottleneck}
    return found


def token_program(asked: Asked) -> mtf.Program:
    """The engine's own program for a token of every slot; the reason where there is none."""
    found = modelled(asked)
    if found["reason"]:
        raise LayoutError(found["reason"])
    return decoding(_shape(asked, found["decode"], asked.slots))


def _shape(asked: Asked, partition: str, sequences: int) -> Shape:
    return Shape(asked.cfg, mtf.Mesh(asked.mesh), partition, sequences, LENGTH, "f32", "f32", asked.cfg.vocab)
