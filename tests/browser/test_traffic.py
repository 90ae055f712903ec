"""The traffic explorer under a real mouse: play, pause, scrub and run; and a program watched while it runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from explorer_page import SIZE, ask, contrasts, control, do, drag, shared_page, switch_theme
from playwright.sync_api import Browser, Locator, Page, expect

from lab_server import Lab

# Whether the hop is the one of a second and a half ago, longer than any hop takes.
RESTS = """() => {
  const now = document.querySelector('.mw-hops-view').dataset.hop, same = window.hopBefore === now;
  window.hopBefore = now;
  return same;
}"""
CELL = "from widgets import Frame, traffic\nFrame.reraise = True\nexplorer = traffic({})\nexplorer"


@pytest.fixture(scope="module")
def hops_page(browser: Browser, lab: Lab) -> Iterator[Page]:
    """A notebook with an all-gather on a ring of 8, for all tests that play with it."""
    with shared_page(browser, lab, "traffic_hops.ipynb", CELL.format("'all_gather', mesh='x:8'")) as page:
        yield page


@pytest.fixture
def shown(hops_page: Page) -> Page:
    """That notebook as it was at first."""
    do(hops_page, "explorer.state = {}")
    expect(view(hops_page)).to_have_attribute("data-hop", "0")
    expect(view(hops_page)).to_have_attribute("data-playing", "false")
    return hops_page


@pytest.fixture(scope="module")
def live(browser: Browser, lab: Lab) -> Iterator[Page]:
    """A notebook with a program to be watched."""
    with shared_page(browser, lab, "traffic_live.ipynb", CELL.format("fn='weight_stationary_2d'")) as page:
        yield page


def view(page: Page) -> Locator:
    return page.locator(".mw-hops-view")


def button(page: Page, words: str) -> Locator:
    return view(page).get_by_role("button", name=words, exact=True)


def sentence(page: Page) -> Locator:
    return page.locator(".mw-bottom .mw-says")


def held(page: Page, device: int) -> Locator:
    return view(page).locator(f"[data-device='{device}'] [data-held]")


def test_hops_are_scrubbed_by_mouse_and_keys(shown: Page) -> None:
    expect(held(shown, 0)).to_have_attribute("data-held", "z0000000")
    slider = view(shown).locator("input[type=range]")
    drag(shown, slider, 3 / 7)
    expect(view(shown)).to_have_attribute("data-hop", "3")
    expect(held(shown, 0)).to_have_attribute("data-held", "z0000zzz")
    expect(sentence(shown)).to_contain_text("Step 3 of 7: each device passes on what it received")
    expect(view(shown).locator("[data-link='0']")).to_have_attribute("data-bytes", str(3 << 20))
    slider.press("ArrowRight")
    expect(sentence(shown)).to_contain_text("Step 4 of 7")
    view(shown).locator(".mw-hop-stage").focus()
    shown.keyboard.press("End")
    expect(sentence(shown)).to_contain_text("Now every device has all 8 blocks.")
    expect(button(shown, "Forward ▶")).to_be_disabled()
    button(shown, "◀ Back").click()
    expect(held(shown, 0)).to_have_attribute("data-held", "z0zzzzzz")
    assert ask(shown, "explorer.state['hop']") == 6


def test_messages_travel_while_it_plays_and_stand_when_paused(shown: Page) -> None:
    token = view(shown).locator("[data-token='0']")
    button(shown, "Play").click()
    expect(view(shown)).to_have_attribute("data-playing", "true")
    expect(view(shown)).to_have_attribute("data-hop", "1")
    first = token.get_attribute("transform")
    shown.wait_for_function(
        "was => document.querySelector('.mw-hops-view [data-token]').getAttribute('transform') !== was", arg=first
    )
    expect(view(shown)).to_have_attribute("data-hop", "2")
    button(shown, "Pause").click()
    expect(view(shown)).to_have_attribute("data-playing", "false")
    expect(sentence(shown)).to_contain_text("Step 2 of 7")
    button(shown, "Play").click()
    shown.wait_for_function("() => document.querySelector('.mw-hops-view').dataset.state === '7'", timeout=30_000)
    expect(view(shown)).to_have_attribute("data-playing", "false")
    expect(held(shown, 5)).to_have_attribute("data-held", "z" * 8)


def test_it_rests_off_screen_and_obeys_less_motion(shown: Page) -> None:
    shown.emulate_media(reduced_motion="reduce")
    button(shown, "Play").click()
    token = view(shown).locator("[data-token='0']")
    where = token.get_attribute("transform")
    expect(view(shown)).to_have_attribute("data-hop", "2")
    assert token.get_attribute("transform") == where
    view(shown).evaluate("node => { node.style.display = 'none'; }")
    shown.wait_for_function(RESTS, polling=1500)
    view(shown).evaluate("node => { node.style.display = ''; }")
    hop = int(view(shown).get_attribute("data-hop"))
    assert hop < 7
    expect(view(shown)).to_have_attribute("data-hop", str(hop + 1))
    shown.emulate_media(reduced_motion="no-preference")


def test_the_real_collective_stands_beside_the_schedule(shown: Page) -> None:
    control(shown, "kind", "select").select_option("all_to_all")
    expect(sentence(shown)).to_contain_text("each device has one block for every other device")
    for _ in range(2):
        button(shown, "Forward ▶").click()
    expect(sentence(shown)).to_contain_text("The busiest link has carried 1.62 MiB")
    expect(view(shown).locator("[data-carried='0']")).to_have_text("1.62 MiB")  # the page's own rounding of 1.625
    control(shown, "run", "button").click()
    ran = shown.locator(".mw-ran[data-same]")
    expect(ran).to_have_attribute("data-same", "true", timeout=60_000)
    row = ran.locator("[data-ran='3']")
    expect(row.locator("[data-when='before']")).to_have_text("30, 31, 32, 33, 34, 35, 36, 37")
    expect(row.locator("[data-when='after']")).to_have_text("3, 13, 23, 33, 43, 53, 63, 73")
    expect(row.locator("[data-when='schedule']")).to_have_text("3, 13, 23, 33, 43, 53, 63, 73")
    expect(shown.locator(".mw-run-text")).to_have_text("the run and the schedule agree")


def test_the_picture_keeps_its_height_when_the_mesh_grows(shown: Page) -> None:
    before = view(shown).locator(".mw-hop-stage").bounding_box()["height"]
    drag(shown, control(shown, "axis.x", "input[type=range]"), 1.0)
    expect(sentence(shown)).to_contain_text("In 63 steps one device sends 63 MiB")
    expect(view(shown).locator("[data-device]")).to_have_count(64)
    assert view(shown).locator(".mw-hop-stage").bounding_box()["height"] == before


def test_a_running_program_is_seen_while_it_runs(live: Page) -> None:
    do(live, "from mtfcore import schedules\nschedules.schedule = schedules.replay = schedules.of_step = None")
    root = live.locator(".mw-live-view")
    expect(root).to_have_attribute("data-events", "0")
    control(live, "run", "button").click()
    live.wait_for_function(
        "() => { const n = Number(document.querySelector('.mw-live-view').dataset.events); return n > 0 && n < 32; }",
        timeout=60_000,
    )
    expect(live.locator(".mw-live-about")).to_contain_text("Running:")
    expect(root).to_have_attribute("data-events", "32", timeout=30_000)
    expect(live.locator(".mw-live-about")).to_contain_text("as planned")
    planned = ask(live, "{row['axis']: row['planned'] for row in explorer.value['axes']}")
    for axis, n_bytes in planned.items():
        expect(root.locator(f"[data-live-axis='{axis}']")).to_have_attribute("data-bytes", str(n_bytes))
    matrix = root.locator(".mw-matrix")
    box = matrix.bounding_box()
    live.mouse.move(
        box["x"] + box["width"] * (26 + 210 * 4.5 / 8) / 236, box["y"] + box["height"] * (26 + 105 / 8) / 236
    )
    expect(root.locator(".mw-live-pointed")).to_contain_text("device 0 → device 4: 8 KiB")


def unreadable(page: Page, part: str) -> list[tuple[float, str, str]]:
    """What has too little contrast in either theme."""
    found = []
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        switch_theme(page, theme)
        seen = contrasts(page, part)
        assert seen
        found += [row for row in seen if row[0] < 4.5]
    return found


def test_live_traffic_can_be_read_in_both_themes(live: Page) -> None:
    assert not unreadable(live, ".mw-live-view")


def test_the_hops_can_be_read_in_both_themes_and_fit_a_narrow_page(shown: Page) -> None:
    control(shown, "run", "button").click()
    expect(shown.locator(".mw-ran[data-same]")).to_be_visible(timeout=60_000)
    for part in (".mw-hop-bar", ".mw-hop-legend", ".mw-ran"):
        assert not unreadable(shown, part)
    shown.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    shown.set_viewport_size({"width": 480, "height": 1000})
    shown.wait_for_function("() => document.querySelector('.mw-hops-view').clientWidth < 460")
    for part in (view(shown), view(shown).locator(".mw-hop-stage"), shown.locator(".mw-ran[data-same]")):
        assert part.evaluate("node => node.scrollWidth <= node.clientWidth")
    shown.set_viewport_size(SIZE)
