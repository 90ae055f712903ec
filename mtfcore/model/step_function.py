"""One training step as ONE named function: forward, backward and update are planned, drawn and priced together.

    step = training_step(loss, {"w": "io:8 hidden:32", "v": "hidden:32 io:8"}, Adam(learning_rate=1e-3))
    prog = mtf.plan(step, "rows:4 cols:2", "batch:rows hidden:cols", sizes="batch:64")

Its arguments are the parameters, the optimizer's state, the number of steps `step`, and whatever else the loss reads
(data). It returns the new parameters and state under the same names, each where the layout places it, and `loss`. So
what comes out of one step goes into the next without moving. Next file to read: `training`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mtfcore as mtf
from mtfcore.dims import parse_dims
from mtfcore.dtypes import canonical
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.functions import Function
from mtfcore.model.block import as_dtype
from mtfcore.model.optimizer_options import expect_params
from mtfcore.model.optimizers import Optimizer, Slot
from mtfcore.tensor import Tensor

STEP, LOSS = "step", "loss"
Gradients = Callable[[Tensor, Mapping[str, Tensor]], Mapping[str, Tensor]]


def training_step(
    loss: Function, params: Mapping[str, Any], optimizer: Optimizer, *, gradients: Gradients | None = None,
    kept: str | None = None,
) -> Function:  # fmt: skip
    """The step that lowers a loss: `params` are those arguments of it to train, with sized dimensions.

    `gradients` may replace `mtf.gradients`: it gets the loss and the parameters, and returns one tensor for each.
    `kept` is the type in which the parameters are kept, where the loss computes in another: planned with dtype="bf16",
    kept="f32" loses no small update, and gradients travel in bf16 (as the first paper's authors trained).

    `loss`: a named function of parameters and data; `optimizer`: such as `mtf.model.Adam()`.

    Raises `LayoutError` for parameters that the loss has not.
    """
    if not isinstance(loss, Function):
        raise LayoutError(f"training_step: loss is {loss!r:.200}; expected a named function that returns the loss")
    if not isinstance(optimizer, Optimizer):
        raise LayoutError(f"training_step: optimizer is {optimizer!r:.200}; expected e.g. Adam(learning_rate=1e-3)")
    texts = {name: " ".join(map(str, _dims(given))) for name, given in expect_params(params, "training_step").items()}
    slots = optimizer.state(texts)
    data = {name: " ".join(map(str, dims)) for name, dims in loss.arguments.items() if name not in texts}
    _check(loss, texts, slots, data)

    def step(**tensors: Tensor) -> dict[str, Tensor]:
        own = {name: tensors[name] for name in texts}
        used = own if kept is None else {name: as_dtype(t, t.graph.dtype) for name, t in own.items()}
        found = mtf.settle(loss(**used, **{name: tensors[name] for name in data}))
        grads = (gradients or mtf.gradients)(found, own)
        state = {name: tensors[name] for name in slots}
        new_params, new_state = optimizer.update(own, grads, state, tensors[STEP])
        return {**_placed(new_params), **_placed(new_state), LOSS: found}

    arguments = texts | {name: " ".join(map(str, slot.dims)) for name, slot in slots.items()} | {STEP: ""} | data
    dtypes = {name: slot.dtype for name, slot in slots.items()} | {STEP: "i32"} | loss.dtypes
    dtypes |= {} if kept is None else dict.fromkeys(texts, canonical(kept))
    return Function.of("training_step", arguments, step, dtypes)


def _dims(given: Any) -> Any:
    return parse_dims(getattr(given, "dims", given))


def _placed(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Each where the layout places its dimensions, so that the next step finds it there."""
    return {name: mtf.reshard(t, " ".join(t.names)) for name, t in tensors.items()}


def _check(loss: Function, texts: Mapping[str, str], slots: Mapping[str, Slot], data: Mapping[str, str]) -> None:
    faults = [f"the loss has no argument {name!r}; {nearest(name, loss.arguments)}" for name in texts
              if name not in loss.arguments]  # fmt: skip
    taken = {**dict.fromkeys(slots, "the optimizer's state"), STEP: "the number of steps", LOSS: "the loss returned"}
    faults += [f"argument {name!r} of the loss has the name of {taken[name]}; rename it" for name in (*texts, *data)
               if name in taken]  # fmt: skip
    refuse(faults, f"training_step of {loss.__name__}")
