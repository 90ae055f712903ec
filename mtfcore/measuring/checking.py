"""The answer of a run, checked before anybody sees its time: against `mtf.single`, where that fits.

    >>> checked(program, results, None, devices)
    {'against': 'mtf.single on the CPU', 'error': 2.1e-07, 'tolerance': 0.001}

The error is the largest difference as a share of the largest right value, over all results and every device's part; of
whole numbers and truth values the share that differs, but int8 that stores floats counts as what it stores. Allowed is
`TOLERANCE` of the narrowest float that the program computes in: sums in another order differ by less, a lost block or a
partial sum taken for a sum by far more. On chips f32 products run as bf16 (TPUs) or TF32 (GPUs) unless JAX is told
otherwise, so more is allowed there. A result that is off by more raises `WrongAnswer`, and no time is shown. Next file
to read: `subject`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mtfcore.dims import volume
from mtfcore.dtypes import is_float, itemsize, long_name
from mtfcore.measuring import filling
from mtfcore.measuring.places import free_bytes, near
from mtfcore.numbers import format_bytes, quantity
from mtfcore.steps import Port, Program
from mtfcore.tensor import Graph

ORACLE_BYTES = 2 * 2**30  # the most that `mtf.single` may need on this computer
ORACLE_FLOPS = 5e10  # and, beside a chip, the most FLOPs; larger programs are checked by the chip itself
TOLERANCE = {"f64": 1e-9, "f32": 1e-3, "f16": 1e-2, "bf16": 5e-2}
F32_PRODUCTS = {"tpu": 5e-2, "gpu": 1e-2, "cuda": 1e-2}
STEP = 1 / 127  # of a float stored as int8: its neighbour is as right
WHOLE_NUMBERS = 0.05  # of whole numbers that follow from narrow floats, such as the place of the largest
EVERY_COPY = 2**24  # elements up to which all copies of a part are compared, not only the first


class WrongAnswer(RuntimeError):
    """A run gave another answer than the oracle: its time is not shown."""


def tolerance(program: Program, platform: str) -> float:
    """The error that a program's results may have on a platform."""
    floats = {step.dtype for step in program.walk() if is_float(step.dtype)}
    floats |= {port.dtype for port in program.outputs if is_float(port.dtype)}
    allowed = [max(TOLERANCE[dtype], F32_PRODUCTS.get(platform, 0.0) if dtype == "f32" else 0.0) for dtype in floats]
    return max(allowed, default=0.0)


def oracle_bytes(graph: Graph) -> int:
    """Bytes of every tensor of a function, whole, those of a loop's turn once: more than `mtf.single` needs."""
    total = 0
    for op in graph.ops:
        total += volume(op.dims) * itemsize(op.dtype)
        total += oracle_bytes(op.params["body"]) if op.kind == "repeat" else 0
    return total


