"""The tests with the oldest versions of JAX and the widgets that are supported, and with the newest that there are.

    python setup_lab.py versions                    # both, with the chosen tests
    python setup_lab.py versions oldest -k slices   # one of them; further words go to pytest in place of the choice
    python3.12 setup_lab.py versions newest         # the newest for another Python

Each lies in an environment of its own, .versions/oldest and .versions/newest; everything else is at its pinned version.
The oldest are declared in pyproject.toml, [tool.meshwork.oldest]; docs/versions.md is made from there. No lesson and no
`make lab` uses them: the pins stay. Tests that compare with pins, or with a stored text of one version, say so.

Next file to read: `setup_lab.py` again.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

from lessons.setting_up import basics
from lessons.setting_up.basics import pip, python_in, run_or_explain, say, works
from lessons.setting_up.environment import make_environment

WHICH = ("oldest", "newest")
# What touches JAX and the widgets most; all tests: make versions ARGS="oldest tests"
CHOSEN = [
    *(f"tests/core/test_{name}.py" for name in ("values", "one_collective", "breaking", "errors", "gradients")),
    *(f"tests/lessons/test_{name}.py" for name in ("run", "check", "predict")),
    "tests/counting", "tests/widgets", "tests/model/engine", "tests/measuring",
]  # fmt: skip
REPLACED = ("jax", "jaxlib", "plotly", "ipywidgets", "anywidget")
FREED = ("jupyterlab-widgets", "widgetsnbextension", "ml-dtypes", "scipy", "opt-einsum")  # what those ask for in turn


def main(words: list[str]) -> int:
    """Build what is missing and run the tests in each; 0 when all passed or nothing was to be run."""
    which = [words[0]] if words[:1] and words[0] in WHICH else list(WHICH)
    further = words[1:] if words[:1] and words[0] in WHICH else words
    return max([run(one, further) for one in which])


def run(which: str, further: list[str]) -> int:
    """The tests with the oldest or the newest versions; pytest's exit status."""
    python = ensure(which)
    found = versions_in(python)
    said = ", ".join(f"{name} {version}" for name, version in found.items())
    say(f"\n{which}: Python {sys.version_info[0]}.{sys.version_info[1]}, {said}")
    if which == "newest" and (same := found == versions_pinned()):
        say("The newest for this Python are the pinned ones, which `make test` runs: nothing more to run here.")
        return 0 if same else 1
    tests = ["-m", "pytest", f"--numprocesses={min(os.cpu_count() or 1, 4)}", "--dist=loadgroup"]
    tests += ["-W", "ignore::DeprecationWarning"]  # of an old package that uses what a newer one regrets
    environment = {**os.environ, "MESHWORK_VERSIONS": which, "LITE": "1"}
    words = further or CHOSEN
    return subprocess.run([str(python), *tests, *words], cwd=basics.ROOT, env=environment, check=False).returncode


# ---- which versions ----


def oldest() -> dict[str, str]:
    """The declared lower bounds."""
    return basics.project()["tool"]["meshwork"]["oldest"]


def direct() -> list[str]:
    """What is asked for at its pinned version, without the compiler."""
    project = basics.project()["project"]
    return [*project["dependencies"], *project["optional-dependencies"]["test"]]


def wanted(which: str) -> list[str]:
    """The requirements with those of JAX and the widgets replaced."""
    kept = [one for one in direct() if name_of(one) not in REPLACED]
    if which == "newest":
        return [*kept, *(name for name in REPLACED)]
    return [*kept, *(f"{name}=={version}" for name, version in oldest().items())]


def constraints() -> str:
    """constraints.txt without what is replaced, and without what that asks for in turn."""
    lines = (basics.ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if name_of(line) not in (*REPLACED, *FREED)) + "\n"


def versions_pinned() -> dict[str, str]:
    """The pinned versions for this Python."""
    here = sys.version_info >= (3, 12)
    lines = [one for one in direct() if name_of(one) in REPLACED and ("<" not in one or not here)]
    lines = [one for one in lines if ">=" not in one or here]
    return {name_of(one): one.split("==")[1].split(";")[0].strip() for one in lines}


def name_of(requirement: str) -> str:
    """The name in front of a version, as the index spells it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[=<>;\[ ]", requirement, maxsplit=1)[0]).lower()


# ---- the environments ----


def ensure(which: str) -> pathlib.Path:
    """The Python of `.versions/oldest` or `newest`, made if need be; the newest are asked for anew each time."""
    folder = basics.ROOT / ".versions" / which
    python, stamp = python_in(folder), folder / "meshwork.json"
    asked = {"wanted": wanted(which), "constraints": constraints(), "python": sys.version}
    if which == "oldest" and works(python) and stamp.exists() and json.loads(stamp.read_text()) == asked:
        return python
    if not works(python):
        folder.parent.mkdir(exist_ok=True)
        make_environment(folder)
    (folder / "constraints.txt").write_text(constraints(), encoding="utf-8")
    say(f"Installing the {which} versions: up to 300 MB to download, 1.2 GB on disk, 1 to 5 minutes")
    upgrade = ["--upgrade"] * (which == "newest")
    command = pip(python, "install")
    run_or_explain([*command, *upgrade, "-c", str(folder / "constraints.txt"), *asked["wanted"]], f"making {folder}")
    run_or_explain([*command, "--no-deps", "-e", "."], f"making {folder}")
    stamp.write_text(json.dumps(asked), encoding="utf-8")
    return python


def versions_in(python: pathlib.Path) -> dict[str, str]:
    """What an environment holds of the packages that differ."""
    code = f"import importlib.metadata as m, json; print(json.dumps({{n: m.version(n) for n in {REPLACED!r}}}))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
