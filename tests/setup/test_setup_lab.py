"""setup_lab.py: what a newcomer meets first, also when something is missing. Nothing here installs anything."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from lab_server import free_port
from lessons.setting_up import basics, downloads, environment
from lessons.setting_up import lab as the_lab

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def setup(monkeypatch, tmp_path):
    """The module itself, with an empty folder in the place of the checkout."""
    spec = importlib.util.spec_from_file_location("setup_lab", ROOT / "setup_lab.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(basics, "ROOT", tmp_path)
    monkeypatch.setenv("LITE", "1")  # no model is fetched but where a test says so
    return module


AFTER_INSTALLING = {"bundle.py", "bundle_target.py"}  # run by the environment's own Python
PARTS = {path.name for path in (ROOT / "lessons" / "setting_up").glob("*.py")} - AFTER_INSTALLING
BEFORE_INSTALLING = ["setup_lab.py", "lessons/__init__.py", *sorted(f"lessons/setting_up/{name}" for name in PARTS)]


@pytest.mark.parametrize("name", BEFORE_INSTALLING)
def test_only_the_standard_library_is_imported(name):
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 0}
    ours = {name for name in names if name.startswith("lessons.setting_up")}
    assert {name.split(".")[0] for name in names - ours} <= sys.stdlib_module_names
    assert {f"{one.replace('.', '/')}.py" for one in ours} <= {*BEFORE_INSTALLING, "lessons/setting_up.py"}


def test_an_old_python_is_stopped_before_it_reads_what_it_cannot():
    """Everything above the first import of ours must be readable, and run, by a Python without modern syntax."""
    text = (ROOT / "setup_lab.py").read_text(encoding="utf-8")
    assert text.index("sys.exit(python_problem") < text.index("from lessons.setting_up")
    for node in ast.walk(ast.parse(text)):
        assert not isinstance(node, ast.Match | ast.NamedExpr | ast.TryStar)


def test_an_old_python_is_told_what_it_is_and_what_to_do(setup):
    problem = setup.python_problem((3, 9, 2), "/usr/bin/python3", which=lambda name: None)
    assert "needs Python 3.11 or newer" in problem
    assert "This is Python 3.9, /usr/bin/python3" in problem
    assert "python.org" in problem


def test_an_old_python_is_shown_a_newer_one_beside_it(setup):
    beside = {"python3.12": sys.executable}
    problem = setup.python_problem((3, 9, 2), "/usr/bin/python3", which=beside.get)
    assert f"make lab PYTHON={sys.executable}" in problem


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 12, 1), (3, 14, 0)])
def test_a_new_python_has_no_problem(setup, version):
    assert setup.python_problem(version, "python") is None


def test_a_python_without_venv_is_told_the_package(setup, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ensurepip" else object())
    with pytest.raises(setup.SetupError, match=rf"sudo apt install python3\.{sys.version_info[1]}-venv"):
        environment.make_environment(ROOT / ".venv")


def checkout(folder: pathlib.Path) -> pathlib.Path:
    """As much of a checkout as decides what gets installed."""
    for name in ("pyproject.toml", "constraints.txt"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    (folder / ".venv").mkdir()
    return folder


def test_pins_change_with_what_they_depend_on(setup, tmp_path):
    root = checkout(tmp_path)
    before = environment.pins()
    assert before == environment.pins()
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    (root / "pyproject.toml").write_text(text.replace("line-length = 120", "line-length = 119"), encoding="utf-8")
    assert environment.pins() == before, "a setting of a tool is no reason to install again"
    (root / "pyproject.toml").write_text(text.replace("numpy==", "numpy==1"), encoding="utf-8")
    assert environment.pins() != before


@pytest.mark.parametrize(
    ("had", "asked", "installs"),
    [
        (None, "lab", ["lab"]),
        ("lab", "lab", []),
        ("lab", "test", ["test"]),
        ("test", "lab", []),
        ("test, older pins", "lab", ["test"]),
    ],
)
def test_installs_only_what_is_not_there(setup, monkeypatch, tmp_path, had, asked, installs):
    root = checkout(tmp_path)
    done = []
    monkeypatch.setattr(environment, "install", lambda python, extra, compiler: done.append(extra))
    monkeypatch.setattr(environment, "works", lambda python: True)
    monkeypatch.setattr(environment, "pins", lambda: "pins")
    monkeypatch.setattr(environment, "read_stamp", lambda: setup_stamp(root))
    if had:
        extra, _, older = had.partition(", ")
        stamp = {"extra": extra, "pins": older or "pins"}
        (root / ".venv" / "meshwork.json").write_text(json.dumps(stamp), encoding="utf-8")
    setup.ensure_environment(asked)
    assert done == installs
    assert setup_stamp(root)["pins"] == "pins"


@pytest.mark.parametrize(
    ("lite", "had", "installs"),
    [
        ("", "", [True]),
        ("1", "", [False]),
        ("1", "lite", []),
        ("", "lite", [True]),
        ("1", "full", []),
        ("", "full", []),
    ],
)
def test_the_compiler_is_left_out_by_lite_and_kept_where_it_is(setup, monkeypatch, tmp_path, lite, had, installs):
    root, done = checkout(tmp_path), []
    monkeypatch.setenv("LITE", lite)
    monkeypatch.setattr(environment, "install", lambda python, extra, compiler: done.append(compiler))
    monkeypatch.setattr(environment, "works", lambda python: True)
    monkeypatch.setattr(environment, "pins", lambda: "pins")
    monkeypatch.setattr(environment, "read_stamp", lambda: setup_stamp(root))
    if had:
        stamp = {"extra": "lab", "pins": "pins"} | ({"compiler": "yes"} if had == "full" else {})
        (root / ".venv" / "meshwork.json").write_text(json.dumps(stamp), encoding="utf-8")
    setup.ensure_environment("lab")
    assert done == installs and setup_stamp(root).get("compiler") == (None if lite and had != "full" else "yes")


@pytest.mark.parametrize(
    ("extra", "compiler", "target"),
    [("lab", True, ".[compiler]"), ("test", True, ".[compiler,test]"), ("lab", False, "."), ("test", False, ".[test]")],
)
def test_what_pip_is_asked_for(setup, monkeypatch, tmp_path, capsys, extra, compiler, target):
    asked = []
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(environment, "run_or_explain", lambda command, doing: asked.append(command))
    environment.install(pathlib.Path("python"), extra, compiler)
    assert asked[0][-2:] == ["-e", target]
    assert ("the compiler for TPUs is not installed" in capsys.readouterr().out) == (not compiler)


def setup_stamp(root: pathlib.Path) -> dict[str, str]:
    path = root / ".venv" / "meshwork.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def test_a_half_written_stamp_counts_as_none(setup, tmp_path):
    (checkout(tmp_path) / ".venv" / "meshwork.json").write_text("{", encoding="utf-8")
    assert environment.read_stamp() == {}


def test_an_environment_of_another_python_does_not_work(setup, tmp_path):
    assert basics.works(pathlib.Path(sys.executable))
    assert not basics.works(tmp_path / "python")


def test_a_failed_step_shows_the_end_and_says_what_to_do(setup, tmp_path):
    code = "print('no space left'); raise SystemExit(7)"
    with pytest.raises(setup.SetupError) as caught:
        basics.run_or_explain([sys.executable, "-c", code], "installing")
    for part in ("no space left", "Stopped while installing (exit status 7)", "same command again", "setup.log"):
        assert part in str(caught.value)
    assert (tmp_path / ".lab" / "setup.log").read_text(encoding="utf-8") == "no space left\n"


def test_large_downloads_reach_the_screen(setup, capsys):
    said = r"  Downloading jaxlib-1-cp311.whl (88.1 MB)\n  Downloading six-1.whl (11 kB)\nCollecting numpy\n"
    basics.run_or_explain([sys.executable, "-c", f"print('{said}', end='')"], "installing")
    assert capsys.readouterr().out == "  jaxlib-1-cp311.whl (88.1 MB)\n"


def test_a_port_in_use_is_passed_over(setup):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert the_lab.free_port(port) > port


def test_lab_settings_save_no_widget_state_and_keep_the_readers_changes(setup, tmp_path):
    the_lab.write_lab_files(tmp_path)
    path = tmp_path / "settings" / "@jupyter-widgets" / "jupyterlab-manager" / "plugin.jupyterlab-settings"
    assert json.loads(path.read_text(encoding="utf-8")) == {"saveState": False}
    path.write_text('{"saveState": true}', encoding="utf-8")
    the_lab.write_lab_files(tmp_path)
    assert json.loads(path.read_text(encoding="utf-8")) == {"saveState": True}


def test_links_of_lessons_open_pages_to_read(setup, tmp_path):
    """JupyterLab's own choice for the map and the glossary would be an editor with their source."""
    the_lab.write_lab_files(tmp_path)
    path = tmp_path / "settings" / "@jupyterlab" / "docmanager-extension" / "plugin.jupyterlab-settings"
    assert json.loads(path.read_text(encoding="utf-8"))["defaultViewers"] == {"markdown": "Markdown Preview"}


