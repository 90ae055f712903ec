"""Which browser is taken, and what is said where there is none. These tests need no browser themselves."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

import lab_browser

HERE = pathlib.Path(__file__).parent


@pytest.fixture
def nothing_installed(monkeypatch, tmp_path):
    """A machine without a browser."""
    monkeypatch.delenv("MESHWORK_BROWSER", raising=False)
    monkeypatch.setattr(lab_browser.shutil, "which", lambda name: None)
    monkeypatch.setattr(lab_browser, "_application_folders", lambda: ([tmp_path], lab_browser.MAC_APPLICATIONS))
    return tmp_path


def test_browser_tests_share_one_worker_where_there_are_several(request):
    assert request.node.get_closest_marker("xdist_group").args == ("browser",)
    if "PYTEST_XDIST_WORKER" in os.environ:
        assert request.node.nodeid.endswith("@browser"), "pytest-xdist saw the group too late"


def test_none_is_found_where_there_is_none(nothing_installed):
    assert lab_browser.find_browser() is None


def test_a_name_on_the_path_is_found(nothing_installed, monkeypatch):
    monkeypatch.setattr(lab_browser.shutil, "which", {"microsoft-edge": "/opt/edge"}.get)
    assert lab_browser.find_browser() == "/opt/edge"


def test_an_application_folder_is_searched(nothing_installed):
    program = nothing_installed / lab_browser.MAC_APPLICATIONS[1]
    program.parent.mkdir(parents=True)
    program.touch()
    assert lab_browser.find_browser() == str(program)


def test_the_readers_choice_wins(nothing_installed, monkeypatch):
    monkeypatch.setenv("MESHWORK_BROWSER", "/home/me/chrome")
    monkeypatch.setattr(lab_browser.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert lab_browser.find_browser() == "/home/me/chrome"


def test_a_driver_that_cannot_start_is_explained(monkeypatch):
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", sys.executable)
    assert lab_browser.driver_problem() is None
    said = subprocess.CompletedProcess([], 127, stderr="libatomic.so.1: cannot open shared object file\n")
    monkeypatch.setattr(lab_browser.subprocess, "run", lambda *args, **options: said)
    assert lab_browser.driver_problem() == (
        "Playwright's driver does not start (Debian, Ubuntu: apt install libatomic1): "
        "libatomic.so.1: cannot open shared object file"
    )


@pytest.mark.parametrize(("required", "outcome"), [("", {"skipped": 2}), ("1", {"errors": 2})])
def test_without_a_browser_tests_skip_with_one_line_or_fail_where_one_was_promised(
    pytester, monkeypatch, required, outcome
):
    pytester.makeini("[pytest]\nmarkers =\n    browser\n    xdist_group\n")
    pytester.makeconftest((HERE / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile("def test_one(page): pass\ndef test_two(lab): pass\n")
    monkeypatch.setenv("MESHWORK_REQUIRE_BROWSER", required)
    monkeypatch.setattr(lab_browser, "find_browser", lambda: None)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-rsE")
    result.assert_outcomes(**outcome)
    if not required:
        result.stdout.fnmatch_lines([f"SKIPPED [[]2[]] *{lab_browser.NO_BROWSER}"])
        assert result.stdout.str().count(lab_browser.NO_BROWSER) == 1
