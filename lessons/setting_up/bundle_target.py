"""A kind of machine to bring wheels for: its Python, its system, and what that means to pip and to markers.

    Target("3.12", "windows").takes(Requirement("pywinpty ; os_name == 'nt'"))      # True, wherever this runs

Next file to read: `versions`.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from packaging.requirements import Requirement

from lessons.setting_up.basics import SetupError

GLIBC = range(39, 4, -1)  # the versions that a wheel for Linux may say it needs
MACOS = range(15, 10, -1)
SYSTEMS: Mapping[str, Mapping[str, str]] = {
    "linux": {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64"},
    "linux-arm": {
        "sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "aarch64",
    },
    "macos": {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix", "platform_machine": "arm64"},
    "windows": {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt", "platform_machine": "AMD64"},
}  # fmt: skip


@dataclass(frozen=True)
class Target:
    """One Python on one system."""

    python: str
    system: str

    def __str__(self) -> str:
        return f"Python {self.python} on {self.system}"

    def takes(self, one: Requirement, extra: str = "") -> bool:
        """Whether a requirement holds there."""
        return one.marker is None or one.marker.evaluate({**self.environment(), "extra": extra})

    def environment(self) -> dict[str, str]:
        """What markers may ask."""
        full = platform.python_version() if self.python == here().python else f"{self.python}.0"
        names = {"implementation_name": "cpython", "platform_python_implementation": "CPython"}
        return {**SYSTEMS[self.system], **names, "python_version": self.python, "python_full_version": full,
                "implementation_version": full, "platform_release": "", "platform_version": ""}  # fmt: skip

    def words(self) -> list[str]:
        """What pip is told, so that it brings wheels for there; nothing where it runs there itself."""
        only = ["--only-binary=:all:"]
        if self == here():
            return only
        tags = [word for tag in self.tags() for word in ("--platform", tag)]
        return [*only, "--python-version", self.python, "--implementation", "cp", *tags]

    def tags(self) -> list[str]:
        """The names under which wheels for that system go, newest first."""
        machine = SYSTEMS[self.system]["platform_machine"]
        if self.system == "windows":
            return ["win_amd64"]
        if self.system == "macos":
            return [f"macosx_{n}_0_{kind}" for n in MACOS for kind in (machine, "universal2")]
        older = [f"manylinux{name}_{machine}" for name in ("2014", "2010", "1")]
        return [*(f"manylinux_2_{n}_{machine}" for n in GLIBC), *older, f"linux_{machine}"]


def here() -> Target:
    """The Python and the system that run this."""
    said = {"sys_platform": sys.platform, "os_name": os.name, "platform_machine": platform.machine()}
    for name, facts in SYSTEMS.items():
        if said.items() <= facts.items():
            return Target(f"{sys.version_info[0]}.{sys.version_info[1]}", name)
    raise SetupError(f"bundles are for {', '.join(SYSTEMS)}; this is {sys.platform} on {platform.machine()}")