def test_the_lab_stays_on_this_machine_and_in_this_folder(setup, tmp_path):
    command = the_lab.lab_command(pathlib.Path("python"), 9000)
    assert "--ip=127.0.0.1" in command
    assert not [word for word in command if "token" in word], "the command line is public on a shared machine"
    environment = the_lab.lab_environment("secret")
    assert environment["JUPYTER_TOKEN"] == "secret"
    assert all(str(tmp_path) in environment[name] for name in the_lab.LAB_FOLDERS)


def test_without_lessons_the_lab_says_so(setup, tmp_path, capsys):
    assert the_lab.start_page() == ""
    assert "lessons/00_start_here.ipynb is not here: `make lessons` makes it" in capsys.readouterr().out
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "00_start_here.ipynb").write_text("{}", encoding="utf-8")
    assert the_lab.start_page() == "/tree/lessons/00_start_here.ipynb"


@pytest.mark.parametrize("words", [["lab", "--no-brwoser"], ["labb"], []])
def test_a_mistyped_command_installs_nothing(setup, monkeypatch, capsys, words):
    monkeypatch.setattr(setup, "ensure_environment", lambda extra: pytest.fail("it started to install"))
    with pytest.raises(SystemExit) as stopped:
        setup.main(words)
    assert stopped.value.code == 2
    assert "usage: setup_lab.py" in capsys.readouterr().err


