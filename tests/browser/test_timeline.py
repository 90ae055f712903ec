"""`timeline` under a real mouse: point, walk, zoom, drag, stop; both themes and narrow. The compiler is pretended."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from explorer_page import ask, contrasts, control, do, drag, shared_page, switch_theme, wait_kind
from playwright.sync_api import Browser, Locator, Page, expect

from lab_server import Lab

CELL = f"""import sys
from widgets import Frame, timeline  # before the tests' own folder of that name can be found
sys.path.append({str(pathlib.Path(__file__).parents[1])!r})
from compiling.timelines import pretend
Frame.reraise, compiler = True, pretend()
e = timeline()
e"""
QUIET = "() => [...document.querySelectorAll('.mw-run')].every(run => run.dataset.busy !== 'true')"
IN_VIEW = """() => {
  const view = document.querySelector('.mw-time-view .mw-time-scroll').getBoundingClientRect();
  return [...document.querySelectorAll('.mw-time-view WHAT')].some(e => {
    const at = e.getBoundingClientRect();
    return at.left >= view.left && at.right <= view.right && getComputedStyle(e).visibility === 'visible';
  });
}"""
SIZE = {"width": 1300, "height": 1000}


@pytest.fixture(scope="module")
def shared(browser: Browser, lab: Lab) -> Iterator[Page]:
    with shared_page(browser, lab, "timeline.ipynb", CELL) as page:
        page.wait_for_function(QUIET, timeout=30_000)
        expect(bars(page)).to_have_count(9)
        yield page


@pytest.fixture
def shown(shared: Page) -> Page:
    """The shared page, put back to its first state."""
    do(shared, "compiler.gate.set(); e.state = dict(e.start); e.queue.join(20)")
    shared.wait_for_function(QUIET, timeout=30_000)
    wait_kind(shared, "ok")
    expect(bars(shared)).to_have_count(9)
    return shared


def bars(page: Page) -> Locator:
    return page.locator(".mw-time-view .mw-bar")


def reads(page: Page) -> Locator:
    return page.locator(".mw-time-view .mw-time-says")


def test_pointing_at_a_bar_reads_it(shown: Page) -> None:
    bars(shown).locator("nth=2").hover()
    expect(reads(shown)).to_contain_text("fusion.1, step 3.2 (x W_in or gate: E → F): 105,000 cycles")
    bars(shown).and_(shown.locator("[data-kind=wait]")).first.hover()
    expect(reads(shown)).to_contain_text("waiting for gather.1")


def test_arrow_keys_walk_bars_and_rows(shown: Page) -> None:
    shown.locator(".mw-time-view .mw-timeline").focus()
    shown.keyboard.press("Escape")
    shown.keyboard.press("ArrowRight")
    expect(shown.locator(".mw-bar.mw-read")).to_have_attribute("data-kind", "all_gather")
    shown.keyboard.press("ArrowDown")
    expect(reads(shown)).to_contain_text("all of it hidden behind fusion.1")
    shown.keyboard.press("ArrowUp")
    shown.keyboard.press("ArrowUp")
    expect(shown.locator(".mw-bar.mw-read")).to_have_attribute("data-row", "compute")
    shown.keyboard.press("Escape")
    expect(reads(shown)).to_contain_text("Point at a bar")


def test_zooming_keeps_the_bar_in_view(shown: Page) -> None:
    scroll = shown.locator(".mw-time-view .mw-time-scroll")
    for _ in range(3):
        shown.get_by_role("button", name="zoom in").click()
    assert scroll.evaluate("e => e.scrollWidth / e.clientWidth") == pytest.approx(8, abs=0.1)
    expect(shown.locator(".mw-time-factor")).to_have_text("8×")
    scroll.evaluate("e => { e.scrollLeft = e.scrollWidth / 2; }")
    shown.wait_for_function(IN_VIEW.replace("WHAT", ".mw-ticks text"))
    shown.wait_for_function(IN_VIEW.replace("WHAT", ".mw-bar .mw-on-bar"))  # of a bar that begins far to the left
    shown.locator(".mw-time-view .mw-timeline").focus()
    shown.keyboard.press("ArrowRight")
    shown.keyboard.press("ArrowDown")
    box, view = shown.locator(".mw-bar.mw-read").bounding_box(), scroll.bounding_box()
    assert box["x"] < view["x"] + view["width"] and box["x"] + box["width"] > view["x"]
    for _ in range(4):
        shown.keyboard.press("-")
    assert scroll.evaluate("e => e.scrollWidth <= e.clientWidth")
    for whole in (lambda: shown.get_by_role("button", name="fit").click(),
                  lambda: control(shown, "window", "select").select_option("step")):  # fmt: skip
        shown.get_by_role("button", name="zoom in").click()
        expect(shown.locator(".mw-time-factor")).to_have_text("2×")
        whole()
        expect(shown.locator(".mw-time-factor")).to_have_text("1×")


def test_a_loop_opens_into_one_layer(shown: Page) -> None:
    control(shown, "window", "select").select_option("step")
    expect(bars(shown)).to_have_count(6)
    bars(shown).and_(shown.locator("[data-kind=loop][data-row=compute]")).first.click()
    expect(control(shown, "window", "select")).to_have_value("layer")
    expect(bars(shown)).to_have_count(9)


def test_dragging_compiles_nothing_until_the_hand_lets_go(shown: Page) -> None:
    before = ask(shown, "len(compiler.asked)")
    slider = control(shown, "batch", "input[type=range]")
    slider.hover()
    shown.mouse.down()
    box = slider.bounding_box()
    shown.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2, steps=8)
    expect(shown.locator(".mw-bottom .mw-says")).to_contain_text("The compiler answers when a control is let go")
    expect(shown.locator(".mw-stale")).to_have_count(1)
    assert ask(shown, "len(compiler.asked)") == before
    shown.mouse.up()
    expect(shown.locator(".mw-stale")).to_have_count(0)
    assert ask(shown, "len(compiler.asked)") == before + 2


def test_stop_ends_a_compilation(shown: Page) -> None:
    do(shown, "compiler.gate.clear()")
    drag(shown, control(shown, "tokens", "input[type=range]"), 0.3)
    expect(control(shown, "stop", "button")).to_be_enabled()
    control(shown, "stop", "button").click()
    shown.wait_for_function(QUIET, timeout=10_000)
    expect(control(shown, "run", "button")).to_be_enabled()
    assert ask(shown, "(e.kind, e.top.progress['text'])") == ("ok", "stopped")


def test_the_page_reads_in_both_themes_and_when_narrow(shown: Page) -> None:
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        switch_theme(shown, theme)
        read = [row for row in contrasts(shown, ".mw-live") if not row[1].startswith("text.mw-on-bar")]
        read += contrasts(shown, ".mw-bottom")
        assert len(read) > 40 and min(read)[0] >= 4.5, min(read)
    shown.set_viewport_size({"width": 480, "height": 900})
    shown.wait_for_function(
        "() => [...document.querySelectorAll('.mw-time-view')].every(e => e.scrollWidth <= e.clientWidth + 1)"
    )
    more, sentence = shown.get_by_role("button", name="more", exact=True), shown.locator(".mw-bottom .mw-sentence")
    expect(shown.locator(".mw-box.mw-cut")).to_have_count(1)
    height = sentence.bounding_box()["height"]
    more.press("Enter")  # as a reader without a mouse does
    expect(shown.locator(".mw-bottom .mw-whole")).to_be_focused()
    expect(shown.locator(".mw-bottom .mw-whole")).to_have_text(sentence.locator(".mw-says").inner_text())
    assert sentence.bounding_box()["height"] == height
    shown.locator(".mw-bottom summary").click()
    expect(shown.locator(".mw-bottom .mw-whole")).to_be_hidden()
    shown.set_viewport_size(SIZE)
