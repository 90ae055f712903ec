"""Who may import whom: between the packages, between the rooms of mtfcore, and JAX only where something runs.

A room is a folder of mtfcore; the files that lie beside the folders, from notation to plans, are its heart, which all
rooms may use. Imports inside functions count as arrows too: an object that draws itself asks its table only then, and
such a pair may stand in one room, but no two rooms may need each other.
"""

from __future__ import annotations

import ast
import graphlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mtfcore as mtf

ROOT = Path(mtf.__file__).parent.parent
# Of mtfcore, loaded when something runs; all else names JAX inside functions.
RUNS_JAX = {"execute.py", "kernels/basic.py", "kernels/call.py", "kernels/row_writing.py",
            "kernels/spatial.py", "kernels/threefry.py"}  # fmt: skip


ARROWS = {  # package → what else of ours it may import
    "mtfcore": set(),
    "widgets": {"mtfcore", "tpu_runs.records", "tpu_runs.asking", "tpu_runs.entries"},
    "tpu_runs": {"mtfcore"},
    "lessons": {"widgets", "mtfcore", "tpu_runs"},
}
OURS = {*ARROWS, "tests"}
FILES = [path for package in ARROWS for path in sorted((ROOT / package).rglob("*.py"))]


def imported(nodes: Iterator[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:  # relative ones cannot leave their package
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def at_the_top(tree: ast.Module) -> Iterator[ast.AST]:
    """Statements that run on import: all but what stands in functions and under `if TYPE_CHECKING`."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        left += ast.iter_child_nodes(node)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_arrows(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = set(imported(ast.walk(tree)))
    others = {name for name in names if name.split(".")[0] in OURS - {package}}
    allowed = ARROWS[package]
    wrong = {n for n in others if not any(n == a or n.startswith(f"{a}.") or a.startswith(f"{n}.") for a in allowed)}
    assert not wrong
    if package == "widgets":
        assert not {name for name in names if name.split(".")[0] in ("jax", "jaxlib")}
    if package == "mtfcore" and path.relative_to(ROOT / "mtfcore").as_posix() not in RUNS_JAX:
        assert not {name for name in imported(at_the_top(tree)) if name.split(".")[0] in ("jax", "jaxlib")}


def test_records_and_asking_need_python_alone() -> None:
    """Explorers import them, and so may a script on a computer without anything else of ours."""
    ours, seen = ["tpu_runs.records", "tpu_runs.asking"], set()
    while ours:
        seen.add(module := ours.pop())
        path = ROOT / (module.replace(".", "/") + ".py")
        names = set(imported(ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
        ours += {".".join(name.split(".")[:2]) for name in names if name.startswith("tpu_runs.")} - seen
        assert {name.split(".")[0] for name in names} <= {*sys.stdlib_module_names, "tpu_runs"}, module
    assert seen >= {"tpu_runs.records", "tpu_runs.asking", "tpu_runs.appending"}


def test_the_arrow_test_reads_what_it_should() -> None:
    tree = ast.parse("import a.b\nfrom c import d\ndef f():\n    import jax\nclass K:\n    import e\n")
    assert set(imported(at_the_top(tree))) == {"a.b", "c", "c.d", "e"}
    assert "jax" in set(imported(ast.walk(tree))) and len(FILES) > 30


@pytest.mark.parametrize("name", ["numpy", "jax", "jaxlib"])
def test_the_heart_is_plain_python(name: str) -> None:
    """Notation to planning needs no arrays at all."""
    heart = ["errors", "dtypes", "dims", "notation", "mesh", "placing", "sharding", "layout", "tensor", "functions",
             "ops", "elementwise", "reductions", "reshapes", "loops", "planning", "planner",
             "steps", "rules.moves", "spatial", "backward.spatial", "padding", "rules.halo", "rules.spatial",
             "rules.choosing", "rules.operations", "rules.reshaping", "rules.resharding"]  # fmt: skip
    for module in heart:
        tree = ast.parse(Path(importlib.import_module(f"mtfcore.{module}").__file__).read_text(encoding="utf-8"))
        assert name not in {found.split(".")[0] for found in imported(at_the_top(tree))}


# ---- the rooms of mtfcore ---------------------------------------------------------------------------------------

ROOMS = {  # room → the other rooms that it may use, the heart aside
    "counting": set(),  # checks the plans, so it knows nothing of them
    "reference": set(),
    "rules": set(),
    "source": set(),
    "kernels": set(),
    "schedules": set(),
    "backward": {"rules"},
    "model": {"rules"},  # configurations, partitions, the layers themselves
    "model/files": {"model"},
    "costs": {"model", "reference", "schedules"},
    "overlap": {"costs", "rules"},
    "compiling": {"costs", "counting"},
    "measuring": {"costs", "counting", "kernels"},
    "model/engine": {"costs", "model", "overlap"},
    "model/chat": {"model", "model/files", "model/engine"},  # `chat*` and `untrained`
}
CHAT = ("chat", "chat_command", "chat_traffic", "untrained")
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "mtfcore").rglob("*.py"))
}


def room(module: str) -> str:
    """The room that a module of mtfcore stands in; "" for the heart."""
    first, *rest = module.split(".")[1:] or [""]
    if first == "model" and rest:
        first = f"model/{rest[0]}" if rest[0] in ("files", "engine") else "model/chat" if rest[0] in CHAT else first
    return first if first in ROOMS else ""


def used(nodes: Iterator[ast.AST]) -> set[str]:
    """The modules of mtfcore that are imported, each by its longest name."""
    names = [name for name in imported(nodes) if name.split(".")[0] == "mtfcore"]
    return {name if name in MODULES else name.rpartition(".")[0] for name in names} & set(MODULES)


def test_every_folder_is_a_room() -> None:
    folders = {path.parent.relative_to(ROOT / "mtfcore").parts[0] for path in (ROOT / "mtfcore").glob("*/__init__.py")}
    assert folders == {name.split("/")[0] for name in ROOMS}
    assert {name for name in ROOMS if name not in set(map(room, MODULES))} == set()
    told = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert not [name for name in folders if f"| `mtfcore/{name}/`" not in told and f", `mtfcore/{name}/`" not in told]


def test_no_two_rooms_need_each_other() -> None:
    assert len([*graphlib.TopologicalSorter(ROOMS).static_order()]) == len(ROOMS)


@pytest.mark.parametrize("name", ROOMS)
def test_rooms_use_what_the_map_says_and_nothing_else(name: str) -> None:
    found: set[str] = set()
    for module, path in MODULES.items():
        if room(module) == name:
            found |= {room(other) for other in used(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))}
    assert found - {"", name} == ROOMS[name]


def test_no_modules_import_each_other_in_a_circle() -> None:
    arrows = {}
    for module, path in MODULES.items():
        found = used(at_the_top(ast.parse(path.read_text(encoding="utf-8"))))
        arrows[module] = {other for other in found if not f"{module}.".startswith(f"{other}.")}  # its own folders aside
    assert len([*graphlib.TopologicalSorter(arrows).static_order()]) == len(MODULES)  # a CycleError names the circle
