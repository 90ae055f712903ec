"""A JupyterLab of our own, for as long as a test needs it.

    with lab_server(folder) as lab:
        lab.url("try.ipynb")          # http://127.0.0.1:PORT/lab/tree/try.ipynb?token=…

The server listens on loopback only, has a token, and keeps its settings, workspaces and runtime files in a
folder of its own, so the reader's own JupyterLab is neither read nor changed. When the block ends, this server
alone is ended, and its kernels with it.

Next file to read: lab_browser.py, which drives the page.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import secrets
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping

START_SECONDS = 90
STOP_SECONDS = 20

SETTINGS: Mapping[str, Mapping[str, object]] = {
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": False},
    "@jupyterlab/docmanager-extension:plugin": {
        "autosave": False,
        "defaultViewers": {"markdown": "Markdown Preview"},
    },
}


@dataclasses.dataclass(frozen=True)
class Lab:
    """A running JupyterLab: its address, its secret, and the folder that it shows."""

    base: str
    token: str
    root: pathlib.Path
    log: pathlib.Path

    def url(self, notebook: str) -> str:
        """The address that opens `notebook` (a path below `root`) in a fresh workspace."""
        return f"{self.base}/lab/tree/{urllib.parse.quote(notebook)}?token={self.token}&reset"


@contextlib.contextmanager
def lab_server(
    root: pathlib.Path,
    state: pathlib.Path,
    settings: Mapping[str, Mapping[str, object]] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Lab]:
    """Run JupyterLab on `root`; `state` is an empty folder for everything that JupyterLab writes about itself.

    `settings` maps "extension:plugin" to values that replace those in SETTINGS; the kernels get `environment` too.
    """
    write_settings(state / "settings", {**SETTINGS, **(settings or {})})
    lab = Lab(f"http://127.0.0.1:{free_port()}", secrets.token_hex(16), root, state / "jupyterlab.log")
    with lab.log.open("wb") as log:
        process = subprocess.Popen(
            command(lab),
            env=own_environment(state, environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        wait_until_up(lab, process)
        yield lab
    finally:
        stop(process)


def write_settings(folder: pathlib.Path, settings: Mapping[str, Mapping[str, object]]) -> None:
    """Lay down settings where JupyterLab looks for what a user has chosen."""
    for name, values in settings.items():
        extension, plugin = name.split(":")
        path = folder / extension / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")


def free_port() -> int:
    """A port that nobody listens on now; --port-retries=0 makes the rare race an error, not a wrong server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(lab: Lab) -> list[str]:
    """What is started. The page hands out `window.jupyterapp`, by which lab_browser sees when the kernel is ready."""
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        f"--port={urllib.parse.urlsplit(lab.base).port}",
        "--port-retries=0",
        f"--IdentityProvider.token={lab.token}",
        f"--ServerApp.root_dir={lab.root}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.news_url=None",
        "--LabApp.expose_app_in_browser=True",
        "--LanguageServerManager.autodetect=False",
    ]


def own_environment(state: pathlib.Path, extra: Mapping[str, str]) -> dict[str, str]:
    """Our own folders for all that Jupyter and IPython read and write.

    Kernels do not inherit the test session's JAX settings: a lesson has to ask for its devices here as it does
    at home.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    return inherited | {
        "JUPYTERLAB_SETTINGS_DIR": str(state / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(state / "workspaces"),
        "JUPYTER_CONFIG_DIR": str(state / "config"),
        "JUPYTER_DATA_DIR": str(state / "data"),
        "JUPYTER_RUNTIME_DIR": str(state / "runtime"),
        "IPYTHONDIR": str(state / "ipython"),
        "JUPYTER_PLATFORM_DIRS": "1",
        **extra,
    }


def wait_until_up(lab: Lab, process: subprocess.Popen[bytes]) -> None:
    """Ask until the server answers; its own log is the message when it does not."""
    deadline = time.monotonic() + START_SECONDS
    pause, direct = threading.Event(), urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with direct.open(f"{lab.base}/api/status?token={lab.token}", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            pause.wait(0.05)
    tail = lab.log.read_text(encoding="utf-8", errors="replace")[-3000:]
    raise RuntimeError(f"JupyterLab did not answer within {START_SECONDS} s (exit status {process.poll()}):\n{tail}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End this server; SIGTERM makes it end its kernels first."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_SECONDS)
