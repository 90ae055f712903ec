"""Optimizers as named operations: SGD, Adam and Adafactor. State is more tensors, laid out by the same layout.

    opt = Adam(learning_rate=1e-3, clip=1.0)
    opt.state({"w": "io:512 hidden:2048"})       # {"w_mean": Slot("w_mean", (io:512, hidden:2048), "f32", 0.0), …}

    new_params, new_state = opt.update(params, grads, state, step)       # inside a named function; all by name

Every update is elementwise in a parameter's own dimensions, so it lies where the parameter lies and sends nothing;
only norms and Adafactor's row and column means cross a split dimension. This is how one layout shards the optimizer
too (Mesh-TensorFlow, arXiv 1811.02084, whose authors' code trains with Adafactor). Lesson 06 uses it. Next file to
read: `step_function`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import mtfcore as mtf
from mtfcore.dims import Dim, parse_dims, volume
from mtfcore.errors import LayoutError, nearest, refuse, sure
from mtfcore.model.block import as_dtype
from mtfcore.model.optimizer_options import expect_params, option_faults
from mtfcore.tensor import Tensor

Tensors = Mapping[str, Tensor]
Rate = float | Callable[[Tensor], Any]  # a number, or a function of the number of this update (f32, 1 the first time)


class Slot(NamedTuple):
    """One tensor of an optimizer's state: the named array to begin with is full of `init`."""

    name: str
    dims: tuple[Dim, ...]
    dtype: str
    init: float = 0.0


def warmup(rate: float, steps: int) -> Callable[[Tensor], Tensor]:
    """A learning rate that rises to `rate` over `steps` updates, then falls as 1/sqrt (arXiv 1706.03762, 5.3)."""
    return lambda t: mtf.minimum(t * (rate / steps), mtf.rsqrt(t) * (rate * steps**0.5))


