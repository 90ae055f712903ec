"""Every file of the costs and of their partitions has an example that is true, and names the file to read next."""

import ast
import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import mtfcore as mtf

ROOMS = ("first_paper", "links", "pricing", "serving", "serving_memory", "templates")
ALONE = ("chips", "chip_adding", "chip_figures", "topologies", "costs", "model.serving", "model.places",
         "model.reasons", "model.head_padding", "model.storing", "model.quantising", "model.phases",
         "model.partitioning", "model.published")  # fmt: skip
MODULES = [importlib.import_module(f"mtfcore.{name}") for name in ALONE]
MODULES += [importlib.import_module(found.name) for room in ROOMS for found in pkgutil.iter_modules(
    importlib.import_module(f"mtfcore.costs.{room}").__path__, f"mtfcore.costs.{room}.")]  # fmt: skip
MTFCORE = Path(mtf.__file__).parent
COSTS = MTFCORE / "costs"


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


def planned(sizes="batch:64 io:512 hidden:2048"):
    return mtf.plan(two_layers, "rows:4 cols:2", "batch:rows hidden:cols", sizes=sizes, dtype="bf16")


def public(modules):
    return {name: value for module in modules for name, value in vars(module).items() if not name.startswith("_")}


def names(module):
    """What examples may use without saying where it is from: first of all what the module or its room has."""
    room = [each for each in MODULES if each.__package__ == module.__package__]
    given = {"mtf": mtf, "np": np, "two_layers": two_layers, "planned": planned, "prog": planned(),
             "palm": mtf.model.config("palm-540b")}  # fmt: skip
    return public(MODULES) | given | public(room) | public([module]) | {"mtf": mtf}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.removeprefix("mtfcore."))
def test_the_examples_in_docstrings_are_true(module):
    example = doctest.DocTestParser().get_doctest(module.__doc__, names(module), module.__name__, module.__file__, 0)
    ran = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)
    assert not ran.failed and ran.attempted


def next_file(path):
    """The file that a module's docstring sends the reader to."""
    said = " ".join(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).split())
    named = re.findall(r"[Nn]ext file to read: `([\w/]+)`", said)[-1]
    tried = [path.parent / f"{named}.py", COSTS / f"{named}.py", MTFCORE / f"{named}.py"]
    return next((each for each in tried if each.exists()), None)


def test_reading_one_file_after_another_meets_every_file_of_the_costs_once():
    last, path, read = COSTS / "against_published" / "__main__.py", COSTS / "first_paper" / "two_layers.py", []
    while path != last:
        assert path is not None and path not in read, read[-2:]
        read.append(path)
        path = next_file(path)
    every = {file for file in COSTS.rglob("*.py") if file.name != "__init__.py"}
    assert every - {last} == {file for file in read if COSTS in file.parents}
