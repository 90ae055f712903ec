"""Commands for models:

    python -m mtfcore.model fetch            # bring the real model that lessons and tests use, once
    python -m mtfcore.model chat             # hold a conversation with it on a mesh

Each command is a module with a `main`; a new one is a line in `COMMANDS`. Next file to read: `files/fetching`.
"""

from __future__ import annotations

import sys

from mtfcore.commands import run

COMMANDS = {  # name → (module with main(words) → exit status, what it does)
    "fetch": ("mtfcore.model.files.fetching", "bring the real model that lessons and tests use, once"),
    "chat": ("mtfcore.model.chat_command", "hold a conversation with a model on a mesh"),
}


def main(words: list[str]) -> int:
    """Do what the command line asks; the exit status."""
    return run("mtfcore.model", COMMANDS, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
