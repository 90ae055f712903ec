"""What the run explorer asks for: its settings, their controls, and what cannot be, with ways out.

    >>> [name for name in names_of({**START, "what": "collective"})]
    ['what', 'topology', 'mesh', 'kind', 'axes', 'n_bytes']

A state holds the settings of every kind of program, so that going to another kind and back loses nothing; `asked`
keeps those that one kind reads, and a result is of those alone. Next file to read: `run_program`.
"""

from __future__ import annotations

import mtfcore as mtf
from mtfcore.errors import LayoutError, nearest, refuse
from widgets.controls import Choice, Control, IntBox, TextBox
from widgets.explorers import plan_inputs, run_published
from widgets.explorers.examples import EXAMPLES
from widgets.explorers.layer_steps import mesh_of
from widgets.shown import Offer, Refused
from widgets.state import State

KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")
MODELS = ("decode", "prefill", "decode layer", "prefill layer", "feedforward", "attention")
WORDS = {
    "decode": "a decode step", "prefill": "a prefill", "decode layer": "one layer of decode",
    "prefill layer": "one layer of prefill", "feedforward": "one feedforward layer",
    "attention": "one layer's attention in decode", "two_layers": "the first paper's two layers",
    "collective": "one collective",
}  # fmt: skip
TWO = EXAMPLES["two_layers"].settings
START: State = {
    "what": "decode", "topology": "v4:4x4x4", "mesh": "x:4 y:4 z:4", "model": "palm-540b heads=64",
    "partition": "ws2d-batch", "batch": 64, "tokens": 2079, "weights": "int8", "cache": "bf16",
    "layout": TWO["layout"], "sizes": TWO["sizes"], "dtype": "bf16", "kind": "all_gather", "axes": "x",
    "n_bytes": 1 << 20, "repeats": 5,
}  # fmt: skip
OF_A_MODEL = ("model", "partition", "batch", "tokens", "weights", "cache")
ENDS = {"batch": (1, 8192), "tokens": (1, 1 << 20), "n_bytes": (1, 1 << 34), "repeats": (1, 100)}
DTYPES = ("bf16", "f32")


def names_of(state: State) -> tuple[str, ...]:
    """The settings that decide the program and the slice of this kind; how often it is repeated is not one."""
    what = state["what"]
    if what in MODELS:
        return ("what", "topology", "mesh", *OF_A_MODEL)
    if what == "two_layers":
        return ("what", "topology", "mesh", "layout", "sizes", "dtype")
    if what == "collective":
        return ("what", "topology", "mesh", "kind", "axes", "n_bytes")
    return ("what", "topology")  # a program that was given: it has its own mesh


def asked(state: State) -> State:
    """Those settings."""
    return {name: state[name] for name in names_of(state)}


# ---- controls


def controls(state: State, own: str = "") -> list[Control]:
    """What the chosen kind of program reads; `own` names the program that was given."""
    menu = (*WORDS.items(), *([(own, own)] if own else []))
    return [
        Choice("what", state["what"], "run", "Program", options=menu),
        *_of_the_program(state),
        *plan_inputs.slice_controls(state),
        *([] if state["what"] == own else [TextBox("mesh", state["mesh"], "mesh", "Slice", "axes, e.g. x:4 y:4 z:4")]),
    ]


def _of_the_program(state: State) -> list[Control]:
    what = state["what"]
    if what in MODELS:
        return _of_a_model(state)
    if what == "two_layers":
        dtypes = plan_inputs.choices(*DTYPES)
        return [
            TextBox("sizes", state["sizes"], "sizes", "Program", "names and sizes, e.g. batch:64 io:512"),
            TextBox("layout", state["layout"], "layout", "Program", "rules, e.g. batch:rows hidden:cols"),
            Choice("dtype", state["dtype"], "type", "Program", options=dtypes),
        ]
    if what == "collective":
        kinds = tuple((kind, kind.replace("_", "-")) for kind in KINDS)
        return [
            Choice("kind", state["kind"], "kind", "Program", options=kinds),
            TextBox("axes", state["axes"], "over", "Program", "mesh axes, e.g. xy or (rows cols)"),
            IntBox("n_bytes", state["n_bytes"], "bytes of a device", "Program", high=ENDS["n_bytes"][1]),
        ]
    return []


