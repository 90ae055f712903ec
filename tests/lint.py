"""What `make lint` runs: style, format, and types.

    python -m tests.lint            # all three, each to its end; the exit status says whether one found anything
    python -m tests.lint mtfcore    # of some files only

Ruff looks for slips and keeps one format; mypy reads the annotations. What each lets pass, and why, stands in
pyproject.toml. Next file to read: `setup_lab.py`, which installs them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TOOLS = {  # what is looked for → the words after `python -m`, and what is read if no files are named
    "style": (["ruff", "check"], ["."]),
    "format": (["ruff", "format", "--check"], ["."]),
    "types": (["mypy"], []),  # those that pyproject.toml names
}


def main(files: list[str]) -> int:
    """Run each tool to its end; 1 if one found anything."""
    found = []
    for what, (tool, everywhere) in TOOLS.items():
        print(f"{what}: {' '.join(tool)}", flush=True)
        if subprocess.run([sys.executable, "-m", *tool, *(files or everywhere)], cwd=ROOT, check=False).returncode:
            found.append(what)
    print(f"lint: look at {' and '.join(found)} above" if found else "lint: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
