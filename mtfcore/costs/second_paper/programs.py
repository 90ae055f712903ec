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
from mtfcore.functions import Function
from mtfcore.model.serving import FEEDFORWARD


def planned(
    layout: str, mesh: tuple[int, int, int], batch: int, length: int, d_model: int, d_ff: int, gated: bool = False,
    dtype: str = "bf16", weights: str = "",
) -> mtf.Program:  # fmt: skip
    """One feedforward layer under a layout, on a mesh x, y, z: activations and weights begin where they rest."""
    sizes = f"B:{batch} L:{length} E:{d_model} F:{d_ff}"
    fn = layer(layout, gated, weights)
    return mtf.plan(fn, "x:{} y:{} z:{}".format(*mesh), sizes=sizes, place=places(layout, gated), dtype=dtype)


def places(layout: str, gated: bool = False) -> dict[str, str]:
    """Where the inputs of a layout's layer rest: x between layers, and the matrices."""
    at = FEEDFORWARD[layout].sites
    out = " ".join(at["stored"].split()[::-1])
    return {"x": at["residual"], "w_in": at["stored"], **({"w_gate": at["stored"]} if gated else {}), "w_out": out}


def layer(layout: str, gated: bool = False, weights: str = "") -> Function:
    """The layer as a named function, called as its layout is.

    `weights` is the dtype in which they are stored and moved, if it is not that of the activations. Of int8 the
    scales, one number an output channel, are left out.
    """
    at = FEEDFORWARD[layout].sites

    def used(w: mtf.Tensor, site: str, x: mtf.Tensor) -> mtf.Tensor:
        """Moved as it is stored, then made what is multiplied."""
        return mtf.cast(mtf.reshard(w, mtf.Sharding(at[site])), x.dtype) if weights else w

    def product(x: mtf.Tensor, w: mtf.Tensor, out: str, sites: tuple[str, str]) -> mtf.Tensor:
        return mtf.einsum(x, used(w, sites[1], x), out=at[out], at=[at[site] for site in sites])

    def call(x: mtf.Tensor, w_in: mtf.Tensor, w_out: mtf.Tensor, w_gate: mtf.Tensor | None = None) -> mtf.Tensor:
        h = product(x, w_in, "hidden", ("x", "w_in"))
        h = mtf.gelu(h) if w_gate is None else mtf.silu(product(x, w_gate, "hidden", ("x", "w_in"))) * h
        return product(h, w_out, "residual", ("h", "w_out"))

    arguments = {"x": "B L E", "w_in": "E F", **({"w_gate": "E F"} if gated else {}), "w_out": "F E"}
    stored = {name: weights for name in arguments if name != "x" and weights}
    return Function.of(layout, arguments, call, stored)


def paper_bytes(program: mtf.Program, without: str = "") -> int:
    """Bytes that one device moves as the paper counts them: what a gather makes, what a reduce-scatter takes.

    `without` leaves out a dtype, such as f32 for the sums of a layer's norms, which the paper does not count.
    """
    return sum(n_bytes for step, n_bytes in paper_steps(program) if step.dtype != without)


def paper_steps(program: mtf.Program) -> list[tuple[mtf.Step, int]]:
    """Every collective with its bytes, in all its turns, as the paper counts them."""
    left_out = {step.output for step in joined_gathers(program)}
    kept = (step for step in program.collectives() if step.output not in left_out)
    return [(step, _larger_side(step) * step.times) for step in kept]


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