def _of_a_model(state: State) -> list[Control]:
    new = state["what"] in ("prefill", "prefill layer", "feedforward")
    found = run_published.row_of(state)
    listed = [(row.key, run_published.words(row)) for row in run_published.listed()]
    rows, partitions = (("", "your own settings"), *listed), plan_inputs.choices(*plan_inputs.PARTITIONS)
    return [
        Choice("row", found.key if found else "", "as published", "Program", options=rows,
               hint="loads the settings of a row of the papers"),
        *plan_inputs.model_controls(state, "tiny-palm"),
        Choice("partition", state["partition"], "partition", "Model", options=partitions),
        IntBox("batch", state["batch"], "batch", "Request", "sequences at a time", high=ENDS["batch"][1]),
        IntBox("tokens", state["tokens"], "new tokens" if new else "kept tokens", "Request", high=ENDS["tokens"][1]),
        *plan_inputs.type_controls(state),
    ]  # fmt: skip


def edited(state: State, name: str, value: object) -> State:
    """The state after a control was moved."""
    if name == "row":
        row = run_published.by_key(str(value))
        return {**state, **run_published.settings_of(row)} if row else state
    if name in ("preset", "chip", "slice", "topology"):
        moved = plan_inputs.edited(state, name, str(value))
        return {**moved, "mesh": _mesh_for(moved, state)}
    if name == "what" and value != state["what"]:
        moved = {**state, "what": value}
        return {**moved, "mesh": _mesh_for(moved, {})}
    return {**state, name: value}


def _mesh_for(state: State, before: State) -> str:
    """The mesh that suits a new slice or kind of program; the same where neither has changed."""
    if before and state["topology"] == before["topology"]:
        return state["mesh"]
    try:
        slice_ = mtf.topology(state["topology"])
    except LayoutError:  # the sentence says what is wrong with it
        return state["mesh"]
    return two_axes(slice_.devices) if state["what"] == "two_layers" else mesh_of(slice_)


def mesh_for(state: State) -> str:
    """The mesh that suits a state's slice and kind of program."""
    return _mesh_for(state, {})


def two_axes(devices: int) -> str:
    """Rows and columns as alike as they come."""
    rows = next(n for n in range(int(devices**0.5), 0, -1) if devices % n == 0)
    return f"rows:{devices // rows} cols:{rows}"


# ---- what cannot be


def check(state: State, own: str = "") -> None:
    """Refuse words and sizes that cannot be, all at once, with the nearest that can."""
    legal = (*WORDS, *([own] if own else []))
    faults = (
        []
        if state["what"] in legal
        else [f"nothing to run is called {state['what']!r:.100}; {nearest(state['what'], legal)}"]
    )
    if state["what"] in MODELS and state["partition"] not in plan_inputs.PARTITIONS:
        faults.append(f"partition {state['partition']!r:.100}: {nearest(state['partition'], plan_inputs.PARTITIONS)}")
    if state["what"] == "collective" and state["kind"] not in KINDS:
        faults.append(f"kind {state['kind']!r:.100}: {nearest(state['kind'], KINDS)}")
    refuse(faults)
    plan_inputs.check_words({name: state[name] for name in ("weights", "cache")})
    plan_inputs.check_sizes(state, ENDS)


def check_mesh(mesh: mtf.Mesh, topology: str, state: State, own: bool = False) -> None:
    """A slice has as many devices as the mesh; else offer the mesh of this slice, or a slice for this mesh."""
    slice_ = plan_inputs.read_slice(topology)
    if mesh.size == slice_.devices:
        return
    others = [one for one in plan_inputs.slices_of(slice_.chip.name) if one.devices == mesh.size]
    offers = [Offer(str(one), {"topology": str(one)}) for one in others[:1]]
    if not own:
        fits = two_axes(slice_.devices) if state["what"] == "two_layers" else mesh_of(slice_)
        offers.insert(0, Offer(f"mesh {fits}", {"mesh": fits}))
    words = f"mesh '{mesh}' has {mesh.size:,} devices; {slice_} has {slice_.devices:,}"
    raise Refused(words, offers)
