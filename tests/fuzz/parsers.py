"""Everything that reads what others wrote, by name. Next file to read: `hunting`."""

from __future__ import annotations

from fuzz.commands import COMMANDS
from fuzz.compilers import COMPILERS
from fuzz.model_files import FILES
from fuzz.names import NOTATION
from fuzz.pages import PAGES
from fuzz.parser import Parser
from fuzz.runs import RUNS

GROUPS: tuple[dict[str, Parser], ...] = (NOTATION, RUNS, FILES, COMPILERS, PAGES, COMMANDS)
PARSERS: dict[str, Parser] = {name: parser for group in GROUPS for name, parser in group.items()}
