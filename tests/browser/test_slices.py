"""`slices` in a real browser: mouse, keyboard, themes, narrow windows, and no kernel.

All but the last two tests share one page, put back before each to what a reader sees first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from explorer_page import (
    SIZE,
    ask,
    box,
    contrasts,
    control,
    do,
    open_explorer,
    panel,
    set_number,
    set_text,
    shared_page,
    switch_theme,
    wait_kind,
    wait_panel,
)
from playwright.sync_api import Browser, Page, expect

from lab_browser import open_notebook, wait_ready
from lab_server import Lab

CELLS = ("from widgets import slices", "e = slices()\ne")


@pytest.fixture(scope="module")
def shared(browser: Browser, lab: Lab) -> Iterator[Page]:
    """One page with the explorer for the whole file."""
    with shared_page(browser, lab, "slices.ipynb", *CELLS) as page:
        yield page


@pytest.fixture
def explorer(shared: Page) -> Page:
    """The shared page as a reader first sees it."""
    shared.set_viewport_size(SIZE)
    do(shared, "e.show_values(None); e.picture.device = -1; e.state = {}")
    shared.mouse.move(5, 5)
    wait_panel(shared, "mesh", "pieces", 8)
    wait_kind(shared, "ok")
    return shared


@pytest.fixture
def fresh(page: Page, lab: Lab, notebook) -> Page:
    """A page of its own, for a test that ends kernels."""
    open_explorer(page, lab, notebook(*CELLS))
    return page


def test_a_dragged_slider_moves_every_tensor(explorer):
    slider = control(explorer, "axis.rows", "input[type=range]")
    where = slider.bounding_box()
    explorer.mouse.move(where["x"] + where["width"] * 0.25, where["y"] + where["height"] / 2)
    explorer.mouse.down()
    for step in range(12):
        explorer.mouse.move(where["x"] + where["width"] * (0.25 + step * 0.03), where["y"] + where["height"] / 2)
    explorer.mouse.up()
    rows = 2 ** int(slider.input_value())
    assert 16 <= rows <= 64
    wait_panel(explorer, "mesh", "pieces", rows * 2)
    wait_panel(explorer, "x", "local", f"{64 // rows},512")
    assert ask(explorer, "e.state['mesh']") == f"rows:{rows} cols:2"


def test_a_rapid_drag_ends_on_the_last_value(explorer):
    explorer.evaluate(
        """async () => {
          const slider = document.querySelector(".mw-top [data-control='size.hidden'] input[type=range]");
          for (let n = 0; n < 40; n++) {
            slider.value = n % 2 ? 3 + n % 9 : 12 - n % 9;
            slider.dispatchEvent(new Event('input'));
            await new Promise(done => setTimeout(done, 25));
          }
          slider.value = 13;  // not among the values passed on the way
          slider.dispatchEvent(new Event('input'));
          slider.dispatchEvent(new Event('change'));
        }"""
    )
    wait_panel(explorer, "w", "local", "512,4096")
    assert ask(explorer, "e.state['dims']") == "batch:64 io:512 hidden:8192"
    expect(control(explorer, "size.hidden", "input[type=number]")).to_have_value("8192")
    expect(control(explorer, "size.hidden", "input[type=range]")).to_have_value("13")


def test_click_a_device_and_see_what_it_holds(explorer):
    panel(explorer, "mesh").locator("[data-piece='5']").click(position={"x": 6, "y": 6})
    explorer.mouse.move(5, 5)
    expect(explorer.locator(".mw-slices")).to_have_attribute("data-device", "5")
    assert ask(explorer, "e.picture.device") == 5
    for tensor, piece in (("mesh", 5), ("x", 2), ("w", 1), ("h", 5)):
        expect(panel(explorer, tensor).locator(f".mw-mark[data-piece='{piece}']")).to_have_count(2)
    holds = "x: batch 32–47, io 0–511 · 16 KiB [modelled]; 1 other device holds the same"
    expect(explorer.locator("[data-holds=x]")).to_have_text(holds)
    do(explorer, "e.picture.device = 0")
    expect(explorer.locator(".mw-slices")).to_have_attribute("data-device", "0")


def test_pointing_is_enough(explorer):
    panel(explorer, "h").locator("[data-piece='6']").hover(position={"x": 4, "y": 4})
    expect(explorer.locator(".mw-readout")).to_contain_text("Device 6 (rows 3, cols 0)")
    expect(panel(explorer, "mesh").locator(".mw-copy")).to_have_count(0)
    panel(explorer, "w").locator("[data-piece='1']").hover(position={"x": 4, "y": 4})
    copies = [mark.get_attribute("data-piece") for mark in panel(explorer, "mesh").locator(".mw-copy").all()]
    assert copies == ["3", "5", "7"]  # beside device 1, which is outlined as the one shown
    explorer.mouse.move(5, 5)
    expect(explorer.locator(".mw-readout")).to_contain_text("Point at a device")


def test_values_of_a_run_beside_the_ranges(explorer):
    do(explorer, "import numpy as np; e.show_values(lambda tensor, device: np.full((16, 512), device + 0.5))")
    panel(explorer, "mesh").locator("[data-piece='3']").click(position={"x": 6, "y": 6})
    expect(explorer.locator("[data-values=x]")).to_contain_text("x = float64[16, 512]")
    expect(explorer.locator("[data-values=x] td").first).to_have_text("3.5")


def test_an_invalid_size_answers_in_the_line_and_the_next_valid_one_clears_it(explorer):
    set_number(explorer, "size.batch", 6)
    wait_kind(explorer, "refused")
    says = explorer.locator(".mw-bottom .mw-says")
    expect(says).to_contain_text("dimension batch of size 6 does not divide over mesh axis rows:4 (4 parts)")
    expect(says).to_contain_text("nearest sizes that do: 4 or 8")
    expect(says).not_to_contain_text("Traceback")
    expect(control(explorer, "size.batch", "input[type=number]")).to_have_value("6")
    expect(explorer.locator(".mw-dim .mw-slices")).to_have_count(1)
    set_number(explorer, "size.batch", 8)
    wait_kind(explorer, "ok")
    expect(explorer.locator(".mw-dim")).to_have_count(0)
    set_number(explorer, "size.batch", 1)
    wait_kind(explorer, "refused")
    explorer.get_by_role("button", name="copy batch (4x the work)").click()
    wait_kind(explorer, "ok")
    assert ask(explorer, "e.state['layout']") == "hidden:cols"


def test_heights_do_not_change_while_dragging(explorer):
    slider = control(explorer, "axis.rows", "input[type=range]")
    slider.focus()
    seen = set()
    for rows in (8, 16, 32, 64, 128):
        explorer.keyboard.press("ArrowRight")
        if rows <= 64:
            wait_panel(explorer, "mesh", "pieces", rows * 2)
        else:
            wait_kind(explorer, "refused")
        seen.add((box(explorer, ".mw-slices"), box(explorer, ".mw-sentence")))
    assert len(seen) == 1, seen


FOCUSED = """() => { const e = document.activeElement, name = e.closest('[data-control]')?.dataset.control;
  return [name || e.className || e.tagName, getComputedStyle(e).outlineStyle]; }"""
WALK = (("ArrowRight", 0), ("ArrowRight", 1), ("ArrowDown", 3), ("ArrowLeft", 2), ("ArrowUp", 0), ("Escape", -1))


def test_every_control_by_keyboard_with_a_visible_focus(explorer):
    """Tab reaches everything in order; arrows move sliders and walk the mesh; JupyterLab does not take the keys."""
    control(explorer, "mesh").focus()
    reached = []
    for _ in range(40):
        found = explorer.evaluate(FOCUSED)
        reached.append(found)
        if found[0] == "SUMMARY":
            break
        explorer.keyboard.press("Tab")
    names = [name for name, _ in reached]
    wanted = {"mesh", "n_axes", "axis.rows", "size.batch", "on.batch", "layout", "tensors", "dtype"}
    assert wanted | {"mw-slot", "mw-sentence"} <= set(names), names
    assert names.count("axis.rows") == 2  # slider and box
    assert all(style not in ("none", "hidden") for _, style in reached), reached
    explorer.locator(".mw-slices .mw-slot").first.focus()
    for key, device in WALK:
        explorer.keyboard.press(key)
        expect(explorer.locator(".mw-slices")).to_have_attribute("data-device", str(device))
    assert explorer.locator(".jp-Cell.jp-mod-selected").count() >= 1


WIDTH = "document.querySelector('.mw-top').getBoundingClientRect().width"


def test_wide_narrow_and_wide_again(explorer):
    wide = panel(explorer, "x").bounding_box()["width"]
    explorer.set_viewport_size({"width": 480, "height": 1000})
    explorer.wait_for_function(f"() => {WIDTH} < 400")
    areas = (".jp-WindowedPanel-outer", ".jp-OutputArea-output:has(.mw-live)", ".mw-top", ".mw-slices", ".mw-bottom")
    for area in areas:
        wider = explorer.locator(area).first.evaluate("e => e.scrollWidth - e.clientWidth")
        assert wider <= 1, area
    inside = explorer.locator(".mw-top").bounding_box()
    for name in ("axis.rows", "size.hidden", "tensors"):
        for part in control(explorer, name, "input").all():
            where = part.bounding_box()
            assert where["x"] >= inside["x"] - 1, name
            assert where["x"] + where["width"] <= inside["x"] + inside["width"] + 1, name
    explorer.set_viewport_size({"width": 1300, "height": 1000})
    explorer.wait_for_function(f"() => {WIDTH} > 700")
    assert abs(panel(explorer, "x").bounding_box()["width"] - wide) < 2


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_text_can_be_read_in_both_themes(explorer, theme):
    """Switched live; labels inside pieces have a halo of the page's colour and are measured on it."""
    switch_theme(explorer, theme)
    explorer.locator(".mw-bottom details:not([open]) summary").click()
    explorer.wait_for_selector(".mw-bottom .mw-table td")
    found = contrasts(explorer, ".mw")
    assert len(found) > 60
    assert [row for row in found if row[0] < 4.5] == []
    explorer.locator(".mw-bottom summary").click()


