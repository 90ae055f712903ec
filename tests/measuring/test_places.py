"""Inputs made on devices, and devices named: what goes unchanged to GPUs and TPUs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from measuring.measured_programs import layers

import mtfcore as mtf
from mtfcore.measuring import filling, places


def devices(kind, coords=(), platform="tpu", hosts=1):
    places_ = coords or [(0, 0, 0)]
    return [
        SimpleNamespace(platform=platform, device_kind=kind, coords=at, process_index=n * hosts // len(places_))
        for n, at in enumerate(places_)
    ]


def grid(*sizes):
    return [tuple(int(n) for n in at) for at in np.ndindex(*sizes)]


@pytest.mark.parametrize(
    ("kind", "sizes", "expected"),
    [
        ("TPU v4", (2, 2, 1), "v4:2x2x1"), ("TPU v5 lite", (4, 4, 1), "v5e:4x4"), ("TPU v5", (2, 2, 1), "v5p:2x2x1"),
        ("TPU v6 lite", (2, 4, 1), "v6e:2x4"), ("TPU v99", (2, 2, 1), ""),
    ],
)  # fmt: skip
def test_the_slice_is_told_from_names_and_places(kind, sizes, expected):
    found = places.where(devices(kind, grid(*sizes)))
    assert found["topology"] == expected and found["platform"] == "tpu" and found["device_kind"] == kind


def test_two_cores_of_a_chip_are_two_devices():
    found = devices("TPU v3", [at for at in grid(2, 2, 1) for _ in range(2)])
    assert places.where(found)["topology"] == "v3:2x2" and len(found) == 8


def test_gpus_stand_behind_a_switch_and_nodes_on_a_network():
    one = devices("NVIDIA H200", grid(8), platform="cuda")
    assert places.where(one) == {"platform": "gpu", "device_kind": "NVIDIA H200", "devices": 8, "hosts": 1,
                                 "topology": "h200:8"}  # fmt: skip
    assert places.where(devices("NVIDIA A100-SXM4-80GB", grid(16), "cuda", hosts=2))["topology"] == "a100:2x8"
    assert places.chip_of("NVIDIA GeForce") is None


def test_memory_is_what_the_device_says_or_what_this_computer_has():
    gpu = SimpleNamespace(platform="cuda", memory_stats=lambda: {"bytes_in_use": 10, "bytes_limit": 100, "x": 1})
    assert places.memory(gpu) == {"in use": 10, "limit": 100} and places.free_bytes(gpu) == 90
    cpu = SimpleNamespace(platform="cpu", memory_stats=lambda: None)
    assert places.memory(cpu) == {} and places.free_bytes(cpu) > 0


def test_inputs_are_the_same_wherever_they_are_made_and_tell_devices_apart():
    prog = layers()
    run = mtf.simulate(prog)
    from mtfcore.resident import input_sharding

    made = filling.fill(prog, [input_sharding(run, port) for port in prog.inputs])
    for port, array, (name, here) in zip(prog.inputs, made, filling.numpy_of(prog).items(), strict=True):
        assert port.name == name and array.sharding.is_equivalent_to(input_sharding(run, port), array.ndim)
        np.testing.assert_array_equal(np.asarray(array), here)
    x = filling.numpy_of(prog)["x"]
    assert len({row.tobytes() for row in x}) == len(x) and 0.05 < np.abs(x).max() < 2 and abs(x.mean()) < 0.2


def test_indices_stay_within_their_tables():
    @mtf.function(dtypes={"ids": "i32", "at": "i32"})
    def looked_up(ids: "B:64", at: "B N", table: "V E", cache: "B S E", rows: "B N E"):
        return mtf.gather(table, ids, "V"), mtf.write(cache, rows, at, "S")

    prog = mtf.plan(looked_up, "x:2", sizes="B:64 V:5 E:4 S:3 N:2", dtype="f32")
    assert filling.index_limits(prog.graph) == {"ids": 5, "at": 3}
    found = filling.numpy_of(prog)
    assert set(found["ids"]) == set(range(5)) and set(found["at"].ravel()) == set(range(3))
