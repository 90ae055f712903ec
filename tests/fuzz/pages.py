"""What pages and notebooks keep: states of explorers, progress. Explorers keep an error in their sentence, raised here.

Next file to read: `commands`.
"""

from __future__ import annotations

import pathlib
from functools import cache
from typing import Any

from fuzz import mutating
from fuzz.parser import Parser, fixed

import widgets


@cache
def _explorer(name: str) -> Any:
    made = getattr(widgets, name)()
    made.reraise = True
    return made


def _state(name: str) -> Parser:
    def read(text: str) -> None:
        from widgets.state import read_state

        frame = _explorer(name)
        frame.state = read_state(text, frame.start)
        frame.settle()
        frame.check()
        assert len(frame.sentence) < 4_000, f"a sentence of {len(frame.sentence)} characters"

    return Parser(read, lambda: [dict(_explorer(name).start)], mutating.json_texts)


def _own_progress(text: str, folder: pathlib.Path) -> None:
    from widgets.learning.progress import Progress

    path = folder / ".meshwork-progress.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    progress = Progress(path)
    assert isinstance(progress.student, str) and len(progress.note) < 2_000
    progress.entries("checks"), progress.names("predictions")


def _export(text: str, folder: pathlib.Path) -> None:
    from widgets.learning import reading

    (folder / "one.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    reading.read(folder / "one.json")


def _left_out() -> tuple[type[BaseException], ...]:
    from widgets.learning.reading import LeftOut

    return (LeftOut,)


OWN = {
    "version": 1,
    "student": "ab12",
    "checks": {"01 rows": {"passed": True, "tries": 2, "help": 1}},
    "predictions": {"01 bytes": {"question": "How many?", "unit": "B", "answer": 64, "before": True, "actual": 32}},
}
EXPORT = {
    "format": "meshwork-progress",
    "version": 1,
    "name": "Ada",
    "exported": "2026-01-02T03:04:05Z",
    "meshwork": "0.1.0",
    "checks": {"01 rows": {"passed": True, "tries": 2, "help": 1}},
    "predictions": {"01 bytes": {"answer": 64, "before": True, "actual": 32}},
}
PAGES = {
    **{f"state of {name}": _state(name) for name in widgets.EXPLORERS},
    "progress": Parser(_own_progress, fixed(OWN), mutating.json_texts, (), in_folder=True),
    "exported progress": Parser(_export, fixed(EXPORT), mutating.json_texts, _left_out(), in_folder=True),
}
