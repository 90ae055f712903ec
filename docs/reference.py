"""Write the API reference from docstrings: `python docs/reference.py`, which is what `make docs` runs.

A page is a list of modules; a public name goes to the page of the module that defines it, so a new operation needs no
entry here. What calls give back (`Cost`, `Run`, …) is listed in `RETURNED`. The pages are never edited: change a
docstring and run this again. `tests/setup/test_reference.py` says when that was forgotten.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from docs.signatures import one_line, signature, text  # noqa: E402
from docs.writing import write  # noqa: E402

FOLDER = ROOT / "docs" / "api"
PUBLIC = ("mtfcore", "mtfcore.costs", "mtfcore.model", "mtfcore.schedules", "widgets")  # packages with public names
RETURNED = {  # types that public calls give back, beside those that have a public name of their own
    "mtfcore.runs": "Run", "mtfcore.whole": "WholeRun", "mtfcore.steps": "Port",
    "mtfcore.counting.facts": "Counts", "mtfcore.device_pool": "Devices", "mtfcore.chips": "Chip",
    "mtfcore.topologies": "Topology", "mtfcore.costs.pricing.cost": "Cost",
    "mtfcore.costs.serving.estimate": "Estimate", "mtfcore.costs.search.layouts": "Search",
    "mtfcore.compiling.report": "CompiledReport",
    "mtfcore.measuring.measured": "Measured", "tpu_runs.records": "Record append read committed mine",
    "tpu_runs.run": "rows",
}  # fmt: skip


class Page(NamedTuple):
    """One file of the reference: its name, its title, and the modules (or packages) whose public names it has."""

    name: str
    title: str
    modules: tuple[str, ...]


PAGES = (
    Page("describing", "Dimensions, meshes, layouts, shardings", (
        "mtfcore.dims", "mtfcore.mesh", "mtfcore.layout", "mtfcore.sharding", "mtfcore.errors")),
    Page("operations", "Named functions and their operations", (
        "mtfcore.functions", "mtfcore.tensor", "mtfcore.ops", "mtfcore.elementwise", "mtfcore.reductions",
        "mtfcore.lookups", "mtfcore.along",
        "mtfcore.reshapes", "mtfcore.row_writing", "mtfcore.spatial", "mtfcore.padding", "mtfcore.randomness",
        "mtfcore.loops", "mtfcore.backward")),
    Page("programs", "Plan, run, count", (
        "mtfcore.planning", "mtfcore.steps", "mtfcore.traffic",
        "mtfcore.runs", "mtfcore.whole", "mtfcore.overlap", "mtfcore.counting",
        "mtfcore.device_pool", "mtfcore.diagnosis")),
    Page("costs", "Chips, slices, prices, estimates, search", (
        "mtfcore.chips", "mtfcore.chip_adding", "mtfcore.topologies", "mtfcore.topology_answers", "mtfcore.costs")),
    Page("compiling_and_measuring", "Compile for absent TPUs, measure present devices, keep records", (
        "mtfcore.compiling", "mtfcore.measuring", "tpu_runs")),
    Page("model", "The Transformer: configurations, partitions, training, serving", ("mtfcore.model",)),
    Page("schedules", "Collectives as hops in time", ("mtfcore.schedules",)),
    Page("explorers", "Explorers and what a lesson needs", ("widgets",)),
)  # fmt: skip


class Entry(NamedTuple):
    """One public thing: how a reader writes it, the module it lives in, and itself."""

    written: str
    home: str
    value: Any


def entries() -> list[Entry]:
    """Every public name once, then what calls give back."""
    found: dict[int, Entry] = {}
    for package in map(importlib.import_module, PUBLIC):
        short = package.__name__.replace("mtfcore", "mtf", 1)
        for name in sorted(
            {*package.__all__, *getattr(package, "_LATER", ())}, key=lambda name: (name.casefold(), name)
        ):
            value = getattr(package, name)
            if not inspect.ismodule(value):
                home = getattr(package, "_HOME", {}).get(name) or _home(package, name, value)
                found.setdefault(id(value), Entry(name if short == "widgets" else f"{short}.{name}", home, value))
    for home, names in RETURNED.items():
        for name in names.split():
            value = getattr(importlib.import_module(home), name)
            found.setdefault(id(value), Entry(name, home, value))
    return list(found.values())


def _home(package: Any, name: str, value: Any) -> str:
    """The module that defines a name; a value such as a table is asked of the package's own list."""
    later = getattr(package, "_LATER", {}).get(name)
    described = inspect.isclass(value) or inspect.isfunction(value)
    return value.__module__ if described else f"{package.__name__}.{later}" if later else package.__name__


