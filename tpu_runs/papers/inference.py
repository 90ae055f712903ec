"""The second paper's machines: one phase of PaLM or of Megatron-Turing NLG on a slice of v4.

    >>> row = next(row for row in latency_rows() if row.key.startswith("Table 2: low latency, decode"))
    >>> [one.name for one in choices(row.setup, "decode")]
    ['palm-540b/decode/64@2079/ws2d-batch/int8/v4:4x4x4/x4y4z4']

A decode step stands for all steps of an output: it is compiled with as many cached tokens as they have on average.
Where the paper does not print how attention is partitioned both ways are compiled, and so is every way round of the
mesh that the partition can tell: the fastest counts. A loop is the same program with some collectives as rings of
permutes (section 3.5), those that send most. Source: arXiv 2211.05102. Next file to read: `rows`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import mtfcore as mtf
from mtfcore.compiling.matching import planned
from mtfcore.costs.links.wiring import Wiring
from mtfcore.costs.serving.grids import orientations
from mtfcore.errors import LayoutError
from mtfcore.overlap import looped
from mtfcore.steps import Program, Step
from tpu_runs.papers.machine import Machine

PLANNED = (
    "model", "changes", "phase", "mesh", "ffn", "attention", "batch", "new_tokens", "cached_tokens", "weights", "cache",
)  # fmt: skip
LOOPS = ("all_gather", "reduce_scatter")


def choices(setup: Mapping[str, Any], phase: str, passes: int = 1) -> tuple[Machine, ...]:
    """The programs that a published setup may have run; `passes`: so many, each of a part of the sequences."""
    slice_ = mtf.topology(setup["topology"])
    kinds = ("heads", "batch") if setup["attention"] == "auto" else (setup["attention"],)
    return tuple(machine(setup, phase, kind, wired, batch=setup["batch"] // passes)
                 for kind in kinds for wired in orientations(slice_, setup["ffn"]))  # fmt: skip


def machine(setup: Mapping[str, Any], phase: str, attention: str, wired: Wiring, **more: Any) -> Machine:
    """One of them; `more` are other parameters than the setup's."""
    cached = setup["input_tokens"] + max((setup.get("output_tokens") or 0) - 1, 0) // 2
    params = {
        "model": setup["model"], "changes": dict(setup.get("changes", {})), "phase": phase, "mesh": str(wired.mesh),
        "ffn": setup["ffn"], "attention": attention, "batch": setup["batch"],
        "new_tokens": setup["input_tokens"] if phase == "prefill" else 1,
        "cached_tokens": 0 if phase == "prefill" else cached, "weights": setup["weights"], "cache": setup["cache"],
    } | more  # fmt: skip
    return Machine(_name(params, setup["topology"]), "inference", setup["topology"], params, wired.text())


def _name(params: Mapping[str, Any], topology: str) -> str:
    tokens = f"x{params['new_tokens']}" if params["phase"] == "prefill" else f"@{params['cached_tokens']}"
    changes = [f"{name}={value}" for name, value in params["changes"].items() if name != "heads"]
    return "/".join([
        params["model"], params["phase"], f"{params['batch']}{tokens}", f"{params['ffn']}-{params['attention']}",
        params["weights"], topology, params["mesh"].replace(":", "").replace(" ", ""), *changes,
    ])  # fmt: skip


def changed(one: Machine, **changes: Any) -> Machine:
    """The same phase of a model that differs so: `block="serial"`."""
    params = {**one.params, "changes": {**one.params["changes"], **changes}}
    return replace(one, name=_name(params, one.topology), params=params)


def looping(one: Machine, form: str, largest: int, axes: str = "") -> Machine:
    """The same program with its so many largest loops, of those along these axes."""
    name = f"{one.name}/looped-{form}-{axes}{largest}"
    return replace(one, name=name, params={**one.params, "looped": form, "largest": largest, "axes": axes})


def by_compiler(one: Machine) -> Machine:
    """The same function on whole arrays: the compiler's partitioner chooses."""
    return replace(one, name=f"{one.name}/partitioned", partitioned=True)


# ---- programs -------------------------------------------------------------------------------------------------------


def program(params: Mapping[str, Any]) -> Program:
    """The planned program of a machine's parameters."""
    plain = _plain(json.dumps({name: params[name] for name in PLANNED}, sort_keys=True))
    if form := params.get("looped"):
        chosen = [id(step.params) for step in _largest(plain, form, params["largest"], params["axes"])]
        return looped(plain, 2, form, lambda step: id(step.params) in chosen)
    return plain


@lru_cache(maxsize=8)
def _plain(text: str) -> Program:
    """By its parameters' text, so that a program and its loops are planned once."""
    params = json.loads(text)
    cfg = mtf.model.config(params.pop("model"), **params.pop("changes"))
    return mtf.model.plan_phase(cfg, params.pop("phase"), params.pop("mesh"), **params)


def _largest(plain: Program, form: str, most: int, axes: str) -> list[Step]:
    """The collectives that can be rings beside products, those that send most first."""
    found = [one for one in planned(plain) if one.kind in LOOPS and axes in ("", "".join(one.axes))]
    found.sort(key=lambda one: -one.times * one.link_bytes)
    return [one.step for one in found if _can(plain, form, one.step)][:most]


def _can(plain: Program, form: str, step: Step) -> bool:
    try:
        looped(plain, 2, form, lambda other: other.params is step.params)
    except LayoutError:  # a step between it and the product needs it whole
        return False
    return True
