"""One run of one case, and lists of them: what a record holds, failures as rows, and what Ctrl-C leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import mtfcore as mtf
from mtfcore import measuring
from tpu_runs import records, running
from tpu_runs.__main__ import main
from tpu_runs.cases import CASES, check, generate
from tpu_runs.commits import commit
from tpu_runs.run import finish, rows, stopped

SMALL = {"m": 8, "k": 16, "n": 4, "dtype": "f32"}


@pytest.fixture(autouse=True)
def own_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "mine.jsonl"
    monkeypatch.setenv("MESHWORK_RECORDS", str(path))
    return path


def test_a_record_holds_all_that_one_must_know() -> None:
    told: list[str] = []
    record = finish(rows("product", SMALL, repeats=4, warm_up=2), lambda now: told.append(now.text))
    assert (record.status, record.case, record.origin, len(record.seconds)) == ("ok", "product", "measured", 4)
    assert record.params == check(CASES["product"], SMALL) and record.commit == commit()
    assert record.where == {"platform": "simulated", "device_kind": "cpu", "devices": 1, "hosts": 1, "topology": ""}
    assert record.check["error"] <= record.check["tolerance"] and record.counts["flops"] == 2 * 8 * 16 * 4
    assert record.compile_seconds > 0 and record.warm_up >= 2 and record.versions["jax"] == jax.__version__
    assert record.facts["expected_bytes"] == CASES["product"].bytes(record.params)
    assert "compiling" in told and "repetition 4 of 4" in told and "never hardware speed" in record.words()


def test_one_devices_share_is_labelled(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"model": "tiny-palm", "mesh": "x:2 y:2", "weights": "f32", "cache": "f32", "batch": 4}
    record = finish(rows("layer", asked, repeats=2, share=True))
    assert record.status == "ok" and record.share["mesh"] == "x:2 y:2" and record.where["devices"] == 1
    assert record.share["left_out"] == len(CASES["layer"].program(record.params).collectives())
    refused = finish(rows("collective", {"mesh": "x:2"}, share=True))
    assert refused.status == "refused" and "one device's share says nothing here" in refused.reason


@pytest.mark.parametrize(
    ("name", "params", "on", "said"),
    [
        ("product", {"m": 0, "dtype": "bf61"}, "simulated", "product: 2 faults"),
        ("product", {"m": float("nan")}, "simulated", "m is nan"),
        ("product", {}, "attached", "no TPU or GPU is attached"),
        ("product", {"m": 2**20, "k": 2**20, "n": 2**20}, "simulated", "is expected to need 6 TiB"),
        ("collective", {"mesh": "x:128", "n_bytes": 2**15}, "simulated", "needs 128 devices"),
    ],
)
def test_what_is_refused_is_a_row(name: str, params: dict, on: str, said: str) -> None:
    record = finish(rows(name, params, on))
    assert (record.status, record.seconds) == ("refused", []) and said in record.reason
    assert record.where.get("platform", "") == ("simulated" if on == "simulated" else "")


def test_of_several_hosts_none_stands_aside() -> None:
    record = finish(rows("product", SMALL, together=4))
    assert record.status == "refused" and "such as mesh=x:4" in record.reason
    assert "the engine runs on one host" in finish(rows("generate", {"model": "tiny-palm"}, together=4)).reason


def failing(fault: Exception) -> Any:
    def steps(*args: Any, **how: Any) -> Any:
        yield measuring.Progress(0, 1, "begin")
        raise fault

    return steps


def test_only_expected_failures_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    full = jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes.")
    for fault, said in ((full, "out of memory: RES"), (MemoryError(), "out of memory"),
                        (measuring.WrongAnswer("result y differs"), "wrong answer: result y")):  # fmt: skip
        monkeypatch.setattr(measuring, "steps", failing(fault), raising=False)
        record = finish(rows("product", SMALL))
        assert (record.status, record.median) == ("failed", None) and record.reason.startswith(said)
    for fault in (jax.errors.JaxRuntimeError("INTERNAL: a fault of ours"), KeyError("ours")):
        monkeypatch.setattr(measuring, "steps", failing(fault), raising=False)
        with pytest.raises(type(fault)):
            finish(rows("product", SMALL))


def test_a_wrong_answer_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real path: what the oracle says is changed, so the right answer is the wrong one."""
    from mtfcore.measuring import checking

    right = checking.expected_results
    monkeypatch.setattr(checking, "expected_results", lambda *args: [result + 1 for result in right(*args)])
    record = finish(rows("product", SMALL))
    assert (record.status, record.seconds) == ("failed", []) and "so no time is shown" in record.reason


