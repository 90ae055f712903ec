"""Every parser, given what a slip, a bad disk or somebody unkind makes of real examples: clear errors and nothing else.

`make test` tries a few examples that are others each day, `make test-long` some thousands of each; a fault prints the
line that finds it again. A parser that is new belongs into one of the tables (`names` to `commands`)."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import subprocess
import sys

import pytest
from fuzz.parsers import GROUPS, PARSERS

ROOT = pathlib.Path(__file__).parents[2]
TODAY = datetime.date.today().toordinal()
FEW, MANY = 15, 3_000
NAMES = [list(group) for group in GROUPS]
READ = {name for group in GROUPS[:5] for name in group} - {"a class's refusals"}  # whose real examples are not refused


def hunt(names: list[str], seed: int, count: int, seconds: int) -> list[dict]:
    """What `hunting` says of these parsers, in a process of its own; a process that dies is a fault too."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    command = [sys.executable, "-m", "fuzz.hunting", str(seed), str(count), *names]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr[-2_000:]}"
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def check(names: list[str], seed: int, count: int, seconds: int) -> None:
    said = hunt(names, seed, count, seconds)
    again = f"PYTHONPATH=.:tests python -m fuzz.hunting {seed} {count}"
    faults = [
        f"{one['parser']} #{one['number']}: {one['fault']}\n  of {one['value']}" for one in said if "fault" in one
    ]
    assert not faults, "\n".join([again, *faults])
    assert {one["parser"] for one in said} == set(names)
    assert all(one["tried"] > count and one["refused"] < one["tried"] for one in said if one["parser"] in READ)


@pytest.mark.parametrize("names", NAMES, ids=lambda names: names[0])
@pytest.mark.skipif(sys.platform == "win32", reason="examples are limited in time and memory by means of POSIX")
def test_a_few_damaged_examples_of_everything(names):
    check(names, TODAY, FEW, 110)


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.skipif(sys.platform == "win32", reason="examples are limited in time and memory by means of POSIX")
def test_many_damaged_examples(name):
    check([name], TODAY, MANY, 1_700)
