"""`attention` under a real mouse: drag, point, pick, run; refusals lead out; both themes and narrow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from explorer_page import ask, contrasts, control, do, drag, set_number, shared_page, switch_theme, wait_kind
from playwright.sync_api import Browser, Locator, Page, expect

from lab_server import Lab

CELL = (
    "from widgets import Frame, attention\nFrame.reraise = True\n"
    "e = attention('palm-8b', mesh='x:2 y:2 z:2', batch=16, context=512)\ne"
)
FIRST = """
e.state = {**e.start, 'model': 'palm-8b', 'mesh': 'x:2 y:2 z:2', 'batch': 16, 'context': 512}
e.queue.join(60)
"""
QUIET = "() => [...document.querySelectorAll('.mw-run')].every(run => run.dataset.busy !== 'true')"
SIZE = {"width": 1300, "height": 1000}


@pytest.fixture(scope="module")
def shared(browser: Browser, lab: Lab) -> Iterator[Page]:
    with shared_page(browser, lab, "attention.ipynb", CELL) as page:
        expect(charts(page).locator("svg.mw-chart")).to_have_count(5)
        page.wait_for_function(QUIET, timeout=60_000)
        yield page


@pytest.fixture
def shown(shared: Page) -> Page:
    """The shared page, put back to its first state."""
    do(shared, FIRST)
    shared.wait_for_function(QUIET, timeout=60_000)
    wait_kind(shared, "ok")
    return shared


def charts(page: Page) -> Locator:
    return page.locator(".mw-live.mw-picks")


def says(page: Page) -> Locator:
    return page.locator(".mw-bottom .mw-says")


def test_dragging_the_batch_moves_copies_and_pictures(shown: Page) -> None:
    control(shown, "by", "select").select_option("batch")
    expect(charts(shown).locator("[data-answer=copies] b")).to_have_text("1")
    drag(shown, control(shown, "batch", "input[type=range]"), 0.1)
    assert any(ask(shown, "e.top.edits['released']") for _ in range(100))  # or it would arrive in the next test
    batch = ask(shown, "e.state['batch']")
    assert batch < 8  # fewer sequences than devices: the rest are copies
    expect(charts(shown).locator("[data-answer=copies] b")).to_have_text(str(8 // batch))
    expect(shown.locator(f".mw-slices [data-tensor='kept keys'][data-copies='{8 // batch}']")).to_have_count(1)


def test_pointing_at_kept_keys_shows_who_else_holds_them(shown: Page) -> None:
    shown.locator(".mw-slices [data-tensor='kept keys'] g[data-piece='0']").hover()
    expect(shown.locator(".mw-slices .mw-copy:not(.mw-halo)")).to_have_count(7)
    expect(shown.locator(".mw-readout")).to_contain_text("7 other devices hold the same")
    control(shown, "by", "select").select_option("batch")
    shown.locator(".mw-slices [data-tensor='mesh'] g[data-piece='5']").click()
    expect(shown.locator(".mw-readout [data-holds='kept keys']")).to_contain_text("B 12–13")
    expect(shown.locator(".mw-readout [data-holds='kept keys']")).not_to_contain_text("hold the same")


def test_a_bar_is_picked_by_mouse_and_by_keyboard(shown: Page) -> None:
    charts(shown).locator("[data-pick='by:batch']").first.click()
    expect(control(shown, "by", "select")).to_have_value("batch")
    charts(shown).locator("[data-line=heads]").first.focus()
    shown.keyboard.press("Enter")
    expect(control(shown, "by", "select")).to_have_value("heads")
    assert shown.evaluate("() => document.activeElement.dataset.pick") == "by:heads"


def test_a_row_of_table_1_is_loaded(shown: Page) -> None:
    charts(shown).get_by_role("button", name="show optimized multiquery, batch 512").click()
    expect(control(shown, "model")).to_have_value("palm-540b heads=64")
    expect(charts(shown).locator("[data-answer=longest] b")).to_have_text("10,663")
    expect(charts(shown).locator("[data-chart=context] [data-published]")).to_have_count(4)


def test_heads_that_cannot_be_cut_are_refused_and_padded(shown: Page) -> None:
    set_number(shown, "heads", 18)
    wait_kind(shown, "refused")
    expect(says(shown)).to_contain_text("18 heads do not divide over z:2 y:2")
    expect(shown.locator(".mw-dim .mw-live")).to_have_count(2)  # both pictures
    shown.get_by_role("button", name="pad 18 heads to").click()
    wait_kind(shown, "ok")
    expect(shown.locator(".mw-dim .mw-live")).to_have_count(0)
    assert ask(shown, "e.value['core']['idle']") == ""


def test_a_run_shows_its_own_traffic_and_grows_old(shown: Page) -> None:
    control(shown, "by", "select").select_option("batch")
    control(shown, "pace", "select").select_option("full")
    control(shown, "run", "button").click()
    live = shown.locator(".mw-live-bars").first
    expect(live).to_be_visible(timeout=60_000)
    shown.wait_for_function(QUIET, timeout=60_000)
    expect(shown.get_by_text("off the oracle").last).to_be_visible()
    assert ask(shown, "(e.ran.state, e.ran.tally.by_axis == e.ran.program.link_bytes().by_axis)") == ("finished", True)
    set_number(shown, "batch", 32)
    expect(shown.locator(".mw-stale")).to_have_count(1)


def test_heights_do_not_change_while_dragging(shown: Page) -> None:
    heights = set()
    for by, batch in (("heads", 16), ("batch", 16), ("batch", 4096), ("heads", 1)):
        do(shown, f"e.state = {{**e.state, 'by': {by!r}, 'batch': {batch}}}")
        expect(charts(shown).locator("[data-answer=longest]")).to_contain_text(f"batch {batch:,}")
        heights.add((charts(shown).bounding_box()["height"], shown.locator(".mw-slices").bounding_box()["height"]))
    assert len(heights) == 1


def test_the_page_reads_in_both_themes_and_when_narrow(shown: Page) -> None:
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        switch_theme(shown, theme)
        read = contrasts(shown, ".mw-live.mw-picks") + contrasts(shown, ".mw-bottom")
        assert len(read) > 100 and min(read)[0] >= 4.5, min(read)
    shown.set_viewport_size({"width": 480, "height": 900})
    shown.wait_for_function(
        "() => [...document.querySelectorAll('.mw-live.mw-picks')].every(e => e.scrollWidth <= e.clientWidth + 1)"
    )
    shown.set_viewport_size(SIZE)
