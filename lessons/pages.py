"""Pages made from facts: the map of the course, the head of each teacher's notes, the table of published artefacts.

    python -m lessons.build      # `make lessons`: writes the notebooks, and whatever of these has changed

Facts of a lesson come from `course.py`, published artefacts from `mtfcore.reference`. Where a page is written by hand
and holds a made part, that part stands between two comments, `<!-- facts -->` and `<!-- /facts -->`, and only it is
replaced. Read next: `results.py`, which fills another such part with what the solved notebooks find.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lessons import notebooks
from lessons.course import Lesson, lessons
from mtfcore.reference.artefacts import PAPERS, Artefact, artefacts

NOTES = notebooks.HERE / "teaching"
ROOT = notebooks.HERE.parent
ABOUT = """\
# What each published artefact becomes

This page is made from `mtfcore/reference/artefacts.json` by `make lessons`. For each table, figure, claim and open end
of the two papers: where you can move it, which lesson teaches it, how near ours must come, which test says so, which
committed records show a TPU compiler's report on it. A dash: none, and why. The figures themselves, beside ours, are
printed by `python -m mtfcore.costs.against_published`.
"""
TITLES = {"first": "First paper: Mesh-TensorFlow", "second": "Second paper: Efficiently Scaling Transformer Inference"}
FULL = {"arXiv 1811.02084": "https://arxiv.org/abs/1811.02084", "arXiv 2211.05102": "https://arxiv.org/abs/2211.05102"}


def notes_of(lesson: Lesson) -> Path:
    """The teacher's notes of a lesson."""
    return NOTES / f"{lesson.stem}.md"


def replaced(text: str, part: str, made: str) -> str:
    """A page with one made part put in place of the old one."""
    begin, end = f"<!-- {part} -->", f"<!-- /{part} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"the page needs one {begin} and one {end}, for what is made")
    return f"{text.split(begin)[0]}{begin}\n{made}\n{end}{text.split(end)[1]}"


# ---- the map ----


def map_page() -> str:
    """MAP.md: the picture of which lesson needs which, then a table with a row for each lesson."""
    total = [sum(lesson.minutes[end] for lesson in lessons()) / 60 for end in (0, 1)]
    return "\n".join([
        "# Map of the course\n",
        "This page is made from the lessons by `make lessons`.\n",
        f"{len(lessons())} lessons, {total[0]:.0f} to {total[1]:.0f} hours of class with all exercises. An arrow leads "
        "from a lesson to one that needs it; lessons that no arrow joins can be taken in any order, or left out.\n",
        _picture(),
        "\nReady plans for one class of 90 minutes and for a course of six weeks: [teaching plans](teaching/plans.md). "
        "What a class has done: [classroom](teaching/classroom.ipynb). "
        "Words: [glossary](GLOSSARY.md). The same thing in four notations: [cheat sheet](CHEATSHEET.md). What became "
        "of each table and figure of the papers: [artefacts](../docs/artefacts.md).\n",
        "| lesson | minutes | needs | exercises | explorers | open |",
        "|---|---|---|---|---|---|",
        *map(_row, lessons()),
        "\n## What each is for, and where it stands in the papers\n",
        *(f"* **{each.number} · {each.title}.** {_why(each)} *{_cited(each.papers)}.*" for each in lessons()),
    ]) + "\n"  # fmt: skip


def _picture() -> str:
    boxes = [f'    L{each.number}["{each.number} {each.title.split(":")[0]}"]' for each in lessons()]
    arrows = [f"    L{need[:2]} --> L{each.number}" for each in lessons() for need in each.needs]
    return "\n".join(["```mermaid", "graph LR", *boxes, *arrows, "```"])


def _row(lesson: Lesson) -> str:
    needs = ", ".join(need[:2] for need in lesson.needs) or "–"
    exercises = ", ".join(exercise.name[3:].replace("_", " ") for exercise in lesson.exercises)
    explorers = ", ".join(f"`{name}`" for name in lesson.explorers)
    minutes = "–".join(map(str, lesson.minutes))
    title = f"{lesson.number} [{lesson.title}]({lesson.stem}.ipynb)"
    notes = f"[teacher's notes](teaching/{lesson.stem}.md)"
    return f"| {title} | {minutes} | {needs} | {exercises} | {explorers} | {_links(lesson)} · {notes} |"


def _links(lesson: Lesson, up: str = "") -> str:
    places = {"solved": f"solutions/{lesson.stem}.ipynb", "preview": f"previews/{lesson.stem}.html"}
    return " · ".join(f"[{word}]({up}{place})" for word, place in places.items())


def _why(lesson: Lesson) -> str:
    return f"{lesson.why[0].upper()}{lesson.why[1:]}"


def _cited(papers: str) -> str:
    """The papers' numbers as links."""
    return re.sub(r"arXiv \d{4}\.\d{5}", lambda m: f"[{m[0]}](https://arxiv.org/abs/{m[0][6:]})", papers)


# ---- the head of a lesson's notes ----


def facts(lesson: Lesson) -> str:
    """What a teacher looks up first."""
    needs = ", ".join(f"[{need[:2]}](../{need}.ipynb)" for need in lesson.needs) or "nothing"
    exercises = "; ".join(f"{each.number} *{each.name[3:]}* ({each.kind})" for each in lesson.exercises)
    return "\n".join([
        f"{_why(lesson)}\n",
        "| | |",
        "|---|---|",
        f"| open | [lesson](../{lesson.stem}.ipynb) · {_links(lesson, '../')} |",
        f"| minutes | {'–'.join(map(str, lesson.minutes))} |",
        f"| needs | {needs} |",
        f"| papers | {_cited(lesson.papers)} |",
        f"| hardware | {lesson.hardware} |",
        f"| explorers | {', '.join(f'`{name}`' for name in lesson.explorers)} |",
        f"| exercises | {exercises} |",
    ])  # fmt: skip


# ---- the published artefacts ----


def artefacts_page() -> str:
    """docs/artefacts.md: one row for each table, figure and claim of the papers."""
    lines = [ABOUT]
    for paper, title in TITLES.items():
        lines += [f"## {title}\n", f"[{PAPERS[paper]}]({FULL[PAPERS[paper]]})\n",
                  "| artefact | where | explorer | lesson | tolerance | tests | compiled record |",
                  "|---|---|---|---|---|---|---|"]  # fmt: skip
        lines += [_artefact_row(each) for each in artefacts() if each.paper == paper] + [""]
    return "\n".join(lines).rstrip() + "\n"


def _artefact_row(each: Artefact) -> str:
    explorer = f"`{each.explorer}`" if each.explorer else "–"
    lesson = f"[{each.lesson[:2]}](../lessons/{each.lesson}.ipynb)" if each.lesson else "–"
    files = dict.fromkeys(test.partition("::")[0] for test in each.tests)
    tests = ", ".join(f"[{Path(file).stem}](../{file})" for file in files)
    return f"| {each.artefact} | {each.where} | {explorer} | {lesson} | {each.tolerance} | {tests} | {_record(each)} |"


def _record(each: Artefact) -> str:
    if not each.compiled:
        return f"– {each.why_none}".strip()
    path, _, start = each.compiled.partition("#")
    return f"[{start}…](../{path})"


# ---- all of them ----


def pages() -> Iterator[tuple[Path, str]]:
    """Each made page and what it should say."""
    yield notebooks.HERE / "MAP.md", map_page()
    yield ROOT / "docs" / "artefacts.md", artefacts_page()
    for lesson in lessons():
        path = notes_of(lesson)
        yield path, replaced(path.read_text(encoding="utf-8"), "facts", facts(lesson))
