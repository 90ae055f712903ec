"""Write whatever is made of the lessons' sources: `python -m lessons.build`, which is what `make lessons` runs.

The notebooks (`notebooks.py`), the map and other pages (`pages.py`), and what the lessons ask for as data for those who
read progress (`widgets/learning/outline.json`). Next file to read: `checks/__init__.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from lessons import course, pages
from lessons.notebooks import HERE, LEFT_OUT, sources, target, teachers, text
from lessons.setting_up import typed
from widgets.learning import outline


def outline_text() -> str:
    """What the lessons ask for, as `widgets.learning.outline` reads it."""

    def row(lesson: course.Lesson) -> dict:
        asked = [{"name": q.name, "question": q.text, "unit": q.unit, "choices": list(q.choices), "origin": q.origin}
                 for q in lesson.questions]  # fmt: skip
        checks = [exercise.name for exercise in lesson.exercises]
        return {"stem": lesson.stem, "title": lesson.title, "checks": checks, "predictions": asked}

    return json.dumps([row(lesson) for lesson in course.lessons()], indent=1, ensure_ascii=False) + "\n"


def texts() -> Iterator[tuple[Path, str]]:
    """Every generated file and its exact text."""
    for source in sources():
        yield from ((target(source, kind), text(source, kind)) for kind in LEFT_OUT)
    for source in sorted((HERE / "teaching").glob("*.py")):
        yield source.with_suffix(".ipynb"), teachers(source)
    yield outline.FILE, outline_text()
    yield from pages.pages()


def build() -> list[Path]:
    """Write every file whose text has changed; returns those written. Notebooks that somebody typed in are kept."""
    written = []
    for path, wanted in texts():
        if not path.exists() or path.read_text(encoding="utf-8") != wanted:
            if path.suffix == ".ipynb" and path.exists() and typed.is_typed_in(path):
                print(f"what was typed in {path.name} is kept in {typed.keep(path).name}")
            path.parent.mkdir(exist_ok=True)
            path.write_text(wanted, encoding="utf-8", newline="\n")
            written.append(path)
    return written


if __name__ == "__main__":
    about = "Make notebooks, map and notes from lessons/src; write those that changed."
    argparse.ArgumentParser(prog="python -m lessons.build", description=about).parse_args()
    for path in build():
        print(f"wrote {path.relative_to(HERE.parent)}")
    sys.exit(0)
