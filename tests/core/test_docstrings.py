"""Public names say what they take, what they refuse and, by an example that runs, what they give.

The reference in docs/api is made of these docstrings, so what is checked here is checked there.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
from core import doc_context

import mtfcore as mtf
from mtfcore.compiling.report import CompiledReport
from mtfcore.costs.pricing.cost import Cost
from mtfcore.measuring.measured import Measured

PACKAGES = (mtf, mtf.costs, mtf.model, mtf.schedules)
CLASSES = (
    mtf.Dim, mtf.Mesh, mtf.Layout, mtf.Sharding, mtf.Tensor, mtf.Step, mtf.Program, Cost, CompiledReport, Measured,
    mtf.model.Engine, mtf.model.Trainer,
)  # fmt: skip
LEAST_EXAMPLES = 60
REFUSES = re.compile(r"\braise (LayoutError|NotationError|DeviceError)|\brefuse\(")


def public() -> Iterator[tuple[str, Any]]:
    """Every public function, class and method once, with the name by which people call it."""
    for package in PACKAGES:
        for name in package.__all__:
            if callable(value := getattr(package, name)):
                yield f"{package.__name__.replace('mtfcore', 'mtf', 1)}.{name}", value
    for owner in CLASSES:
        for name, value in vars(owner).items():
            method = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            if inspect.isfunction(method) and not name.startswith("_"):
                yield f"{owner.__name__}.{name}", method


FOUND = dict(public())
FUNCTIONS = {name: value for name, value in FOUND.items() if not inspect.isclass(value)}


def said(value: Any) -> str:
    return inspect.getdoc(value) or ""


def refuses(value: Any) -> bool:
    """Whether its own lines, its docstring aside, refuse something."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(value)))
    except (OSError, TypeError):
        return False
    return bool(REFUSES.search("\n".join(ast.unparse(line) for line in tree.body[0].body if not is_text(line))))


def is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


@pytest.mark.parametrize("name", FOUND)
def test_the_first_line_is_a_sentence(name: str) -> None:
    first = said(FOUND[name]).split("\n\n")[0]
    assert first.rstrip().endswith((".", ":", ")")) and len(first) > 3, first


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_is_named(name: str) -> None:
    parameters = [word for word in inspect.signature(FUNCTIONS[name]).parameters if word not in ("self", "cls")]
    assert [word for word in parameters if not re.search(rf"\b{word}\b", said(FUNCTIONS[name]))] == []


@pytest.mark.parametrize("name", [name for name, value in FUNCTIONS.items() if refuses(value)])
def test_what_refuses_says_so(name: str) -> None:
    assert re.search(r"Raises|[Rr]efuse|LayoutError|DeviceError", said(FUNCTIONS[name]))


def test_the_examples_are_true() -> None:
    given, ran = doc_context.context(), 0
    for name, value in FOUND.items():
        example = doctest.DocTestParser().get_doctest(said(value), dict(given), name, None, 0)
        if inspect.isclass(value) or not example.examples:
            continue
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False).run(example)
        assert not result.failed, name
        ran += result.attempted
    assert ran >= LEAST_EXAMPLES


def test_what_comes_from_a_paper_names_its_place() -> None:
    sources = [
        name for name, value in FOUND.items() if re.search(r"arXiv \d{4}\.\d{5}, (section|appendix|Table)", said(value))
    ]
    assert len(sources) >= 15, sources