def test_a_reopened_notebook_shows_the_last_settings_without_a_kernel(fresh, lab):
    """Run, move, save, end the kernel, open again."""
    set_text(fresh, "mesh", "rows:8 cols:4")
    wait_panel(fresh, "mesh", "pieces", 32)
    still = fresh.locator(".mw-still")
    expect(still).to_be_hidden()
    expect(still).to_contain_text(re.compile("rows:8 cols:4"))
    fresh.evaluate(
        """async () => { const panel = window.jupyterapp.shell.currentWidget;
          await panel.context.save(); await panel.sessionContext.shutdown(); }"""
    )
    name = fresh.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    fresh.goto("about:blank")
    open_notebook(fresh, lab, name)
    still = fresh.locator(".mw-still")
    expect(still).to_be_visible()
    expect(still.locator("[data-tensor=mesh]")).to_have_attribute("data-pieces", "32")
    expect(still).to_contain_text("Run this cell to go live.")
    expect(fresh.get_by_text("Loading widget")).to_have_count(0)
    expect(fresh.locator(".jp-OutputArea-child:has(.mw-still) + .jp-OutputArea-child")).to_be_hidden()
    expect(fresh.locator(".jp-RenderedText[data-mime-type='application/vnd.jupyter.stderr']")).to_have_count(0)
    wait_ready(fresh)


def test_after_a_restart_the_cell_goes_live_again(fresh):
    fresh.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    wait_ready(fresh)
    fresh.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    expect(fresh.locator(".mw-bottom .mw-says")).to_contain_text("The layout splits")
    expect(fresh.locator(".mw-still")).to_be_hidden()
    set_number(fresh, "axis.cols", 8)
    wait_panel(fresh, "mesh", "pieces", 32)
