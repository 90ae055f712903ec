"""The course: sources in `src/`, what is made of them (`notebooks.py`, `pages.py`, `build.py`), checks in `checks/`."""