def oracle_device(program: Program, devices: Sequence[Any]) -> tuple[Any, str]:
    """Where the oracle runs, and its name; (None, why not) where it fits nowhere."""
    needed, flops, first = oracle_bytes(program.graph), program.flops() * program.mesh.size, near(devices)
    beside = first.platform != "cpu"
    cpu = cpu_device() if beside else first
    if cpu is not None and needed <= ORACLE_BYTES and (not beside or flops <= ORACLE_FLOPS):
        return cpu, "mtf.single on the CPU"
    if beside and needed <= free_bytes(first) // 2:
        return first, f"mtf.single on the same {first.device_kind}"
    limit = format_bytes(free_bytes(first) // 2 if beside else ORACLE_BYTES)
    return None, f"mtf.single would hold {format_bytes(needed)} and {quantity(flops, 'FLOP')}, the limit is {limit}"


def cpu_device() -> Any:
    """This computer's CPU as a device, None if JAX was told to leave it out."""
    import jax

    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # JAX_PLATFORMS names the chip alone
        return None


def checked(
    program: Program, results: Sequence[Any], given: Mapping[str, Any] | None, devices: Sequence[Any]
) -> dict[str, Any]:
    """Compare one run's results; raises `WrongAnswer`. `given`: the inputs, None if they were made by `filling`."""
    device, words = oracle_device(program, devices)
    if device is None:
        return {"against": words, "error": None, "tolerance": None}
    expected = expected_results(program, given, device)
    return compared(program, results, expected, words, devices[0].platform)


def expected_results(program: Program, given: Mapping[str, Any] | None, device: Any) -> list[np.ndarray]:
    """What `mtf.single` says, on one device."""
    import jax
    import jax.numpy as jnp

    from mtfcore.device_pool import launch
    from mtfcore.whole import single

    if given is None:
        arrays = filling.on_device(program, device)
    else:
        whole = [np.asarray(given[port.name]).astype(jnp.dtype(long_name(port.dtype))) for port in program.inputs]
        arrays = [launch(jax.device_put, array, device) for array in whole]
    return [np.asarray(result) for result in launch(single(program).compiled, *arrays)]


def compared(
    program: Program, results: Sequence[Any], expected: Sequence[np.ndarray], words: str, platform: str
) -> dict[str, Any]:
    """The largest error of any result, or `WrongAnswer` that names the result and the device."""
    allowed = tolerance(program, platform)
    worst = (0.0, 0.0, allowed)  # as a share of what is allowed, the error, what is allowed
    for port, result, right in zip(program.outputs, results, expected, strict=True):
        stored = port.dtype == "i8" and allowed > 0
        limit = allowed if is_float(port.dtype) else WHOLE_NUMBERS * (allowed > TOLERANCE["f32"])
        limit = 2 * allowed + STEP if stored else limit  # each row has a scale of its own: small ones weigh as large
        for where, got, want in _parts(port, result, right):
            error = error_of(*(array.astype(np.float32) if stored else array for array in (got, want, right)))
            worst = max(worst, (error / limit if limit else 0.0, error, limit))
            if not error <= limit:
                raise WrongAnswer(
                    f"{program.name}: result {port.name} on {where} differs from {words} by {error:.2g} "
                    f"(as a share of its largest value; allowed {limit:.2g}), so no time is shown"
                )
    return {"against": words, "error": float(worst[1]), "tolerance": worst[2]}


def error_of(got: np.ndarray, want: np.ndarray, whole: np.ndarray) -> float:
    """The largest difference as a share of the largest right value; of whole numbers the share that differs."""
    if got.shape != want.shape:
        return math.inf
    if not np.issubdtype(want.dtype, np.floating) and want.dtype.kind in "iub":
        return float(np.mean(got != want)) if want.size else 0.0
    got, want = got.astype(np.float64), want.astype(np.float64)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    if same.all():
        return 0.0
    with np.errstate(invalid="ignore"):
        largest = float(
            np.max(np.abs(whole.astype(np.float64)), where=np.isfinite(whole.astype(np.float64)), initial=0)
        )
        off = float(np.max(np.where(same, 0.0, np.abs(got - want))))
    return math.inf if math.isnan(off) else off / largest if largest else math.inf


def _parts(port: Port, result: Any, right: np.ndarray) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Each device's part beside the same part of the right answer; sums still to be made are made here."""
    if n_partial := len(port.sharding.partial):
        if not result.is_fully_addressable:
            raise WrongAnswer(f"result {port.name} is a partial sum over several hosts; ask for it summed to check it")
        array = np.asarray(result).astype(right.dtype if right.dtype.kind in "iub" else np.float64)
        yield "all devices", array.sum(axis=tuple(range(n_partial))), right
        return
    every = right.size * len(result.sharding.device_set) <= EVERY_COPY
    for shard in result.addressable_shards:
        if every or shard.replica_id == 0:
            yield f"device {shard.device.id}", np.asarray(shard.data), right[shard.index]
