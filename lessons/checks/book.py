"""How a lesson enters an exercise: the solution shown by the third help is read from the lesson's solved notebook.

So a solution stands in one place only, the source's cell tagged `solution`: the notebook is made from it, and the tests
run it there. Plain JSON is read, so that help comes at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from widgets.learning.exercises import Check
from widgets.learning.exercises import exercise as enter

SOLUTIONS = Path(__file__).parent.parent / "solutions"


def exercise(name: str, *, task: str, hint: str, bigger_hint: str, gives: str = "") -> Callable[[Check], Check]:
    """Enter a check under "NN name"; NN is the lesson. `gives` names the kind of the answer."""
    return enter(name, task=task, gives=gives, hint=hint, bigger_hint=bigger_hint, solution=lambda: solution(name))


def solution(name: str) -> str:
    """The text of an exercise's solution, without its closing `check(…)`."""
    notebook = next(SOLUTIONS.glob(f"{name[:2]}_*.ipynb"))
    closing = re.compile(rf"^check\(\s*[\"']{re.escape(name)}[\"']", re.MULTILINE)
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if "solution" in cell["metadata"].get("tags", ()) and closing.search(text):
            return closing.split(text)[0].rstrip()
    raise LookupError(f"{notebook.name} has no solution of {name!r}; make the notebooks anew: make lessons")
