"""How long a looped program takes: permutes of rings run on their links while the device computes.

    device    product 0 | product 1 | product 2 | …      in the program's order, each once its operands have arrived
    link x +  permute 0 | permute 1 | …                   one at a time along each axis and direction
    link x −  permute 0 | permute 1 | …

    >>> prog = mtf.plan(two_layers, "x:4", "hidden:x", sizes="batch:4096 io:8192 hidden:32768",
    ...                 place={"x": "batch io:x"}, dtype="bf16")
    >>> plain, ring = mtf.price(prog, "v4:4x1x1"), mtf.price(mtf.looped(prog), "v4:4x1x1")
    >>> plain.hidden_seconds == 0 < ring.hidden_seconds, ring.seconds < plain.seconds
    (True, True)

A permute begins when the device has come to it in the program, what it sends is there and its link is free. Other
steps, collectives among them, still follow one another on the device, and a loop begins its next turn when all of this
one is done. So this is what a scheduler reaches that keeps the program's order; what rings hide is the difference to
the sum of all steps (`Cost.additive_seconds`). Modelled. Source of the idea: Wang et al. (ASPLOS 2023); arXiv
2211.05102, section 3.5. Next file to read: `cost`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtfcore.costs.pricing.step_cost import StepCost
from mtfcore.steps import Program, Step

Link = tuple[tuple[str, ...], bool]


def is_looped(step: Step) -> bool:
    """Whether a permute belongs to a ring beside which products run (`mtf.looped`)."""
    return step.kind == "permute" and "loop" in step.params


def hidden_seconds(program: Program, steps: Sequence[StepCost]) -> float:
    """Seconds of the sum of all steps that pass while something else runs; 0 in a program without rings."""
    if not any(is_looped(cost.step) for cost in steps):
        return 0.0
    return max(0.0, sum(cost.seconds for cost in steps) - _takes(program, iter(steps)))


def _takes(program: Program, costs: Iterator[StepCost]) -> float:
    """When the last step of a program, or of one turn of a loop, ends."""
    device, links, ready = 0.0, dict[tuple, float](), dict.fromkeys((port.value for port in program.inputs), 0.0)
    for step in program.steps:
        begins = max((ready[value] for value in step.inputs), default=0.0)
        if step.body is not None:
            device = max(device, begins, *links.values()) + step.times * _takes(step.body, costs)
            ends = device
        else:
            took = next(costs).once.total
            if is_looped(step):
                link = (step.axes, step.params["distance"] > 0)
                ends = links[link] = max(device, begins, links.get(link, 0.0)) + took
            else:
                ends = begins
                if took:  # what takes no time is computed where its result is used
                    waits = max(links.values(), default=0.0) if step.is_collective else 0.0
                    ends = device = max(device, begins, waits) + took
        ready |= dict.fromkeys(step.outputs, ends)
    return max(device, *links.values()) if links else device
