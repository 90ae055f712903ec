"""JupyterLab on the first lesson, on this machine only; and the process that owns a chip for a class.

What JupyterLab reads and writes about itself lies in .lab: the reader's own set-up is neither used nor changed.

Next file to read: `bundle`.
"""

import argparse
import json
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import webbrowser

from lessons.setting_up import basics
from lessons.setting_up.basics import SetupError, say

FIRST_LESSON = "lessons/00_start_here.ipynb"

LAB_FILES = {
    # Lessons draw again when their kernel runs; saved widget state would only make files grow.
    "settings/@jupyter-widgets/jupyterlab-manager/plugin.jupyterlab-settings": {"saveState": False},
    "settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings": {
        "fetchNews": "false",
        "checkForUpdates": False,
    },
    # The map, the glossary and the notes are pages to read, and links in lessons lead to them.
    "settings/@jupyterlab/docmanager-extension/plugin.jupyterlab-settings": {
        "defaultViewers": {"markdown": "Markdown Preview"},
    },
    # Kernels listen on loopback only; a warning that this is not encrypted would worry readers for nothing.
    "ipython/profile_default/ipython_kernel_config.json": {"IPKernelApp": {"log_level": "ERROR"}},
}
LAB_FOLDERS = {
    "JUPYTERLAB_SETTINGS_DIR": "settings",
    "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    "JUPYTER_CONFIG_DIR": "config",
    "JUPYTER_DATA_DIR": "data",
    "JUPYTER_RUNTIME_DIR": "runtime",
    "IPYTHONDIR": "ipython",
}


def write_lab_files(folder: pathlib.Path) -> None:
    """JupyterLab's settings for the lessons; what the reader has changed since is left alone."""
    for name, values in LAB_FILES.items():
        path = folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values, indent=2), encoding="utf-8")


def lab_environment(token: str) -> dict[str, str]:
    """What JupyterLab reads and writes about itself stays in .lab; the reader's own set-up is not used nor changed."""
    places = {name: str(basics.ROOT / ".lab" / folder) for name, folder in LAB_FOLDERS.items()}
    ways = {"JUPYTER_TOKEN": token, "JUPYTER_PLATFORM_DIRS": "1", "JUPYTER_PREFER_ENV_PATH": "1"}
    return {**os.environ, **places, **ways}


def free_port(first: int) -> int:
    """The first port from `first` on that nobody uses."""
    for port in range(first, first + 50):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise SetupError(f"Ports {first} to {first + 49} are all in use, or not allowed: choose another with --port")


def lab_command(python: pathlib.Path, port: int) -> list[str]:
    """JupyterLab on loopback; the token goes by the environment, where other users of the machine cannot read it."""
    command = [str(python), "-m", "jupyterlab", "--no-browser", "--ServerApp.answer_yes=True", "--log-level=ERROR"]
    command += ["--ip=127.0.0.1", f"--port={port}", "--port-retries=0", f"--ServerApp.root_dir={basics.ROOT}"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url=None"]
    command += ["--LabApp.extension_manager=readonly", "--LabApp.log_level=ERROR"]
    command += ["--LanguageServerManager.autodetect=False"]  # no lesson needs one, and looking for them starts npm
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0  # as in most containers
    return command + ["--allow-root"] * is_root


def lab(python: pathlib.Path, words: list[str]) -> int:
    """Start JupyterLab on the first lesson, say where it is, and stay until it ends."""
    options = lab_options(words)
    port, token = free_port(options.port), secrets.token_hex(16)
    write_lab_files(basics.ROOT / ".lab")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that JupyterLab ends with us
    process = subprocess.Popen(lab_command(python, port), cwd=basics.ROOT, env=lab_environment(token))
    try:
        wait_until_up(f"http://127.0.0.1:{port}/api/status?token={token}", process)
        address = f"http://127.0.0.1:{port}/lab{start_page()}?token={token}"
        say(f"\nJupyterLab is at\n\n    {address}\n\nIt answers this machine only. Ctrl-C here ends it.")
        if not options.no_browser and has_desktop():
            webbrowser.open(address)
        return process.wait()
    except KeyboardInterrupt:  # Ctrl-C reached JupyterLab as well
        return 0
    finally:
        process.terminate()
        process.wait()


def lab_options(words: list[str]) -> argparse.Namespace:
    """What may follow the word `lab`."""
    parser = argparse.ArgumentParser(prog="setup_lab.py lab", allow_abbrev=False)
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument("--port", type=int, default=8888, help="the first port to try (8888)")
    return parser.parse_args(words)


def start_page() -> str:
    """The first lesson's place in JupyterLab's address; without lessons, its front page."""
    if (basics.ROOT / FIRST_LESSON).exists():
        return f"/tree/{FIRST_LESSON}"
    say(f"{FIRST_LESSON} is not here: `make lessons` makes it from its source. JupyterLab opens without it.")
    return ""


def wait_until_up(address: str, process: subprocess.Popen) -> None:
    """Return when JupyterLab answers; when it does not, its own words are on the screen already."""
    # a proxy, as universities set, leads out: it does not know what 127.0.0.1 is here
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    pause, deadline = threading.Event(), time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with direct.open(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            pause.wait(0.1)
    raise SetupError(f"JupyterLab did not start (exit status {process.poll()}); its own message stands above.")


def has_desktop() -> bool:
    """Without a desktop, webbrowser would start a text browser in this terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def own_for_class(python: pathlib.Path, words: list[str]) -> int:
    """The process that owns this machine's chip and takes requests; it ends with us, and all it started with it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    process = subprocess.Popen([str(python), "-m", "tpu_runs.serve", *words], cwd=basics.ROOT)
    try:
        return process.wait()
    except KeyboardInterrupt:  # Ctrl-C reached the owner as well
        return 0
    finally:
        process.terminate()
        process.wait()