@dataclass(frozen=True, kw_only=True)
class Optimizer(ABC):
    """What all share: gradients clipped by their global norm, arithmetic in f32, parameters kept in their dtype."""

    clip: float | None = None
    dtype: str = "f32"  # of the state

    def __post_init__(self) -> None:
        refuse(option_faults(self), type(self).__name__)

    @abstractmethod
    def parts(self, dims: tuple[Dim, ...]) -> dict[str, tuple[Dim, ...]]:
        """The state of one parameter: the end of the slot's name → its dimensions."""

    @abstractmethod
    def change(self, w: Tensor, g: Tensor, state: dict[str, Tensor], t: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """What is taken off one parameter, and its new state, from f32 tensors."""

    def state(self, params: Mapping[str, Any]) -> dict[str, Slot]:
        """The declarations of the state of `params`: tensors, things with `.dims`, or texts such as "E:8 F:16"."""
        found = {}
        for name, given in expect_params(params, "state").items():
            for end, dims in self.parts(_sized(name, given)).items():
                found[f"{name}_{end}"] = Slot(f"{name}_{end}", dims, self.dtype)
        return found

    def update(self, params: Tensors, grads: Tensors, state: Tensors, step: Tensor) -> tuple[dict, dict]:
        """One step: (new parameters, new state), under the same names. `step` is the number of steps before, i32."""
        _check(params, grads, state, self.state(params))
        t = mtf.cast(step, "f32") + 1
        scaled = self._clipped({name: _f32(grads[name]) for name in params})
        new_params, new_state = dict[str, Tensor](), dict[str, Tensor]()
        for name, w in params.items():
            own = {end: _f32(state[f"{name}_{end}"]) for end in self.parts(w.dims)}
            change, after = self.change(_f32(w), scaled[name], own, t)
            new_params[name] = as_dtype(_f32(w) - change, w.dtype)
            new_state |= {f"{name}_{end}": as_dtype(s, state[f"{name}_{end}"].dtype) for end, s in after.items()}
        return new_params, new_state

    def _clipped(self, grads: Tensors) -> Tensors:
        """All gradients made shorter by one factor where their common norm exceeds `clip` (arXiv 1211.5063)."""
        if self.clip is None:
            return grads
        norm = mtf.sqrt(reduce(mtf.add, [mtf.sum(mtf.square(g)) for g in grads.values()]))
        factor = self.clip / mtf.maximum(norm, self.clip)
        return {name: g * factor for name, g in grads.items()}


@dataclass(frozen=True)
class SGD(Optimizer):
    """w - rate · g, or with momentum w - rate · m where m = momentum · m + g."""

    learning_rate: Rate
    momentum: float = 0.0

    def parts(self, dims: tuple[Dim, ...]) -> dict[str, tuple[Dim, ...]]:
        return {"momentum": dims} if self.momentum else {}

    def change(self, w: Tensor, g: Tensor, state: dict[str, Tensor], t: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        m = state["momentum"] * self.momentum + g if self.momentum else g
        return m * _rate(self.learning_rate, t), {"momentum": m} if self.momentum else {}


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam with bias correction (arXiv 1412.6980); weight decay is apart from the gradient (arXiv 1711.05101)."""

    learning_rate: Rate
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0

    def parts(self, dims: tuple[Dim, ...]) -> dict[str, tuple[Dim, ...]]:
        return {"mean": dims, "square": dims}

    def change(self, w: Tensor, g: Tensor, state: dict[str, Tensor], t: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        mean = state["mean"] * self.beta1 + g * (1 - self.beta1)
        square = state["square"] * self.beta2 + mtf.square(g) * (1 - self.beta2)
        # the zeros that the averages began with still weigh beta^t
        root = mtf.sqrt(square / (1 - mtf.power(self.beta2, t)))
        change = mean / (1 - mtf.power(self.beta1, t)) / (root + self.eps) + w * self.weight_decay
        return change * _rate(self.learning_rate, t), {"mean": mean, "square": square}


@dataclass(frozen=True)
class Adafactor(Optimizer):
    """Adafactor (arXiv 1804.04235, algorithms 4 and 5): second moments kept as the means of rows and of columns.

    A parameter is factored along its two largest dimensions; with fewer than two it keeps all its second moments.
    `learning_rate=None` is the paper's relative step min(0.01, 1/sqrt(t)). Each entry of a `stacked` dimension
    counts as a parameter of its own, so stacking layers changes nothing.
    """

    learning_rate: Rate | None = None
    decay: float = 0.8  # beta2 at step t is 1 - t^-decay
    eps1: float = 1e-30
    eps2: float = 1e-3
    clip_threshold: float = 1.0
    scale_parameter: bool = True
    momentum: float = 0.0
    stacked: tuple[str, ...] = ("layers",)

    def parts(self, dims: tuple[Dim, ...]) -> dict[str, tuple[Dim, ...]]:
        found = {"momentum": dims} if self.momentum else {}
        if pair := self.factored(dims):
            row, col = pair
            return {"rows": _without(dims, col), "cols": _without(dims, row), **found}
        return {"square": dims, **found}

    def factored(self, dims: tuple[Dim, ...]) -> tuple[str, str] | None:
        """The two dimensions whose rows and columns are kept: the largest, in the tensor's order."""
        own = sorted((d for d in dims if d.name not in self.stacked), key=lambda d: -sure(d.size))[:2]
        names = [d.name for d in dims if d in own]
        return (names[0], names[1]) if len(names) == 2 else None

    def change(self, w: Tensor, g: Tensor, state: dict[str, Tensor], t: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        beta2 = 1 - mtf.power(t, -self.decay)
        factors, state = self._moments(mtf.square(g) + self.eps1, state, beta2)
        update = reduce(mtf.multiply, factors, g)
        update = update / mtf.maximum(self._rms(update) / self.clip_threshold, 1.0)
        rate = mtf.minimum(mtf.rsqrt(t), 1e-2) if self.learning_rate is None else _rate(self.learning_rate, t)
        if self.scale_parameter:
            rate = mtf.maximum(self._rms(w), self.eps2) * rate
        change = update * rate
        if self.momentum:
            change = state["momentum"] * self.momentum + change * (1 - self.momentum)
            state = {**state, "momentum": change}
        return change, state

    def _moments(
        self, squares: Tensor, state: dict[str, Tensor], beta2: Tensor
    ) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Factors whose product is 1/sqrt of the second moments, one by row and one by column; and the new state."""
        pair = self.factored(squares.dims)
        if pair is None:
            square = _blend(state["square"], squares, beta2)
            return [mtf.rsqrt(square)], {**state, "square": square}
        row, col = pair
        rows = _blend(state["rows"], _mean(squares, col), beta2)
        cols = _blend(state["cols"], _mean(squares, row), beta2)
        factors = [mtf.rsqrt(rows / _mean(rows, row)), mtf.rsqrt(cols)]
        return factors, {**state, "rows": rows, "cols": cols}

    def _rms(self, t: Tensor) -> Tensor:
        """Root mean square over all but the stacked dimensions."""
        own = [name for name in t.names if name not in self.stacked]
        return mtf.sqrt(_mean(mtf.square(t), *own)) if own else mtf.absolute(t)


def _blend(old: Tensor, new: Tensor, beta: Tensor) -> Tensor:
    return old * beta + new * (1 - beta)


def _mean(t: Tensor, *gone: str) -> Tensor:
    """The mean over some dimensions, summed at once to where the layout places what is left."""
    kept = " ".join(name for name in t.names if name not in gone)
    size = volume(t.dim(name) for name in gone)
    return mtf.sum(t, gone, out=kept) * (1 / size)


def _rate(rate: Rate, t: Tensor) -> Any:
    return rate(t) if callable(rate) else rate


def _without(dims: tuple[Dim, ...], name: str) -> tuple[Dim, ...]:
    return tuple(dim for dim in dims if dim.name != name)


def _f32(t: Tensor) -> Tensor:
    return as_dtype(t, "f32")


def _sized(name: str, given: Any) -> tuple[Dim, ...]:
    dims = parse_dims(getattr(given, "dims", given))
    lacking = [f"dimension {dim.name!r} has no size; write e.g. '{dim.name}:512'" for dim in dims if dim.size is None]
    refuse(lacking, f"state of parameter {name}")
    return dims


def _check(params: Tensors, grads: Tensors, state: Tensors, slots: Mapping[str, Slot]) -> None:
    """Refuse what does not fit together, all at once."""
    faults = [f"no gradient of {name!r}; {nearest(name, grads)}" for name in params if name not in grads]
    faults += [f"no state {name!r}; {nearest(name, state)}" for name in slots if name not in state]
    for name, w in params.items():
        g = grads.get(name, w)
        if set(g.dims) != set(w.dims):
            faults.append(f"{name} is {w!r}, its gradient {g!r}: they must have the same dimensions")
    for name, slot in slots.items():
        if name in state and state[name].dims != slot.dims:
            faults.append(f"state {name} is '{_text(state[name].dims)}', expected '{_text(slot.dims)}'")
    if not params:
        raise LayoutError("update: no parameters; expected e.g. {'w': w}")
    refuse(faults, "update")


def _text(dims: tuple[Dim, ...]) -> str:
    return " ".join(map(str, dims))
