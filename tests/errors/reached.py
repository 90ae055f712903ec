"""Where our errors are raised, and whether anything sees what they say.

A place counts as seen if a call of the catalogue went through it, or if words of its message stand in a test. That is
an approximation, read from the source: a message may be tested by other words, and then it belongs into
`SEEN_OTHERWISE` with where. A `raise` that only hands on another's words has none of its own and is left out.
Next file to read: `test_catalogue`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FOLDERS = ("mtfcore", "widgets", "tpu_runs", "lessons/setting_up")
ERRORS = frozenset(
    "LayoutError NotationError DeviceError StateError Refused NotTaken AskingError OwnerAway WrongToken RequestRefused "
    "ReplayError WrongAnswer LeftOut NotYet AnswerFailed SetupError Unreadable WrongKind refuse".split()
)
WORDS, LEAST = 3, 12  # of a message that a test must have: so many words, of so many letters
# path → reason; all of a file's places.
SEEN_OTHERWISE: dict[str, str] = {
    "mtfcore/compiling/schedule.py": "tests/fuzz: damaged texts",
    "mtfcore/counting/hlo_parse.py": "tests/fuzz: damaged texts; tests/counting/test_hlo_text.py, by patterns",
    "mtfcore/counting/hlo_text.py": "tests/fuzz: damaged texts",
    "mtfcore/counting/hlo_values.py": "tests/fuzz: damaged texts",
    "mtfcore/runs.py": "tests/core/test_breaking.py, by the numbers of turns",
    "mtfcore/costs/templates/learned.py": "tests/costs/test_templates_refused.py, by what the explorers then do",
    "mtfcore/measuring/usable.py": "tests/measuring/test_calibrating.py, by the list of kinds that it offers",
    "mtfcore/model/engine/choosing.py": "needs a mesh of 2^a devices that no v4 slice has; the words of `--topology`",
    "mtfcore/model/engine/conversation.py": "tests/model/engine/test_conversation.py, by its kind",
    "mtfcore/model/engine/queue.py": "tests/model/engine, by its kind",
    "mtfcore/model/engine/slots.py": "tests/model/engine, by the number of slots",
    "mtfcore/model/files/folder_tokenizer.py": "tests/model/files/test_bad_files.py, by patterns",
    "mtfcore/model/files/gguf_check.py": "tests/model/files/test_bad_files.py, by patterns",
    "mtfcore/model/files/gguf_model.py": "tests/model/files/test_bad_files.py, by patterns",
    "mtfcore/model/files/gguf_tokenizer.py": "tests/model/files/test_bad_files.py, by patterns",
    "mtfcore/model/files/safetensors_check.py": "tests/model/files/test_bad_files.py, by patterns",
    "mtfcore/model/storing.py": "tests/model/engine, by the parameter's name",
    "mtfcore/schedules/replaying.py": "a fault of a schedule: none of ours has it, the test makes one by its kind",
    "mtfcore/spatial.py": "nothing is left: tests/core/test_spatial.py draws such sizes",
    "widgets/explorers/generate.py": "tests/widgets/test_generate.py, by the button",
    "widgets/explorers/generate_inputs.py": "tests/widgets/test_generate.py, by the offer",
    "widgets/explorers/layouts.py": "tests/widgets/test_layouts.py, by the number of layouts that fit",
    "widgets/explorers/on_device.py": "needs a class whose run ends; tests/widgets/test_on_device.py, by its kind",
    "widgets/learning/exercises.py": "tests/lessons/test_exercises.py, of every exercise's stub",
    "tpu_runs/against.py": "tests/tpu_runs/test_compare.py, by the chips' names",
    "tpu_runs/serve/limits.py": "tests/tpu_runs/test_serve.py, by HTTP's 429",
    "lessons/setting_up/bundle_target.py": "on systems that none of us has",
    "lessons/setting_up/lab.py": "fifty ports in use; tests/setup/test_setup_lab.py passes one over",
    "lessons/setting_up/update.py": "of another set-up command; tests/setup",
}


class Place(NamedTuple):
    """One `raise` of ours with words of its own."""

    path: str
    first: int
    last: int
    words: tuple[str, ...]


def places() -> Iterator[Place]:
    """Every one of them."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and (runs := _runs(node.exc)):
                    yield Place(str(path.relative_to(ROOT)), node.lineno, node.end_lineno or node.lineno, runs)


def _runs(call: ast.Call) -> tuple[str, ...]:
    """Runs of words that a message of ours has, long enough to be told from others."""
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    if name not in ERRORS:
        return ()
    texts = [node.value for node in ast.walk(call) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    found = []
    for words in (_plain(text).split() for text in texts):
        found += [" ".join(words[n : n + WORDS]) for n in range(max(1, len(words) - WORDS + 1))]
    return tuple(run for run in found if len(run) >= LEAST)


def _plain(text: str) -> str:
    """Without the breaks and signs by which source and patterns write a text."""
    joined = re.sub(r"""["']\s*\n\s*[rf]*["']""", "", text)
    return re.sub(r"\s+", " ", joined.replace("\\", ""))


@cache
def _tested() -> str:
    paths = [path for path in (ROOT / "tests").rglob("*.py") if path.parent.name != "errors"]
    return " ".join(_plain(path.read_text(encoding="utf-8")) for path in sorted(paths))


def unseen(went_through: frozenset[tuple[str, int]], said: str) -> list[Place]:
    """Places that neither the catalogue nor any test's words show."""
    return [
        place
        for place in places()
        if place.path not in SEEN_OTHERWISE
        and not any((place.path, line) in went_through for line in range(place.first, place.last + 1))
        and not any(run in _tested() or run in _plain(said) for run in place.words)
    ]
