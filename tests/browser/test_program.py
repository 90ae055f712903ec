"""The program explorer under a real mouse: drag an axis, walk the steps, run them, read devices' values."""

from __future__ import annotations

import re

import numpy as np
import pytest
from explorer_page import contrasts, control, drag, open_explorer, set_number, switch_theme
from playwright.sync_api import Locator, Page, expect

import mtfcore as mtf
from widgets.explorers.examples import EXAMPLES
from widgets.explorers.inputs import example_inputs

SIZES = "batch:16 io:8 hidden:32"
CELL = f"from widgets import Frame, program\nFrame.reraise = True\nexplorer = program(sizes={SIZES!r})\nexplorer"


@pytest.fixture
def shown(lab, page: Page, notebook) -> Page:
    """A notebook with one program explorer, run and on show."""
    open_explorer(page, lab, notebook(CELL))
    return page


def step(page: Page, number: int) -> Locator:
    return page.locator(f".mw-program-view [data-step='{number}']")


def button(page: Page, words: str) -> Locator:
    return page.locator(".mw-program-view").get_by_role("button", name=words, exact=True)


def sentence(page: Page) -> Locator:
    return page.locator(".mw-bottom .mw-says")


def press_run(page: Page) -> None:
    control(page, "run", "button").click()
    expect(page.locator("[data-card]").first).to_be_visible(timeout=60_000)


def numbers(grid: Locator) -> np.ndarray:
    rows = grid.locator("table").evaluate("t => [...t.rows].map(r => [...r.cells].map(c => c.textContent))")
    return np.array(rows, float)


