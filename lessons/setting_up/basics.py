"""What every part of the set-up needs: the folder, how to speak, how to run a step and explain its failure.

Next file to read: `environment`.
"""

import os
import pathlib
import platform
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTED = "3.11 to 3.13"


class SetupError(Exception):
    """Something that the reader can put right; the text says how."""


def say(text: str) -> None:
    """Print now, also where the output is a file."""
    print(text, flush=True)


def is_lite() -> bool:
    """Whether the large things that some lessons need are left out."""
    return os.environ.get("LITE") == "1"


def python_in(folder: pathlib.Path) -> pathlib.Path:
    """The Python of an environment, whether it exists or not."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def project() -> dict:
    """What pyproject.toml says."""
    import tomllib  # not there in Pythons that are too old, which only read as far as saying so

    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def works(python: pathlib.Path) -> bool:
    """True when `python` starts and is the version that runs this: an upgraded system leaves a broken .venv behind."""
    ask = [str(python), "-c", "import platform, pip; print(platform.python_version())"]
    try:
        answer = subprocess.run(ask, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.strip() == platform.python_version()


def pip(python: pathlib.Path, *words: str) -> list[str]:
    """A command of pip that asks nothing and draws nothing."""
    return [str(python), "-m", "pip", *words, "--no-input", "--disable-pip-version-check", "--progress-bar=off"]


def run_or_explain(command: list[str], doing: str) -> None:
    """Run a step of the set-up: all it says goes to a log, large downloads to the screen, and its end when it fails."""
    log, lines = ROOT / ".lab" / "setup.log", []
    log.parent.mkdir(exist_ok=True)
    running = subprocess.Popen(command, cwd=ROOT, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    with running as process, log.open("w", encoding="utf-8") as file:
        for line in process.stdout or ():
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
