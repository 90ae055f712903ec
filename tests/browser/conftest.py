"""Fixtures for tests in a real browser. A test in this folder reads:

    from lab_browser import open_notebook, run_all, wait_done, wait_ready, error_outputs

    def test_slider_moves_the_picture(lab, page, notebook):
        name = notebook("from widgets import slices", "slices()")    # one string for each code cell
        open_notebook(page, lab, name)
        wait_ready(page)
        run_all(page)
        wait_done(page)
        assert not error_outputs(page)
        page.locator("[data-device='3']").click()                    # from here on it is plain Playwright

`lab` is one JupyterLab for all browser tests; `page` is a new page for each test. The page refuses every
request that is not to this machine, and the test fails at its end if there was one, or if an exception went
uncaught in the page. `watch` is the record: `watch.outside`, `watch.console`, `watch.crashes`. Widgets are
found by their class or `data-*` attributes; wait with `page.wait_for_selector`, `page.wait_for_function` or
Playwright's `expect`, never by sleeping. To look at a page: `page.screenshot(path=…)`. Other settings or
environment: `with lab_server(root, state, settings=…, environment=…)`.

Without a browser these tests are skipped with one line; where MESHWORK_REQUIRE_BROWSER is set they fail
instead. Every test here gets the marks `browser` and `xdist_group("browser")`, so that they share one
JupyterLab when tests run side by side.

Next file to read: lab_browser.py.
"""

from __future__ import annotations

import functools
import itertools
import os
import pathlib
from collections.abc import Callable, Generator, Iterator

import nbformat
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from lab_browser import NO_BROWSER, Watch, driver_problem, find_browser, launch
from lab_server import Lab, lab_server

HERE = pathlib.Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """This hook sees the whole session's tests; only those of this folder are browser tests."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))


@functools.cache
def problem() -> str | None:
    """Why no browser can be driven here, or None."""
    return driver_problem() if find_browser() else NO_BROWSER


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give skips for want of a browser one place, so that the summary says it in one line, not once a test."""
    report = yield
    if report.skipped and HERE in item.path.parents and problem() and problem() in str(report.longrepr):
        report.longrepr = (str(HERE), 1, f"Skipped: {problem()}")
    return report


@pytest.fixture(scope="session")
def browser_path() -> str | None:
    """Where the browser is; where none can be driven, skip, or fail if one was promised."""
    if problem():
        (pytest.fail if os.environ.get("MESHWORK_REQUIRE_BROWSER") else pytest.skip)(problem())
    return find_browser()


@pytest.fixture(scope="package")
def browser(browser_path: str) -> Iterator[Browser]:
    """One browser for the folder: Playwright's event loop would stand in the way of notebook tests elsewhere."""
    with sync_playwright() as playwright:
        browser = launch(playwright, browser_path)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def lab(browser_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab on an empty folder, for all browser tests."""
    with lab_server(tmp_path_factory.mktemp("notebooks"), tmp_path_factory.mktemp("jupyter")) as lab:
        yield lab


@pytest.fixture
def watch() -> Watch:
    """The record of what this test's page did."""
    return Watch()


@pytest.fixture
def page(browser: Browser, watch: Watch) -> Iterator[Page]:
    """A new page, 1300 x 1000, that reaches nothing but this machine."""
    context = browser.new_context(viewport={"width": 1300, "height": 1000}, service_workers="block")
    page = context.new_page()
    watch.attach(page)
    yield page
    context.close()
    assert not watch.outside, f"the page asked for {watch.outside}"
    assert not watch.crashes, f"uncaught in the page: {watch.crashes}"


@pytest.fixture
def notebook(lab: Lab) -> Callable[..., str]:
    """Call it with one string for each code cell: writes a notebook where `lab` shows it and returns its name."""
    numbers = itertools.count(1)

    def write(*cells: str, name: str = "") -> str:
        name = name or f"{os.getpid()}_{id(numbers)}_{next(numbers)}.ipynb"
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
        nbformat.write(book, lab.root / name)
        return name

    return write
