"""The checks of all lessons, one module a lesson. Importing this package enters them in the book that `check` reads.

Each check is a plain function: it draws sizes and meshes at random, compares the student's answer with the library and
yields what it compared. No widget is involved. Read next: `lesson_01.py`.
"""

from . import lesson_00, lesson_01, lesson_02, lesson_03, lesson_04, lesson_05, lesson_06, lesson_07

__all__ = ["lesson_00", "lesson_01", "lesson_02", "lesson_03", "lesson_04", "lesson_05", "lesson_06", "lesson_07"]
