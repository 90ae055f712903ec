"""Set up Meshwork and run it, with nothing but Python: what `make lab` and `make test` call; for Windows and macOS too.

    python setup_lab.py lab          # JupyterLab on the first lesson (--no-browser, --port 9000)
    python setup_lab.py class        # own this machine's TPU or GPU for a class (--on simulated, --port 9000)
    python setup_lab.py test         # all tests but the long ones; further words go to pytest
    python setup_lab.py update       # take the newest lessons; what you typed into a notebook is kept beside it
    python setup_lab.py test-long | bench | speed | lint | lessons | previews | docs | peers | bundle | versions

`peers` builds another engine into .peers, for comparisons; nothing else needs it. `bundle` writes a folder from which a
room without a network installs; `versions` runs tests with the oldest and the newest JAX and widgets. The first run of
the others makes the folder .venv and installs the versions pinned in pyproject.toml and constraints.txt into it; later
runs see that the pins are unchanged and start at once. The real model that lessons and tests use is fetched too, unless
it is there; the environment variable LITE=1 leaves it out, and the compiler for TPUs. Nothing is written outside this
folder: the model and JupyterLab's settings for the lessons lie in .lab. Only the standard library is used, and an old
Python gets far enough to say so. What each command does lies in lessons/setting_up, one file an idea.

Next file to read: `lessons/setting_up/environment.py`; pyproject.toml, for what gets installed.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent
NEEDED = (3, 11)


def python_problem(version, executable, which=shutil.which):  # an old Python reads this, so no modern annotations
    """What is wrong with this Python and what to do about it, or None."""
    if tuple(version) >= NEEDED:
        return None
    candidates = filter(None, [which(f"python3.{minor}") for minor in (13, 12, 11)])
    newer = next(
        (path for path in candidates if not subprocess.call([path, "-c", ""], stderr=subprocess.DEVNULL)), None
    )
    cure = "Get one from python.org, or with conda: conda env create -f environment.yml"
    if newer:
        cure = f"A newer one is here: make lab PYTHON={newer}   (or: {newer} setup_lab.py lab)"
    return f"Meshwork needs Python 3.11 or newer. This is Python {version[0]}.{version[1]}, {executable}\n{cure}"


if __name__ == "__main__" and python_problem(sys.version_info, sys.executable):
    sys.exit(python_problem(sys.version_info, sys.executable))


sys.path.insert(0, str(ROOT))  # also where Python was told not to look beside the script
from lessons.setting_up import versions  # noqa: E402
from lessons.setting_up.basics import SetupError  # noqa: E402
from lessons.setting_up.downloads import build_peers, fetch_model  # noqa: E402
from lessons.setting_up.environment import ensure_environment  # noqa: E402
from lessons.setting_up.lab import lab, lab_options, own_for_class  # noqa: E402
from lessons.setting_up.update import update  # noqa: E402


def developer_commands() -> dict[str, list[str]]:
    """What each command runs in the environment's Python.

    Tests run on a worker for each core, at most four, since every worker holds 64 simulated devices; tests of one
    group (those in the browser) stay on one worker.
    """
    tests = ["-m", "pytest", f"--numprocesses={min(os.cpu_count() or 1, 4)}", "--dist=loadgroup"]
    return {
        "test": tests,
        "test-long": [*tests, "--long"],
        "bench": ["-m", "tests.benchmarks"],
        "speed": ["-m", "tests.benchmarks.in_browser"],
        "lint": ["-m", "tests.lint"],
        "lessons": ["-m", "lessons.build"],
        "previews": ["-m", "lessons.previews"],
        "bundle": ["-m", "lessons.setting_up.bundle"],
        "docs": ["docs"],
    }


def main(words: list[str]) -> int:
    """Do what the command line asks; the exit status of what was run."""
    commands = developer_commands()
    parser = argparse.ArgumentParser(
        prog="setup_lab.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["lab", "class", *commands, "peers", "versions", "update"])
    parser.add_argument("words", nargs=argparse.REMAINDER, help="passed on to what is run")
    options = parser.parse_args(words)
    if options.command == "lab":
        lab_options(options.words)  # a mistyped word is said before minutes of installing
        python = ensure_environment("lab")
        fetch_model(python)
        return lab(python, options.words)
    if options.command == "class":
        return own_for_class(ensure_environment("lab"), options.words)
    if options.command == "peers":
        return build_peers()
    if options.command == "update":
        return update()
    if options.command == "versions":
        return versions.main(options.words)
    python = ensure_environment("lab" if options.command == "bundle" else "test")
    if options.command in ("test", "test-long", "bundle", "previews"):
        fetch_model(python)
    command = [str(python), *commands[options.command], *options.words]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SetupError as problem:
        sys.exit(str(problem))
    except KeyboardInterrupt:
        sys.exit(130)
