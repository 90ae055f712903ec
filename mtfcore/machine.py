"""What `mtf.doctor()` and `chip_state` look at: one object whose every part a test can replace.

    Machine().version("jax")              # "0.10.2", or None
    Machine(python=(3, 10))               # a machine with an old Python, for a test

Next file to read: `device_pool`.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROJECT = "meshwork"


@dataclass
class Machine:
    """What there is to look at. Every field can be replaced by a test."""

    python: tuple[int, int] = field(default_factory=lambda: sys.version_info[:2])
    modules: dict[str, Any] = field(default_factory=lambda: sys.modules)
    jupyter_data: tuple[Path, ...] = field(default_factory=lambda: _jupyter_data())
    jupyter_config: tuple[Path, ...] = field(default_factory=lambda: _jupyter_config())
    device_files: Path = Path("/dev")
    processes: Path = Path("/proc")  # what Linux tells of running processes
    tpu_lock: Path = Path("/tmp/libtpu_lockfile")  # whoever has started libtpu on a TPU holds a lock on it
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    process: int = field(default_factory=os.getpid)  # this one's number

    def version(self, package: str) -> str | None:
        """The installed version of a distribution, or None."""
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return None

    def requires(self, package: str) -> list[str]:
        """What an installed distribution asks for, extras included; nothing if it is not installed."""
        try:
            return importlib.metadata.requires(package) or []
        except importlib.metadata.PackageNotFoundError:
            return []

    def may_write(self, path: Path) -> bool:
        """Whether this user may open a file for writing; it is not opened for the answer."""
        return os.access(path, os.R_OK | os.W_OK)

    def requirements(self) -> list[str] | None:
        """What this project's installed metadata asks for; None if it is not installed."""
        try:
            return importlib.metadata.requires(PROJECT) or []
        except importlib.metadata.PackageNotFoundError:
            return None

    def free_memory(self) -> tuple[int, int] | None:
        """Bytes free and in all, or None where nothing tells."""
        try:
            import psutil
        except ImportError:
            return None
        memory = psutil.virtual_memory()
        return memory.available, memory.total


def read_json(path: Path) -> dict:
    """A JSON table, or an empty one where the file is missing or damaged."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _jupyter_data() -> tuple[Path, ...]:
    try:
        from jupyter_core.paths import jupyter_path
    except ImportError:
        return (Path(sys.prefix) / "share" / "jupyter",)
    return tuple(Path(folder) for folder in jupyter_path())


def _jupyter_config() -> tuple[Path, ...]:
    try:
        from jupyter_core.paths import jupyter_config_path
    except ImportError:
        return (Path(sys.prefix) / "etc" / "jupyter",)
    return tuple(Path(folder) for folder in jupyter_config_path())
