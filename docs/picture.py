"""Take README's picture from the real thing: an explorer in JupyterLab, in a real browser.

    python docs/picture.py          writes docs/picture.png

It needs what the browser tests need: the test extra, and a Chrome, Edge or Chromium.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

import nbformat
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from lab_browser import error_outputs, find_browser, launch, open_notebook, run_all, wait_done, wait_ready  # noqa: E402
from lab_server import lab_server  # noqa: E402

CODE = 'from widgets import slices\n\nslices(dims="batch:64 io:512 hidden:2048", layout="batch:rows hidden:cols")'
SIZE = {"width": 1180, "height": 790}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = pathlib.Path(folder)
        (home / "lessons").mkdir()
        kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
        cells = [nbformat.v4.new_code_cell(CODE)]
        nbformat.write(
            nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), home / "lessons" / "look.ipynb"
        )
        environment = {"PYTHONPATH": str(ROOT)}
        with lab_server(home / "lessons", home / "state", environment=environment) as lab:
            page = launch(playwright, find_browser()).new_page(viewport=SIZE)
            open_notebook(page, lab, "look.ipynb")
            wait_ready(page)
            page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
            run_all(page)
            wait_done(page)
            assert not error_outputs(page), error_outputs(page)
            page.locator(".mw-bottom .mw-says:visible").first.wait_for()
            page.locator(".mw-slices [data-piece='5']:visible").first.click(position={"x": 6, "y": 6})
            page.screenshot(path=str(ROOT / "docs" / "picture.png"))


if __name__ == "__main__":
    main()
