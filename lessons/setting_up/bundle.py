"""One folder for a room without a network: the tree, every wheel that it needs, and the real model.

    python setup_lab.py bundle                               # for this Python and this kind of machine, into .bundle
    python setup_lab.py bundle --python 3.12 --system windows --system linux

In a copy of the folder, `python setup_lab.py lab` finds `wheels/` by itself and asks nobody else. A wheel's own
requirements are followed as the target would follow them: pip reads markers such as `sys_platform == 'win32'` for the
machine that it runs on, which is wrong for another one, so each round here asks for wheels by name and reads theirs.

Next file to read: `bundle_target`.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from lessons.setting_up import basics
from lessons.setting_up.basics import SetupError, is_lite, pip, run_or_explain, say
from lessons.setting_up.bundle_target import SYSTEMS, Target, here

LEFT_OUT = {".git", ".venv", ".lab", ".peers", ".versions", ".bundle", "wheels", "__pycache__"}
START_HERE = """Meshwork, for a room without a network. {size} in all, for {targets}.

1. Copy this whole folder to each machine (a USB stick, a shared drive).
2. In the copy, with Python {pythons}:      python setup_lab.py lab

Each machine must have that Python already, and a browser; Debian and Ubuntu need the package python3-venv too.
The first time takes a minute or two and 1.5 GB of disk; everything comes from the folder `wheels`. Nothing is fetched.
On macOS and Linux the command may be called python3. README.md tells the rest.
"""


def main(words: list[str]) -> int:
    """Write the folder, say where it is and how large."""
    options = parse(words)
    targets = [Target(python, system) for python in options.python for system in options.system]
    folder = pathlib.Path(options.to).resolve()
    if folder.exists() and any(folder.iterdir()) and not (folder / "START_HERE.txt").exists():
        raise SetupError(f"{folder} holds other things and is no bundle: give an empty or a new folder with --to")
    copy_tree(folder)
    for target in targets:
        say(f"Wheels for {target}")
        gather(target, folder / "wheels", options.tests)
    copy_model(folder)
    write_start(folder, targets)
    say(f"{folder}: {size_of(folder)}, {len(list((folder / 'wheels').glob('*.whl')))} wheels. To start: START_HERE.txt")
    return 0


def parse(words: list[str]) -> argparse.Namespace:
    """What may follow the word `bundle`."""
    parser = argparse.ArgumentParser(prog="setup_lab.py bundle", allow_abbrev=False)
    parser.add_argument("--to", default=str(basics.ROOT / ".bundle" / "meshwork"), help="the folder to write")
    parser.add_argument("--python", action="append", choices=["3.11", "3.12", "3.13"], help="again for several")
    parser.add_argument("--system", action="append", choices=list(SYSTEMS), help="again for several")
    parser.add_argument("--tests", action="store_true", help="with what `make test` needs")
    options = parser.parse_args(words)
    options.python = options.python or [here().python]
    options.system = options.system or [here().system]
    return options


# ---- wheels ----


def wanted(target: Target, tests: bool) -> list[Requirement]:
    """What pyproject.toml asks for there; the compiler for TPUs is left out by LITE=1."""
    project = basics.project()
    extras = project["project"]["optional-dependencies"]
    asked = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    asked += ([] if is_lite() else extras["compiler"]) + (extras["test"] if tests else [])
    return [one for one in map(Requirement, asked) if target.takes(one)]


def pinned() -> dict[str, str]:
    """The versions of constraints.txt, by name."""
    lines = (basics.ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("==") for line in lines if line[:1].isalnum())
    return {canonicalize_name(name): version for name, _, version in pairs}


def gather(target: Target, wheels: pathlib.Path, tests: bool) -> None:
    """Bring wheels round by round, until all that they require is there."""
    wheels.mkdir(parents=True, exist_ok=True)
    todo, pins = wanted(target, tests), pinned()
    seen: dict[NormalizedName, list[str]] = {}
    while todo:
        with tempfile.TemporaryDirectory(dir=wheels) as folder:
            names = sorted({spelled(one, pins) for one in todo if canonicalize_name(one.name) not in seen})
            if names:
                bring(names, target, pathlib.Path(folder))
            for path in pathlib.Path(folder).glob("*.whl"):
                seen[canonicalize_name(path.name.split("-")[0])] = requirements(path)
                path.replace(wheels / path.name)
        todo = unmet(todo, seen, target)


def spelled(one: Requirement, pins: dict[str, str]) -> str:
    """A requirement as pip is asked for it: without extras or marker, at its pinned version."""
    pin = pins.get(canonicalize_name(one.name))
    return f"{one.name}=={pin}" if pin and not str(one.specifier).startswith("==") else f"{one.name}{one.specifier}"


def bring(names: list[str], target: Target, folder: pathlib.Path) -> None:
    """Download wheels, and nothing that they require."""
    command = pip(pathlib.Path(sys.executable), "download")
    run_or_explain([*command, "--no-deps", *target.words(), "--dest", str(folder), *names], "bringing wheels")


def requirements(wheel: pathlib.Path) -> list[str]:
    """The `Requires-Dist` lines of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        head = archive.read(name).decode("utf-8").split("\n\n")[0]
    return re.findall(r"(?m)^Requires-Dist: (.*?)\r?$", head)


def unmet(asked: list[Requirement], seen: Mapping[NormalizedName, list[str]], target: Target) -> list[Requirement]:
    """What the wheels so far require and nobody has asked for, extras followed."""
    walked: set[tuple[str, str]] = set()
    missing, open_ = [], [(one, "") for one in asked] + [(one, extra) for one in asked for extra in one.extras]
    while open_:
        one, extra = open_.pop()
        name = canonicalize_name(one.name)
        if (name, extra) in walked:
            continue
        walked.add((name, extra))
        if name not in seen:
            missing.append(one)
            continue
        needs = [need for need in map(Requirement, seen[name]) if target.takes(need, extra)]
        open_ += [(need, part) for need in needs for part in ("", *need.extras)]
    return missing


# ---- what lies beside them ----


def copy_tree(folder: pathlib.Path) -> None:
    """The files of this checkout: those that git knows, or where there is no git, all but what was made here."""
    asked = ["git", "ls-files", "-z"]
    try:
        listed = subprocess.run(asked, cwd=basics.ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        every = (path.relative_to(basics.ROOT) for path in basics.ROOT.rglob("*") if path.is_file())
        listed = [str(path) for path in every if not LEFT_OUT & set(path.parts)]
    for name in filter(None, listed):
        source, target = basics.ROOT / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def copy_model(folder: pathlib.Path) -> None:
    """The real model's file, at the place where it is looked for."""
    from mtfcore.model.files import known

    for name in known.MODELS if not is_lite() else ():
        source, target = known.path_of(name), folder / ".lab" / "models" / known.MODELS[name].file_name
        if not source.is_file():
            raise SetupError(f"{source} is missing: {sys.executable} -m mtfcore.model fetch, or LITE=1 to leave it out")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def write_start(folder: pathlib.Path, targets: list[Target]) -> None:
    """The text that is read first."""
    facts = {
        "size": size_of(folder),
        "targets": ", ".join(map(str, targets)),
        "pythons": " or ".join(dict.fromkeys(target.python for target in targets)),
    }
    (folder / "START_HERE.txt").write_text(START_HERE.format(**facts), encoding="utf-8")


def size_of(folder: pathlib.Path) -> str:
    """The bytes of a folder in words."""
    return f"{sum(path.stat().st_size for path in folder.rglob('*') if path.is_file()) / 1e6:,.0f} MB"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SetupError as problem:
        sys.exit(str(problem))
