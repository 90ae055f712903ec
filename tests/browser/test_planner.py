"""Planner, frontier and roofline under a real mouse: drag, pick, find under a limit, load, both themes, narrow."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from explorer_page import ask, contrasts, control, do, drag, shared_page, switch_theme
from playwright.sync_api import Browser, Locator, Page, expect

from lab_server import Lab

FIRST = """
first = {'model': 'palm-8b', 'topology': 'v4:2x2x2', 'batch': 16}
p.state = {**p.start, **first, 'chips': 'v4', 'most_chips': 8}
r.state, f.state = {**r.start, **first}, {**f.state, 'chosen': ''}
for each in (p, f, r):
    each.queue.join(60)
"""
CELLS = (
    "from widgets import Frame, frontier, planner, roofline\nFrame.reraise = True\n"
    "p = planner(model='palm-8b', topology='v4:2x2x2', batch=16, chips='v4', most_chips=8)\np",
    "f = frontier(models='palm-8b', weights='int8', most_chips=4, most_batch=4, planner=p)\nf",
    "r = roofline(model='palm-8b', topology='v4:2x2x2', batch=16)\nr",
)
QUIET = "() => [...document.querySelectorAll('.mw-run')].every(run => run.dataset.busy !== 'true')"
SIZE = {"width": 1300, "height": 1000}


@pytest.fixture(scope="module")
def shared(browser: Browser, lab: Lab) -> Iterator[Page]:
    """The three explorers on one page."""
    with shared_page(browser, lab, "plans.ipynb", *CELLS) as page:
        expect(page.locator(".mw-live.mw-picks svg.mw-chart")).to_have_count(8)
        page.wait_for_function(QUIET, timeout=60_000)
        yield page


@pytest.fixture
def shown(shared: Page) -> Page:
    """The shared page, put back to its first state."""
    do(shared, FIRST)
    shared.wait_for_function(QUIET, timeout=60_000)
    return shared


def explorer(page: Page, place: int) -> Locator:
    """An explorer's output by its place on the page: planner 0, frontier 1, roofline 2."""
    return page.locator(".jp-Cell").nth(place)


def number(page: Page, place: int, name: str) -> Locator:
    return explorer(page, place).locator(f".mw-top [data-control='{name}'] input[type=number]")


def test_dragging_the_batch_moves_the_answers(shown: Page) -> None:
    plan = explorer(shown, 0)
    before = plan.locator("[data-answer=step] b").last.inner_text()
    drag(shown, control(shown, "batch", "input[type=range]").first, 0.6)
    batch = int(number(shown, 0, "batch").input_value())
    assert batch > 16
    expect(plan.locator(".mw-live [data-answer=rate]")).to_contain_text(f"batch {batch:,} on 8 chips")
    assert ask(shown, "p.value['batch']") == batch
    assert plan.locator(".mw-live [data-answer=step] b").inner_text() != before


def test_a_partition_is_picked_by_mouse_and_let_go_by_keyboard(shown: Page) -> None:
    plan = explorer(shown, 0).locator(".mw-live.mw-picks")
    rows = plan.locator("[data-pick^='decode:']")
    name = rows.nth(1).get_attribute("data-pick")
    rows.nth(1).click()
    expect(plan.locator(f"[data-pick='{name}'][aria-pressed=true]")).to_have_count(1)
    expect(explorer(shown, 0).locator(".mw-bottom .mw-says")).to_contain_text("decode as you pinned it")
    plan.locator(f"[data-pick='{name}']").focus()
    shown.keyboard.press("Enter")
    expect(explorer(shown, 0).locator(".mw-bottom .mw-says")).not_to_contain_text("as you pinned it")
    assert shown.evaluate("() => document.activeElement.dataset.pick") == name  # the focus stays through a redraw


def test_a_limit_is_typed_and_a_found_slice_loaded(shown: Page) -> None:
    plan = explorer(shown, 0)
    plan.locator("[data-control=mode] select").select_option("find")
    expect(plan.locator(".mw-live [data-found]")).to_be_visible()
    number(shown, 0, "limit").fill("12")
    shown.keyboard.press("Enter")
    expect(plan.locator(".mw-bottom .mw-says")).to_contain_text("under 12 ms a token")
    row = plan.locator(".mw-live tr[data-row='0']")
    topology = row.get_attribute("data-topology")
    row.get_by_role("button").click()
    expect(plan.locator(".mw-live svg.mw-chart")).to_have_count(4)
    expect(plan.locator("[data-control=topology] input")).to_have_value(topology)
    assert ask(shown, "p.value['step'] <= 0.012 and p.value['fits']")


