"""The second paper's machines: one phase of PaLM or of Megatron-Turing NLG on a slice of v4.

    >>> row = next(row for row in latency_rows() if row.key.startswith("Table 2: low latency, decode"))
    >>> [one.name for one in choices(row.setup, "decode")]
    ['palm-540b/decode/64@2079/ws2d-batch/int8/v4:4x4x4/x4y4z4']

A decode step stands for all steps of an output: it is compiled with as many cached tokens as they have on average.
Where the paper does not print how attention is partitioned both ways are compiled, and so is every way round of the
mesh that the partition can tell: the fastest counts. `looped` are the same programs with rings of permutes where the
price model says that these pay (section 3.5). Source: arXiv 2211.05102. Next file to read: `rows`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import mtfcore as mtf
from mtfcore.compiling.matching import planned
from mtfcore.costs.links.wiring import Wiring
from mtfcore.costs.serving.grids import orientations
from mtfcore.errors import LayoutError
from mtfcore.overlap import looped, pays
from mtfcore.steps import Program
from tpu_runs.papers.machine import Machine

PLANNED = (
    "model", "changes", "phase", "mesh", "ffn", "attention", "batch", "new_tokens", "cached_tokens", "weights", "cache",
)  # fmt: skip
FORMS = ("latency", "throughput")
TIMELINES = (
    "palm-540b/decode/64@2079/ws2d-batch/int8/v4:4x4x4",
    "palm-540b/decode/512@2079/ws2d-batch/bf16/v4:4x4x4",
    "palm-540b/prefill/1x2048/ws2d-heads/int8/v4:4x4x4",
)  # of the plain program and of its first loop, a layer is kept


def choices(setup: Mapping[str, Any], phase: str, passes: int = 1) -> tuple[Machine, ...]:
    """The programs that a published setup may have run; `passes`: so many, each of a part of the sequences."""
    slice_ = mtf.topology(setup["topology"])
    kinds = ("heads", "batch") if setup["attention"] == "auto" else (setup["attention"],)
    return tuple(machine(setup, phase, kind, wired, batch=setup["batch"] // passes)
                 for kind in kinds for wired in orientations(slice_, setup["ffn"]))  # fmt: skip


def machine(setup: Mapping[str, Any], phase: str, attention: str, wired: Wiring, **more: Any) -> Machine:
    """One of them; `more` changes parameters, `changes` among them, or says `partitioned`."""
    partitioned = more.pop("partitioned", False)
    cached = setup["input_tokens"] + max((setup.get("output_tokens") or 0) - 1, 0) // 2
    params = {
        "model": setup["model"], "changes": dict(setup.get("changes", {})), "phase": phase, "mesh": str(wired.mesh),
        "ffn": setup["ffn"], "attention": attention, "batch": setup["batch"],
        "new_tokens": setup["input_tokens"] if phase == "prefill" else 1,
        "cached_tokens": 0 if phase == "prefill" else cached, "weights": setup["weights"], "cache": setup["cache"],
    } | more  # fmt: skip
    return _named(setup["topology"], params, wired.text(), partitioned)


def loops(plain: Machine) -> tuple[Machine, ...]:
    """The same program with rings, in both forms."""
    more = ({"looped": form, "topology": plain.topology} for form in FORMS)
    return tuple(_named(plain.topology, {**plain.params, **each}, plain.wiring) for each in more)


def _named(topology: str, params: dict[str, Any], wiring: str, partitioned: bool = False) -> Machine:
    tokens = f"x{params['new_tokens']}" if params["phase"] == "prefill" else f"@{params['cached_tokens']}"
    changes = [f"{name}={value}" for name, value in params["changes"].items() if name != "heads"]
    ends = [*changes, f"looped-{params['looped']}" if "looped" in params else "", "partitioned" if partitioned else ""]
    parts = (
        params["model"], params["phase"], f"{params['batch']}{tokens}", f"{params['ffn']}-{params['attention']}",
        params["weights"], topology, params["mesh"].replace(":", "").replace(" ", ""), *filter(None, ends),
    )  # fmt: skip
    kept = "/".join(parts[:6]) in TIMELINES and not changes and not partitioned
    return Machine("/".join(parts), "inference", topology, params, wiring, partitioned, kept)


def program(params: Mapping[str, Any]) -> Program:
    """The planned program of a machine's parameters."""
    plain = _plain(json.dumps({name: params[name] for name in PLANNED}, sort_keys=True))
    if form := params.get("looped"):
        steps = params["steps"] if "steps" in params else paying(params)
        if not steps:
            raise LayoutError("no loop pays: each would make the modelled time longer")
        chosen = [id(one.step.params) for one in planned(plain) if one.number in steps]
        return looped(plain, 2, form, lambda step: id(step.params) in chosen)
    return plain


def paying(params: Mapping[str, Any]) -> list[str]:
    """The plan's collectives whose loops shorten the modelled time, by their numbers in the program's table."""
    plain = program({name: params[name] for name in PLANNED})
    wanted = pays(plain, params["topology"], 2, params["looped"])
    return [one.number for one in planned(plain) if wanted(one.step)]


@lru_cache(maxsize=8)
def _plain(text: str) -> Program:
    """By its parameters' text, so that a program and its loops are planned once."""
    params = json.loads(text)
    cfg = mtf.model.config(params.pop("model"), **params.pop("changes"))
    return mtf.model.plan_phase(cfg, params.pop("phase"), params.pop("mesh"), **params)
