"""One case checked every way: values against numpy, and planned against counted, collective by collective."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from core.sweep.programs import Case
from core.sweep.reference import Ref

import mtfcore as mtf
from mtfcore.counting import count_stablehlo


@cache
def quick_options() -> dict[str, Any]:
    """XLA without its optimizations: compiles these tiny programs seven times faster, and means the same."""
    options = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda t: t + 1, compiler_options=options)(jnp.zeros(2))
    except jax.errors.JaxRuntimeError:  # another version of XLA may not know them
        return {}
    return options


def quick(run: Any) -> Any:
    """The same run, compiled quickly."""
    run.compiled = jax.jit(run.fn, compiler_options=quick_options())
    return run


def as_list(results: Any) -> list[np.ndarray]:
    return list(results) if isinstance(results, tuple) else [results]


def assert_close(got: Any, expected: Ref, about: str) -> None:
    """Shape, dtype and every element within the reference's error bound (equal where that is 0)."""
    assert got.shape == expected.value.shape, f"{about}: shape {got.shape}, expected {expected.value.shape}"
    long = {"f32": "float32", "bf16": "bfloat16", "i32": "int32", "bool": "bool"}[expected.dtype]
    assert got.dtype.name == long, f"{about}: dtype {got.dtype}, expected {long}"
    apart = np.abs(got.astype(float) - expected.value.astype(float))
    wrong = ~(apart <= expected.error)  # NaN is wrong too
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{about}: {wrong.sum()} of {wrong.size} elements are wrong; first at {first}: {got[first]}, "
            f"expected {expected.value[first]} within {expected.error[first]}"
        )


def planned_traffic(program: mtf.Program) -> Counter:
    """(kind, group size, bytes held before) → times, as the counters say it."""
    return _without_groups(Counter(), [(as_counted(s), s.group, s.n_bytes, s.times) for s in program.collectives()])


def as_counted(step: mtf.Step) -> str:
    """The kind by the counters' name: a halo exchange is a permute to them."""
    return "permute" if step.kind == "halo_exchange" else step.kind


def counted_traffic(counts: Any) -> Counter:
    return _without_groups(Counter(), [(*key, times) for key, times in counts.traffic().items()])


def _without_groups(found: Counter, rows: list[tuple]) -> Counter:
    """A permute has no group: what it sends does not depend on how many devices its pairs tie together."""
    for kind, group, n_bytes, times in rows:
        found[kind, None if kind == "permute" else group, n_bytes] += times
    return found


def planned_axes(program: mtf.Program) -> Counter:
    """(kind, the set of axes that talk together) → times."""
    found: Counter = Counter()
    for step in program.collectives():
        found[as_counted(step), frozenset(step.axes)] += step.times
    return found


def counted_axes(counts: Any) -> Counter:
    found: Counter = Counter()
    for one in counts.collectives:
        found[one.kind, frozenset(one.axes)] += one.times
    return found


def steps(program: mtf.Program) -> str:
    """The steps, one a line, for messages."""
    return "\n".join(f"  {step.times} x {step!r}" for step in program.walk())


def check_counts(program: mtf.Program, run: Any, stablehlo: bool) -> None:
    """Planned bytes = counted bytes, collective by collective; planned FLOPs = counted FLOPs."""
    counts = mtf.count(run.fn, *run.shapes)
    assert planned_traffic(program) == counted_traffic(counts), f"planned, then counted:\n{steps(program)}\n{counts}"
    assert planned_axes(program) == counted_axes(counts), f"planned, then counted:\n{steps(program)}\n{counts}"
    assert float(program.link_bytes()) == float(counts.link_bytes)
    assert program.flops() == counts.flops, f"planned {program.flops()} FLOPs, counted {counts.flops}\n{steps(program)}"
    if stablehlo:
        lowered = count_stablehlo(run.lower())
        about = f"planned, then in the StableHLO:\n{steps(program)}\n{lowered}"
        assert planned_traffic(program) == counted_traffic(lowered), about


WAYS: dict[str, Callable] = {"explicit": mtf.simulate, "single": mtf.single, "partitioned": mtf.partitioned}


def check(case: Case, ways: tuple[str, ...] = ("explicit", "single"), stablehlo: bool = False) -> mtf.Program:
    """Plan, run and count a case; returns its program."""
    program, arrays, expected = case.build(), case.arrays(), case.expected()
    for way in ways:
        run = quick(WAYS[way](program))
        if way == "explicit":
            check_counts(program, run, stablehlo)
        for port, got, right in zip(program.outputs, as_list(run(*arrays)), expected, strict=True):
            assert_close(got, right, f"{way}, output {port.name}\n{case.script()}\n{steps(program)}")
    return program


def kinds(program: mtf.Program) -> set[str]:
    """The kinds of step that a program has, inside its loops too."""
    return {step.kind for step in program.walk()}
