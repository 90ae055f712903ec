"""Set up Meshwork and run it, with nothing but Python: what `make lab` and `make test` call; for Windows and macOS too.

    python setup_lab.py lab          # JupyterLab on the first lesson (--no-browser, --port 9000)
    python setup_lab.py class        # own this machine's TPU or GPU for a class (--on simulated, --port 9000)
    python setup_lab.py test         # all tests but the long ones; further words go to pytest
    python setup_lab.py test-long | bench | lint | lessons | docs | peers

`peers` builds another engine into .peers, for comparisons; nothing else needs it. The first run of the others makes
the folder .venv and installs the versions pinned in pyproject.toml and constraints.txt into it; later runs see that the
pins are unchanged and start at once. The real model that lessons and tests use is fetched too, unless it is there; the
environment variable LITE=1 leaves it out, and the compiler for TPUs. Nothing is written outside this folder: the model
and JupyterLab's settings for the lessons lie in .lab. Only the standard library is used, and an old Python gets far
enough to say so.

Next file to read: pyproject.toml, for what gets installed.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import pathlib
import platform
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import webbrowser

ROOT = pathlib.Path(__file__).resolve().parent
NEEDED = (3, 11)
TESTED = "3.11 to 3.13"
SIZES = {  # with the compiler for TPUs, which is for Linux only: 140 MB to download, 0.5 GB on disk
    "lab": "up to 350 MB to download, 1.5 GB on disk",
    "test": "up to 420 MB to download, 1.8 GB on disk",
}
FIRST_LESSON = "lessons/00_start_here.ipynb"


def python_problem(version, executable, which=shutil.which):  # an old Python reads this, so no modern annotations
    """What is wrong with this Python and what to do about it, or None."""
    if tuple(version) >= NEEDED:
        return None
    candidates = filter(None, [which(f"python3.{minor}") for minor in (13, 12, 11)])
    newer = next(
        (path for path in candidates if not subprocess.call([path, "-c", ""], stderr=subprocess.DEVNULL)), None
    )
    cure = "Get one from python.org, or with conda: conda env create -f environment.yml"
    if newer:
        cure = f"A newer one is here: make lab PYTHON={newer}   (or: {newer} setup_lab.py lab)"
    return f"Meshwork needs Python 3.11 or newer. This is Python {version[0]}.{version[1]}, {executable}\n{cure}"


if __name__ == "__main__" and python_problem(sys.version_info, sys.executable):
    sys.exit(python_problem(sys.version_info, sys.executable))


class SetupError(Exception):
    """Something that the reader can put right; the text says how."""


def say(text: str) -> None:
    """Print now, also where the output is a file."""
    print(text, flush=True)


# ---- the environment ----


def environment_python(root: pathlib.Path = ROOT) -> pathlib.Path:
    """The Python inside .venv, whether it exists or not."""
    return root / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def pins(root: pathlib.Path = ROOT) -> str:
    """A fingerprint of all that decides what must be installed, and for where."""
    import tomllib

    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [project["build-system"], project["project"], project["tool"]["setuptools"]]
    packages = sorted(path.parent.name for path in root.glob("*/__init__.py"))
    constraints = (root / "constraints.txt").read_text(encoding="utf-8")
    facts = [wanted, packages, constraints, str(root), platform.python_version(), platform.machine()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def read_stamp(root: pathlib.Path = ROOT) -> dict[str, str]:
    """What the last finished installation wrote down; empty when there was none."""
    try:
        return json.loads((root / ".venv" / "meshwork.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def works(python: pathlib.Path) -> bool:
    """True when `python` starts and is the version that runs this: an upgraded system leaves a broken .venv behind."""
    ask = [str(python), "-c", "import platform, pip; print(platform.python_version())"]
    try:
        answer = subprocess.run(ask, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.strip() == platform.python_version()


def is_conda() -> bool:
    """True inside the conda environment that environment.yml describes: it holds the same pins and is used as it is."""
    prefix = pathlib.Path(sys.prefix)
    return prefix.name == "meshwork" and (prefix / "conda-meta").is_dir() and bool(importlib.util.find_spec("jax"))


def ensure_environment(extra: str) -> pathlib.Path:
    """The Python that holds the pinned versions, made first if need be; says what it does."""
    if is_conda():
        return pathlib.Path(sys.executable)
    python, stamp = environment_python(), read_stamp()
    if stamp.get("extra") == "test":
        extra = "test"  # what was installed for tests serves the lab too, and must not fall behind it
    compiler = stamp.get("compiler") == "yes" or not is_lite()
    wanted = {"extra": extra, "pins": pins()} | ({"compiler": "yes"} if compiler else {})
    if works(python) and stamp == wanted:
        return python
    if not works(python):
        make_environment()
    install(python, extra, compiler)
    (ROOT / ".venv" / "meshwork.json").write_text(json.dumps(wanted), encoding="utf-8")
    return python


def make_environment() -> None:
    """An empty .venv, in place of a broken one if there is one."""
    if any(importlib.util.find_spec(part) is None for part in ("venv", "ensurepip")):
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        raise SetupError(
            f"This Python ({sys.executable}) came without its venv module.\n"
            f"Debian and Ubuntu: sudo apt install {package}   Then give the same command again."
        )
    say(f"Making {ROOT / '.venv'} with Python {platform.python_version()} (a few seconds)")
    run_or_explain([sys.executable, "-m", "venv", "--clear", str(ROOT / ".venv")], "making .venv")


def is_lite() -> bool:
    """Whether the large things that some lessons need are left out."""
    return os.environ.get("LITE") == "1"


def install(python: pathlib.Path, extra: str, compiler: bool) -> None:
    """Install the pins; an interrupted installation leaves no stamp, so the next run takes it up again."""
    (ROOT / ".venv" / "meshwork.json").unlink(missing_ok=True)
    say(f"Installing JupyterLab, JAX and what they need: {SIZES[extra]}, 1 to 5 minutes")
    command = [str(python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    extras = ["compiler"] * compiler + [extra] * (extra != "lab")
    target = f".[{','.join(extras)}]" if extras else "."
    if not compiler:
        say("LITE=1: the compiler for TPUs is not installed, and tests that need it are skipped")
    started = time.monotonic()
    run_or_explain([*command, "-c", "constraints.txt", "-e", target], "installing")
    say(f"Installed in {time.monotonic() - started:.0f} s")


def run_or_explain(command: list[str], doing: str) -> None:
    """Run a step of the set-up: all it says goes to a log, large downloads to the screen, and its end when it fails."""
    log, lines = ROOT / ".lab" / "setup.log", []
    log.parent.mkdir(exist_ok=True)
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    running = subprocess.Popen(command, cwd=ROOT, encoding="utf-8", errors="replace", **pipes)
    with running as process, log.open("w", encoding="utf-8") as file:
        for line in process.stdout:
            lines.append(line)
            file.write(line)
            if line.lstrip().startswith("Downloading ") and line.endswith("MB)\n"):
                say(f"  {line.split(maxsplit=1)[1].strip()}")
    if process.returncode:
        raise SetupError(
            f"{''.join(lines[-12:])}\nStopped while {doing} (exit status {process.returncode}). All it said: {log}\n"
            f"Often the cause is no connection to a package index, a full disk, or a Python other than {TESTED}.\n"
            "What was downloaded is kept: give the same command again to go on."
        )


# ---- the model, and another engine to compare with ----


def fetch_model(python: pathlib.Path) -> bool:
    """Bring the real model if it is not there; without it everything else works, so a failure is only said."""
    if is_lite():
        say("LITE=1: the real model is not fetched, and tests that need it are skipped")
        return False
    pipes = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    done = subprocess.run([str(python), "-m", "mtfcore.model", "fetch"], cwd=ROOT, check=False, **pipes)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        say(f"The real model is not here; all but what needs it will work. LITE=1 leaves it out.\n{said}\n")
    return done.returncode == 0


PEER_FLAGS = "-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON"  # a native build crashes
# at the first token on machines with AMX


def build_peers() -> int:
    """The engines that nobody here wrote, in .peers: apart, so that they cannot disturb the lab's environment."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    folder = ROOT / ".peers"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not works(python):
        run_or_explain([sys.executable, "-m", "venv", "--clear", str(folder)], "making .peers")
    say("Building what to compare with, from source: about 5 minutes, and a C++ compiler is needed")
    if platform.machine().lower() in ("x86_64", "amd64"):
        os.environ.setdefault("CMAKE_ARGS", PEER_FLAGS)
    command = [str(python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    reader = [wanted for wanted in project["dependencies"] if wanted.startswith("gguf==")]
    wanted = [*project["optional-dependencies"]["peers"], *reader]
    run_or_explain([*command, "-c", "constraints.txt", *wanted], "building .peers")
    say(f"Built. To make the stored expectations again: {python} -m tests.model.files.peer")
    return 0


# ---- the lab ----

LAB_FILES = {
    # Lessons draw again when their kernel runs; saved widget state would only make files grow.
    "settings/@jupyter-widgets/jupyterlab-manager/plugin.jupyterlab-settings": {"saveState": False},
    "settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings": {
        "fetchNews": "false",
        "checkForUpdates": False,
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
    places = {name: str(ROOT / ".lab" / folder) for name, folder in LAB_FOLDERS.items()}
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
    command += ["--ip=127.0.0.1", f"--port={port}", "--port-retries=0", f"--ServerApp.root_dir={ROOT}"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url=None"]
    command += ["--LabApp.extension_manager=readonly", "--LabApp.log_level=ERROR"]
    command += ["--LanguageServerManager.autodetect=False"]  # no lesson needs one, and looking for them starts npm
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0  # as in most containers
    return command + ["--allow-root"] * is_root


def lab(python: pathlib.Path, words: list[str]) -> int:
    """Start JupyterLab on the first lesson, say where it is, and stay until it ends."""
    options = lab_options(words)
    port, token = free_port(options.port), secrets.token_hex(16)
    write_lab_files(ROOT / ".lab")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that JupyterLab ends with us
    process = subprocess.Popen(lab_command(python, port), cwd=ROOT, env=lab_environment(token))
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
    if (ROOT / FIRST_LESSON).exists():
        return f"/tree/{FIRST_LESSON}"
    say(f"{FIRST_LESSON} is not here: `make lessons` makes it from its source. JupyterLab opens without it.")
    return ""


def wait_until_up(address: str, process: subprocess.Popen) -> None:
    """Return when JupyterLab answers; when it does not, its own words are on the screen already."""
    pause, deadline = threading.Event(), time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            pause.wait(0.1)
    raise SetupError(f"JupyterLab did not start (exit status {process.poll()}); its own message stands above.")


def has_desktop() -> bool:
    """Without a desktop, webbrowser would start a text browser in this terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


# ---- one chip for a class ----


def own_for_class(python: pathlib.Path, words: list[str]) -> int:
    """The process that owns this machine's chip and takes requests; it ends with us, and all it started with it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    process = subprocess.Popen([str(python), "-m", "tpu_runs.serve", *words], cwd=ROOT)
    try:
        return process.wait()
    except KeyboardInterrupt:  # Ctrl-C reached the owner as well
        return 0
    finally:
        process.terminate()
        process.wait()


# ---- the commands ----


def developer_commands() -> dict[str, list[str]]:
    """What each command runs in the environment's Python.

    Tests run on a worker for each core, at most four, since every worker holds 64 simulated devices; tests of one
    group (those in the browser) stay on one worker.
    """
    tests = ["-m", "pytest", f"--numprocesses={min(os.cpu_count() or 1, 4)}", "--dist=loadgroup"]
    return {
        "test": tests,
        "test-long": [*tests, "--long"],
        "bench": ["-m", "tests.benchmarks"],
        "lint": ["-m", "ruff", "check", "."],
        "lessons": ["-m", "lessons.build"],
        "docs": ["docs/reference.py"],
    }


def main(words: list[str]) -> int:
    """Do what the command line asks; the exit status of what was run."""
    commands = developer_commands()
    parser = argparse.ArgumentParser(
        prog="setup_lab.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["lab", "class", *commands, "peers"])
    parser.add_argument("words", nargs=argparse.REMAINDER, help="passed on to what is run")
    options = parser.parse_args(words)
    if options.command == "lab":
        lab_options(options.words)  # a mistyped word is said before minutes of installing
        python = ensure_environment("lab")
        fetch_model(python)
        return lab(python, options.words)
    if options.command == "class":
        return own_for_class(ensure_environment("lab"), options.words)
    if options.command == "peers":
        return build_peers()
    python = ensure_environment("test")
    if options.command in ("test", "test-long"):
        fetch_model(python)
    command = [str(python), *commands[options.command], *options.words]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SetupError as problem:
        sys.exit(str(problem))
    except KeyboardInterrupt:
        sys.exit(130)
