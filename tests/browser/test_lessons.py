"""Lesson 01 worked as a reader does: run all, drag a slider, answer a prediction, ask for help, solve an exercise."""

from __future__ import annotations

import pytest
from explorer_page import drag
from playwright.sync_api import Error, Locator, Page, expect

from lab_browser import error_outputs, open_notebook, run_all, wait_done, wait_ready
from lessons import notebooks

SOLVED_CELL = 'placement = "batch:rows hidden:cols"\n\ncheck("01 place", placement)'


@pytest.fixture
def lesson(lab, page: Page):
    """Lesson 01 open, run from top to bottom, without an error."""
    source = next(source for source in notebooks.sources() if source.name.startswith("01"))
    name = notebooks.target(source, "student").name
    (lab.root / name).write_text(notebooks.text(source, "student"), encoding="utf-8")
    open_notebook(page, lab, name)
    wait_ready(page)
    run_all(page)
    wait_done(page)
    assert not error_outputs(page)
    return page


def came_into_view(found: Locator) -> bool:
    """Scroll to an element; False if the notebook, which keeps only cells near the window, took it out meanwhile."""
    try:
        found.scroll_into_view_if_needed()
    except Error as problem:
        if "not attached" not in str(problem):
            raise
        return False
    return True


def reach(page: Page, found: Locator) -> Locator:
    """Turn the mouse wheel over the notebook, from its top down, until the element is in sight."""
    area = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer").first
    box = area.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.wheel(0, -100_000)
    for _ in range(80):
        if found.count() and found.first.is_visible() and came_into_view(found.first):
            return found.first
        page.mouse.wheel(0, 500)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    raise AssertionError(f"not found in the notebook: {found}")


def test_lesson_01_is_worked_with_the_mouse(lesson: Page) -> None:
    page = lesson

    slider = reach(page, page.locator("[data-control='axis.rows'] input[type=range]"))
    explorer = page.locator(".jp-OutputArea-output", has=page.locator("[data-control='axis.rows']"))
    rows = explorer.locator("[data-control='axis.rows'] input[type=number]")
    picture = explorer.locator(".mw-slices").first
    expect(rows).to_have_value("4")
    before = picture.inner_html()
    drag(page, slider, 0.12)  # one step of nine: from 4 to 2
    expect(rows).not_to_have_value("4")
    page.wait_for_function("([node, before]) => node.innerHTML !== before", arg=[picture.element_handle(), before])

    status = reach(page, page.locator("[data-prediction='01 rows']"))
    form = page.locator(".jp-OutputArea-output", has=page.locator("[data-prediction='01 rows']"))
    expect(status).to_contain_text("Not answered yet")
    form.locator("input").fill("4")
    form.get_by_role("button", name="Record my prediction").click()
    expect(page.locator("[data-prediction='01 rows']")).to_contain_text("Recorded: 4 rows")
    shown = reach(page, page.locator("[data-shown='01 rows']"))
    expect(shown).to_contain_text("Exactly right")

    reach(page, page.locator("[data-check='01 place'][data-state='not yet']"))
    cell = page.locator(".jp-CodeCell", has=page.locator("[data-check='01 place']"))
    cell.get_by_role("button", name="Hint", exact=True).click()
    expect(cell.locator("[data-help='1']")).to_contain_text("A placement is a text")
    cell.locator(".cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(SOLVED_CELL)
    page.keyboard.press("Shift+Enter")
    expect(reach(page, page.locator("[data-check='01 place']"))).to_have_attribute("data-state", "passed")
    assert not error_outputs(page)
