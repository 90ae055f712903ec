"""One wrong call, and what it must say: the parts that are named, and where a text was parsed, a caret.

    Wrong('mtf.Mesh("rows:0")', "rows size 0")        # code, words that its message must have

The exact message stands in docs/errors.md, which is made from these calls. Next file to read: `catalogue`.
"""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import re
import tempfile
import traceback
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest import mock

ROOT = pathlib.Path(__file__).parents[2]


@dataclass(frozen=True)
class Wrong:
    """A call in Python; `files` is an empty folder, `make` the makers of small model files.

    Explorers raise nothing: they keep a refusal in their sentence, which the code names `sentence`.
    """

    code: str
    names: str = ""  # words that must be in the message, apart by blanks
    caret: bool = False  # whether a text was parsed
    ends: bool = True  # whether a fix is offered; not where nothing can be done about it here


@dataclass(frozen=True)
class Said:
    """What a wrong call ended in."""

    kind: str
    text: str
    places: frozenset[tuple[str, int]]  # files of ours, and lines, through which it went


@cache
def said(wrong: Wrong) -> Said:
    """Make the call. A warning counts where nothing is raised."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as printed:
        with mock.patch.dict(os.environ, MESHWORK_CLASS=""), warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                names = _names(pathlib.Path(folder))
                exec(compile(wrong.code, "<catalogue>", "exec"), names)
                if "sentence" in names:
                    return Said("sentence", _tidy(names["sentence"], folder), frozenset())
            except SystemExit as end:
                text = str(end.code) if isinstance(end.code, str) else printed.getvalue()
                return Said("exit", _tidy(text, folder), frozenset())
            except Exception as error:
                return Said(type(error).__name__, _tidy(str(error), folder), _places(error))
        if heard:
            return Said(heard[0].category.__name__, _tidy(str(heard[0].message), folder), frozenset())
        return Said("exit", _tidy(printed.getvalue(), folder), frozenset())


def _names(folder: pathlib.Path) -> dict[str, Any]:
    import numpy as np
    from model.files import makers

    import mtfcore as mtf

    return {"mtf": mtf, "np": np, "files": folder, "make": makers}


def _places(error: BaseException | None) -> frozenset[tuple[str, int]]:
    found: set[tuple[str, int]] = set()
    while error is not None:
        for frame in traceback.extract_tb(error.__traceback__):
            with contextlib.suppress(ValueError):
                found.add((str(pathlib.Path(frame.filename).relative_to(ROOT)), frame.lineno or 0))
        error = error.__cause__ or error.__context__
    return frozenset(found)


def _tidy(text: str, folder: str) -> str:
    """Without what differs between days, systems and versions: a folder's name, numbers of errors, others' words."""
    text = text.replace(folder, "files").replace(pathlib.Path(folder).name, "files").strip("\n")
    return re.sub(r"The parser says: .*", "The parser says: …", re.sub(r"\[Errno \d+\]", "[Errno …]", text))
