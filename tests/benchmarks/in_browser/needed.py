"""Which cells of a lesson its first explorer needs: those that make the names it uses, and what these use in turn.

    >>> needed(["import mtfcore as mtf", "size = 3", "x = 2 * size", "slices(x)"], 3)
    [1, 2, 3]

So an explorer can be opened without training a model first that it does not show. Next file to read: lessons.py.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence


def needed(cells: Sequence[str], place: int) -> list[int]:
    """Places of the cells to run, in order, the explorer's own last; cells that are not Python are empty texts."""
    trees = [ast.parse(cell) for cell in cells[: place + 1]]
    wanted, found = used(trees[place]), [place]
    for at in range(place - 1, -1, -1):
        if made(trees[at]) & wanted:
            wanted |= used(trees[at])
            found.append(at)
    return found[::-1]


def used(tree: ast.AST) -> set[str]:
    """Names that are read anywhere within."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def assigned(tree: ast.AST) -> set[str]:
    """Names that an assignment gives a meaning."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def made(tree: ast.AST) -> set[str]:
    """Names that are given a meaning anywhere within, or whose content may be changed there."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            found |= used(node.value)
    return found
