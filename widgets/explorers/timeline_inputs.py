"""What the timeline explorer asks: its controls, what they change, and the program that they describe.

    >>> program_of({**START, "phase": "decode", "partition": "ws2d-batch"})
    <Program decode: …>

The mesh and the slice have equally many devices: moving one moves the other. Next file to read: `compiling`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import mtfcore as mtf
from mtfcore.compiling.slices import NAMES, expect_tpu
from mtfcore.errors import LayoutError, nearest
from mtfcore.model.reasons import possible
from widgets.controls import Choice, Control, IntBox, TextBox
from widgets.explorers import plan_inputs
from widgets.explorers.layer_steps import lengths, mesh_of
from widgets.explorers.mesh_controls import axis_boxes, moved_axis
from widgets.explorers.timeline_answers import FORMS, KINDS, record_settings, record_words, recorded
from widgets.shown import Offer, Refused
from widgets.state import State

START: State = {
    "model": "palm-8b", "phase": "prefill", "partition": "ws2d-heads", "batch": 1, "tokens": 1024, "weights": "bf16",
    "cache": "bf16", "topology": "v4:2x2x2", "mesh": "x:2 y:2 z:2", "schedule": "both", "form": "latency",
    "window": "layer", "record": "",
}  # fmt: skip
ENDS = {"batch": (1, 4096), "tokens": (1, 1 << 20)}
MENUS = {
    "phase": ("prefill", "decode"), "partition": plan_inputs.PARTITIONS, "schedule": (*KINDS, "both"), "form": FORMS,
    "window": ("layer", "step"),
}  # fmt: skip
OF_THE_PROGRAM = ("model", "phase", "partition", "batch", "tokens", "weights", "cache", "topology", "mesh")
WINDOWS = (("layer", "one layer"), ("step", "the whole step"))
SCHEDULES = (("plain", "plain"), ("looped", "looped"), ("both", "both"))
MOST_DEVICES = plan_inputs.MOST_CHIPS


def controls(state: State, own: str = "") -> list[Control]:
    """All of them; `own` is the name of the reader's own program, which has its own settings."""
    asked = [] if own else [*_program(state), *_request(state), *plan_inputs.model_controls(state)]
    looking = [*_schedule(state, own), _window(state)]
    return [*asked, *looking, *_slice(state, own), *_records(state, own)]


def _schedule(state: State, own: str) -> Iterator[Control]:
    group = "Schedule" if own else "Program"
    yield Choice("schedule", state["schedule"], "collectives", group, options=SCHEDULES)
    yield Choice("form", state["form"], "rings for", group, "how a collective becomes a ring of permutes",
                 options=plan_inputs.choices(*FORMS))  # fmt: skip


def _window(state: State) -> Control:
    """Of some records only the layer was kept, or only the step: the other is greyed and says so."""
    off = tuple(which for which, _ in WINDOWS if state["record"] and which not in windows_kept(state["record"]))
    options = tuple((which, f"{words} (not kept)" if which in off else words) for which, words in WINDOWS)
    return Choice("window", state["window"], "show", "View", "greyed: the record keeps nothing of it" if off else "",
                  options=options, off=off)  # fmt: skip


def windows_kept(record: str) -> set[str]:
    """What can be shown of a record; all where there is no such record, which is refused elsewhere."""
    found = recorded().get(record)
    return {which for answer in found.values() for which in answer.lines} if found else set(MENUS["window"])


def _program(state: State) -> Iterator[Control]:
    yield Choice("phase", state["phase"], "phase", "Program", options=plan_inputs.choices(*MENUS["phase"]))
    yield Choice("partition", state["partition"], "partition", "Program",
                 options=plan_inputs.choices(*plan_inputs.PARTITIONS))  # fmt: skip


def _request(state: State) -> Iterator[Control]:
    yield IntBox("batch", state["batch"], "batch", "Request", "sequences at a time", high=ENDS["batch"][1])
    yield IntBox("tokens", state["tokens"], "tokens", "Request", "new in prefill, cached in decode",
                 high=ENDS["tokens"][1])  # fmt: skip
    yield from (replace(control, group="Request") for control in plan_inputs.type_controls(state))


def _slice(state: State, own: str) -> Iterator[Control]:
    chips = plan_inputs.choices(*NAMES)
    for control in plan_inputs.slice_controls(state):
        yield Choice("chip", control.value, "chip", "Slice", options=chips) if control.name == "chip" else control
    if not own:  # the mesh as text stands by the grid that it covers, so that its sliders take one row
        yield TextBox("mesh", state["mesh"], "mesh", "Slice", "x, y and z, e.g. x:2 y:2 z:2")
        yield from axis_boxes(mtf.Mesh(state["mesh"]), MOST_DEVICES)


def _records(state: State, own: str) -> Iterator[Control]:
    if names := [] if own else list(recorded()):
        options = (("", "none: compile"), *((name, record_words(name)) for name in names))
        yield Choice("record", state["record"], "recorded", "Answer", "kept with the project", options=options)