def test_dragging_an_axis_moves_the_traffic_and_nothing_else(shown: Page) -> None:
    traffic = shown.locator(".mw-program-view [data-traffic='cols']")
    expect(traffic).to_have_attribute("data-bytes", str(16 // 4 * 8 * 4))
    before = [shown.locator(f".mw-live .{part}").bounding_box() for part in ("mw-steps", "mw-totals")]
    slider = control(shown, "axis.cols", "input[type=range]")
    drag(shown, slider, 0.45)
    expect(traffic).not_to_have_attribute("data-bytes", "128")
    cols = int(control(shown, "axis.cols", "input[type=number]").input_value())
    assert cols > 2
    expect(traffic).to_have_attribute("data-bytes", str(2 * 128 * (cols - 1) // cols))
    after = [shown.locator(f".mw-live .{part}").bounding_box() for part in ("mw-steps", "mw-totals")]
    assert before == after


def test_steps_are_walked_by_buttons_keys_and_clicks(shown: Page) -> None:
    view = shown.locator(".mw-program-view")
    expect(button(shown, "◀ Back")).to_be_disabled()
    button(shown, "Forward ▶").click()
    expect(view).to_have_attribute("data-chosen", "1")
    expect(sentence(shown)).to_contain_text("Step 2 of 4, relu")
    shown.locator(".mw-live .mw-steps").focus()
    shown.keyboard.press("ArrowDown")
    expect(sentence(shown)).to_contain_text("Step 3 of 4, einsum: hidden is contracted and split over cols")
    shown.keyboard.press("End")
    expect(step(shown, 3)).to_have_attribute("aria-selected", "true")
    expect(sentence(shown)).to_contain_text("all-reduce over cols")
    expect(button(shown, "Forward ▶")).to_be_disabled()
    step(shown, 0).click()
    expect(sentence(shown)).to_contain_text("Step 1 of 4, einsum: batch is split over rows")
    for chosen in ("1", "2", "3"):
        button(shown, "Forward ▶").press("Enter")
        expect(view).to_have_attribute("data-chosen", chosen)
    expect(shown.locator(".mw-live .mw-steps")).to_be_focused()  # at the end; not the notebook, which obeys single keys


def test_a_run_shows_every_devices_values_before_and_after(shown: Page) -> None:
    press_run(shown)
    prog = mtf.plan(EXAMPLES["two_layers"].fn, "rows:4 cols:2", "batch:rows hidden:cols", sizes=SIZES)
    arrays = example_inputs(prog)
    out = np.maximum(arrays["x"] @ arrays["w"], 0) @ arrays["v"]
    expect(shown.locator("[data-card='0'] [data-name='x']")).to_be_visible()
    held = numbers(shown.locator("[data-card='0'] [data-name='x']"))
    np.testing.assert_allclose(held, arrays["x"][:4, :6], rtol=1e-3)

    step(shown, 3).click()
    cards = shown.locator("[data-card]")
    expect(cards).to_have_count(2)
    cards.nth(1).click()
    expect(shown.locator(".mw-chosen")).to_have_attribute("data-card", "1")
    shown.locator(".mw-held select").select_option(label="device 7 (rows 3, cols 1)")
    expect(shown.locator(".mw-chosen")).to_have_attribute("data-card", "7")
    before = sum(numbers(shown.locator(f"[data-card='{device}'] [data-when='before']")) for device in (6, 7))
    after = numbers(shown.locator("[data-card='7'] [data-when='after']"))
    np.testing.assert_allclose(after, out[12:15, :4], rtol=2e-3, atol=1e-2)
    np.testing.assert_allclose(before, after, rtol=2e-3, atol=2e-2)
    expect(shown.locator(".mw-run-text")).to_have_text("all steps have run")
    assert not re.search(r"\d\s?(ns|µs|ms|s)\b", shown.locator(".mw-held").inner_text())


def test_old_values_are_greyed_and_say_what_they_belong_to(shown: Page) -> None:
    press_run(shown)
    set_number(shown, "size.batch", 32)
    expect(shown.locator(".mw-stale .mw-held")).to_be_visible()
    expect(shown.locator(".mw-run-text")).to_have_text(f"the result is for sizes='{SIZES}'")


def test_a_size_that_does_not_divide_offers_what_does(shown: Page) -> None:
    set_number(shown, "size.batch", 18)
    expect(sentence(shown)).to_contain_text("dimension batch of size 18 does not divide over mesh axis rows:4")
    shown.locator(".mw-offers").get_by_text("make batch 20").click()
    expect(sentence(shown)).to_contain_text("Step 1 of 4")
    expect(control(shown, "size.batch", "input[type=number]")).to_have_value("20")


def test_another_function_and_free_search(shown: Page) -> None:
    control(shown, "fn", "select").select_option("weight_gradient")
    expect(step(shown, 0)).to_contain_text("einsum")
    control(shown, "search", "select").select_option("search")
    expect(step(shown, 0)).to_contain_text("all-gather over rows of batch")
    totals = shown.locator(".mw-program-view [data-total='sent']")
    sent = {cell.get_attribute("data-choice"): float(cell.get_attribute("data-value")) for cell in totals.all()}
    assert sent["search"] < sent["default"]
    differ = shown.locator(".mw-program-view .mw-differ")
    expect(differ).to_contain_text("Only in free search: step 1 all-gather over rows of batch")


def test_it_fits_a_narrow_page(shown: Page) -> None:
    press_run(shown)
    shown.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    shown.set_viewport_size({"width": 480, "height": 1000})
    view = shown.locator(".mw-program-view")
    shown.wait_for_function("() => document.querySelector('.mw-program-view').clientWidth < 460")
    for part in (view, shown.locator(".mw-live .mw-steps"), shown.locator(".mw-live .mw-totals")):
        assert part.evaluate("node => node.scrollWidth <= node.clientWidth")


def test_the_plain_jax_program_unfolds(shown: Page) -> None:
    shown.locator(".mw-program-view summary").click()
    expect(shown.locator(".mw-program-view .mw-code")).to_contain_text("lax.psum")


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_all_text_can_be_read_in_both_themes(shown: Page, theme: str) -> None:
    press_run(shown)
    switch_theme(shown, theme)
    for part in (".mw-program-view", ".mw-held"):
        found = contrasts(shown, part)
        assert len(found) > 10
        assert not [row for row in found if row[0] < 4.5]
