"""The layouts explorer under a real mouse: drag sizes and axes, follow four charts, take an offer; and the cubes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from explorer_page import ask, contrasts, control, do, drag, set_number, shared_page, switch_theme, wait_kind
from playwright.sync_api import Browser, Page, expect

import mtfcore as mtf
from lab_server import Lab
from mtfcore.costs.first_paper.two_layers import Sizes
from widgets.explorers.layouts import START
from widgets.figures.layouts import compared

CELLS = (
    "from widgets import Frame, iteration_space, layouts\nFrame.reraise = True\ncubes = iteration_space()\ncubes",
    "explorer = layouts()\nexplorer",
)
DRAWN = "() => document.querySelectorAll('.mw-live .mw-chart').length === 4"
TRACE = """([chart, trace]) => [...document.querySelectorAll('.mw-live .mw-chart')[chart]
  .querySelectorAll(`[data-trace='${trace}']`)].map(bar => +bar.dataset.value)"""
SAYS = ".mw-bottom .mw-says"


@pytest.fixture(scope="module")
def shared(browser: Browser, lab: Lab) -> Iterator[Page]:
    """Both explorers on one page."""
    with shared_page(browser, lab, "layouts.ipynb", *CELLS) as page:
        page.wait_for_function(DRAWN)
        yield page


@pytest.fixture
def shown(shared: Page) -> Page:
    """The shared page, put back to its first state."""
    do(shared, "explorer.state = {}; cubes.state = {}")
    expect(control(shared, "batch", "input[type=number]")).to_have_value(str(START["batch"]))
    wait_drawn(shared, START["hidden"])
    return shared


def rows_of(hidden: int) -> list[dict]:
    """The five layouts' facts for the first settings with another hidden size."""
    sizes = Sizes(START["batch"], START["io"], hidden)
    mesh = (START["rows"], START["cols"], START["planes"])
    return compared(sizes, mesh, mtf.chip("v2"), "bf16", "adam", "training")["rows"]


def wait_drawn(page: Page, hidden: int) -> None:
    """Wait until times and memory are those of these settings."""
    rows = rows_of(hidden)
    wanted = [[row["compute"] for row in rows], [row["memory"]["parameters"] for row in rows]]
    same = f"wanted => wanted.every((values, chart) => ({TRACE})([chart, 0]).every((y, n) => y === values[n]))"
    page.wait_for_function(same, arg=wanted)


def test_dragging_a_size_moves_all_charts(shown: Page) -> None:
    drag(shown, control(shown, "hidden", "input[type=range]"), 0.4)
    hidden = int(control(shown, "hidden", "input[type=number]").input_value())
    assert hidden < START["hidden"]
    wait_drawn(shown, hidden)

    held = [sum(column) for column in zip(*(shown.evaluate(TRACE, [1, part]) for part in range(4)))]
    assert held == [row["held"] for row in rows_of(hidden)] == ask(shown, "[r['held'] for r in explorer.value['rows']]")


def test_what_does_not_divide_is_refused_and_an_offer_leads_out(shown: Page) -> None:
    set_number(shown, "batch", 8200)
    wait_kind(shown, "refused")
    expect(shown.locator(SAYS).nth(1)).to_contain_text("batch 8,200 does not divide over rows = 16")
    expect(shown.locator(".mw-dim .mw-chart")).to_have_count(4)
    shown.get_by_role("button", name="batch 8,208").click()
    expect(shown.locator(".mw-dim")).to_have_count(0)
    expect(control(shown, "batch", "input[type=number]")).to_have_value("8208")


def test_an_axis_without_room_clamps_and_says_so(shown: Page) -> None:
    set_number(shown, "planes", 4096)
    expect(control(shown, "planes", "input[type=number]")).to_have_value("32")
    expect(shown.locator(SAYS).nth(1)).to_contain_text("Planes 4096 is not possible here; 32 is the nearest.")


def test_the_cubes_follow_the_processors(shown: Page) -> None:
    names = shown.locator(".mw-picture svg")
    expect(names.nth(2)).to_have_attribute("data-ratio", "0.166667")
    drag(shown, control(shown, "processors", "input[type=range]"), 1.0)
    expect(names.nth(2)).to_have_attribute("aria-label", "cubes: 8 × 8 × 8, 0.083 u FLOPs a value")


def test_the_page_reads_in_both_themes_and_when_narrow(shown: Page) -> None:
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        switch_theme(shown, theme)
        read = contrasts(shown, ".mw-picture")
        # words in a long bar stand on a light ground of their own, which is not an ancestor of theirs
        found = [row for row in read if row[1].lower().startswith("text") and not row[2].startswith("↑")]
        assert len(found) > 40 and min(found)[0] >= 4.5, min(found)
    shown.set_viewport_size({"width": 480, "height": 900})
    shown.wait_for_function(
        "() => [...document.querySelectorAll('.mw-live.mw-picture')].every(chart => "
        "chart.querySelector('svg').getBoundingClientRect().width <= chart.clientWidth + 1)"
    )
    wide = shown.evaluate("() => document.querySelector('.jp-OutputArea-output').scrollWidth - innerWidth")
    assert wide <= 0