@pytest.mark.parametrize("status", [0, 1, 5])
def test_the_exit_status_is_that_of_the_tests(setup, monkeypatch, tmp_path, status):
    monkeypatch.setattr(setup, "ensure_environment", lambda extra: pathlib.Path(sys.executable))
    monkeypatch.setattr(setup, "developer_commands", lambda: {"test": ["-c", f"raise SystemExit({status})"]})
    assert setup.main(["test"]) == status


def test_further_words_reach_pytest(setup, monkeypatch, tmp_path):
    seen = tmp_path / "seen"
    code = f"import pathlib, sys; pathlib.Path({str(seen)!r}).write_text(' '.join(sys.argv[1:]))"
    monkeypatch.setattr(setup, "ensure_environment", lambda extra: pathlib.Path(sys.executable))
    monkeypatch.setattr(setup, "developer_commands", lambda: {"test": ["-c", code]})
    assert setup.main(["test", "-k", "sharding", "--maxfail=1"]) == 0
    assert seen.read_text() == "-k sharding --maxfail=1"


def fetching(monkeypatch, tmp_path, status: int, said: str) -> pathlib.Path:
    """A stand-in for the environment's Python whose `-m mtfcore.model fetch` ends like that."""
    monkeypatch.delenv("LITE")
    (tmp_path / "mtfcore" / "model").mkdir(parents=True)
    for name in ("mtfcore", "mtfcore/model"):
        (tmp_path / name / "__init__.py").touch()
    code = f"import sys\nprint({said!r}, *sys.argv[1:], file=sys.stderr)\nsys.exit({status})"
    (tmp_path / "mtfcore" / "model" / "__main__.py").write_text(code, encoding="utf-8")
    return pathlib.Path(sys.executable)


