"""Seeded inputs whose values tell devices apart: a slope along the first dimension, and noise everywhere.

    >>> arrays = example_inputs(program, seed=0)
    >>> arrays["x"].shape
    (64, 512)

No two slices are alike, and a wrong exchange shows at once as a break in the slope. The slope sums to zero, so that
products stay readable numbers. Whole numbers that look something up stay within what they look into. Next file to
read: `program`.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

import mtfcore as mtf


def example_inputs(program: mtf.Program, seed: int = 0) -> dict[str, np.ndarray]:
    """One whole array for each input, the same for the same names, shapes and seed."""
    limits = _limits(program.graph)
    return {port.name: _values(port.name, port.sharding.shape, port.dtype, limits, seed) for port in program.inputs}


def _values(name: str, shape: tuple[int, ...], dtype: str, limits: dict[str, int], seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype[0] in "iu":
        return rng.integers(0, limits.get(name, 10), shape).astype(np.int32)
    slope = np.linspace(-1, 1, shape[0]).reshape(-1, *[1] * (len(shape) - 1)) if shape else 0.0
    return np.round(slope + 0.4 * rng.standard_normal(shape), 2).astype(np.float32)


def _limits(graph: Any) -> dict[str, int]:
    """Input name → the size of the dimension that it looks up."""
    names = {number: name for name, number in graph.inputs.items()}
    found = {}
    for op in graph.ops:
        if op.kind == "gather" and op.inputs[0] in names:
            table = graph.ops[op.inputs[1]]
            found[names[op.inputs[0]]] = next(d.size for d in table.dims if d.name == op.params["dim"])
    return found
