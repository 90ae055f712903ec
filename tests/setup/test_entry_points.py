"""What README promises is what the files do: two commands, one script behind them, one check for everybody."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from lessons.setting_up import basics, bundle

ROOT = pathlib.Path(__file__).parents[2]
TARGETS = [
    "lab",
    "class",
    "test",
    "test-long",
    "bench",
    "speed",
    "lint",
    "lessons",
    "previews",
    "bundle",
    "docs",
    "peers",
    "versions",
    "update",
]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("target", TARGETS)
def test_each_make_target_is_one_call_of_setup_lab(target):
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make on this machine; python setup_lab.py does the same")
    command = [make, "--dry-run", "--silent", target, "PYTHON=a-python", "ARGS=and more"]
    planned = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True).stdout
    assert planned.strip() == f"a-python setup_lab.py {target} and more"


def test_setup_lab_offers_the_same_commands():
    command = [sys.executable, str(ROOT / "setup_lab.py"), "--help"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    assert "{" + ",".join(TARGETS) + "}" in said


@pytest.mark.parametrize(
    "module", ["lessons.build", "lessons.results", "lessons.previews", "mtfcore.costs.calibration"]
)
def test_what_writes_files_refuses_words_it_does_not_know(module):
    for word, status in (("--help", 0), ("zzz", 2)):
        command = [sys.executable, "-m", module, word]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == status and "Traceback" not in done.stderr
        assert f"usage: python -m {module}" in done.stdout + done.stderr


def test_readme_is_short_and_shows_both_commands():
    readme = text("README.md")
    assert readme.count("\n") < 150
    blocks = "\n".join(re.findall(r"```[a-z]*\n(.*?)```", readme, re.DOTALL))
    for command in ("make lab", "make test", "python setup_lab.py lab", "python setup_lab.py test"):
        assert command in blocks, f"README shows no `{command}` to copy"


def test_every_page_names_the_same_pythons():
    """Those that the suite was run with; a bundle is made for no other."""
    first, last = basics.TESTED.split(" to ")
    assert f"You need Python {basics.TESTED}, " in text("README.md") and "or newer" not in text("README.md")
    minors = [f"3.{minor}" for minor in range(int(first[2:]), int(last[2:]) + 1)]
    assert f"Python {', '.join(minors)}; on each, the test suite passes" in text("docs/versions.md")
    assert all(bundle.parse(["--python", minor]).python == [minor] for minor in minors)


def test_readme_names_the_five_origins():
    readme = text("README.md")
    assert [word for word in ("modelled", "counted", "compiled", "measured", "published") if word not in readme] == []


def test_readme_points_at_files_that_exist():
    links = re.findall(r"\]\(([^)#]+)\)", text("README.md"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (ROOT / link).exists()] == []


def test_ci_runs_what_readme_calls_the_test_command():
    script = text(".ci/run")
    commands = [line.strip() for line in script.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert commands[-1].endswith(" make test"), (
        "pytest's summary is the last thing to be seen, and its exit status the script's"
    )
    assert "MESHWORK_REQUIRE_BROWSER=1" in script, "a browser is promised there, so a skip is a failure"
    assert os.name == "nt" or os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_licence_is_apache_2():
    licence = text("LICENSE")
    assert "Apache License" in licence
    assert "Version 2.0, January 2004" in licence
    assert "END OF TERMS AND CONDITIONS" in licence
    assert 'license = "Apache-2.0"' in text("pyproject.toml")
