"""One JupyterLab and one browser for everything that is measured, on loopback, with folders of their own.

    with browser_and_lab() as open_page:
        page = open_page("try.ipynb", "from widgets import slices", "slices()")    # its kernel is ready

Next file to read: sliders.py.
"""

from __future__ import annotations

import contextlib
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = pathlib.Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "tests" / "browser")]  # as pytest has it

from explorer_page import ASK, SIZE, ask, do, write_notebook  # noqa: E402

from lab_browser import (  # noqa: E402
    NO_BROWSER,
    error_outputs,
    find_browser,
    launch,
    open_notebook,
    run_all,
    wait_done,
    wait_ready,
)  # fmt: skip
from lab_server import Lab, lab_server  # noqa: E402


@contextlib.contextmanager
def a_browser() -> Iterator[Browser]:
    """A browser without a window; a line and no table where there is none."""
    if find_browser() is None:
        sys.exit(NO_BROWSER)
    with sync_playwright() as playwright:
        browser = launch(playwright, find_browser())
        yield browser
        browser.close()


@contextlib.contextmanager
def a_lab() -> Iterator[Lab]:
    """A JupyterLab on an empty folder; kernels find this project."""
    with tempfile.TemporaryDirectory() as folder:
        root, state = pathlib.Path(folder, "notebooks"), pathlib.Path(folder, "state")
        root.mkdir(), state.mkdir()
        with lab_server(root, state, environment={"PYTHONPATH": str(ROOT)}) as lab:
            yield lab


def new_page(browser: Browser) -> Page:
    """A page of the size that tests use."""
    return browser.new_page(viewport=SIZE)


@contextlib.contextmanager
def browser_and_lab() -> Iterator[Callable[..., Page]]:
    """A way to open a notebook with given cells in a new page."""
    with a_browser() as browser, a_lab() as lab:

        def open_page(name: str, *cells: str) -> Page:
            write_notebook(lab.root / name, *cells)
            page = new_page(browser)
            open_notebook(page, lab, name)
            wait_ready(page)
            return page

        yield open_page


def end_kernel(page: Page) -> None:
    """Give its memory back, and close the page."""
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.close()


__all__ = [
    "ASK", "ROOT", "Lab", "a_browser", "a_lab", "ask", "browser_and_lab", "do", "end_kernel", "error_outputs",
    "new_page", "open_notebook", "run_all", "wait_done", "wait_ready", "write_notebook",
]  # fmt: skip
