"""Records side by side, and measured beside modelled and compiled: errors, and what else differs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mtfcore as mtf
from tpu_runs import compare
from tpu_runs.__main__ import main
from tpu_runs.against import against
from tpu_runs.cases import CASES, check
from tpu_runs.records import Record, append

V5E = {"platform": "tpu", "device_kind": "TPU v5 lite", "devices": 4, "hosts": 1, "topology": "v5e:2x2"}


def one(case: str = "collective", params: dict | None = None, **more: Any) -> Record:
    full = check(CASES[case], {"mesh": "x:4", "kind": "all_reduce"} if params is None else params)
    return Record(**{"case": case, "params": full, "seconds": [1e-3, 3e-3, 2e-3], "where": V5E,
                     "versions": {"jax": "0.10.2"}, "commit": "abc1234", **more})  # fmt: skip


def test_two_sets_side_by_side() -> None:
    a, b = (
        one(),
        one(seconds=[1e-3], commit="def5678", versions={"jax": "0.11.1"}, where={**V5E, "device_kind": "TPU v4"}),
    )
    old = one(seconds=[9.0], when="2020-01-01T00:00:00Z")
    table = compare.side_by_side(
        [old, a, one("product", {"m": 8})], [b, Record(case="x", status="failed")], ("mine", "his")
    )
    (row,) = table.rows
    assert (row["a"], row["b"], row["error"], row["spread"]) == (2e-3, 1e-3, -0.5, "100% / 0%")
    text = str(table)
    assert "different device: TPU v5 lite and TPU v4" in text and "different commit: abc1234 and def5678" in text
    assert "different jax" in text and "1 run of mine without a partner" in text and "-50.0%" in text


def test_two_single_records_whatever_they_ran() -> None:
    a, b = one("product", {"m": 64}), one("product", {"m": 128}, where={"platform": "simulated", "devices": 1})
    text = str(compare.side_by_side([a], [b]))
    assert "different m: 64 and 128" in text and "never hardware speed" in text


def test_measured_beside_modelled() -> None:
    record = one()
    program = CASES["collective"].program(record.params)
    beside = against(record)
    assert beside.modelled == mtf.price(program, "v5e:2x2", "calibrated").seconds and beside.compiled is None
    (row,) = compare.beside_models([record]).rows
    assert row["modelled_error"] == pytest.approx(beside.modelled / 2e-3 - 1) and row["measured"] == 2e-3


def test_a_compiled_record_of_the_same_run_stands_beside_it() -> None:
    where = {"platform": "compiler", "topology": "v5e:2x2"}
    same = one(origin="compiled", seconds=[], facts={"seconds": 1e-3}, where=where)
    other = one(origin="compiled", seconds=[], facts={"seconds": 5.0}, where={**where, "topology": "v5e:4x4"})
    (row,) = compare.beside_models([one(), same, other]).rows
    assert (row["compiled"], row["compiled_error"]) == (1e-3, -0.5)
    assert "modelled from compiled schedule: compiled · for v5e:2x2" in row["words"]


def test_of_a_share_the_local_steps_are_compared() -> None:
    asked = {"model": "palm-8b", "mesh": "x:4", "batch": 64, "cached_tokens": 128}
    share = {"mesh": "x:4", "left_out": 8, "topology": "v5e:2x2", "modelled_link_seconds": 1e-4}
    record = one("layer", asked, share=share, where={**V5E, "devices": 1, "topology": "v5e:1x1"})
    cost = mtf.price(CASES["layer"].program(record.params), "v5e:2x2", "calibrated")
    assert against(record).modelled == cost.local_seconds < cost.seconds
    assert "the local steps alone" in against(record).words


def test_nothing_is_set_beside_what_it_is_not() -> None:
    table = compare.beside_models([one(where={"platform": "simulated", "device_kind": "cpu", "devices": 4})])
    assert table.rows == [] and "no model of hardware is set beside them" in str(table)
    assert "compare A.jsonl B.jsonl" in str(table)
    assert "compare A.jsonl" not in str(compare.beside_models([one(), one(where={"platform": "simulated"})]))
    unknown = one(where={**V5E, "device_kind": "TPU v99", "topology": ""})
    assert "name one with --topology" in against(unknown).words and against(unknown).modelled is None
    assert "has other chips" in against(one(), topology="v4:2x2x1").words
    generated = one("generate", {"model": "tiny-palm"})
    assert "not one planned program" in against(generated).words


def test_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setenv("MESHWORK_RECORDS", str(tmp_path / "mine"))
    record = one()
    append(record)
    append(one(seconds=[4e-3]), tmp_path / "b.jsonl")
    with (tmp_path / "b.jsonl").open("a") as file:
        file.write("foreign\n")
    assert main(["compare", "mine", str(tmp_path / "b.jsonl")]) == 0
    told = capsys.readouterr()
    assert "+100.0%" in told.out and "b.jsonl line 2: not JSON" in told.err
    assert main(["compare", record.id[:8]]) == 0
    assert "modelled on v5e:2x2 (calibrated)" in capsys.readouterr().out


def test_constants_are_fitted_kept_and_named(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Records made by the model itself with slower arithmetic: the fit finds that, and predictions name its file."""
    where = {"platform": "gpu", "device_kind": "NVIDIA H200", "devices": 1, "hosts": 1, "topology": "h200:1"}
    path, constants = tmp_path / "a.jsonl", tmp_path / "h200.json"
    for params in CASES["product"].sweep("chip"):
        record = one("product", params, where=where)
        cost = mtf.price(CASES["product"].program(record.params), "h200:1", "physical")
        seconds = max(cost.compute_seconds / 0.5, cost.hbm_seconds)
        append(one("product", params, where=where, seconds=[seconds] * 3), path)
    assert main(["calibrate", str(path), "--out", str(constants)]) == 0
    assert "compute_share" in capsys.readouterr().out
    assert json.loads(constants.read_text())["compute_share"] == pytest.approx(0.5, rel=0.1)
    assert main(["compare", str(path), "--model", str(constants)]) == 0
    assert "modelled on h200:1 (measured constants of h200)" in capsys.readouterr().out
    assert main(["compare", str(path), "--model", str(path.with_suffix(".json"))]) == 1
    assert "holds no constants" in capsys.readouterr().err
    append(one(where={"platform": "simulated", "devices": 4}), tmp_path / "b.jsonl")
    assert main(["calibrate", str(tmp_path / "b.jsonl")]) == 1
    assert "simulated" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_an_output_without_room_is_said_in_a_line() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        found = subprocess.run([sys.executable, "-m", "tpu_runs", "list"], stdout=full, stderr=subprocess.PIPE,
                               cwd=Path(mtf.__file__).parents[1], timeout=60, check=False)  # fmt: skip
    assert (found.returncode, found.stderr.decode().strip()) == (1, "the output: No space left on device")
