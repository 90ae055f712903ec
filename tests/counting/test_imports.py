"""The counters check the planner, so they may import nothing of it, and no JAX before it is needed."""

import ast
from pathlib import Path

import pytest

import mtfcore.counting

FILES = sorted(Path(mtfcore.counting.__file__).parent.glob("*.py"))


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_counting_imports_only_itself(path):
    tree = ast.parse(path.read_text())
    everywhere = [name for node in ast.walk(tree) for name in _imported(node)]
    ours = [n for n in everywhere if n.split(".")[0] in ("mtfcore", "widgets", "tpu_runs")]
    # only its tables write numbers, and the one formatter of numbers knows nothing of plans
    allowed = ("mtfcore.counting", "mtfcore.numbers") if path.name == "show.py" else ("mtfcore.counting",)
    assert all(n.startswith(allowed) for n in ours), ours
    assert not [n for n in everywhere if "_src" in n.split(".")]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_jax_is_imported_inside_functions_only(path):
    top = [name for node in ast.parse(path.read_text()).body for name in _imported(node)]
    assert not [n for n in top if n.split(".")[0] in ("jax", "jaxlib")]