def test_a_run_can_be_stopped_between_parts() -> None:
    going = rows("product", SMALL, repeats=50)
    for now in going:
        if now.text.startswith("repetition"):
            break
    going.close()
    assert mtf.simulate(CASES["product"].program(check(CASES["product"], SMALL)))  # no lock is held
    record = stopped("product", SMALL, "simulated", "by hand")
    assert (record.status, record.reason, record.where) == ("stopped", "by hand", {"platform": "simulated"})


def test_generate_checks_its_tokens() -> None:
    asked = {"model": "tiny-palm", "batch": 2, "prompt_tokens": 4, "new_tokens": 3, "weights": "f32", "cache": "f32"}
    record = finish(rows("generate", asked, repeats=2, warm_up=0))
    assert record.status == "ok" and len(record.seconds) == 2 and record.check["error"] <= 1e-2
    assert record.facts["tokens"] == 6 and record.where["devices"] == 1 and record.compile_seconds > 0


def test_a_token_that_is_not_the_likeliest_is_seen() -> None:
    logits = np.random.default_rng(5).standard_normal((2, 3, 256)).astype(np.float32)
    best = logits.argmax(-1)
    assert generate.behind_the_likeliest(logits, best.tolist()) == 0
    second = best.copy()
    second[1, 2] = logits[1, 2].argsort()[-20]
    assert generate.behind_the_likeliest(logits, second.tolist()) > max(generate.TOLERANCE.values())


def test_generate_shows_no_time_of_wrong_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*args: Any) -> Any:
        return [[1, 2]], [("decode", 1.0)]
        yield

    logits = np.zeros((1, 5, 256), np.float32)
    logits[..., 7] = 1  # the likeliest everywhere
    monkeypatch.setattr(generate, "_turn", wrong)
    monkeypatch.setattr(mtf, "single", lambda program: lambda **given: logits)
    asked = {"model": "tiny-palm", "batch": 1, "prompt_tokens": 4, "new_tokens": 2}
    record = finish(rows("generate", asked))
    assert (record.status, record.seconds) == ("failed", []) and "16 deviations below the likeliest" in record.reason


def test_a_list_from_the_command_line(own_records: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["run", "product", "--sweep", "simulated", "--on", "simulated", "--repeats", "2"]) == 0
    found, notes = records.read(own_records)
    assert [record.status for record in found] == ["ok"] * 3 and notes == []
    printed = capsys.readouterr().out
    assert (
        "1/3 product m=64" in printed and "never hardware speed" in printed and f"3 records in {own_records}" in printed
    )


def test_a_record_that_no_file_takes_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    full = tmp_path / "full.jsonl"
    (tmp_path / "full.jsonl.lock").mkdir()  # where its lock should lie
    words = ["run", "product", "m=8", "k=8", "n=8", "--on", "simulated", "--repeats", "1", "--out", str(full)]
    assert main(words) == 1  # not all is where it was asked to be
    told = capsys.readouterr().out
    assert f"0 records in {full}" in told
    line = told.split("add this line to one:\n")[1].splitlines()[0]
    (tmp_path / "a.jsonl").write_text(line)
    assert records.read(tmp_path)[0][0].status == "ok"


def test_what_can_be_no_file_is_refused_before_the_first_run(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "rows", None)  # nothing is measured
    words = ["run", "product", "--on", "simulated"]
    file = tmp_path / "notes.txt"
    file.write_text("")
    below = file / "deep" / "a.jsonl"
    assert main([*words, "--out", str(tmp_path)]) == 1
    said = f"--out {tmp_path} is a folder; expected a file, such as {tmp_path / 'run.jsonl'}"
    assert said in capsys.readouterr().err
    assert main([*words, "--out", str(below)]) == 1
    said = f"--out {below} lies below {file}, which is a file; expected a path below folders, such as"
    assert f"{said} {tmp_path / 'a.jsonl'}" in capsys.readouterr().err
    monkeypatch.setenv("MESHWORK_RECORDS", str(below))
    assert main(words) == 1 and f"your own records: {below} lies below {file}" in capsys.readouterr().err
    assert records.why_no_file(tmp_path / "new" / "a.jsonl") == ""


