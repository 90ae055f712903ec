"""The folder .venv: made once, filled with the pinned versions, and seen to be unchanged ever after.

    python = ensure_environment("lab")      # or "test"; the path of the Python inside

A stamp beside it holds a fingerprint of all that decides what gets installed; where that still agrees, nothing is done.
Where the checkout holds a folder `wheels` (see `bundle`), everything comes from there and no network is used.

Next file to read: `downloads`.
"""

import hashlib
import importlib.util
import json
import os
import pathlib
import platform
import sys
import time

from lessons.setting_up import basics
from lessons.setting_up.basics import SetupError, is_lite, pip, python_in, run_or_explain, say, works

SIZES = {  # with the compiler for TPUs, which is for Linux only: 140 MB to download, 0.5 GB on disk
    "lab": "up to 350 MB to download, 1.5 GB on disk",
    "test": "up to 420 MB to download, 1.8 GB on disk",
}


def environment_python() -> pathlib.Path:
    """The Python inside .venv, whether it exists or not."""
    return python_in(basics.ROOT / ".venv")


def pins() -> str:
    """A fingerprint of all that decides what must be installed, and for where."""
    root, project = basics.ROOT, basics.project()
    wanted = [project["build-system"], project["project"], project["tool"]["setuptools"]]
    packages = sorted(path.parent.name for path in root.glob("*/__init__.py"))
    constraints = (root / "constraints.txt").read_text(encoding="utf-8")
    facts = [wanted, packages, constraints, str(root), platform.python_version(), platform.machine()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def read_stamp() -> dict[str, str]:
    """What the last finished installation wrote down; empty when there was none."""
    try:
        return json.loads((basics.ROOT / ".venv" / "meshwork.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def is_conda() -> bool:
    """True inside the conda environment that environment.yml describes: it holds the same pins and is used as it is."""
    prefix = pathlib.Path(sys.prefix)
    return prefix.name == "meshwork" and (prefix / "conda-meta").is_dir() and bool(importlib.util.find_spec("jax"))


def ensure_environment(extra: str) -> pathlib.Path:
    """The Python that holds the pinned versions, made first if need be; says what it does."""
    if is_conda():
        return pathlib.Path(sys.executable)
    python, stamp = environment_python(), read_stamp()
    if stamp.get("extra") == "test":
        extra = "test"  # what was installed for tests serves the lab too, and must not fall behind it
    compiler = stamp.get("compiler") == "yes" or not is_lite()
    wanted = {"extra": extra, "pins": pins()} | ({"compiler": "yes"} if compiler else {})
    if works(python) and stamp == wanted:
        return python
    if not works(python):
        make_environment(basics.ROOT / ".venv")
    install(python, extra, compiler)
    (basics.ROOT / ".venv" / "meshwork.json").write_text(json.dumps(wanted), encoding="utf-8")
    return python


def make_environment(folder: pathlib.Path) -> None:
    """An empty environment, in place of a broken one if there is one."""
    if any(importlib.util.find_spec(part) is None for part in ("venv", "ensurepip")):
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        raise SetupError(
            f"This Python ({sys.executable}) came without its venv module.\n"
            f"Debian and Ubuntu: sudo apt install {package}   Then give the same command again."
        )
    say(f"Making {folder} with Python {platform.python_version()} (a few seconds)")
    run_or_explain([sys.executable, "-m", "venv", "--clear", str(folder)], f"making {folder.name}")


def install(python: pathlib.Path, extra: str, compiler: bool) -> None:
    """Install the pins; an interrupted installation leaves no stamp, so the next run takes it up again."""
    (basics.ROOT / ".venv" / "meshwork.json").unlink(missing_ok=True)
    wheels = offline_wheels()
    where = "from the folder wheels, without a network" if wheels else SIZES[extra]
    say(f"Installing JupyterLab, JAX and what they need: {where}, 1 to 5 minutes")
    extras = ["compiler"] * compiler + [extra] * (extra != "lab")
    target = f".[{','.join(extras)}]" if extras else "."
    if not compiler:
        say("LITE=1: the compiler for TPUs is not installed, and tests that need it are skipped")
    started = time.monotonic()
    run_or_explain([*pip(python, "install"), *wheels, "-c", "constraints.txt", "-e", target], "installing")
    say(f"Installed in {time.monotonic() - started:.0f} s")


def offline_wheels() -> list[str]:
    """Words that make pip take everything from the folder `wheels`, where the checkout has one."""
    folder = basics.ROOT / "wheels"
    return ["--no-index", "--find-links", os.fspath(folder)] if any(folder.glob("*.whl")) else []
