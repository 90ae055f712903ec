"""What of a plan is really needed: JAX drops the rest when it runs, so a plan with it would promise too much.

Dropped are moves to a place that was asked for and that nothing then reads, operations whose result is not returned,
and of loops the outputs that nobody reads, with all that only they need. Next file to read: `mtfcore.execute`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

from mtfcore.errors import sure
from mtfcore.steps import Program, Step

T = TypeVar("T")


def needed(steps: Sequence[Step], read: set[int]) -> tuple[Step, ...]:
    """The steps that some value of `read` needs; `read` grows by all that these read."""
    kept = []
    for step in reversed(steps):
        if read.isdisjoint(step.outputs):
            continue
        slim = step if step.body is None else slimmed(step, read)
        kept.append(slim)
        read.update(slim.inputs)
    return tuple(reversed(kept))


def slimmed(step: Step, read: set[int]) -> Step:
    """A loop without the outputs that nobody reads, and without the inputs that only they need."""
    body, n_carry = sure(step.body), step.params["n_carry"]
    keep = [value in read for value in step.outputs]
    steps, used = _turn(body, keep)
    while more := [k for k in range(n_carry) if not keep[k] and body.inputs[k].value in used]:
        for k in more:  # a carry that the turn itself reads
            keep[k] = True
        steps, used = _turn(body, keep)
    take = [keep[k] if k < n_carry else port.value in used for k, port in enumerate(body.inputs)]
    if all(keep) and all(take) and len(steps) == len(body.steps):
        return step
    ports = tuple(_some(body.inputs, take))
    outputs = tuple(_some(body.outputs, keep))
    values = [port.value for port in ports] + [value for inner in steps for value in inner.outputs]
    inner = dataclasses.replace(
        body, inputs=ports, outputs=outputs, steps=steps, dtypes={v: body.dtypes[v] for v in values},
        shardings={v: body.shardings[v] for v in values},
    )  # fmt: skip
    params = {**step.params, "n_carry": sum(keep[:n_carry])}
    params["n_stacked"] = sum(take[n_carry : n_carry + step.params["n_stacked"]])
    first, *more = _some(step.outputs, keep)
    after, dtype = (outputs[0].sharding, outputs[0].dtype) if params["n_carry"] else (step.after, step.dtype)
    return dataclasses.replace(
        step, inputs=tuple(_some(step.inputs, take)), before=tuple(_some(step.before, take)), output=first,
        more=tuple(more), after=after, dtype=dtype, params=params, body=inner,
    )  # fmt: skip


def _turn(body: Program, keep: list[bool]) -> tuple[tuple[Step, ...], set[int]]:
    used = {port.value for port in _some(body.outputs, keep)}
    return needed(body.steps, used), used


def _some(items: Sequence[T], keep: Sequence[bool]) -> list[T]:
    return [item for item, kept in zip(items, keep, strict=True) if kept]
