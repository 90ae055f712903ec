"""Choosing one of several commands: `python -m mtfcore.model fetch`, `python -m tpu_runs run`.

    COMMANDS = {"fetch": ("mtfcore.model.files.fetching", "bring the real model that lessons and tests use, once")}
    sys.exit(run("mtfcore.model", COMMANDS, sys.argv[1:]))

Each command is a module with `main(words) → exit status`, loaded when it is asked for. What the library refuses ends as
its sentence and status 1; Ctrl-C ends with 130, as shells expect. Next file to read: `model/__main__`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping

from mtfcore.errors import DeviceError, LayoutError, nearest


def run(program: str, commands: Mapping[str, tuple[str, str]], words: list[str]) -> int:
    """Do what the command line asks; the exit status. Of `commands`: name → (module, what it does)."""
    if not words or words[0] not in commands:
        return _help(program, commands, words)
    try:
        return importlib.import_module(commands[words[0]][0]).main(words[1:])
    except (LayoutError, DeviceError) as fault:
        print(fault, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _help(program: str, commands: Mapping[str, tuple[str, str]], words: list[str]) -> int:
    width = max(map(len, commands)) + 3
    told = "".join(f"\n  {name:{width}}{what}" for name, (_, what) in commands.items())
    mistyped = bool(words) and words[0] not in ("-h", "--help")
    said = f"no command {words[0]!r}; {nearest(words[0], commands)}\n" if mistyped else ""
    print(f"{said}python -m {program} COMMAND …{told}", file=sys.stderr if mistyped else sys.stdout)
    return 2 if mistyped else 0
