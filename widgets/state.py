"""An explorer's state: a small flat dictionary of texts and numbers that goes out and comes in as JSON.

    >>> read_state('{"mesh": "rows:2"}', {"mesh": "rows:4", "dtype": "bf16"})
    {'mesh': 'rows:2', 'dtype': 'bf16'}

The start values are the schema: the same names, the same types. Whatever does not fit is refused with all faults
at once; what is left out keeps its start value. Next file to read: `frame`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from mtfcore.errors import LayoutError, nearest, refuse

State = dict[str, Any]
LONGEST = 20_000
LARGEST = 1e300  # number; a whole number beyond 1.8e308 is no float
UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # in XML, so in no saved picture
_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


class StateError(LayoutError):
    """A state that this explorer cannot have."""


def check_state(given: object, start: Mapping[str, Any]) -> State:
    """The state completed from `start`, or `StateError` with every fault."""
    if not isinstance(given, Mapping):
        raise StateError(f"a state is an object such as {json.dumps(dict(start))[:120]}, not {type(given).__name__}")
    faults = [f"no setting {name!r}; {nearest(str(name), start)}" for name in given if name not in start]
    faults += [
        f"{name} takes {_WORDS[type(start[name])]}, not {value!r:.200}"
        for name, value in given.items()
        if name in start and not _fits(value, start[name])
    ]
    faults += [
        f"{name} has characters that cannot be written down, as \\x00: {value!a:.100}"
        for name, value in given.items()
        if isinstance(value, str) and UNWRITABLE.search(value)
    ]
    try:
        refuse(faults, "state")
    except LayoutError as fault:
        raise StateError(str(fault)) from None
    return {**start, **given}


def _fits(value: object, example: object) -> bool:
    if isinstance(example, bool) or isinstance(value, bool):
        return isinstance(example, bool) and isinstance(value, bool)
    if isinstance(example, float):
        return isinstance(value, (int, float)) and abs(value) < LARGEST
    return isinstance(value, type(example))


def read_state(text: str, start: Mapping[str, Any]) -> State:
    """Read a pasted state."""
    if len(text) > LONGEST:
        raise StateError(f"a state has at most {LONGEST} characters; this text has {len(text)}")
    try:
        given = json.loads(text)
    except json.JSONDecodeError as fault:
        line = text.split("\n")[fault.lineno - 1] if text.strip() else ""
        caret = f"\n  {line}\n  {' ' * (fault.colno - 1)}^" if line else ""
        raise StateError(f"not JSON: {fault.msg} (line {fault.lineno}, column {fault.colno}){caret}") from None
    except (ValueError, RecursionError) as fault:  # a number of thousands of digits, brackets in brackets
        raise StateError(f"not a state: {str(fault)[:80]}") from None
    return check_state(given, start)


def write_state(state: Mapping[str, Any]) -> str:
    """The state as JSON, one line."""
    return json.dumps(dict(state), ensure_ascii=False)


def call_text(name: str, state: Mapping[str, Any]) -> str:
    """The Python call that gives this picture, one argument a line where it is long."""
    parts = [f"{key}={value!r}" for key, value in state.items()]
    short = f"{name}({', '.join(parts)})"
    lines = "".join(f"    {part},\n" for part in parts)
    return f"from widgets import {name}\n" + (short if len(short) <= 88 else f"{name}(\n{lines})")
