"""What the attention explorer asks: its controls, what they change, and ways out of what cannot be.

    >>> with_heads("palm-540b", "kv_heads", 8)         # a box of heads changes the text of the model
    'palm-540b kv_heads=8'
    >>> padded_to("palm-540b", mtf.Mesh("x:4 y:4 z:4"))
    'palm-540b heads=64'

A kind of heads is a number of key heads: as many as query heads, one, or a number between. Next file to read:
`attention_facts`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import mtfcore as mtf
from mtfcore.errors import LayoutError, nearest
from mtfcore.model.configs import Config
from mtfcore.model.places import core_of, present
from mtfcore.model.reasons import possible
from widgets.controls import Choice, Control, IntBox
from widgets.explorers import plan_inputs
from widgets.explorers.attention_program import FFN
from widgets.explorers.mesh_controls import axis_boxes, moved_axis
from widgets.shown import Offer, Refused
from widgets.state import State

BY = ("heads", "batch")
KINDS = ("multihead", "grouped", "multiquery")
ROOMS = (("rest", "what weights leave"), ("table", "30 % of memory, as in Table 1"))
START: State = {
    "model": "palm-540b heads=64", "mesh": "x:4 y:4 z:4", "chip": "v4", "batch": 128, "context": 2048, "by": "heads",
    "cache": "bf16", "weights": "bf16", "room": "rest",
}  # fmt: skip
MOST_OFFERS = 4
ENDS = {"batch": (1, 4096), "context": (1, 1 << 20)}
MOST_DEVICES, MOST_HEADS, MOST_SIZE = 256, 256, 512
FIELDS = {
    "heads": ("query heads", MOST_HEADS),
    "kv_heads": ("key heads", MOST_HEADS),
    "head_size": ("head size", MOST_SIZE),
}


def controls(state: State) -> list[Control]:
    """All of them."""
    cfg, mesh = plan_inputs.read_model(state["model"]), mtf.Mesh(state["mesh"])
    return [
        Choice("by", state["by"], "attention by", "Attention", options=plan_inputs.choices(*BY)),
        Choice("kind", cfg.attention, "heads are", "Attention", "how many heads of keys and values there are",
               options=plan_inputs.choices(*KINDS)),
        *(IntBox(name, getattr(cfg, name), label, "Attention", high=most) for name, (label, most) in FIELDS.items()),
        IntBox("batch", state["batch"], "batch", "Request", "sequences at a time", high=ENDS["batch"][1]),
        IntBox("context", state["context"], "context", "Request", "kept tokens of each sequence",
               high=ENDS["context"][1]),
        *axis_boxes(mesh, MOST_DEVICES),
        *plan_inputs.model_controls(state),
        Choice("chip", state["chip"], "chip", "Memory", options=plan_inputs.choices(*mtf.chips.chips())),
        Choice("weights", state["weights"], "weights", "Memory", options=plan_inputs.choices(*plan_inputs.TYPES)),
        Choice("cache", state["cache"], "cache", "Memory", options=plan_inputs.choices(*plan_inputs.CACHE_TYPES)),
        Choice("room", state["room"], "the cache may have", "Memory", options=ROOMS),
    ]  # fmt: skip


def edited(state: State, name: str, value: Any) -> State:
    """The state after a control was moved."""
    what, _, which = name.partition(".")
    if what == "axis":
        return {**state, "mesh": moved_axis(state["mesh"], which, value)}
    if name in FIELDS:
        return {**state, "model": with_heads(state["model"], name, value)}
    if name == "kind":
        return {**state, "model": with_heads(state["model"], "kv_heads", key_heads(state["model"], value))}
    return plan_inputs.edited(state, name, value) if name == "preset" else {**state, name: value}


def with_heads(model: str, field: str, value: int) -> str:
    """The model's text with one of the heads' numbers changed; multihead and multiquery stay what they are."""
    name, changes = plan_inputs.split_model(model)
    cfg = plan_inputs.read_model(model)
    changed = {**changes, field: value}
    if field == "heads" and cfg.attention == "multihead":
        changed["kv_heads"] = value
    own = plan_inputs.read_model(name)
    return plan_inputs.model_text(name, {key: n for key, n in changed.items() if getattr(own, key) != n})


def key_heads(model: str, kind: str) -> int:
    """How many key heads a kind has; grouped: the divisor nearest to 8."""
    heads = plan_inputs.read_model(model).heads
    between = [n for n in range(2, heads) if heads % n == 0] or [1]
    grouped = min(between, key=lambda n: abs(math.log(n / 8)))
    return {"multihead": heads, "grouped": grouped, "multiquery": 1}[kind]


# ---- what cannot be


def check(state: State) -> tuple[Config, tuple[str, ...], mtf.Mesh]:
    """The model, what reading it warned of, and the mesh; or a refusal with ways out."""
    menus = {"by": BY, "cache": plan_inputs.CACHE_TYPES, "weights": plan_inputs.TYPES, "room": tuple(dict(ROOMS))}
    faults = [f"{name} {state[name]!r}: {nearest(state[name], menu)}" for name, menu in menus.items()
              if state[name] not in menu]  # fmt: skip
    if faults:
        raise LayoutError("\n".join(faults))
    mtf.chip(state["chip"])
    plan_inputs.check_sizes(state, ENDS)
    cfg, notes = _model(state["model"])
    mesh = mtf.Mesh(state["mesh"])
    if mesh.size > MOST_DEVICES:
        raise LayoutError(f"mesh '{mesh}' has {mesh.size:,} devices; this picture draws up to {MOST_DEVICES}")
    if faults := possible(cfg, FFN, state["by"], mesh, state["batch"], 1, state["context"]):
        raise Refused("\n".join(faults), list(ways_out(cfg, mesh, state)))
    return cfg, notes, mesh


def _model(text: str) -> tuple[Config, tuple[str, ...]]:
    try:
        return plan_inputs.noted_model(text)
    except LayoutError as fault:
        raise Refused(str(fault), list(_nearest_heads(text))) from None


def _nearest_heads(text: str) -> Iterator[Offer]:
    """Where key heads do not divide query heads: the nearest numbers that do."""
    name, changes = plan_inputs.split_model(text)
    heads = changes.get("heads") or plan_inputs.read_model(name).heads
    asked = changes.get("kv_heads")
    if asked and heads % asked:
        near = sorted((n for n in range(1, heads + 1) if heads % n == 0), key=lambda n: abs(n - asked))[:2]
        for n in sorted(near):
            yield Offer(f"{n} key heads", {"model": plan_inputs.model_text(name, {**changes, "kv_heads": n})})


def ways_out(cfg: Config, mesh: mtf.Mesh, state: State) -> Iterator[Offer]:
    """Settings near these that can be: the other way, padded heads, other batches, a shorter context, a mesh of 2s."""

    def can(**changes: Any) -> bool:
        now = {**state, **changes}
        cfg = plan_inputs.read_model(now["model"])
        return not possible(cfg, FFN, now["by"], mtf.Mesh(now["mesh"]), now["batch"], 1, now["context"])

    tried = [Offer(f"by {by}", {"by": by}) for by in BY if by != state["by"]]
    if padded := padded_to(state["model"], mesh):
        tried.append(Offer(f"pad {cfg.heads} heads to {plan_inputs.read_model(padded).heads}", {"model": padded}))
    batches = {n for size in (mesh.size, *(size for _, size in mesh.axes)) for n in around(state["batch"], size)}
    tried += [Offer(f"batch {n:,}", {"batch": n}) for n in sorted(batches)]
    tried.append(Offer(f"context {cfg.max_length - 1:,}", {"context": cfg.max_length - 1}))
    twos = " ".join(f"{axis}:{1 << (size.bit_length() - 1)}" for axis, size in mesh.axes)
    tried.append(Offer(f"mesh {twos}", {"mesh": twos}))
    found = [offer for offer in tried if can(**offer.settings)]
    yield from found[:MOST_OFFERS]


def around(value: int, step: int) -> tuple[int, int]:
    """The multiples of a step beside a number."""
    return max(value - value % step, step), -(-value // step) * step


def padded_to(model: str, mesh: mtf.Mesh) -> str:
    """The same model with the fewest query heads of which every device has some; nothing where these are they."""
    cfg, sizes = plan_inputs.read_model(model), present(mesh)
    step = cfg.kv_heads if cfg.attention == "grouped" else 1
    tried = (cfg.but(heads=heads) for heads in range(cfg.heads, MOST_HEADS + 1, step))
    found = next((one.heads for one in tried if not core_of(one, sizes, "", 1, 1, False).idle), cfg.heads)
    return with_heads(model, "heads", found) if found != cfg.heads else ""
