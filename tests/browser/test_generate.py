"""A conversation held with a real mouse and keyboard, while the partition changes between two turns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from explorer_page import SIZE, ask, contrasts, control, set_number, set_text, shared_page, switch_theme
from playwright.sync_api import Browser, Locator, Page, expect

from lab_server import Lab

CELL = (
    "from widgets import Frame, generate\nFrame.reraise = True\n"
    "explorer = generate(model='untrained', mesh='x:2 y:2', tokens=900, others=1)\nexplorer"
)
LONG = 60_000  # the first launch of each kind is compiled


@pytest.fixture(scope="module")
def shown(browser: Browser, lab: Lab) -> Iterator[Page]:
    """A notebook with a tiny model that writes."""
    with shared_page(browser, lab, "generate.ipynb", CELL) as page:
        yield page


def view(page: Page) -> Locator:
    return page.locator(".mw-live.mw-writing")


def turns(page: Page) -> Locator:
    return view(page).locator("[data-turn]")


def state(page: Page, now: str) -> None:
    expect(view(page).locator(".mw-writing-parts")).to_have_attribute("data-state", now, timeout=LONG)


def writing(page: Page) -> None:
    """Wait until tokens come."""
    expect(view(page).locator(".mw-phase.mw-now[data-phase='decode']")).to_be_visible(timeout=LONG)


def test_a_conversation_is_held_while_the_partition_changes(shown: Page) -> None:
    control(shown, "run", "button").click()
    writing(shown)
    shown.wait_for_function("() => document.querySelector('.mw-live .mw-now-writing').textContent.length > 8")
    expect(control(shown, "run", "button")).to_be_disabled()
    expect(shown.locator(".mw-bottom .mw-says")).to_contain_text("Writing under ws2d-heads")
    control(shown, "prompt").press_sequentially("And why", delay=30)  # while it writes: what is typed stays
    control(shown, "stop", "button").click()
    state(shown, "stopped")
    expect(turns(shown)).to_have_count(2)
    expect(control(shown, "prompt")).to_have_value("And why")
    first = turns(shown).nth(1).inner_text()

    control(shown, "decode", "select").select_option("ws2d-batch")
    set_number(shown, "tokens", 6)
    set_text(shown, "prompt", "And why <b>twice</b>?")
    control(shown, "run", "button").click()
    state(shown, "finished")
    expect(turns(shown)).to_have_count(5)
    assert turns(shown).nth(1).inner_text() == first
    expect(turns(shown).nth(2)).to_contain_text("the kept tokens moved, x ")
    expect(turns(shown).nth(3)).to_contain_text("And why <b>twice</b>?")
    assert len(turns(shown).nth(4).locator(".mw-said").text_content()) == 6
    expect(view(shown).locator("[data-block]")).to_have_count(4)
    expect(view(shown).locator("[data-who='you']")).to_have_count(1)
    for axis, n_bytes in ask(shown, "explorer.writer.facts['a_token']").items():
        row = view(shown).locator(f"[data-axis='{axis}']")
        expect(row).to_have_attribute("data-token-bytes", f"{n_bytes:.0f}")
    assert ask(shown, "explorer.fault") is None


def test_it_can_be_read_in_both_themes_and_fits_a_narrow_page(shown: Page) -> None:
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        switch_theme(shown, theme)
        seen = contrasts(shown, ".mw-live.mw-writing")
        assert seen and not [row for row in seen if row[0] < 4.5]
    shown.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    shown.set_viewport_size({"width": 480, "height": 1000})
    shown.wait_for_function("() => document.querySelector('.mw-live.mw-writing').clientWidth < 460")
    for part in (view(shown), view(shown).locator(".mw-writing-costs")):
        assert part.evaluate("node => node.scrollWidth <= node.clientWidth")
    shown.set_viewport_size(SIZE)
