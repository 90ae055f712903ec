"""Commands for models:

    python -m mtfcore.model fetch            # bring the real model that lessons and tests use, once
    python -m mtfcore.model chat             # hold a conversation with it on a mesh

Each command is a module with a `main`; a new one is a line in `COMMANDS`. Next file to read: `files/fetching`.
"""

from __future__ import annotations

import importlib
import sys

from mtfcore.errors import DeviceError, LayoutError, nearest

COMMANDS = {  # name → (module with main(words) → exit status, what it does)
    "fetch": ("mtfcore.model.files.fetching", "bring the real model that lessons and tests use, once"),
    "chat": ("mtfcore.model.chat_command", "hold a conversation with a model on a mesh"),
}


def main(words: list[str]) -> int:
    """Do what the command line asks; the exit status."""
    if not words or words[0] not in COMMANDS:
        told = "".join(f"\n  {name:8}{what}" for name, (_, what) in COMMANDS.items())
        asked = bool(words) and words[0] not in ("-h", "--help")
        said = f"no command {words[0]!r}; {nearest(words[0], COMMANDS)}\n" if asked else ""
        print(f"{said}python -m mtfcore.model COMMAND …{told}", file=sys.stderr if asked else sys.stdout)
        return 2 if asked else 0
    try:
        return importlib.import_module(COMMANDS[words[0]][0]).main(words[1:])
    except (LayoutError, DeviceError) as fault:
        print(fault, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
