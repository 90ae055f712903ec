"""A folder for a room without a network: what is planned for other machines; for real only with --long."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import urllib.request
import zipfile

import pytest
from packaging.requirements import Requirement
from packaging.tags import platform_tags

from lab_server import free_port
from lessons.setting_up import basics, bundle, environment
from lessons.setting_up.bundle_target import SYSTEMS, Target, here

ROOT = pathlib.Path(__file__).parents[2]


def test_this_machine_is_one_of_the_targets_and_needs_no_flags():
    assert here().python == f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert here().words() == ["--only-binary=:all:"]


@pytest.mark.skipif(sys.platform != "linux", reason="tags are compared with those of this Linux")
def test_tags_of_linux_cover_what_this_machine_takes():
    wheels = {tag for tag in platform_tags() if "manylinux" in tag or tag.startswith("linux")}
    assert wheels <= set(Target("3.12", here().system).tags())


@pytest.mark.parametrize(
    ("marker", "takers"),
    [
        ("sys_platform == 'win32'", {"windows"}),
        ("platform_system == 'Darwin'", {"macos"}),
        ("os_name != 'nt'", {"linux", "linux-arm", "macos"}),
        ("platform_system == 'Linux' and platform_machine == 'x86_64'", {"linux"}),
        ("python_version < '3.12'", set()),
        ("extra == 'dev'", set()),
    ],
)
def test_markers_are_read_for_the_target(marker, takers):
    one = Requirement(f"some ; {marker}")
    assert {system for system in SYSTEMS if Target("3.12", system).takes(one)} == takers


def test_each_python_is_brought_the_jax_that_is_pinned_for_it(monkeypatch):
    monkeypatch.delenv("LITE", raising=False)
    found = {python: {one.name: str(one.specifier) for one in bundle.wanted(Target(python, "linux"), False)}
             for python in ("3.11", "3.12")}  # fmt: skip
    assert found["3.11"]["jax"] != found["3.12"]["jax"]
    assert "libtpu" in found["3.12"] and "setuptools" in found["3.12"] and "pytest" not in found["3.12"]
    assert "libtpu" not in {one.name for one in bundle.wanted(Target("3.12", "windows"), False)}
    assert "pytest" in {one.name for one in bundle.wanted(Target("3.12", "windows"), True)}


def wheel(folder: pathlib.Path, name: str, *needs: str) -> pathlib.Path:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        lines = "".join(f"Requires-Dist: {need}\n" for need in needs)
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Name: {name}\nVersion: 1.0\n{lines}\nRequires-Dist: text")
    return path


NEEDS = {
    "first": ["second[more]>=1", "windows-only ; sys_platform == 'win32'", "never ; extra == 'other'"],
    "second": ["third ; extra == 'more'", "first"],
    "third": [],
    "windows-only": [],
}


@pytest.mark.parametrize(("system", "brought"), [("linux", 3), ("windows", 4)])
def test_requirements_are_followed_with_their_extras_and_in_circles(monkeypatch, tmp_path, system, brought):
    def bring(names: list[str], target: Target, folder: pathlib.Path) -> None:
        for name in names:
            plain = Requirement(name).name
            wheel(folder, plain.replace("-", "_"), *NEEDS[plain])

    monkeypatch.setattr(bundle, "bring", bring)
    monkeypatch.setattr(bundle, "wanted", lambda target, tests: [Requirement("first==1.0")])
    bundle.gather(Target("3.12", system), tmp_path, False)
    assert len(list(tmp_path.glob("*.whl"))) == brought == len(list(tmp_path.iterdir()))


def test_a_folder_that_holds_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(basics.SetupError, match="is no bundle: give an empty or a new folder with --to"):
        bundle.main(["--to", str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_what_is_read_first_says_what_must_be_there_already(tmp_path):
    bundle.write_start(tmp_path, [Target("3.12", "windows"), Target("3.12", "linux")])
    text = (tmp_path / "START_HERE.txt").read_text(encoding="utf-8")
    assert "0 MB in all, for Python 3.12 on windows, Python 3.12 on linux." in text and "with Python 3.12: " in text
    assert "must have that Python already, and a browser" in text and "python3-venv" in text


def test_wheels_beside_the_set_up_are_used_and_nothing_else(monkeypatch, tmp_path):
    monkeypatch.setattr(basics, "ROOT", tmp_path)
    assert environment.offline_wheels() == []
    (tmp_path / "wheels").mkdir()
    assert environment.offline_wheels() == [], "an empty folder is no bundle"
    wheel(tmp_path / "wheels", "some")
    assert environment.offline_wheels() == ["--no-index", "--find-links", str(tmp_path / "wheels")]


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.skipif(sys.platform != "linux", reason="the network is taken away by means of Linux, or by a dead proxy")
def test_a_bundle_installs_and_starts_the_lab_without_a_network(tmp_path, monkeypatch):
    monkeypatch.setenv("LITE", "1")
    room = tmp_path / "room"
    assert bundle.main(["--to", str(room)]) == 0
    text = (room / "START_HERE.txt").read_text(encoding="utf-8")
    assert "python setup_lab.py lab" in text and " MB in all" in text
    dead = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:1")
    clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LITE": "1", "PIP_CONFIG_FILE": os.devnull, **dead}
    command = [sys.executable, "setup_lab.py", "lab", "--no-browser", "--port", str(free_port())]
    with subprocess.Popen(command, cwd=room, env=clean, stdout=subprocess.PIPE, text=True) as process:
        address = next((line.strip() for line in process.stdout if "http://127.0.0.1:" in line), "")
        assert address, "it did not start"
        with urllib.request.urlopen(address, timeout=60) as answer:
            assert answer.status == 200
        process.terminate()
        process.wait(60)
    shutil.rmtree(room)
