"""Records survive a writer that is killed, many writers, foreign lines, other versions and a full disk."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tpu_runs import appending, records
from tpu_runs.records import Record, append, read

ROOT = Path(records.__file__).parents[1]

# Appends for ever, and says each id once it is acknowledged; some lines fill many pages of a disk.
WRITER = """
import random, sys
from tpu_runs.records import Record, append
chance = random.Random(int(sys.argv[2]))
while True:
    record = Record(case="product", facts={"words": "ä" * chance.choice([1, 5_000, 60_000])}, seconds=[chance.random()])
    append(record, sys.argv[1])
    print(record.id, flush=True)
"""


def one(**more: object) -> Record:
    return Record(**{"case": "product", "params": {"m": 8}, "seconds": [3e-3, 1e-3, 2e-3],
                     "where": {"platform": "gpu", "device_kind": "H200", "devices": 1, "hosts": 1},
                     "versions": {"jax": "0.10.2"}, "commit": "abc1234+", **more})  # fmt: skip


def writer(path: Path, seed: int) -> subprocess.Popen:
    command = [sys.executable, "-c", WRITER, str(path), str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def test_a_record_reads_back_equal(tmp_path: Path) -> None:
    record = one(params={"m": np.int64(8), "axes": ("x", "y")}, share={"mesh": "x:4", "left_out": 2},
                 facts={"tiny": np.float32(0.5)}, check={"against": "numpy", "error": 0.0})  # fmt: skip
    append(record, tmp_path / "new" / "a.jsonl")
    (back,), notes = read(tmp_path / "new" / "a.jsonl")
    assert back == record and notes == [] and back.params == {"m": 8, "axes": ["x", "y"]}
    assert back.median == 2e-3 and back.spread == pytest.approx(1.0)
    assert Record(case="phase", status="refused", reason="no chip").median is None
    assert one(params={"a": 1, "b": 2}).asked == one(params={"b": 2, "a": 1}).asked != one().asked


def test_its_words_say_where_a_number_comes_from() -> None:
    words = one(when="2026-11-30T10:00:00.000Z").words()
    assert words == (
        "measured · 1 × H200 · median 2 ms of 3, spread 100% · jax 0.10.2 · commit abc1234+ · 2026-11-30 10:00 UTC"
    )
    assert "never hardware speed" in one(where={"platform": "simulated", "devices": 8}).words()
    failed = one(status="failed", reason="out of\nmemory", seconds=[]).words()
    assert failed.startswith("failed: out of memory · 1 × H200") and "median" not in failed
    assert "one device's share of x:4" in one(share={"mesh": "x:4"}).words()
    compiled = one(origin="compiled", seconds=[], where={"platform": "compiler", "topology": "v4:4x4x4"})
    assert compiled.words().startswith("compiled · for v4:4x4x4 · jax")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"status": "fine"}, "status 'fine'; legal: ok, failed, refused, stopped"),
        ({"seconds": [-1.0], "case": ""}, "case is empty; seconds is not a list of times"),
        ({"seconds": [float("nan")]}, "seconds is not plain JSON"),
        ({"facts": {"array": np.zeros(3)}}, "facts is not plain JSON"),
        ({"where": {"platform": "cpu"}}, "where.platform 'cpu'; legal: simulated, gpu, tpu, compiler"),
    ],
)
def test_what_is_no_record_is_refused_at_once(more: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        one(**more)


def test_a_writer_killed_at_any_moment_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    path, chance, told = tmp_path / "a.jsonl", random.Random(6), []
    for seed in range(6):
        process = writer(path, seed)
        told.append(process.stdout.readline().strip())  # it is under way
        time.sleep(chance.random() * 0.05)
        process.kill()
        told += [line.strip() for line in process.stdout.read().splitlines() if len(line.strip()) == 32]
        process.wait(30)
        process.stdout.close()
    found, notes = read(path)
    assert len(told) > 6 and set(told) <= {record.id for record in found}
    assert all("torn" in note for note in notes) and len(notes) <= 6
    append(one(), path)
    assert len(read(path)[0]) == len(found) + 1


def test_a_line_torn_anywhere_stands_alone_and_the_next_is_whole(tmp_path: Path) -> None:
    first, torn, after = one(), one(reason="é → ü"), one()
    line = torn.line().encode()
    for cut in [1, 2, line.index("é".encode()) + 1, *random.Random(7).sample(range(3, len(line)), 20)]:
        path = tmp_path / f"{cut}.jsonl"
        append(first, path)
        with path.open("ab") as file:
            file.write(line[:cut])
        assert (read(path)[0], len(read(path)[1])) == ([first], 1)
        append(after, path)
        found, (note,) = read(path)
        assert found == sorted([first, after], key=lambda r: r.when) and "line 2: not JSON: torn" in note


def test_a_whole_line_without_its_newline_is_a_record(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(one().line().encode())
    append(one(), path)
    assert (len(read(path)[0]), read(path)[1]) == (2, [])


def test_many_writers_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    processes = [writer(path, seed) for seed in range(3)]
    told = [process.stdout.readline().strip() for process in processes for _ in range(20)]
    for process in processes:
        process.kill()
        process.communicate(timeout=30)
    found, notes = read(path)
    assert set(told) <= {record.id for record in found} and len(notes) <= 1


def test_what_is_not_ours_is_a_note(tmp_path: Path) -> None:
    newer = json.dumps({**json.loads(one().line()), "schema": 2, "id": "n"})
    odd = [b"", b"not json", b'"words"', b'{"case": "mine"}', newer.encode(), b"\xff\xfe\x00", b"[" * 5_000,
           b'{"schema": 1, "id": "a", "when": "b"}', b'{"schema": 1, "id": 3, "when": "b", "case": "c"}',
           b'{"schema": 1, "id": "a", "when": "b", "case": "c", "seconds": 1e999}',
           b'{"schema": 1, "id": "a", "when": "b", "case": "c", "added_later": 1}', b"x" * 600_000]  # fmt: skip
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(odd) + b"\n")
    kept = one()
    append(kept, tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").write_text(kept.line() + "\r\n", encoding="utf-8")  # a copy, as Windows' editors leave it
    (tmp_path / "c.jsonl").mkdir()
    found, notes = read(tmp_path)
    assert [record.id for record in found] == [kept.id, "a"] and len(notes) == 11
    assert any("schema '2'; this version reads 1" in note for note in notes)
    assert any(note.startswith("c.jsonl: ") for note in notes)
    assert read(tmp_path / "none.jsonl") == ([], ["none.jsonl: No such file or directory"])


@pytest.mark.parametrize(
    "fields",
    [{"compile_seconds": 10**400}, {"seconds": [1e300]}, {"where": {"topology": ["v4"]}}, {"where": {"device_kind": 4}},
     {"where": {"hosts": "two"}}, {"check": {"error": "none"}}, {"check": {"against": [1]}}],
)  # fmt: skip
def test_what_could_not_be_printed_is_a_note(tmp_path: Path, fields: dict) -> None:
    line = {"schema": 1, "id": "a", "when": "b", "case": "c", **fields}
    (tmp_path / "a.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    found, (note,) = read(tmp_path)
    assert found == [] and " is not " in note


def test_half_characters_and_deep_facts_are_kept_and_printed(tmp_path: Path) -> None:
    deep: list = []
    for _ in range(300):
        deep = [deep]
    record = one(commit="\ud800", facts={"deep": deep})
    append(record, tmp_path / "a.jsonl")
    assert read(tmp_path) == ([record], []) and "commit ?" in record.words()


def test_places_that_hold_no_records_are_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "huge.jsonl").open("wb") as file:
        file.truncate(2**40)  # takes no room
    found, (note,) = read(tmp_path)
    assert found == [] and "records are in files of at most" in note
    for named in ("x" * 300, "~nobody-of-this-name/a.jsonl", os.devnull):
        monkeypatch.setenv("MESHWORK_RECORDS", named)
        assert records.mine() == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    assert "no file" in read(tmp_path)[1][0]


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    with pytest.raises(ValueError, match="at most 262,144: give its facts fewer words"):
        append(one(facts={"words": "x" * 300_000}), path)
    for hour in range(4):
        append(one(when=f"2026-11-30T0{hour}:00:00Z"), path)
    monkeypatch.setattr(records, "MOST", 3)
    found, notes = read(path)
    assert [record.when[11:13] for record in found] == ["01", "02", "03"]
    assert notes == ["1 older records left out: the newest 3 are kept"]
    monkeypatch.setattr(appending, "FILE_BYTES", path.stat().st_size)
    with pytest.raises(OSError, match="it is full: move it away and go on"):
        append(one(), path)


def test_a_disk_that_takes_a_part_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    append(one(), path)
    before, write = path.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:40]))
    with pytest.raises(OSError, match=r"took 40 of .* the file is as it was"):
        append(one(), path)
    assert path.read_bytes() == before


def test_whose_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESHWORK_RECORDS", str(tmp_path / "mine"))
    assert records.mine() == []
    path = append(one())
    assert path.parent == tmp_path / "mine" and path.suffix == ".jsonl" and len(records.mine()) == 1
    monkeypatch.setenv("MESHWORK_RECORDS", str(tmp_path / "b.jsonl"))
    assert append(replace(one(), case="layer")) == tmp_path / "b.jsonl" and records.mine()[0].case == "layer"
    assert read(records.COMMITTED)[1] == [] and records.committed() == read(records.COMMITTED)[0]


def test_records_need_nothing_but_python() -> None:
    loaded = "{name.split('.')[0] for name in sys.modules}"
    code = f"import sys, tpu_runs.records; print(sorted({loaded} & {{'numpy', 'jax', 'mtfcore'}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr
