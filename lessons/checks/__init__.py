"""The checks of all lessons, one module a lesson. Importing this package enters them in the book that `check` reads.

Each check is a plain function: it draws sizes and meshes at random, compares the student's answer with the library and
yields what it compared. No widget is involved. Read next: `lesson_01.py`.
"""

import importlib
from pathlib import Path

__all__ = sorted(path.stem for path in Path(__file__).parent.glob("lesson_[0-9][0-9].py"))

for _name in __all__:
    importlib.import_module(f".{_name}", __name__)
