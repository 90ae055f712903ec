"""How a public name is written down: its signature as a reader types it, and its docstring as Markdown.

Next file to read: `reference`, which lays these out as pages.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any


def signature(written: str, value: Any, bound: bool = False) -> str:
    """How to call it, on one line if it fits; annotations as they stand in the source."""
    try:
        found = inspect.signature(value)
    except ValueError:  # an exception class without a constructor of its own
        return written
    parameters = list(found.parameters.values())
    parameters = parameters[1:] if bound and parameters and parameters[0].name in ("self", "cls") else parameters
    returns = inspect.Signature.empty if inspect.isclass(value) else _Plain.of(found.return_annotation)
    found = found.replace(parameters=[_plain(parameter) for parameter in parameters], return_annotation=returns)
    if bound or len(f"{written}{found}") <= 110:
        return f"{written}{found}"
    inside = "".join(f"    {piece},\n" for piece in _pieces(found))
    result = "" if returns is inspect.Signature.empty else f" -> {returns}"
    return f"{written}(\n{inside}){result}"


def _pieces(found: inspect.Signature) -> Iterator[str]:
    """Each parameter's text, and the lone star before those that are given by name only."""
    starred = False
    for parameter in found.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        yield str(parameter)


class _Plain(str):
    """An annotation that prints without quotes; a default that prints the same in every run."""

    def __repr__(self) -> str:
        return str(self)

    @classmethod
    def of(cls, annotation: Any) -> Any:
        return cls(annotation) if isinstance(annotation, str) else annotation


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter as a reader writes it: no quotes round annotations, no addresses in defaults."""
    unprintable = " at 0x" in repr(parameter.default) or "<factory>" in repr(parameter.default)
    default = _Plain("…") if unprintable else parameter.default
    return parameter.replace(annotation=_Plain.of(parameter.annotation), default=default)


def text(value: Any) -> str:
    """A docstring as Markdown: indented examples become code."""
    lines: list[str] = []
    code = False
    for line in (inspect.getdoc(value) or "").splitlines():
        starts = line.startswith(("    ", ">>>"))
        if starts and not code and (not lines or not lines[-1].strip()):
            lines.append("```python")
            code = True
        elif code and not line.strip():
            lines.append("```")
            code = False
        lines.append(line.removeprefix("    ") if code else line)
    return "\n".join([*lines, "```"] if code else lines)


def one_line(value: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
