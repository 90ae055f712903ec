"""One set of pins: pyproject.toml, environment.yml and constraints.txt say the same."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pathlib
import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = pathlib.Path(__file__).parents[2]
WHERE = r"python_version [<>=]+ '3\.\d+'|platform_system == 'Linux' and platform_machine == 'x86_64'"
PIN = re.compile(rf"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*( ; ({WHERE}))?")


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def conda_pip_section() -> list[str]:
    """The items under `- pip:`, which are the only ones indented by six."""
    lines = (ROOT / "environment.yml").read_text(encoding="utf-8").splitlines()
    return [line.strip()[2:] for line in lines if line.startswith("      - ")]


def direct(project: dict) -> list[str]:
    extras = project["optional-dependencies"]
    return project["dependencies"] + extras["compiler"] + extras["test"]


def locked() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {normal(name): version for name, version in (line.split("==") for line in lines if line[:1].isalnum())}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_direct_dependency_is_pinned_exactly(project):
    assert [wanted for wanted in direct(project) if not PIN.fullmatch(wanted)] == []


def test_conda_users_get_the_same_pins(project):
    assert conda_pip_section() == ["-c constraints.txt", *direct(project), "-e ."]


def test_constraints_agree_with_the_direct_pins(project):
    plain = dict(wanted.split("==") for wanted in direct(project) if ";" not in wanted)
    assert {name: locked().get(normal(name)) for name in plain} == plain


def test_what_is_compared_with_is_pinned_too_and_installed_only_when_asked_for(project):
    peers = project["optional-dependencies"]["peers"]
    assert [wanted for wanted in peers if not PIN.fullmatch(wanted)] == []
    plain = dict(wanted.split("==") for wanted in peers)
    assert {name: locked().get(normal(name)) for name in plain} == plain
    assert not set(peers) & set(direct(project))


def test_constraints_leave_jax_to_the_markers():
    assert not {"jax", "jaxlib"} & set(locked())


def test_jax_is_pinned_once_for_every_python(project):
    markers = sorted(wanted.split(" ; ")[1] for wanted in project["dependencies"] if wanted.startswith("jax=="))
    assert markers == ["python_version < '3.12'", "python_version >= '3.12'"]
    jax, jaxlib = ([w for w in project["dependencies"] if w.startswith(f"{name}==")] for name in ("jax", "jaxlib"))
    assert [wanted.replace("jax==", "jaxlib==") for wanted in jax] == jaxlib


@pytest.mark.skipif("MESHWORK_VERSIONS" in os.environ, reason="other versions are tried here on purpose")
def test_this_environment_holds_the_pins(project):
    left_out = project["optional-dependencies"]["compiler"] if os.environ.get("LITE") == "1" else []
    for wanted in map(Requirement, [one for one in direct(project) if one not in left_out]):
        if wanted.marker is None or wanted.marker.evaluate():
            found = importlib.metadata.version(wanted.name)
            assert wanted.specifier.contains(found), f"{wanted}, found {found}: run the tests by `make test`"


def test_data_files_travel_with_the_packages():
    """An anywidget without its script, or a chip without its table, would only be missed by those who install."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"]
    carried = {pattern.removeprefix("*") for pattern in table["*"]}
    here = {path.suffix for folder in ("mtfcore", "widgets") for path in (ROOT / folder).rglob("*") if path.is_file()}
    assert here - {".py", ".pyc"} <= carried


def test_every_locked_version_takes_the_oldest_python():
    """Some releases need a later 3.11 than an older Debian or Ubuntu has; pip would then find nothing to install."""
    needs = {
        name: importlib.metadata.metadata(name).get("Requires-Python", "") for name in locked() if is_installed(name)
    }
    assert len(needs) > 100
    assert {name: said for name, said in needs.items() if "3.11.0" not in SpecifierSet(said)} == {}


def is_installed(name: str) -> bool:
    """Some of the locked packages are for one Python only."""
    return any(importlib.metadata.distributions(name=name))


def test_the_page_of_versions_is_what_the_pins_and_bounds_say(project):
    spec = importlib.util.spec_from_file_location("docs_versions", ROOT / "docs" / "versions.py")
    versions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(versions)
    assert versions.PAGE.read_text(encoding="utf-8") == versions.page(), "Run: make docs"


def test_oldest_versions_are_below_the_pins(project):
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["meshwork"]["oldest"]
    pins = {one.name: one.specifier for one in map(Requirement, project["dependencies"])}
    assert set(oldest) == {"jax", "jaxlib", "plotly", "ipywidgets", "anywidget"}
    for name, version in oldest.items():
        (pin,) = pins[name]
        assert Version(version) < Version(pin.version)
