"""docs/errors.md: what each wrong call of the catalogue says, made by making the calls, by `make docs`.

Next file to read: `reached`.
"""

from __future__ import annotations

from pathlib import Path

from docs.writing import write

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "errors.md"
HEAD = """<!-- Made by `make docs` from tests/errors/catalogue.py; change that, or the message, not this file. -->
# What is refused, and in which words

Whatever cannot be is refused before anything runs. A message names what was given, says what is legal, and offers the
nearest fix; several faults are listed at once; where a text was parsed, a caret stands under the fault. Below are {n}
wrong calls and exactly what each of them says: a test makes every one. No message has more than 2,000 characters.

| in Python | when |
|---|---|
| `mtf.LayoutError` (a `ValueError`) | a name, size, placement, program, file or setting that cannot be |
| `mtf.NotationError` (a `LayoutError`) | a text that does not parse |
| `mtf.LayoutWarning` | a rule that has no effect; an error with `strict=True` |
| `mtf.DeviceError` (a `RuntimeError`) | the devices, the compiler or the limits of this machine do not allow it |
| `ValueError` | HLO or StableHLO that is damaged, with its line; a record that is none |
| `AskingError` | a class's owner is away, refuses, or is somebody else |
| `StateError`, or an explorer's sentence | settings that an explorer cannot have; its picture stays as it was, greyed |
"""


def page() -> str:
    """All of it."""
    from errors.catalogue import CATALOGUE
    from errors.entry import said

    text = [HEAD.format(n=sum(map(len, CATALOGUE.values())))]
    for title, calls in CATALOGUE.items():
        text.append(f"\n## {title}\n")
        for wrong in calls:
            got = said(wrong)
            kind = {"exit": "in the terminal", "sentence": "in its sentence"}.get(got.kind, f"`{got.kind}`")
            text.append(f"\n```python\n{wrong.code}\n```\n{kind}\n```text\n{got.text}\n```\n")
    return "".join(text)


def main() -> None:
    """Write the page if it changed."""
    write(PAGE, page())