def test_an_impossible_grid_is_refused_and_an_offer_leads_out(shown: Page) -> None:
    plan = explorer(shown, 0)
    plan.locator("[data-control=topology] input").fill("v4:3x3x3")
    shown.keyboard.press("Enter")
    expect(plan.locator(".mw-bottom")).to_have_attribute("data-kind", "refused")
    expect(plan.locator(".mw-dim .mw-live")).to_have_count(1)
    plan.locator(".mw-offers button").first.click()
    expect(plan.locator(".mw-bottom")).to_have_attribute("data-kind", "ok")


def test_a_picked_point_loads_the_planner(shown: Page) -> None:
    point = explorer(shown, 1).locator(".mw-live [data-phase=decode] g[data-pick^='point:']").first
    key = [part.strip() for part in point.get_attribute("data-key").split("|")]
    point.click()
    expect(explorer(shown, 1).locator(".mw-bottom .mw-says")).to_contain_text("Chosen: palm-8b on")
    expect(explorer(shown, 1).locator(".mw-live [data-chosen]")).to_have_count(2)
    expect(explorer(shown, 0).locator("[data-control=topology] input")).to_have_value(key[2])
    expect(number(shown, 0, "batch")).to_have_value(key[3])


def test_the_batch_moves_the_marks_under_the_roof(shown: Page) -> None:
    roof = explorer(shown, 2)
    marks = roof.locator(".mw-live [data-phase=decode] [data-intensity]")
    before = highest(marks)
    drag(shown, roof.locator("[data-control=batch] input[type=range]"), 0.7)
    batch = int(number(shown, 2, "batch").input_value())
    expect(roof.locator(".mw-live [data-phase=decode]")).to_contain_text(f"batch {batch:,}")
    assert batch > 16 and highest(marks) > 1.5 * before
    roof.locator(".mw-live [data-phase=decode] [data-seconds]").first.click()
    expect(roof.locator(".mw-bottom .mw-says")).to_contain_text("Decode, step 1")


def highest(marks: Locator) -> float:
    """The most FLOPs a byte of HBM; what reads nothing from there is beyond the chart."""
    found = [float(each.get_attribute("data-intensity")) for each in marks.all()]
    return max(each for each in found if each < math.inf)


MOVES = """async place => {
  const cell = document.querySelectorAll('.jp-Cell')[place];
  const slider = cell.querySelector('[data-control=batch] input[type=range]');
  const root = cell.querySelector('.mw-live.mw-picks');
  const took = [];
  for (let k = 0; k < 9; k++) {
    await new Promise(done => setTimeout(done, 120));
    const drawn = new Promise(done => {
      const watch = new MutationObserver(() => { watch.disconnect(); done(performance.now()); });
      watch.observe(root, { attributes: true, attributeFilter: ['data-drawn'] });
    });
    const begun = performance.now();
    slider.value = 3 + k % 4;
    slider.dispatchEvent(new Event('input'));
    took.push(await drawn - begun);
  }
  slider.dispatchEvent(new Event('change'));
  return took.length;
}"""


@pytest.mark.parametrize("place", [0, 2])
def test_every_move_of_a_slider_is_drawn(shown: Page, place: int) -> None:
    assert shown.evaluate(MOVES, place) == 9


def test_heights_do_not_change_while_dragging(shown: Page) -> None:
    heights = set()
    for batch in (1, 8, 64, 512, 4096):
        number(shown, 0, "batch").fill(str(batch))
        shown.keyboard.press("Enter")
        expect(explorer(shown, 0).locator(".mw-live [data-answer=rate]")).to_contain_text(f"batch {batch:,}")
        heights.add(explorer(shown, 0).locator(".mw-live.mw-picks").bounding_box()["height"])
    assert len(heights) == 1


def test_the_page_reads_in_both_themes_and_when_narrow(shown: Page) -> None:
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        switch_theme(shown, theme)
        read = contrasts(shown, ".mw-live.mw-picks")
        # words on a bar or in the strip stand on its colour, which is not an ancestor of theirs
        found = [row for row in read if not row[1].startswith("text.mw-on-bar")]
        assert len(found) > 100 and min(found)[0] >= 4.5, min(found)
    shown.set_viewport_size({"width": 480, "height": 900})
    fits = "() => [...document.querySelectorAll('.mw-live.mw-picks')].every(e => e.scrollWidth <= e.clientWidth + 1)"
    shown.wait_for_function(fits)
    assert shown.evaluate("() => document.querySelector('.jp-OutputArea-output').scrollWidth - innerWidth") <= 0
    shown.set_viewport_size(SIZE)


def test_a_wrong_model_is_said_and_the_controls_stay(shown: Page) -> None:
    box = explorer(shown, 0).locator("[data-control=model] input")
    box.fill("palm-8c")
    shown.keyboard.press("Enter")
    expect(explorer(shown, 0).locator(".mw-bottom .mw-says")).to_contain_text("did you mean 'palm-8b'")
    expect(explorer(shown, 0).locator(".mw-top .mw-control")).not_to_have_count(0)
