"""Records, and what a notebook and a class's owner say to each other.

Next file to read: `model_files`.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence
from typing import Any

from fuzz import mutating
from fuzz.parser import ROOT, Parser, fixed


def _record_lines() -> Sequence[str]:
    lines = (ROOT / "tpu_runs" / "records" / "papers_training.jsonl").read_text(encoding="utf-8").splitlines()
    return sorted(lines, key=len)[:3]


def _read_records(text: str, folder: pathlib.Path) -> None:
    from tpu_runs.records import read

    (folder / "a.jsonl").write_bytes(text.encode("utf-8", "surrogatepass"))
    records, notes = read(folder)
    assert all(len(note) < 1_000 for note in notes)
    for record in records:
        record.words(), record.median, record.spread, record.asked, record.line()


def _asked(text: str) -> None:
    from tpu_runs.serve import limits, menu

    asked = limits.read_request("application/json", text.encode("utf-8", "surrogatepass"))
    menu.size(asked.case, menu.check(asked.case, asked.params), "simulated")


def _answered(text: str) -> None:
    """What a notebook makes of whatever answers at the class's address."""
    from tpu_runs import answers, asking

    class Pretended(asking.Class):
        def _once(self, *_: Any) -> dict[str, Any]:
            return answers.read_answer(text.encode("utf-8", "surrogatepass"), self.address)

    place = Pretended("http://127.0.0.1:1", "token")
    asked = place.start("product", {})
    if asked.told.get("state") == "done":
        asked.wait(lambda told: print(asking.in_words(told)))
    place.cases()


def _refused(text: str) -> None:
    from tpu_runs import answers

    raise answers.refusal_of(400, text.encode("utf-8", "surrogatepass"), text[:20])


def _class_named(text: str) -> None:
    from tpu_runs import asking

    if (found := asking.the_class(text)) is not None:
        found.status()


def _done() -> dict[str, Any]:
    record = json.loads(_record_lines()[0])
    return {"id": "0" * 32, "state": "done", "mark": "ab", "source": "records", "record": record, "cases": {}}


def _class_errors() -> tuple[type[BaseException], ...]:
    from tpu_runs.asking import AskingError
    from tpu_runs.serve.limits import Refused

    return (AskingError, Refused, ValueError)


REQUEST = {"case": "product", "params": {"m": 4096, "k": 512, "n": 64, "dtype": "bf16"}, "fresh": False}
RUNS = {
    "records": Parser(_read_records, _record_lines, mutating.texts, (), in_folder=True),
    "records' fields": Parser(
        lambda value, folder: _read_records(json.dumps(value), folder),
        lambda: [json.loads(line) for line in _record_lines()],
        mutating.values,
        (),
        in_folder=True,
    ),
    "a class's requests": Parser(
        _asked,
        fixed(REQUEST, {"case": "collective", "params": {"mesh": "x:2 y:2"}}),
        mutating.json_texts,
        _class_errors(),
    ),
    "a class's answers": Parser(_answered, lambda: [_done()], mutating.json_texts, _class_errors()),
    "a class's refusals": Parser(_refused, fixed({"error": "no"}), mutating.json_texts, _class_errors()),
    "the class's address": Parser(_class_named, fixed("http://127.0.0.1:9 token"), errors=_class_errors()),
}
