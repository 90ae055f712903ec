"""Checkpoints: every bit comes back, a broken file is refused with words, and a break leaves the old file alone."""

import json
import os

import ml_dtypes
import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.model import checkpoints
from mtfcore.model.checkpoints import load, save

HEADER = {"step": 12, "seed": 3, "optimizer": "Adam", "config": {"d_model": 16, "parallel": False}}


def arrays() -> dict:
    rng = np.random.default_rng(0)
    floats = rng.normal(size=(4, 6)).astype(np.float32)
    return {
        "w": floats.T,  # not in the order of memory
        "b": floats.astype(ml_dtypes.bfloat16),
        "ids": np.arange(5, dtype=np.int32),
        "scale": np.float32(np.nan),
        "mask": floats[0] > 0,
        "none": np.zeros((0, 3), np.float16),
    }


FORMS = {
    "w": ((6, 4), "f32"), "b": ((4, 6), "bf16"), "ids": ((5,), "i32"), "scale": ((), "f32"), "mask": ((6,), "bool"),
    "none": ((0, 3), "f16"),
}  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return save(tmp_path / "deep" / "one.safetensors", arrays(), HEADER)


def test_every_bit_and_the_header_come_back(path):
    found = load(path, FORMS)
    assert found.header == HEADER
    for name, array in arrays().items():
        assert found.arrays[name].dtype == array.dtype and found.arrays[name].shape == array.shape
        assert found.arrays[name].tobytes() == array.tobytes(), name


def test_loaded_arrays_outlive_the_file(path):
    found = load(path)
    path.write_bytes(b"")
    np.testing.assert_array_equal(found.arrays["w"], arrays()["w"])


def test_all_differences_are_named_at_once(path):
    expected = {**FORMS, "w": ((4, 6), "f32"), "b": ((4, 6), "f32"), "extra": ((1,), "f32")}
    del expected["ids"]
    with pytest.raises(mtf.LayoutError) as error:
        load(path, expected)
    for part in (
        "checkpoint one.safetensors: 4 faults",
        "array 'extra' is missing",
        "has 'ids', which is not asked for",
        "w has shape (6, 4), expected (4, 6)",
        "b is bf16, expected f32",
    ):
        assert part in str(error.value)


@pytest.mark.parametrize("left", [0, 4, 60, -3])
def test_a_file_cut_off_is_refused(path, left):
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(mtf.LayoutError, match="is no whole safetensors file"):
        load(path)


def test_a_pickle_is_not_read(tmp_path):
    import pickle

    path = tmp_path / "model.pt"
    path.write_bytes(pickle.dumps({"w": [1.0]}))
    with pytest.raises(mtf.LayoutError, match=r"model.pt .* is no whole safetensors file"):
        load(path)


def test_a_foreign_file_and_a_later_version_are_refused(tmp_path):
    from safetensors.numpy import save_file

    path = tmp_path / "x.safetensors"
    save_file({"w": np.zeros(2)}, path)
    with pytest.raises(mtf.LayoutError, match="without this library's header"):
        load(path)
    for said in (json.dumps({"version": 99}), "no json", "[1]"):
        save_file({"w": np.zeros(2)}, path, metadata={checkpoints.KEY: said})
        with pytest.raises(mtf.LayoutError, match="this library reads version 1"):
            load(path)


def test_a_missing_file_is_offered_its_neighbour(path):
    with pytest.raises(mtf.LayoutError, match=r"no checkpoint at .*did you mean 'one.safetensors'"):
        load(path.with_name("ome.safetensors"))


@pytest.mark.parametrize("fault", [OSError("disk full"), KeyboardInterrupt()])
def test_a_break_while_writing_leaves_the_old_file(path, monkeypatch, fault):
    def broken(*_):
        raise fault

    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(type(fault)):
        save(path, {"w": np.ones(3)}, HEADER)
    assert path.read_bytes() == before and [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_header_that_is_no_json_is_refused_before_anything_is_written(path):
    before = path.read_bytes()
    with pytest.raises(TypeError, match="not JSON serializable"):
        save(path, arrays(), {"config": object()})
    assert path.read_bytes() == before


def test_arrays_on_a_mesh_are_written_whole(tmp_path):
    @mtf.function
    def twice(x: "batch io"):
        return {"y": x + x}

    run = mtf.simulate(mtf.plan(twice, "rows:2 cols:4", "batch:rows io:cols", sizes="batch:4 io:8"))
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    found = load(save(tmp_path / "y.safetensors", run.resident(x), HEADER))
    np.testing.assert_array_equal(found.arrays["y"], 2 * x)
