"""The course: sources in `src/`, notebooks made from them by `build.py`, the exercises' checks in `checks/`."""