def test_the_model_is_fetched_by_the_environments_own_python(setup, monkeypatch, tmp_path, capfd):
    assert setup.fetch_model(fetching(monkeypatch, tmp_path, 0, "quietly")) is True
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("command", ["lab", "test"])
def test_a_fetch_that_fails_is_said_and_stops_nothing(setup, monkeypatch, tmp_path, capfd, command):
    python = fetching(monkeypatch, tmp_path, 1, "no connection:")
    monkeypatch.setattr(setup, "ensure_environment", lambda extra: python)
    monkeypatch.setattr(setup, "lab", lambda python, words: 5)
    monkeypatch.setattr(setup, "developer_commands", lambda: {"test": ["-c", "raise SystemExit(5)"]})
    assert setup.main([command]) == 5
    said = capfd.readouterr().out
    assert "The real model is not here; all but what needs it will work. LITE=1 leaves it out.\n" in said
    assert "no connection: fetch" in said


def test_lite_fetches_nothing_and_says_so(setup, monkeypatch, capsys):
    monkeypatch.setattr(downloads.subprocess, "run", lambda *_, **__: pytest.fail("it tried to fetch"))
    assert setup.fetch_model(pathlib.Path("python")) is False
    assert "tests that need it are skipped" in capsys.readouterr().out


def test_peers_are_built_apart_and_pinned(setup, monkeypatch, tmp_path, capsys):
    checkout(tmp_path)
    done = []
    monkeypatch.delenv("CMAKE_ARGS", raising=False)
    monkeypatch.setenv("CMAKE_ARGS", "-DMINE=ON")
    monkeypatch.setattr(downloads, "run_or_explain", lambda command, doing: done.append(command))
    assert setup.main(["peers"]) == 0
    venv, install = done
    assert venv[-1] == str(tmp_path / ".peers")
    assert pathlib.Path(install[0]).parents[1] == tmp_path / ".peers"
    assert [wanted.partition("==")[0] for wanted in install[-2:]] == ["llama-cpp-python", "gguf"]
    assert os.environ["CMAKE_ARGS"] == "-DMINE=ON", "what a builder asks for stands"


LAB_HERE = """
import importlib.util, os, pathlib, sys
os.environ["LITE"] = "1"
spec = importlib.util.spec_from_file_location("setup_lab", sys.argv[1])
setup = importlib.util.module_from_spec(spec)
spec.loader.exec_module(setup)
from lessons.setting_up import basics
basics.ROOT = pathlib.Path(sys.argv[2])
setup.ensure_environment = lambda extra: pathlib.Path(sys.executable)
sys.exit(setup.main(["lab", "--no-browser", "--port", sys.argv[3]]))
"""


@pytest.mark.skipif(os.name == "nt", reason="signals as sent here exist on POSIX only")
def test_the_lab_starts_says_where_it_is_and_ends_with_its_parent(tmp_path):
    """Also behind a proxy, which leads to nowhere here."""
    command = [sys.executable, "-c", LAB_HERE, str(ROOT / "setup_lab.py"), str(tmp_path), str(free_port())]
    behind = {**os.environ, "http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1", "no_proxy": ""}
    with subprocess.Popen(command, env=behind, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        address = next(line.strip() for line in process.stdout if "http://127.0.0.1:" in line)
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(address, timeout=5)