def test_no_run_begins_when_the_time_is_over(own_records: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["run", "product", "--sweep", "simulated", "--on", "simulated", "--minutes", "0"]) == 1
    assert "0 minutes are over: 3 runs of 3 not begun" in capsys.readouterr().out and not own_records.exists()


def test_ctrl_c_keeps_what_was_measured(own_records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, begun = running.rows, []

    def interrupted(*args: Any, **how: Any) -> Any:
        begun.append(args)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return (yield from real(*args, **how))

    monkeypatch.setattr(running, "rows", interrupted)
    assert main(["run", "product", "--sweep", "simulated", "--on", "simulated", "--repeats", "2"]) == 130
    assert [record.status for record in records.read(own_records)[0]] == ["ok", "stopped"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["rnu"], 2, "did you mean 'run'?"),
        (["run", "prodct"], 1, "did you mean 'product'?"),
        (["run", "product", "m64"], 1, "parameters are given as name=value"),
        (["run", "product", "m=0", "--on", "simulated"], 1, "m is 0; legal are"),
        (["run", "m=3"], 1, "name a case"),
        (["run", "product"], 1, "to practise without a chip: --on simulated"),
        (["run", "product", "--hosts", "2"], 1, "--hosts needs --coordinator"),
        (["run", "product", "--hosts", "2", "--coordinator", "a:1", "--host", "2"], 1, "numbered from 0 to 1"),
        (["run", "product", "--hosts", "2", "--coordinator", "here"], 1, "ADDRESS:PORT, an address of host 0"),
        (["run", "product", "--hosts", "-1", "--minutes", "nan"], 1, "run: 2 faults"),
        (["run", "product", "m=8", "m=9"], 1, "m: given more than once"),
        (["run", "product", "--topology", "v9:2x2"], 1, "v9"),
        (["compare", "committed", "--model", "phsical"], 1, "did you mean 'physical'?"),
        (["compare", "x" * 300], 1, "no records in"),
        (["compare", "nothing"], 1, "no records in 'nothing'"),
    ],
)
def test_faults_on_the_command_line(
    words: list[str], status: int, said: str, own_records: Path, capsys: pytest.CaptureFixture
) -> None:
    assert main(words) == status
    assert said in capsys.readouterr().err and not own_records.exists()


def test_the_list_of_cases(capsys: pytest.CaptureFixture) -> None:
    assert main(["list"]) == 0 and main(["list", "layer", "--sweep", "chip"]) == 0
    printed = capsys.readouterr().out
    assert all(f"{name}: " in printed for name in CASES) and "a device (modelled)" in printed


def test_a_commit_is_marked_where_code_has_changed(tmp_path: Path) -> None:
    import subprocess

    def git(*words: str) -> None:
        told = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(tmp_path), *told, *words], check=True, capture_output=True, timeout=30)

    assert commit(tmp_path) == ""
    (tmp_path / "mtfcore").mkdir()
    (tmp_path / "mtfcore" / "a.py").write_text("1")
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    commit.cache_clear()
    clean = commit(tmp_path)
    assert len(clean) >= 7 and set(clean) <= set("0123456789abcdef")
    (tmp_path / "notes.md").write_text("2")
    commit.cache_clear()
    assert commit(tmp_path) == clean
    (tmp_path / "mtfcore" / "a.py").write_text("2")
    commit.cache_clear()
    assert commit(tmp_path) == f"{clean}+"
    commit.cache_clear()


def test_prompts_differ() -> None:
    params = check(CASES["generate"], {"batch": 16, "prompt_tokens": 8})
    prompts = generate.prompts_of(params, generate.config_of(params))
    assert len({tuple(prompt) for prompt in prompts}) == 16 and np.max(prompts) < 49152
