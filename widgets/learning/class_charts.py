"""How a class predicted: one chart a question, bars of how far students were from the result, or of what they chose.

    list(charts(found, course()[2]))       # [<figure>…, …], SVG

A bar has two parts, predictions made before the result and after it. Next file to read: `classroom.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape

from widgets.figures.bars_svg import Bar, Part, bars_svg, legend
from widgets.numbers import count, tagged_html
from widgets.theme import LETTERS

from .class_facts import ClassFacts
from .outline import Asked, Lesson
from .standing import Entry, apart, shown

BEFORE, AFTER = LETTERS["x"], "#8C8C8C"
EXACT, NO_RATIO, NO_RESULT = "exact", "0 or below", "no result yet"
BOUNDS = ((0.1, "under 1/10"), (0.5, "1/10 to 1/2"), (1.0, "1/2 to 1"), (2.0, "1 to ×2"), (10.0, "×2 to ×10"))
OVER = "over ×10"
BINS = (*(words for _, words in BOUNDS[:3]), EXACT, *(words for _, words in BOUNDS[3:]), OVER, NO_RATIO, NO_RESULT)
MOST_CHOICES = 8  # a lesson asks for five at most; a file may claim anything


def charts(found: ClassFacts, lesson: Lesson) -> Iterator[str]:
    """A chart for each prediction that somebody made."""
    for asked in lesson.predictions:
        entries = found.guesses(lesson, asked)
        if any("answer" in entry for entry in entries):
            yield chart(asked, entries)


def chart(asked: Asked, entries: Sequence[Entry]) -> str:
    """One question with its result and its bars."""
    made = [entry for entry in entries if "answer" in entry]
    labels = [_label(entry, asked) for entry in made]
    order = _choices(asked, labels) if asked.choices else BINS
    late = [label for label, entry in zip(labels, made, strict=True) if entry.get("before") is False]
    bars = [_bar(label, labels.count(label), late.count(label)) for label in order]
    says = f"{_result(asked, entries)}; {count(len(made), 'prediction')}, {len(entries) - len(made)} made none."
    title = f"{asked.name}: {'what was chosen' if asked.choices else 'predictions as parts of the result'}"
    drawn = bars_svg(title, bars, top=max(map(labels.count, order), default=1), name=asked.name)
    key = legend([("before the result", BEFORE), ("after it", AFTER)])
    return f"<figure>{drawn}{key}<figcaption>{escape(asked.question)} {says}</figcaption></figure>"


def _result(asked: Asked, entries: Sequence[Entry]) -> str:
    """The result that most files have: it is computed by the lesson, so they should all agree."""
    results = Counter(entry["actual"] for entry in entries if "actual" in entry)
    if not results:
        return "Nobody has seen the result"
    (most, _), *others = results.most_common()
    differ = f" ({count(len(others), 'other result')} in some files)" if others else ""
    return f"Result: {tagged_html(f'{shown(most, asked)} [{asked.origin}]')}{escape(differ)}"


def _label(entry: Entry, asked: Asked) -> str:
    answer, actual = entry["answer"], entry.get("actual")
    if asked.choices:
        return str(answer)
    if actual is None or answer == actual:
        return NO_RESULT if actual is None else EXACT
    ratio = apart(answer, actual)
    if ratio is None:
        return NO_RATIO
    return next((words for bound, words in BOUNDS if ratio < bound or ratio == bound > 1), OVER)


def _choices(asked: Asked, labels: Sequence[str]) -> list[str]:
    """The lesson's choices, then what else files have."""
    strange = sorted(set(labels) - set(asked.choices))
    return [*asked.choices, *strange][: max(MOST_CHOICES, len(asked.choices))]


def _bar(label: str, n: int, late: int) -> Bar:
    parts = (Part(n - late, BEFORE, f"before the result: {n - late}"), Part(late, AFTER, f"after it: {late}"))
    return Bar(label, tuple(part for part in parts if part.value), str(n), hint=label)
