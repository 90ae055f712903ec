"""Drive JupyterLab in a real browser, as a reader does, and wait for what a reader would see.

    open_notebook(page, lab, "try.ipynb")
    wait_ready(page)                      # Run All before this does nothing, without a word
    run_all(page)                         # by the menu, with the mouse
    wait_done(page)                       # every code cell has its number and the kernel rests
    assert not error_outputs(page)

Nothing here sleeps: each wait names a condition that the page can answer, with a limit. conftest.py makes the
page and the record of its traffic.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

from playwright._impl._driver import compute_driver_executable
from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, Route, WebSocketRoute

from lab_server import Lab

OPEN_MS = 60_000
KERNEL_MS = 60_000
RUN_SECONDS = 120.0

# Chromium's own requests (component updates, sync, field trials) are not the page's, and are switched off; the
# resolver rule is a second wall behind the routes below. The sandbox needs what containers lack.
ARGUMENTS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "microsoft-edge-stable",
    "msedge",
)
MAC_APPLICATIONS = (
    "Google Chrome.app/Contents/MacOS/Google Chrome",
    "Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "Chromium.app/Contents/MacOS/Chromium",
)
WINDOWS_PROGRAMS = (
    r"Google\Chrome\Application\chrome.exe",
    r"Microsoft\Edge\Application\msedge.exe",
    r"Chromium\Application\chrome.exe",
)
NO_BROWSER = (
    "no Chrome, Edge or Chromium found: install one (Debian, Ubuntu: apt install chromium) "
    "or set MESHWORK_BROWSER to its path"
)


def find_browser() -> str | None:
    """The path of a browser that Playwright can drive, or None. MESHWORK_BROWSER wins over what is found."""
    return os.environ.get("MESHWORK_BROWSER") or next((path for path in _candidates() if path), None)


def _candidates() -> Iterator[str | None]:
    yield from (shutil.which(name) for name in NAMES)
    folders, programs = _application_folders()
    yield from (str(folder / program) for program in programs for folder in folders if (folder / program).exists())


def _application_folders() -> tuple[list[pathlib.Path], tuple[str, ...]]:
    """Where browsers lie on systems that do not put them on PATH, and as what."""
    if sys.platform == "darwin":
        return [pathlib.Path("/Applications"), pathlib.Path.home() / "Applications"], MAC_APPLICATIONS
    if sys.platform == "win32":
        variables = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")
        return [pathlib.Path(os.environ[name]) for name in variables if name in os.environ], WINDOWS_PROGRAMS
    return [], ()


def driver_problem() -> str | None:
    """Why Playwright itself cannot start here, or None: its Node.js needs a library that bare Linux machines lack."""
    node = os.environ.get("PLAYWRIGHT_NODEJS_PATH") or compute_driver_executable()[0]
    started = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False)
    if started.returncode == 0:
        return None
    said = started.stderr.strip() or f"exit status {started.returncode}"
    return f"Playwright's driver does not start (Debian, Ubuntu: apt install libatomic1): {said}"


def launch(playwright: Playwright, path: str) -> Browser:
    """Start the browser without a window."""
    without_sandbox = ["--no-sandbox"] if sys.platform.startswith("linux") else []
    return playwright.chromium.launch(executable_path=path, headless=True, args=ARGUMENTS + without_sandbox)


@dataclasses.dataclass
class Watch:
    """What a page did behind the reader's back."""

    outside: list[str] = dataclasses.field(default_factory=list)  # requests to elsewhere, all refused
    console: list[str] = dataclasses.field(default_factory=list)  # "error: …" and "warning: …" lines
    crashes: list[str] = dataclasses.field(default_factory=list)  # exceptions that nothing in the page caught

    def attach(self, page: Page) -> None:
        """Refuse and record every request that leaves this machine; record errors."""
        page.context.route("**/*", self._request)
        page.context.route_web_socket("**/*", self._socket)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.crashes.append(str(error)))

    def _request(self, route: Route) -> None:
        if is_local(route.request.url):
            route.continue_()
        else:
            self.outside.append(route.request.url)
            route.abort()

    def _socket(self, socket: WebSocketRoute) -> None:
        if is_local(socket.url):
            socket.connect_to_server()
        else:
            self.outside.append(socket.url)
            socket.close()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.console.append(f"{message.type}: {message.text}")


def is_local(url: str) -> bool:
    """True for loopback and for addresses that never touch a network."""
    parts = urlsplit(url)
    return parts.scheme in ("data", "blob", "about") or parts.hostname in ("127.0.0.1", "localhost", "::1")


def open_notebook(page: Page, lab: Lab, name: str) -> None:
    """Show the notebook `name`, a path below the folder that the server shows."""
    page.goto(lab.url(name))
    page.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-Cell", timeout=OPEN_MS)
    page.wait_for_selector("#main-logo, .jp-LabShell", timeout=OPEN_MS)


_KERNEL_READY = """() => {
  const context = window.jupyterapp?.shell.currentWidget?.sessionContext, kernel = context?.session?.kernel;
  return !!kernel && context.isReady && kernel.connectionStatus === 'connected' && kernel.status === 'idle';
}"""


def wait_ready(page: Page, timeout_ms: float = KERNEL_MS) -> None:
    """Wait until the open notebook's kernel is connected and rests: only then does a run command do anything."""
    page.wait_for_function(_KERNEL_READY, timeout=timeout_ms)


def run_all(page: Page) -> None:
    """Run ▸ Run All Cells, with the mouse."""
    choose(page, "Run", "Run All Cells")


def choose(page: Page, menu: str, entry: str) -> None:
    """Open a menu of the menu bar and click an entry, both by their exact text."""
    page.click(f".lm-MenuBar-itemLabel:text-is('{menu}')")
    page.click(f".lm-Menu-itemLabel:text-is('{entry}')")


_CODE_CELLS = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .map(cell => cell.model).filter(model => model.type === 'code')"""
_FINISHED = f"""() => {{
  const cells = ({_CODE_CELLS})().filter(model => model.sharedModel.source.trim());
  const failed = model => model.outputs.toJSON().some(output => output.output_type === 'error');
  return (cells.every(model => model.executionCount) || cells.some(failed)) && ({_KERNEL_READY})();
}}"""


def wait_done(page: Page, seconds: float = RUN_SECONDS) -> None:
    """Wait until every code cell with text has run, or one has failed (see error_outputs), and the kernel rests."""
    page.wait_for_function(_FINISHED, timeout=seconds * 1000)


def cells_executed(page: Page) -> list[int | None]:
    """The execution count of every code cell, None where it has not run."""
    return page.evaluate(f"() => ({_CODE_CELLS})().map(model => model.executionCount)")


def error_outputs(page: Page) -> list[str]:
    """One "Name: text" for each error shown in an output of the open notebook."""
    return page.evaluate(
        f"""() => ({_CODE_CELLS})().flatMap(model => model.outputs.toJSON())
        .filter(output => output.output_type === 'error').map(output => `${{output.ename}}: ${{output.evalue}}`)"""
    )
