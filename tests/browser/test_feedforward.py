"""The feedforward explorer under a real mouse: drag the batch, pick a layout, run it, both themes, narrow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from explorer_page import ask, contrasts, control, do, drag, set_number, shared_page, switch_theme, wait_kind
from playwright.sync_api import Browser, Page, expect

from lab_server import Lab

CELL = "from widgets import Frame, feedforward\nFrame.reraise = True\ne = feedforward(x=2, y=2, z=2)\ne"
SIZE = {"width": 1300, "height": 1000}
CHART, SAYS = ".mw-live [data-chart=lines]", ".mw-bottom .mw-says"


@pytest.fixture(scope="module")
def shared(browser: Browser, lab: Lab) -> Iterator[Page]:
    """One page with the explorer."""
    with shared_page(browser, lab, "feedforward.ipynb", CELL) as page:
        expect(page.locator(".mw-live.mw-picks svg.mw-chart")).to_have_count(2)
        yield page


@pytest.fixture
def shown(shared: Page) -> Page:
    """The shared page, put back to its first state."""
    do(shared, "e.queue.join(60); e.state = {**e.start, 'x': 2, 'y': 2, 'z': 2}")
    expect(shared.locator(f"{CHART} [data-tokens]")).to_have_attribute("data-tokens", "512")
    return shared


def test_dragging_the_batch_moves_the_mark_and_the_winner(shown: Page) -> None:
    set_number(shown, "length", 2048)
    expect(shown.locator(CHART)).to_have_attribute("data-best", "wg_xyz")
    drag(shown, control(shown, "batch", "input[type=range]"), 0.0)
    expect(shown.locator(f"{CHART} [data-tokens]")).to_have_attribute("data-tokens", "2048")
    expect(shown.locator(CHART)).to_have_attribute("data-best", "ws1d")
    expect(shown.locator(SAYS)).to_contain_text("moves least for 2,048 tokens")


def test_a_line_or_a_bar_is_picked_by_mouse_and_by_keyboard(shown: Page) -> None:
    bar = shown.locator(".mw-live [data-chart=layouts] [data-pick='layout:wg_xy']")
    bar.click()
    expect(shown.locator(CHART)).to_have_attribute("data-chosen", "wg_xy")
    expect(control(shown, "layout", "select")).to_have_value("wg_xy")
    expect(shown.locator(".mw-steps [data-axes=x]").first).to_be_visible()
    bar.focus()
    shown.keyboard.press("Enter")
    expect(control(shown, "layout", "select")).to_have_value("best")
    expect(shown.locator(CHART)).to_have_attribute("data-chosen", "ws1d")
    line = shown.locator(".mw-live [data-line=wg_xyz] .mw-reach").bounding_box()  # a level line
    shown.mouse.click(line["x"] + 150, line["y"] + line["height"] / 2)
    expect(shown.locator(CHART)).to_have_attribute("data-chosen", "wg_xyz")


def test_a_mesh_axis_cuts_every_tensor_at_once(shown: Page) -> None:
    set_number(shown, "x", 4)
    expect(shown.locator(".mw-slices [data-tensor=mesh]")).to_have_attribute("data-pieces", "16")
    expect(shown.locator(".mw-slices [data-tensor='W_in rests']")).to_have_attribute("data-pieces", "16")
    assert ask(shown, "e.value['mesh']") == [4, 2, 2]


def test_slices_of_many_devices_are_grey_until_the_hand_lets_go(shown: Page) -> None:
    do(shown, "e.top.press({'y': 64}, released=False)")
    expect(shown.locator(".mw-stale .mw-slices")).to_have_count(1)
    do(shown, "e.top.press({'y': 64})")
    expect(shown.locator(".mw-stale .mw-slices")).to_have_count(0)
    expect(shown.locator(".mw-slices [data-tensor=mesh]")).to_have_attribute("data-pieces", "256")


def test_run_performs_the_layer_and_says_what_was_checked(shown: Page) -> None:
    do(shown, "e.state = {**e.state, 'layout': 'ws2d'}")
    expect(shown.locator(CHART)).to_have_attribute("data-chosen", "ws2d")
    control(shown, "run", "button").click()
    expect(shown.locator(SAYS)).to_contain_text("the answer of ws2d is that of one device", timeout=60_000)
    expect(shown.locator(".mw-live-steps [data-live-step].mw-done")).to_have_count(4)
    sent = sum(int(each.get_attribute("data-bytes")) for each in shown.locator("[data-live-axis]").all())
    assert sent == ask(shown, "int(e.ran[1].small.program.link_bytes().total)")
    set_number(shown, "batch", 64)
    expect(shown.locator(".mw-stale .mw-live-view")).to_have_count(1)
    expect(shown.locator(SAYS)).not_to_contain_text("Run on")


def test_what_cannot_be_is_refused_and_an_offer_leads_out(shown: Page) -> None:
    set_number(shown, "d_model", 99)
    wait_kind(shown, "refused")
    expect(shown.locator(".mw-dim .mw-slices")).to_have_count(1)
    shown.locator(".mw-offers button").first.click()
    wait_kind(shown, "ok")
    expect(shown.locator(".mw-dim")).to_have_count(0)


def test_figure_7_is_drawn_beside_ours(shown: Page) -> None:
    control(shown, "chart", "select").select_option("Figure 7")
    expect(shown.locator(SAYS)).to_contain_text("Figure 7, of the whole model, at 1,048,576 tokens")
    expect(shown.locator(".mw-live svg.mw-chart").first).to_contain_text("MFU of prefill")
    do(shown, "e.asking.join(60)")
    expect(shown.locator(SAYS)).not_to_contain_text("worked out")


def test_the_program_opens_below_and_closes(shown: Page) -> None:
    control(shown, "program", "button").click()
    expect(shown.locator(".mw-program-view")).to_have_count(2)
    expect(shown.locator("[data-control=program] button", has_text="Hide")).to_be_visible()
    control(shown, "program", "button").first.click()
    expect(shown.locator(".mw-program-view")).to_have_count(1)


def test_heights_do_not_change_while_dragging(shown: Page) -> None:
    heights = set()
    for batch in (1, 64, 512, 8192):
        set_number(shown, "batch", batch)
        expect(shown.locator(f"{CHART} [data-tokens]")).to_have_attribute("data-tokens", str(batch))
        heights.add(shown.locator(".mw-live.mw-picks").bounding_box()["height"])
    assert len(heights) == 1


def test_the_page_reads_in_both_themes_and_when_narrow(shown: Page) -> None:
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        switch_theme(shown, theme)
        found = contrasts(shown, ".mw-live.mw-picks")
        assert len(found) > 40 and min(found)[0] >= 4.5, min(found)
    shown.set_viewport_size({"width": 480, "height": 900})
    fits = "() => [...document.querySelectorAll('.mw-live.mw-picks')].every(e => e.scrollWidth <= e.clientWidth + 1)"
    shown.wait_for_function(fits)
    shown.set_viewport_size(SIZE)
