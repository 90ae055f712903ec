"""State left on the devices between calls: where it lies, that it is right, what is refused."""

import numpy as np
import pytest

import mtfcore as mtf

MESH, LAYOUT, SIZES = "rows:2 cols:4", "batch:rows hidden:cols", "batch:8 io:12 hidden:16"


@mtf.function
def step(w: "io hidden", m: "io hidden", x: "batch io"):
    h = mtf.einsum(x, w, out="batch hidden")
    return {"w": w - m * 0.5, "m": m + w, "total": mtf.sum(h, out="")}


@pytest.fixture
def run():
    return mtf.simulate(mtf.plan(step, MESH, LAYOUT, sizes=SIZES, strict=True))


@pytest.fixture
def arrays():
    rng = np.random.default_rng(3)
    return {"w": rng.normal(size=(12, 16)).astype(np.float32), "m": rng.normal(size=(12, 16)).astype(np.float32)}


X = np.arange(96, dtype=np.float32).reshape(8, 12)


def parts(array):
    return {shard.device.id: np.asarray(shard.data) for shard in array.addressable_shards}


def test_put_lays_each_device_its_slice(run, arrays):
    w = run.put({"w": arrays["w"]})["w"]
    (port,) = [port for port in run.program.inputs if port.name == "w"]
    assert len(parts(w)) == 8
    for device, part in parts(w).items():
        np.testing.assert_array_equal(part, arrays["w"][port.sharding.slices(run.program.mesh, device)])


def test_put_takes_a_copy(run, arrays):
    w = run.put(arrays)["w"]
    before = arrays["w"].copy()
    arrays["w"][:] = 7
    np.testing.assert_array_equal(run.fetch(w), before)


def test_a_chain_of_resident_calls_is_the_chain_of_plain_ones(run, arrays):
    state, plain = run.put(arrays), dict(arrays)
    for _ in range(3):
        out, expected = run.resident(**state, x=X), run(**plain, x=X)
        state, plain = ({name: made[name] for name in "wm"} for made in (out, expected))
    fetched = run.fetch(out)
    assert all(isinstance(value, np.ndarray) for value in fetched.values())
    for name in expected:
        np.testing.assert_array_equal(fetched[name], expected[name])


def test_results_lie_as_the_program_says(run, arrays):
    out = run.resident(**arrays, x=X)
    for port in run.program.outputs:
        for device, part in parts(out[port.name]).items():
            whole = run.fetch(out[port.name])
            np.testing.assert_array_equal(part, whole[port.sharding.slices(run.program.mesh, device)])


def test_what_lies_there_already_is_not_moved(run, arrays):
    state = run.put(arrays)
    again = run.put(state)
    assert all(again[name] is state[name] for name in state)


def test_donated_inputs_are_given_up_and_others_kept(run, arrays):
    state, x = run.put(arrays), run.put({"x": X})["x"]
    out = run.resident(**state, x=x, donate=("w", "m"))
    assert state["w"].is_deleted() and state["m"].is_deleted() and not x.is_deleted()
    np.testing.assert_array_equal(run.fetch(out)["w"], run(**arrays, x=X)["w"])


def test_values_do_not_speak_of_a_resident_call(run, arrays):
    run(**arrays, x=X)
    run.resident(**arrays, x=X)
    with pytest.raises(mtf.LayoutError, match="call the run on arrays first"):
        run.values(0)


def test_bfloat16_state_stays_bfloat16(arrays):
    run = mtf.simulate(mtf.plan(step, MESH, LAYOUT, sizes=SIZES, dtype="bf16", strict=True))
    out = run.resident(**run.put(arrays), x=X)
    assert {str(value.dtype) for value in out.values()} == {"bfloat16"}


def test_faults_of_put_and_donate_come_all_at_once(run, arrays):
    with pytest.raises(mtf.LayoutError) as error:
        run.put({"w": np.zeros((12, 8)), "mm": arrays["m"], "x": "text"})
    misshapen, misspelt = "input w has shape (12, 8), expected (12, 16)", "no input 'mm'; did you mean 'm'"
    for part in ("3 faults", misshapen, misspelt, "input x"):
        assert part in str(error.value)
    with pytest.raises(mtf.LayoutError) as error:
        run.resident(**arrays, x=X, donate=("v", "x"))
    assert "donate names 'v'" in str(error.value) and "input x" in str(error.value)
    assert "cannot be donated: no result has its shape, dtype and place" in str(error.value)


def test_a_partial_result_is_refused_with_what_settles_it():
    @mtf.function
    def partial(x: "batch hidden", v: "hidden io"):
        return mtf.einsum(x, v, out="batch io partialsum:cols")

    program = mtf.plan(partial, "cols:4", "hidden:cols", sizes=SIZES, strict=True)
    run = mtf.simulate(program)
    with pytest.raises(mtf.LayoutError, match=r"result out is a partial sum over cols.*out='batch io'"):
        run.resident(np.zeros((8, 16), np.float32), np.zeros((16, 12), np.float32))


def test_an_input_placed_as_a_partial_sum_is_given_whole():
    @mtf.function
    def total(x: "batch io"):
        return mtf.settle(x)

    program = mtf.plan(total, "cols:4", sizes="batch:8 io:12", place={"x": "batch io partialsum:cols"})
    run = mtf.simulate(program)
    np.testing.assert_array_equal(run.fetch(run.resident(**run.put({"x": X}))), X)