def edited(state: State, name: str, value: object) -> State:
    """The state after a control was moved; whatever makes another program leaves the record."""
    if name == "record":
        kept = windows_kept(str(value))
        window = state["window"] if state["window"] in kept else next(iter(kept))
        return {**state, **record_settings(str(value)), "record": value, "window": window}
    if name in ("schedule", "form", "window"):
        return {**state, name: value}
    state = {**state, "record": ""}
    if name.startswith("axis."):
        return _with_mesh(state, moved_axis(state["mesh"], name.removeprefix("axis."), value))
    if name == "mesh":
        return _with_mesh(state, str(value))
    moved = plan_inputs.edited(state, name, value)
    return _with_slice(moved) if name in ("chip", "slice", "topology") else _with_attention(moved, name)


def _with_mesh(state: State, mesh: str) -> State:
    """A mesh of other size takes the slice of the same chip that has as many devices."""
    try:
        now, devices = mtf.topology(state["topology"]), mtf.Mesh(mesh).size
        fits = [one for one in plan_inputs.slices_of(now.chip.name) if one.devices == devices]
    except LayoutError:
        fits = []
    known = not fits or now.devices == devices
    return {**state, "mesh": mesh} if known else {**state, "mesh": mesh, "topology": str(fits[0])}


def _with_slice(state: State) -> State:
    try:
        topology = mtf.topology(state["topology"])
        same = mtf.Mesh(state["mesh"]).size == topology.devices
    except LayoutError:
        return state
    return state if same else {**state, "mesh": mesh_of(topology)}


def _with_attention(state: State, name: str) -> State:
    """Each phase starts with the partition that the paper has for it."""
    if name != "phase":
        return state
    ffn, _, _ = state["partition"].rpartition("-")
    return {**state, "partition": f"{ffn}-{'heads' if state['phase'] == 'prefill' else 'batch'}"}


# ---- the program


def expect_fit(mesh: mtf.Mesh, topology: str) -> None:
    """Refuse a slice that has not the mesh's number of devices, with those that have."""
    slice_ = expect_tpu(plan_inputs.read_slice(topology))
    if mesh.size == slice_.devices:
        return
    fits = [str(one) for one in plan_inputs.slices_of(slice_.chip.name) if one.devices == mesh.size]
    raise Refused(f"mesh '{mesh}' has {mesh.size:,} devices, slice {slice_} has {slice_.devices:,}",
                  [Offer(f"slice {one}", {"topology": one}) for one in fits])  # fmt: skip


def check(state: State) -> None:
    """Refuse what no menu has, sizes beyond the boxes, and a mesh that is not the slice's."""
    plan_inputs.check_words(state)
    faults = [f"{name} {state[name]!r}: {nearest(state[name], menu)}" for name, menu in MENUS.items()
              if state[name] not in menu]  # fmt: skip
    if state["record"] and state["record"] not in recorded():
        faults.append(f"no record {state['record']!r}; {nearest(state['record'], recorded())}")
    if faults:
        raise LayoutError("\n".join(faults))
    plan_inputs.check_sizes(state, ENDS)


def program_of(state: State) -> mtf.Program:
    """The phase's program; what cannot be planned is refused with ways out."""
    mesh = mtf.Mesh(state["mesh"])
    expect_tpu(plan_inputs.read_slice(state["topology"]))
    try:
        expect_fit(mesh, state["topology"])
    except Refused as fault:
        own = mesh_for(state["topology"])
        raise Refused(str(fault), [Offer(f"mesh {own}", {"mesh": own}), *fault.offers]) from None
    try:
        return _planned(*(state[name] for name in OF_THE_PROGRAM if name != "topology"))
    except LayoutError as fault:
        raise Refused(str(fault), list(_ways_out(state, mesh))) from None


@lru_cache(maxsize=64)
def _planned(
    model: str, phase: str, partition: str, batch: int, tokens: int, weights: str, cache: str, mesh: str
) -> mtf.Program:  # fmt: skip
    ffn, _, attention = partition.rpartition("-")
    return mtf.model.plan_phase(
        plan_inputs.read_model(model), phase, mesh, ffn=ffn, attention=attention, batch=batch, weights=weights,
        cache=cache, **lengths(phase, tokens),
    )  # fmt: skip


def _ways_out(state: State, mesh: mtf.Mesh) -> Iterator[Offer]:
    """Two partitions that can be, and padded heads."""
    cfg, asked = plan_inputs.read_model(state["model"]), lengths(state["phase"], state["tokens"])
    given = (mesh, state["batch"], asked["new_tokens"], asked.get("cached_tokens", 0), state["phase"])
    parts = {name: name.rpartition("-") for name in plan_inputs.PARTITIONS}
    can = [name for name, (ffn, _, attention) in parts.items() if not possible(cfg, ffn, attention, *given)]
    yield from (Offer(name, {"partition": name}) for name in can[:2])
    if padded := plan_inputs.padded_heads(state["model"]):
        yield Offer(f"pad heads: {padded}", {"model": padded})


def mesh_for(topology: str) -> str:
    """The mesh of a slice; that of the start for one that cannot be, which is refused later in full."""
    try:
        return mesh_of(mtf.topology(topology))
    except LayoutError:
        return START["mesh"]
