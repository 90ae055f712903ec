"""Any device's values before and after any step of a run, also inside a loop, against numpy."""

import numpy as np
import pytest

import mtfcore as mtf

N, B, E = 3, 4, 6


@mtf.function
def loop(x: "B E", w: "layers E F", s: "E"):
    def block(x, w):
        return mtf.add(mtf.rename(mtf.einsum(x, w, out="B F"), "F", "E"), s)

    return mtf.repeat(block, N, w, x)


@pytest.fixture(scope="module")
def ran():
    program = mtf.plan(loop, "rows:2 cols:2", "B:rows F:cols", sizes=f"B:{B} E:{E} F:{E} layers:{N}")
    rng = np.random.default_rng(1)
    x, w, s = (rng.normal(size=shape).astype(np.float32) for shape in ((B, E), (N, E, E), (E,)))
    run = mtf.simulate(program)
    states = [x]
    for turn in range(N):
        states.append(states[-1] @ w[turn] + s)
    np.testing.assert_allclose(run(x, w, s), states[-1], rtol=1e-4, atol=1e-4)
    return program, run, states, w


def inner(program, kind):
    (repeat,) = [step for step in program.steps if step.kind == "repeat"]
    return next(step for step in repeat.body.steps if step.kind == kind)


@pytest.mark.parametrize("turn", range(N))
@pytest.mark.parametrize("device", range(4))
def test_values_inside_a_loop_are_those_of_the_turn(ran, turn, device):
    program, run, states, w = ran
    step, mesh = inner(program, "einsum"), program.mesh
    x_part, w_part = run.before(step, device, turn)
    np.testing.assert_allclose(x_part, states[turn][step.before[0].slices(mesh, device)], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(w_part, w[turn][step.before[1].slices(mesh, device)])
    whole = states[turn] @ w[turn]
    np.testing.assert_allclose(
        run.values(step, device, turn), whole[step.after.slices(mesh, device)], rtol=1e-4, atol=1e-4
    )


def test_steps_given_out_by_walk_are_found_too(ran):
    program, run, *_ = ran
    copies = [step for step in program.walk() if step.kind == "einsum"]
    assert [copy.times for copy in copies] == [N]
    np.testing.assert_array_equal(run.values(copies[0], 3), run.values(inner(program, "einsum"), 3))


def test_a_new_call_has_new_values(ran):
    _, run, _, w = ran
    x = np.zeros((B, E), np.float32)
    before = run.values(0, 0)
    run(x, w, np.zeros(E, np.float32))
    assert not np.array_equal(run.values(0, 0), before) and not run.values(0, 0).any()


@pytest.mark.parametrize("path", [99, -99, (0, 99), (0, 0, 0)])
def test_no_such_step(ran, path):
    with pytest.raises(mtf.LayoutError, match="has steps 0 to"):
        ran[1].values(path)
