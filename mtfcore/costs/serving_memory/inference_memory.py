"""Will it fit? Bytes on one device of an inference deployment, term by term. Pure numpy: arrays broadcast.

    >>> palm = mtf.model.config("palm-540b", heads=64)
    >>> held = device_bytes(palm, (4, 4, 4), batch=512, context=2048, attention="batch", capacity=32 * 2**30)
    >>> held.weights, held.cache, held.fits
    (17447325696.0, 1979711488.0, True)

Terms: weights with their scales, what an optimizer keeps (training only), the activations and the gathered weights of
the fullest moment, the cache; and the reserve, a share of the capacity kept free (10 % unless told otherwise). Both
verdicts are given: `fits_raw`, all terms within the capacity, and `fits`, with the reserve as well. Bytes
are exact: whole float64 numbers up to 2^53. Next file to read: `memory_limits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mtfcore.costs.first_paper.memory import OPTIMIZERS
from mtfcore.costs.serving_memory.activation_bytes import moments
from mtfcore.costs.serving_memory.cache_bytes import Cache, cache
from mtfcore.costs.serving_memory.cuts import ATTENTION, Grid, Numbers, across, among, core, partition
from mtfcore.costs.serving_memory.weight_bytes import Stored, bits_of, evenly, gathered, stored
from mtfcore.errors import LayoutError, refuse
from mtfcore.model.configs import Config

RESERVE = 0.1
TERMS = ("weights", "optimizer", "activations", "gathered", "cache")
MOST = 1e12  # sizes beyond it are a slip of the keyboard
LIMITS = {"context": (0, MOST), "n_params": (1, 1e16)}


@dataclass(frozen=True)
class DeviceBytes:
    """Bytes on one device, by what they are for: numbers, or arrays of the broadcast shape."""

    weights: Numbers  # scales included
    scales: Numbers
    optimizer: Numbers  # gradients and the optimizer's state; 0 in inference
    activations: Numbers  # at the fullest moment
    gathered: Numbers  # at that moment, in weight-gathered layouts
    cache: Numbers
    cache_copies: Numbers  # devices that hold the same part of the cache
    moment: Numbers  # the fullest one: "attention", "feedforward", "logits"
    capacity: Numbers
    reserve: Numbers

    @property
    def total(self) -> Numbers:
        """All terms; the reserve is not one of them."""
        return sum(getattr(self, term) for term in TERMS)

    @property
    def fits_raw(self) -> Numbers:
        """Whether all terms are within the capacity."""
        return self.total <= self.capacity

    @property
    def fits(self) -> Numbers:
        """Whether they are, with the reserve kept free."""
        return self.total <= self.capacity - self.reserve

    @property
    def terms(self) -> dict[str, Numbers]:
        """Name → bytes, in the order in which bars are stacked."""
        return {term: getattr(self, term) for term in TERMS}


def device_bytes(
    cfg: Config, grid: Grid, *, batch: Numbers = 1, context: Numbers = 2048, new_tokens: Numbers = 1,
    weights: Any = "bf16", cache_dtype: Any = "bf16", activations: Any = "bf16", ffn: str = "ws2d",
    attention: str = "heads", capacity: Numbers = np.inf, reserve: Numbers = RESERVE, scales: str = "bf16",
    gathered_kept: str = "matrix", scores: str = "tiled", optimizer: str = "none", n_params: Numbers | None = None,
    few_copies: bool = False,
) -> DeviceBytes:  # fmt: skip
    """Bytes on one device of the grid x, y, z, while `new_tokens` of each sequence pass and `context` are cached.

    `attention="even"` is the floor that no layout may reach: weights and cache lie evenly over all devices. `n_params`
    stands in for the declaration's count, evenly too, e.g. where a text says 13e9.
    """
    now = _now(
        cfg, grid, batch=batch, context=context, new_tokens=new_tokens, weights=weights, cache_dtype=cache_dtype,
        activations=activations, ffn=ffn, attention=attention, scales=scales, gathered_kept=gathered_kept,
        scores=scores, optimizer=optimizer, n_params=n_params, few_copies=few_copies,
    )  # fmt: skip
    moment, active, copied = _fullest(now.alive, now.collected)
    return _broadcast(now, moment, active, copied, capacity, check_room(capacity, reserve))


def by_moment(cfg: Config, grid: Grid, **how: Any) -> Numbers:
    """The total at each moment, `how` as in `device_bytes`: one row a moment. `memory_limits` reads growth off it."""
    now = _now(cfg, grid, **how)
    fixed = now.held.weights + now.state + now.kept.bytes
    return np.stack(np.broadcast_arrays(*[now.alive[name] + now.collected[name] + fixed for name in now.alive]))


class _Now(NamedTuple):
    """All terms while one pass runs, the changing ones by moment."""

    held: Stored
    state: Numbers
    kept: Cache
    alive: dict[str, Numbers]
    collected: dict[str, Numbers]


def _now(
    cfg: Config, grid: Grid, *, batch: Numbers = 1, context: Numbers = 2048, new_tokens: Numbers = 1,
    weights: Any = "bf16", cache_dtype: Any = "bf16", activations: Any = "bf16", ffn: str = "ws2d",
    attention: str = "heads", scales: str = "bf16", gathered_kept: str = "matrix", scores: str = "tiled",
    optimizer: str = "none", n_params: Numbers | None = None, few_copies: bool = False,
) -> _Now:  # fmt: skip
    check(cfg, grid, batch=batch, context=context, new_tokens=new_tokens, n_params=n_params)
    how = {"ffn": partition(ffn).name, "attention": among("attention", attention, ATTENTION)}
    held = _weights(cfg, grid, weights, scales, n_params, **how)
    cut = core(cfg, grid, ffn, attention, batch, new_tokens)
    passing = {"batch": batch, "context": context, "cut": cut, **how}
    alive = moments(cfg, grid, new_tokens=new_tokens, dtype=activations, scores=scores, **passing)
    return _Now(
        held,
        _optimizer(optimizer, held.weights - held.scales, bits_of(weights, "weights") / 8),
        cache(cfg, grid, dtype=cache_dtype, scales=scales, few_copies=few_copies, **passing),
        alive,
        {"logits": 0.0, **gathered(cfg, grid, ffn, weights, gathered_kept)},
    )


def check(cfg: Config, grid: Grid, **numbers: Any) -> None:
    """Refuse what is no size, naming all of it."""
    if not isinstance(cfg, Config):
        raise LayoutError(f"memory: expected a configuration, mtf.model.config(name), got {cfg!r:.100}")
    three = isinstance(grid, (tuple, list, np.ndarray)) and len(grid) == 3
    faults = [] if three else [f"grid is {grid!r:.100}; expected three sizes, x, y and z"]
    for name, value in {**dict(zip("xyz", grid if three else (), strict=False)), **numbers}.items():
        least, most = LIMITS.get(name, (1, MOST))
        known = value is not None or name != "n_params"
        if known and not _all(value, lambda a, least=least, most=most: (a >= least) & (a <= most)):
            what = f"{name} is {value!r:.100}"
            faults.append(f"{what}; expected whole numbers from {least} to {most:.0e}, many as an array")
    if cfg.encoder_layers:
        faults.append(f"{cfg.name} has an encoder; inference memory is for decoders alone, try encoder_layers=0")
    refuse(faults, "memory")


def check_room(capacity: Numbers, reserve: Numbers) -> Numbers:
    """The bytes to keep free: a share of the capacity. Refuses what is neither."""
    faults = []
    if not _all(capacity, lambda a: a > 0, whole=False):
        faults.append(f"capacity is {capacity!r:.100}; expected bytes of one device, e.g. 32 * 2**30")
    if not _all(reserve, lambda a: (a >= 0) & (a < 1), whole=False):
        faults.append(f"reserve is {reserve!r:.100}; expected a share from 0 up to, not including, 1")
    refuse(faults, "memory")
    return np.where(np.isfinite(capacity), np.asarray(reserve) * np.where(np.isfinite(capacity), capacity, 0), 0.0)


def _all(value: Any, holds: Any, whole: bool = True) -> bool:
    """Whether every number of an array holds, and is whole; lists are no arrays here."""
    if isinstance(value, (list, tuple)):
        return False
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        return False
    with np.errstate(invalid="ignore"):
        return bool(np.all(holds(array) & ((array == np.floor(array)) if whole else True)))


def _weights(
    cfg: Config, grid: Grid, weights: Any, scales: str, n_params: Numbers | None, ffn: str, attention: str
) -> Stored:
    if n_params is None and attention != "even":
        return stored(cfg, grid, ffn, weights, scales)
    return Stored(evenly(cfg, across(grid, "xyz"), weights, n_params), 0.0)


def _fullest(alive: dict[str, Numbers], collected: dict[str, Numbers]) -> tuple[Numbers, Numbers, Numbers]:
    """Which moment holds most, and what it holds: its name, activations, gathered weights."""
    names = list(alive)
    pairs = np.broadcast_arrays(*[alive[name] for name in names], *[collected[name] for name in names])
    active, copied = np.stack(pairs[: len(names)]), np.stack(pairs[len(names) :])
    at = np.argmax(active + copied, axis=0)[None]
    take = [np.take_along_axis(array, at, axis=0)[0] for array in (active, copied)]
    return np.array(names)[at[0]], *take


def _optimizer(name: str, weights: Numbers, n_bytes: Numbers) -> Numbers:
    """Gradients as the weights are stored, and f32 state: two moments for Adam. Adafactor's rows and columns are a
    thousandth of that and left out."""
    if among("optimizer", name, ("none", *OPTIMIZERS)) == "none":
        return 0.0
    return weights + weights / n_bytes * {"sgd": 0, "adam": 8, "adafactor": 0}[name]


def _broadcast(
    now: _Now, moment: Numbers, active: Numbers, copied: Numbers, capacity: Numbers, free: Numbers
) -> DeviceBytes:
    """One shape for all; plain numbers where every input was one."""
    found = np.broadcast_arrays(
        *now.held, now.state, active, copied, now.kept.bytes, now.kept.copies, moment, capacity, free
    )
    return DeviceBytes(*[array.item() if array.ndim == 0 else array for array in found])
