"""One version: in the library, in what is installed, and at the top of the list of changes."""

import re
import tomllib
from pathlib import Path

import mtfcore

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_stands_once_and_its_changes_are_listed():
    assert re.fullmatch(r"\d+\.\d+\.\d+", mtfcore.__version__)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"] and "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "mtfcore.__version__"}
    listed = re.findall(r"^## (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert listed[0] == mtfcore.__version__
    assert listed == sorted(set(listed), key=lambda version: [*map(int, version.split("."))], reverse=True)
