"""Make the pages whose lesson has changed: `python -m lessons.previews`, which is what `make previews` runs.

    python -m lessons.previews --all       # every page, after a change of the library; about two minutes
    python -m lessons.previews 02 07       # these lessons, changed or not

The first error of a lesson ends the command with its message, and leaves the old page.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nbclient.exceptions import CellExecutionError

from lessons import notebooks

from . import stamp, stated, target
from .pages import page
from .running import run
from .still import still


def wanted(words: list[str]) -> list[Path]:
    """The lessons asked for; without a word those whose page is missing or of another source."""
    parser = argparse.ArgumentParser(prog="python -m lessons.previews", description="Make the lessons' HTML pages.")
    parser.add_argument("lessons", nargs="*", help="numbers of lessons: 02 07")
    parser.add_argument("--all", action="store_true", help="every lesson")
    options = parser.parse_args(words)
    if unknown := set(options.lessons) - {source.stem[:2] for source in notebooks.sources()}:
        parser.error(f"no lesson {', '.join(sorted(unknown))}")
    return [source for source in notebooks.sources()
            if options.all or source.stem[:2] in options.lessons
            or (not options.lessons and stated(target(source)) != stamp(source))]  # fmt: skip


def make(source: Path) -> Path:
    """Run a lesson and write its page."""
    notebook = run(notebooks.text(source, "solved"))
    still(notebook)
    target(source).write_text(page(notebook, source), encoding="utf-8", newline="\n")
    return target(source)


def main(words: list[str]) -> int:
    """Each page in turn; the exit status is 1 after an error."""
    for source in wanted(words):
        try:
            made = make(source)
        except CellExecutionError as problem:
            print(notebooks.failed(source.stem, problem), file=sys.stderr)
            return 1
        print(f"wrote {made.relative_to(notebooks.HERE.parent)}, {made.stat().st_size / 1000:.0f} kB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
