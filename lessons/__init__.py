"""The course: sources in `src/`, notebooks (`notebooks.py`) and pages made from them by `build.py`, the exercises' checks in `checks/`."""
