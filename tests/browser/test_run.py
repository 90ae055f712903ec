"""`run` under a real mouse: each button, Stop, what is old, the history on hover; both themes and narrow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from explorer_page import ask, contrasts, control, do, set_number, shared_page, switch_theme, wait_kind
from playwright.sync_api import Browser, Locator, Page, expect

from lab_server import Lab

CELL = """
import os, tempfile, threading
from types import SimpleNamespace
os.environ["MESHWORK_RECORDS"] = tempfile.mkdtemp()
from mtfcore.errors import DeviceError
from mtfcore import measuring
from mtfcore.measuring import Measured, Progress
from widgets import Frame, run
from widgets.explorers.run import RunExplorer

Frame.reraise = True
go_on, where = threading.Semaphore(0), {"platform": "tpu", "device_kind": "TPU v4", "devices": 64, "hosts": 16}
# no chip is here: a TPU v4 that is let go on by the test
def steps(program, **options):
    if options["on"] == "simulated":
        return (yield from measuring.steps(program, **options))
    for n in range(4):
        yield Progress(n, 4, f"repetition {n + 1} of 4")
        go_on.acquire(timeout=30)
    said = {"against": "the oracle", "error": 1e-6, "tolerance": 1e-4}
    return Measured(program.name, str(program.mesh), (.029, .03, .031), 2.0, 2, where, {}, said, {"flops": 1.0})
# no compiler is needed: one that works until it is stopped
def compiler(program, topology, told, stop):
    stop.wait(30)
    raise DeviceError("the compilation was stopped")
