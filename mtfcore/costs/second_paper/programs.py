"""The feedforward layer of each layout as a planned program, so that a closed form and a plan can be held together.

    >>> plan = planned("ws2d", (4, 2, 2), batch=16, length=1, d_model=64, d_ff=256)
    >>> [(step.kind, "".join(step.axes)) for step in plan.collectives()]
    [('all_gather', 'zy'), ('reduce_scatter', 'x'), ('all_gather', 'x'), ('reduce_scatter', 'zy')]
    >>> paper_bytes(plan), plan.link_bytes().total                             # as layout_bytes, and as it is exact
    (5120, 3840)

Where each operand lies is data, `model.serving.FEEDFORWARD`; the function asks for no layout's name. `paper_bytes`
counts a plan's collectives as the paper does, the larger side of each; a plan's own `link_bytes()` keeps (K-1)/K, as
the closed forms do with `exact`. Source: arXiv 2211.05102, Figures 2 and A.1. The last file of `second_paper`;
next file to read: `model/pins`.
"""

from __future__ import annotations

import mtfcore as mtf
from mtfcore.model.serving import FEEDFORWARD


def planned(
    layout: str, mesh: tuple[int, int, int], batch: int, length: int, d_model: int, d_ff: int, gated: bool = False,
    dtype: str = "bf16",
) -> mtf.Program:  # fmt: skip
    """One feedforward layer under a layout, on a mesh x, y, z: activations and weights begin where they rest."""
    at = FEEDFORWARD[layout].sites
    stored = at["stored"].split()
    place = {"x": at["residual"], "w_in": at["stored"], "w_gate": at["stored"], "w_out": " ".join(stored[::-1])}
    layer = _gated(at) if gated else _plain(at)
    if not gated:
        del place["w_gate"]
    sizes = f"B:{batch} L:{length} E:{d_model} F:{d_ff}"
    return mtf.plan(layer, "x:{} y:{} z:{}".format(*mesh), sizes=sizes, place=place, dtype=dtype)


def _plain(at: dict[str, str]) -> mtf.Function:
    @mtf.function
    def feedforward(x: "B L E", w_in: "E F", w_out: "F E"):
        h = mtf.gelu(mtf.einsum(x, w_in, out=at["hidden"], at=[at["x"], at["w_in"]]))
        return mtf.einsum(h, w_out, out=at["residual"], at=[at["h"], at["w_out"]])

    return feedforward


def _gated(at: dict[str, str]) -> mtf.Function:
    @mtf.function
    def feedforward(x: "B L E", w_in: "E F", w_gate: "E F", w_out: "F E"):
        h = mtf.einsum(x, w_in, out=at["hidden"], at=[at["x"], at["w_in"]])
        gate = mtf.einsum(x, w_gate, out=at["hidden"], at=[at["x"], at["w_in"]])
        return mtf.einsum(mtf.silu(gate) * h, w_out, out=at["residual"], at=[at["h"], at["w_out"]])

    return feedforward


def paper_bytes(program: mtf.Program, without: str = "") -> int:
    """Bytes that one device moves as the paper counts them: what a gather makes, what a reduce-scatter takes.

    `without` leaves out a dtype, such as f32 for the sums of a layer's norms, which the paper does not count.
    """
    left_out = {step.output for step in joined_gathers(program)}
    counted = [step for step in program.collectives() if step.output not in left_out and step.dtype != without]
    return sum(_larger_side(step) * step.times for step in counted)


def joined_gathers(program: mtf.Program) -> list[mtf.Step]:
    """Gathers whose result only another gather reads, as of `E:x F:zy` first over zy and then over x.

    The paper counts the two as one over all their axes. With (K-1)/K kept that is the sum of both; without, the larger
    side of the last is all there is.
    """
    readers: dict[int, list[mtf.Step]] = {}
    for step in program.steps:
        for value in step.inputs:
            readers.setdefault(value, []).append(step)
    gathers = [step for step in program.steps if step.kind == "all_gather"]
    return [step for step in gathers if [reader.kind for reader in readers.get(step.output, ())] == ["all_gather"]]


def _larger_side(step: mtf.Step) -> int:
    return step.n_bytes * {"all_gather": step.group, "all_reduce": 2}.get(step.kind, 1)
