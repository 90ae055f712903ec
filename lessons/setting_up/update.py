"""`make update`: the newest lessons, and nothing that a student typed is lost.

The notebooks in `lessons/` are kept by git, so a plain `git pull` refuses as soon as one was saved. Here the new
version is fetched first; only when it can be taken are notebooks with typed text copied beside themselves, all put back
as they were published, and the new version taken. Whatever else was changed stops it before anything is touched.

Next file to read: `typed`.
"""

import pathlib
import shutil
import subprocess

from . import basics
from .basics import SetupError, say
from .typed import is_typed_in, keep


def update(root: pathlib.Path = basics.ROOT) -> int:
    """Take the newest version; returns 0, or raises `SetupError` with what stands in the way."""
    if shutil.which("git") is None or not (root / ".git").exists():
        raise SetupError(
            "This folder is no git clone. Get the new version into a new folder; your work stays in this one."
        )
    notebooks, others = changed(root)
    if others:
        listed = ", ".join(others[:8])
        raise SetupError(
            f"Changed here and not a lesson's notebook: {listed}. Commit it or put it aside (git stash) first."
        )
    git(root, "fetch", doing="asking for the newest version; is there a connection?")
    behind = git(root, "rev-list", "--count", "HEAD..@{upstream}", doing="comparing with the newest version")
    if behind == "0":
        say("This is the newest version.")
        return 0
    git(
        root,
        "merge-base",
        "--is-ancestor",
        "HEAD",
        "@{upstream}",
        doing="comparing: there are commits here of your own",
    )
    for name in notebooks:
        if is_typed_in(root / name):
            say(f"What you typed in {name} is kept in {keep(root / name).name}")
    if notebooks:
        git(
            root, "checkout", "--quiet", "HEAD", "--", *notebooks, doing="putting notebooks back as they were published"
        )
    git(root, "merge", "--ff-only", "--quiet", "@{upstream}", doing="taking the newest version")
    say(f"Taken: {git(root, 'log', '-1', '--format=%h %s', doing='reading the newest version')}")
    return 0


def changed(root: pathlib.Path) -> tuple[list[str], list[str]]:
    """The lessons' notebooks that differ from what git has, and whatever else does; untracked files do not matter."""
    lines = git(root, "status", "--porcelain", "-z", "--untracked-files=no", doing="looking for changes", strip=False)
    names = [line[3:] for line in lines.split("\0") if line]
    notebooks = [name for name in names if name.startswith("lessons/") and name.endswith(".ipynb")]
    return notebooks, [name for name in names if name not in notebooks]


def git(root: pathlib.Path, *words: str, doing: str, strip: bool = True) -> str:
    """What git answers; its own words in a `SetupError` when it refuses."""
    command = ["git", "-C", str(root), *words]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if done.returncode:
        raise SetupError(f"Stopped while {doing}\n{done.stderr.strip()}".strip())
    return done.stdout.strip() if strip else done.stdout