def page_of(entry: Entry) -> Page:
    """The page of a name; the longest module that fits decides."""
    fits = [
        (len(module), page) for page in PAGES for module in page.modules if f"{entry.home}.".startswith(module + ".")
    ]
    if not fits:
        raise LookupError(f"{entry.written} lives in {entry.home}, which no page of docs/reference.py has")
    return max(fits, key=lambda fit: fit[0])[1]


def described(entry: Entry) -> Iterator[str]:
    """The lines of one name: heading, signature, text, and for a class its fields and methods."""
    yield f"## {entry.written}\n"
    value, where = entry.value, f"`{module_file(entry.home)}`"
    if callable(value):
        yield f"```python\n{signature(entry.written, value)}\n```\n"
        yield f"{text(value)}\n"
        if inspect.isclass(value) and inspect.isfunction(vars(value).get("__init__")) and value.__init__.__doc__:
            yield f"{text(value.__init__)}\n"
    else:
        names = ", ".join(f"`{name}`" for name in value)
        yield f"A {type(value).__name__} of {names}; {where} says more.\n"
        return
    yield from (f"{line}\n" for line in members(value))
    yield f"Defined in {where}\n"


def _own(value: type) -> dict[str, Any]:
    """What a class defines, then what it has from classes of ours."""
    found: dict[str, Any] = {}
    for base in value.__mro__:
        if base is value or base.__module__.split(".")[0] in ("mtfcore", "widgets", "tpu_runs"):
            found |= {name: member for name, member in vars(base).items() if name not in found}
    return found


def module_file(module: str) -> str:
    """The file of a module, as a path from the top of the tree."""
    path = module.replace(".", "/")
    return f"{path}.py" if (ROOT / f"{path}.py").exists() else f"{path}/__init__.py"


def members(value: Any) -> Iterator[str]:
    """A class's public fields, properties and methods, in the order of its text."""
    if not inspect.isclass(value):
        value = type(value) if not inspect.isroutine(value) else object
    if dataclasses.is_dataclass(value):
        fields = [f"`{field.name}`: {field.type}" for field in dataclasses.fields(value) if field.name[0] != "_"]
        yield f"Fields: {'; '.join(fields)}" if fields else ""
    for name, member in _own(value).items():
        plain = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if (name.startswith("_") and name != "__call__") or not inspect.getdoc(plain):
            continue
        if inspect.isfunction(plain):
            yield f"* `{signature('' if name == '__call__' else '.' + name, plain, bound=True)}` – {one_line(plain)}"
        elif isinstance(plain, property) or hasattr(plain, "attrname"):  # a cached property has this
            yield f"* `.{name}` – {one_line(plain)}"


def pages() -> dict[str, str]:
    """File name → text of every page, the index among them."""
    kept: dict[Page, list[Entry]] = {page: [] for page in PAGES}
    for entry in entries():
        kept[page_of(entry)].append(entry)
    files = {"README.md": index(kept)}
    for page, names in kept.items():
        body = "\n".join(line for entry in names for line in described(entry))
        files[f"{page.name}.md"] = f"{NOTICE}# {page.title}\n\n[All pages](README.md)\n\n{body}"
    return files


NOTICE = "<!-- Generated from docstrings by `make docs`; change them, not this file. -->\n"


def index(kept: dict[Page, list[Entry]]) -> str:
    """The first page: every public name, with the first sentence of its text."""
    lines = [f"{NOTICE}# API reference\n", "Every public name, from its docstring. `import mtfcore as mtf`; explorers: "
             "`from widgets import …`. How it all hangs together: [how it works](../how_it_works.md).\n"]  # fmt: skip
    for page, names in kept.items():
        lines += [f"## [{page.title}]({page.name}.md)\n", "| name | what |", "|---|---|"]
        for entry, anchor in zip(names, anchors([entry.written for entry in names])):
            lines.append(f"| [`{entry.written}`]({page.name}.md#{anchor}) | {cell(entry.value)} |")
        lines.append("")
    return "\n".join(lines)


def anchors(headings: list[str]) -> list[str]:
    """The anchors that Markdown renderers give headings; what differs in case only is numbered (`config`, `Config`)."""
    plain = [heading.lower().replace(".", "") for heading in headings]
    earlier = [plain[:number].count(anchor) for number, anchor in enumerate(plain)]
    return [f"{anchor}-{count}" if count else anchor for anchor, count in zip(plain, earlier)]


def cell(value: Any) -> str:
    """A first sentence that is safe inside a table."""
    first = one_line(value) if callable(value) else f"a {type(value).__name__}"
    return first.replace("|", "\\|")


def main() -> None:
    """Write the pages that changed, and say which."""
    for name, content in pages().items():
        write(FOLDER / name, content)


if __name__ == "__main__":
    main()