RunExplorer.measure, RunExplorer.compiler = staticmethod(steps), staticmethod(compiler)
no_chip = RunExplorer.chips
e = run()
e
"""
FIRST = """
from widgets.explorers.history import History
e.history, e.last = History(), {}
e.history._old = ()
RunExplorer.chips = no_chip
e.state = dict(e.start)
e._redraw()
"""
A_CHIP = "RunExplorer.chips = staticmethod(lambda mesh: SimpleNamespace(kind='ready', words='', fix=''))"
QUIET = "() => [...document.querySelectorAll('.mw-run')].every(run => run.dataset.busy !== 'true')"
HEIGHTS = """() => ['.mw-top', '.mw-live .mw-runs', '.mw-live .mw-side', '.mw-bottom']
  .map(part => document.querySelector(part).getBoundingClientRect().height)"""
SMALL = {"what": "two_layers", "topology": "v4:1x1x2", "mesh": "rows:2", "layout": "hidden:rows",
         "sizes": "batch:8 io:16 hidden:32"}  # fmt: skip
SIZE = {"width": 1300, "height": 1000}


@pytest.fixture(scope="module")
def shared(browser: Browser, lab: Lab) -> Iterator[Page]:
    with shared_page(browser, lab, "run.ipynb", CELL) as page:
        expect(side(page).locator("[data-row]")).to_have_count(10)
        yield page


@pytest.fixture
def shown(shared: Page) -> Page:
    """The shared page, put back to its first state."""
    do(shared, FIRST)
    shared.wait_for_function(QUIET, timeout=30_000)
    wait_kind(shared, "ok")
    return shared


def side(page: Page) -> Locator:
    """The live table (the still page, hidden meanwhile, has the same)."""
    return page.locator(".mw-live .mw-side")


def number(page: Page, row: str, column: str) -> Locator:
    return side(page).locator(f"[data-cell='{row}.{column}']")


def says(page: Page) -> Locator:
    return page.locator(".mw-bottom .mw-says")


def measure(page: Page) -> None:
    do(page, f"{A_CHIP}\ngo_on.release(4)")
    control(page, "device", "button").click()
    expect(number(page, "seconds", "measured")).to_contain_text("30 ms")
    page.wait_for_function(QUIET, timeout=30_000)


def test_a_published_row_brings_its_settings_and_its_error(shown: Page) -> None:
    row = ask(shown, "next(r.key for r in __import__('mtfcore.reference').reference.rows(table='Table 3') "
                     "if 'low latency, decode: latency' in r.key)")  # fmt: skip
    control(shown, "row", "select").select_option(row)
    expect(control(shown, "model")).to_have_value("palm-62b")
    expect(number(shown, "seconds", "published")).to_contain_text("11.4 ms")
    expect(number(shown, "seconds", "modelled").locator(".mw-by")).to_contain_text("%")
    expect(says(shown)).to_contain_text("Table 3")


def test_without_a_chip_one_sentence_says_what_to_do(shown: Page) -> None:
    line = shown.locator(".mw-run")
    height = line.bounding_box()["height"]
    control(shown, "device", "button").click()
    wait_kind(shown, "refused")
    expect(line).to_contain_text("nothing was run: no TPU or GPU is attached")  # the sentence may be out of sight
    assert line.bounding_box()["height"] == height
    expect(says(shown)).to_contain_text("no TPU or GPU is attached")
    expect(says(shown)).to_contain_text("Simulate runs the same steps")
    expect(shown.locator(".mw-dim")).to_have_count(0)  # the picture is still true


def test_what_is_too_large_to_simulate_leads_to_a_size_that_is_not(shown: Page) -> None:
    control(shown, "simulate", "button").click()
    wait_kind(shown, "refused")
    shown.get_by_role("button", name="a size to simulate").click()
    expect(control(shown, "mesh")).to_have_value("x:2 y:2 z:2")
    expect(number(shown, "memory", "modelled")).to_contain_text("KiB")
    wait_kind(shown, "ok")


def test_simulated_devices_count_bytes_and_show_no_time(shown: Page) -> None:
    do(shown, f"e.state = {{**e.start, **{SMALL}}}")
    expect(control(shown, "layout")).to_have_value("hidden:rows")  # no button moves any more
    control(shown, "simulate", "button").click()
    expect(number(shown, "sent", "measured")).to_contain_text("±0 %", timeout=60_000)
    expect(number(shown, "seconds", "measured")).to_contain_text("–")  # no time of this computer's
    expect(says(shown)).to_contain_text("no hardware's speed")


def test_a_run_is_stopped_between_repetitions_while_sliders_answer(shown: Page) -> None:
    do(shown, A_CHIP)
    control(shown, "device", "button").click()
    expect(shown.locator(".mw-run-text")).to_contain_text("repetition 1 of 4")
    expect(control(shown, "compile", "button")).to_be_disabled()
    set_number(shown, "batch", 128)
    expect(number(shown, "seconds", "modelled")).to_contain_text("36 ms")
    control(shown, "stop", "button").click()
    do(shown, "go_on.release(1)")
    expect(shown.locator(".mw-run-text")).to_have_text("stopped")
    assert ask(shown, "([r.status for r in e.records], e.records[0].params['batch'])") == (["stopped"], 64)


def test_a_compilation_is_cancelled_at_once(shown: Page) -> None:
    control(shown, "compile", "button").click()
    expect(shown.locator(".mw-run-text")).to_have_text("compiling for v4:4x4x4")
    control(shown, "stop", "button").click()
    expect(shown.locator(".mw-run-text")).to_have_text("stopped")
    wait_kind(shown, "ok")


def test_the_history_tells_where_a_number_comes_from_and_brings_it_back(shown: Page) -> None:
    measure(shown)
    line = shown.locator(".mw-live [data-record]").first
    expect(line.locator(".mw-from")).to_be_hidden()
    line.hover()
    expect(line.locator(".mw-from")).to_be_visible()
    expect(line.locator(".mw-from")).to_contain_text("64 × TPU v4")
    expect(line.locator(".mw-from")).to_contain_text("median 30 ms of 3")
    set_number(shown, "batch", 128)
    expect(number(shown, "seconds", "measured")).to_have_class("mw-old")
    expect(side(shown)).to_contain_text("for batch 64")
    line.get_by_role("button").click()
    expect(control(shown, "batch", "input[type=number]")).to_have_value("64")
    expect(number(shown, "seconds", "measured")).not_to_have_class("mw-old")


def test_heights_do_not_change_while_dragging(shown: Page) -> None:
    heights = [shown.evaluate(HEIGHTS)]  # before a run, with its stamp, and without it again
    measure(shown)
    heights.append(shown.evaluate(HEIGHTS))
    for batch in (128, 8, 512):
        modelled = number(shown, "seconds", "modelled")
        before = modelled.get_attribute("data-value")
        set_number(shown, "batch", batch)
        expect(modelled).not_to_have_attribute("data-value", before)
        heights.append(shown.evaluate(HEIGHTS))
    assert heights == heights[:1] * 5


def test_the_keyboard_alone_runs_on_a_device(shown: Page) -> None:
    do(shown, f"{A_CHIP}\ngo_on.release(4)")
    control(shown, "simulate", "button").focus()
    shown.keyboard.press("Tab")
    shown.keyboard.press("Tab")
    expect(control(shown, "device", "button")).to_be_focused()
    shown.keyboard.press("Enter")
    expect(number(shown, "seconds", "measured")).to_contain_text("30 ms")
    expect(shown.locator(".mw-run-text")).to_contain_text("run on the device 20")
    shown.wait_for_function(QUIET, timeout=30_000)
    for _ in range(8):  # past details and saving or not, the run that ended can be brought back
        if shown.evaluate("() => !!document.activeElement.dataset?.pick"):
            break
        shown.keyboard.press("Tab")
    expect(shown.locator(".mw-live [data-record] button").first).to_be_focused()


def test_the_page_reads_in_both_themes_and_when_narrow(shown: Page) -> None:
    measure(shown)
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        switch_theme(shown, theme)
        read = contrasts(shown, ".mw-live.mw-picks") + contrasts(shown, ".mw-bottom")
        assert len(read) > 60 and min(read)[0] >= 4.5, min(read)
    shown.set_viewport_size({"width": 480, "height": 900})
    shown.wait_for_function(
        "() => [...document.querySelectorAll('.mw-live.mw-picks')].every(e => e.scrollWidth <= e.clientWidth + 1)"
    )
    shown.set_viewport_size(SIZE)
