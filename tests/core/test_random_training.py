"""Random programs trained for a few steps on random meshes, against `jax.grad` of the same program on one device.

The programs are those of the sweep; the loss weighs every element of every float output differently. A failure is
shrunk by hypothesis and prints as the Python that repeats the program.
"""

import jax
import numpy as np
import pytest
from core.sweep.checking import check_counts, quick, quick_options
from core.sweep.making import programs
from core.sweep.programs import Case
from hypothesis import HealthCheck, given, seed, settings

import mtfcore as mtf
from mtfcore.dtypes import is_float
from mtfcore.functions import Function

EACH, SHORT = 12, 3
PARTS = [pytest.param(part, marks=[pytest.mark.long] if part >= SHORT else []) for part in range(30)]
STEPS, LARGEST = 3, 1e4  # beyond this float32 has no digits left for a comparison
tried = {"trained": 0, "left out": 0}


def loss_of(outputs) -> mtf.Tensor:
    total = None
    for t in outputs if isinstance(outputs, tuple) else (outputs,):
        if not is_float(t.dtype):
            continue
        for dim in t.dims:
            t = t * (mtf.cast(mtf.index(dim, t), t.dtype) * 0.1 + 0.5)
        part = mtf.mean(t)
        total = part if total is None else total + part
    return total


def functions(case: Case) -> tuple[mtf.Program, mtf.Program, list[str]] | None:
    """The loss alone and the loss with its gradients, planned as the case says; None where nothing can be trained."""
    space: dict = {}
    exec(compile(case.source(), "<case>", "exec"), {"mtf": mtf}, space)
    names = [each.name for each in case.inputs if (each.dtype or case.dtype) == "f32"]
    outputs = [port.dtype for port in case.build().outputs]
    if case.dtype != "f32" or not names or not any(map(is_float, outputs)):
        return None
    body = space["program"].call

    def with_gradients(**tensors):
        loss = loss_of(body(**tensors))
        return {"loss": loss, **mtf.gradients(loss, {name: tensors[name] for name in names})}

    arguments = {each.name: each.text for each in case.inputs}
    dtypes = {each.name: each.dtype for each in case.inputs if each.dtype}
    place = {each.name: each.place for each in case.inputs if each.place is not None}
    plans = [
        mtf.plan(Function.of(name, arguments, call, dtypes), case.mesh, case.layout, place=place, search=case.search)
        for name, call in (("forward", lambda **tensors: loss_of(body(**tensors))), ("training", with_gradients))
    ]
    return (*plans, names)


def stepped(arrays: list, names: list[str], program: mtf.Program, slopes: dict[str, np.ndarray]) -> list[np.ndarray]:
    """One step downhill, as long for all programs."""
    ports = [port.name for port in program.inputs]
    steepest = max(1.0, *(float(np.abs(slope).max()) for slope in slopes.values()))
    return [
        np.asarray(array - 0.3 * slopes[name] / steepest, np.float32) if name in names else array
        for name, array in zip(ports, arrays, strict=True)
    ]


def trained(case: Case) -> None:
    found = functions(case)
    if found is None:
        tried["left out"] += 1
        return
    forward, training, names = found
    run, whole = quick(mtf.simulate(training)), mtf.single(forward)
    ports = [port.name for port in forward.inputs]
    order = [ports.index(name) for name in names]
    slope = jax.value_and_grad(lambda *arrays: whole.fn(*arrays)[0], argnums=order)
    slope = jax.jit(slope, compiler_options=quick_options())
    check_counts(training, run, stablehlo=False)
    arrays = [np.asarray(a, np.float32) if n in names else a for n, a in zip(ports, case.arrays(), strict=True)]
    ours, theirs = arrays, arrays
    for step in range(STEPS):
        got = run(*ours)
        loss, slopes = slope(*theirs)
        right = {"loss": np.asarray(loss), **dict(zip(names, map(np.asarray, slopes), strict=True))}
        if not all(np.isfinite(value).all() and np.abs(value).max() < LARGEST for value in right.values()):
            tried["left out"] += 1
            return
        for name, value in right.items():
            atol = 2e-4 * max(1.0, float(np.abs(value).max()))
            about = f"step {step}, {name}\n{case.script()}"
            np.testing.assert_allclose(got[name], value, rtol=2e-3, atol=atol, err_msg=about)
        ours = stepped(ours, names, forward, {name: got[name] for name in names})
        theirs = stepped(theirs, names, forward, {name: right[name] for name in names})
    tried["trained"] += 1


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.timeout(600)  # a failure is shrunk, which takes minutes
def test_a_few_steps_are_those_of_one_device(part):
    before = dict(tried)

    @seed(1000 + part)
    @settings(max_examples=EACH, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(programs())
    def each(case: Case) -> None:
        trained(case)

    each()
    done = {key: tried[key] - before[key] for key in tried}
    assert done["trained"] >= done["left out"] / 2, f"too few programs could be trained: {done}"
