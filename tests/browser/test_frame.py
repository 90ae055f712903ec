"""The frame in a real browser: runs that do not block, faults that show, files, and charts."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from explorer_page import (
    ask,
    contrasts,
    control,
    do,
    drag,
    open_explorer,
    set_number,
    shared_page,
    switch_theme,
    wait_kind,
    write_notebook,
)
from playwright.sync_api import Browser, Page, expect

from lab_browser import open_notebook, run_all, wait_done, wait_ready
from lab_server import Lab, lab_server

MEASURING = """
import time
import ipywidgets
from widgets import Frame, IntBox, Shown
from widgets.queue import Progress

class Measuring(Frame):
    question, call, start = "How long does it take?", "measuring", {"size": 8, "fault": 0}
    def controls(self, state):
        return [IntBox("size", state["size"]), IntBox("fault", state["fault"], low=0, high=1)]
    def make_picture(self):
        self.results = ipywidgets.HTML("no result yet")
        self.drawn = ipywidgets.HTML()
        return ipywidgets.VBox([self.drawn, self.results])
    def draw(self, size, fault):
        if fault:
            raise KeyError("a fault of ours")
        return Shown(f"{size} [modelled]", size, [("size",), (str(size),)])
    def paint(self, shown):
        self.drawn.value = f"<span class='drawn'>{shown.facts}</span>"
    def run(self, settings):
        for n in range(400):
            time.sleep(0.05)
            yield Progress(n + 1, 400, f"repetition {n + 1} of 400", n)
    def show_result(self, result):
        self.results.value = f"<span class='result'>size {result.settings['size']}</span>"
    def result_part(self):
        return self.results
"""

CHARTS = """
from widgets import PlotView
from widgets.views import plot_view
sent = []
class Counted(PlotView):
    def send(self, content, buffers=None):
        sent.append(sum(map(len, buffers or [])))
        super().send(content, buffers)
def bars(*heights):
    data = [{"type": "bar", "x": ["x", "y"], "y": list(heights)}]
    return {"data": data, "layout": {"title": {"text": "bytes"}}}
charts = [Counted(bars(1, 2 + n), height=200) for n in range(3)]
import ipywidgets
ipywidgets.VBox(charts)
"""


@pytest.fixture(scope="module")
def shared(browser: Browser, lab: Lab) -> Iterator[Page]:
    """One page with an explorer that has a run of 20 s."""
    with shared_page(browser, lab, "measuring.ipynb", MEASURING, "e = Measuring()\ne") as page:
        yield page


@pytest.fixture
def measuring(shared: Page) -> Page:
    """The shared page, put back to its first state."""
    do(shared, "e.state = {}; e.bottom.unfolded = False")
    shared.evaluate("() => { document.querySelector('.mw-bottom .mw-details').open = false; }")
    expect(shared.locator(".drawn")).to_have_text("8")
    wait_kind(shared, "ok")
    return shared


def test_slider_and_stop_react_during_a_run(measuring):
    """A run of 20 s; the slider draws, a second press is not queued, Stop ends it, the old result greys."""
    press = control(measuring, "run", "button")
    press.click()
    stop = control(measuring, "stop", "button")
    expect(stop).to_be_enabled()
    expect(press).to_be_disabled()
    expect(measuring.locator(".mw-run-text")).to_contain_text("repetition")
    seconds = measuring.evaluate(
        """async () => {
          const slider = document.querySelector("[data-control=size] input[type=range]"), begun = performance.now();
          slider.value = 5;
          slider.dispatchEvent(new Event('input'));
          while (document.querySelector('.drawn').textContent !== '32') await new Promise(requestAnimationFrame);
          return (performance.now() - begun) / 1000;
        }"""
    )
    assert seconds < 1, "the slider waits for the run"
    do(measuring, "e.top.press({'run': True})")
    seconds = measuring.evaluate(
        """async () => {
          const begun = performance.now();
          document.querySelector("[data-control=stop] button").click();
          while (document.querySelector('.mw-run').dataset.busy === 'true') await new Promise(requestAnimationFrame);
          return (performance.now() - begun) / 1000;
        }"""
    )
    assert seconds < 1, "Stop waits for more than a repetition"
    expect(measuring.locator(".result")).to_have_text("size 8")
    expect(measuring.locator(".mw-stale .result")).to_have_count(1)
    expect(measuring.locator(".mw-run-text")).to_have_text("the result is for size=8")
    assert ask(measuring, "(e.queue.busy, e.result.stopped)") == (False, True)
    set_number(measuring, "size", 8)
    expect(measuring.locator(".mw-stale")).to_have_count(0)


def test_a_fault_of_ours_is_seen(measuring):
    """Short in the line, full text on demand."""
    set_number(measuring, "fault", 1)
    wait_kind(measuring, "broken")
    says = measuring.locator(".mw-bottom .mw-says")
    expect(says).to_contain_text("This went wrong inside: KeyError: 'a fault of ours'")
    expect(measuring.locator(".mw-bottom .mw-error")).to_be_hidden()
    measuring.locator(".mw-bottom summary").click()
    expect(measuring.locator(".mw-bottom .mw-error")).to_contain_text("Traceback")
    set_number(measuring, "fault", 0)
    wait_kind(measuring, "ok")
    expect(measuring.locator(".mw-bottom .mw-error")).to_be_hidden()


def test_details_hold_table_code_and_state(measuring):
    measuring.locator(".mw-bottom summary").click()
    expect(measuring.locator(".mw-bottom .mw-table td")).to_have_text("8")
    expect(measuring.locator(".mw-bottom .mw-code")).to_contain_text("measuring(size=8, fault=0)")
    state = measuring.locator(".mw-state")
    expect(state).to_have_value('{"size": 8, "fault": 0}')
    state.fill('{"size": 64}')
    measuring.get_by_role("button", name="Use this state").click()
    expect(measuring.locator(".drawn")).to_have_text("64")
    expect(control(measuring, "size", "input[type=number]")).to_have_value("64")
    state.fill('{"size": ')
    measuring.get_by_role("button", name="Use this state").click()
    wait_kind(measuring, "refused")
    expect(measuring.locator(".mw-bottom .mw-says")).to_contain_text("not JSON")


def test_an_impossible_value_clamps_and_says_so(measuring):
    do(measuring, "seen = []; e.observe(seen.append, 'state')")
    set_number(measuring, "size", 3_000_000)
    expect(control(measuring, "size", "input[type=number]")).to_have_value(str(1 << 20))
    says = measuring.locator(".mw-bottom .mw-says")
    expect(says).to_contain_text("Size 3000000 is not possible here; 1048576 is the nearest.")
    assert ask(measuring, "len(seen)") == 1


SLOW = """
drawn, at_once = [], Measuring.draw
def slow_draw(self, **state):
    time.sleep(0.5)
    drawn.append(state["size"])
    return at_once(self, **state)
Measuring.draw = slow_draw
"""


def test_a_slow_kernel_is_asked_for_the_newest_only_and_the_handle_stays_at_the_hand(measuring):
    """Thirteen moves in less time than one answer takes; two or three are asked, the last is shown."""
    slider = control(measuring, "size", "input[type=range]")
    do(measuring, SLOW)
    try:
        slider.evaluate("e => { window.places = []; e.addEventListener('input', () => places.push(e.value)); }")
        drag(measuring, slider, 0.75)
        at = slider.input_value()
        for _ in range(8):  # while the kernel answers earlier moves
            assert slider.input_value() == at, "an earlier answer took the handle from the hand"
            measuring.wait_for_timeout(100)
        expect(measuring.locator(".drawn")).to_have_text(str(2 ** int(at)))
        measuring.wait_for_timeout(1200)
        moves, sizes = measuring.evaluate("places.length"), ask(measuring, "drawn")
        assert sizes[-1] == 2 ** int(at) and len(sizes) <= 4 < moves, (sizes, moves)
    finally:
        do(measuring, "Measuring.draw = at_once")


def test_a_stopped_kernel_is_said(measuring):
    """Moving a control that nobody listens to does not fail in silence."""
    measuring.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    measuring.wait_for_function("() => !window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel")
    set_number(measuring, "size", 16)
    expect(measuring.locator(".mw-run-text")).to_contain_text("run this cell again", timeout=10_000)


def test_an_explorer_run_often_does_not_grow_the_file(page, tmp_path):
    """With widget state saved, which is JupyterLab's own default."""
    for folder in ("notebooks", "state"):
        (tmp_path / folder).mkdir()
    path = tmp_path / "notebooks" / "often.ipynb"
    write_notebook(path, "from widgets import slices\nslices()")
    saving = {"@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": True}}
    with lab_server(tmp_path / "notebooks", tmp_path / "state", settings=saving) as lab:
        open_explorer(page, lab, path.name)
        once = saved(page, path)
        for _ in range(6):
            page.evaluate("() => document.querySelector('.mw-slices').dataset.old = 'yes'")
            run_all(page)
            page.wait_for_selector(".mw-slices:not([data-old]) svg")
        wait_done(page)
        often = saved(page, path)
    assert often < 1.05 * once and often < 1_000_000, (once, often)


def saved(page: Page, path: pathlib.Path) -> int:
    page.evaluate("async () => { await jupyterapp.commands.execute('docmanager:save'); }")
    return path.stat().st_size


FITS = """() => { const chart = document.querySelector('.mw-plot');
  return chart.querySelector('.main-svg').getBoundingClientRect().width <= chart.clientWidth + 1; }"""
DRAWN = "n => [...document.querySelectorAll('.mw-plot')].filter(e => +e.dataset.drawn >= n).length === 3"


def test_charts_share_one_bundle_and_follow_data_and_theme(page, lab, notebook, watch):
    """The fixture refuses every other address."""
    open_notebook(page, lab, notebook(CHARTS))
    wait_ready(page)
    run_all(page)
    wait_done(page)
    page.wait_for_function(DRAWN, arg=1)
    sizes = ask(page, "sent")
    assert len(sizes) == 1 and 1e6 < sizes[0] < 2e6
    height = "n => document.querySelectorAll('.mw-plot')[n].data[0].y[1]"
    assert [page.evaluate(height, n) for n in range(3)] == [2, 3, 4]
    do(page, "charts[1].show(bars(1, 9))")
    page.wait_for_function("() => document.querySelectorAll('.mw-plot')[1].data[0].y[1] === 9")
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        before = int(page.locator(".mw-plot").first.get_attribute("data-drawn"))
        switch_theme(page, theme)
        page.wait_for_function(DRAWN, arg=before + 1)
        found = [row for row in contrasts(page, ".mw-plot") if row[1].lower().startswith("text")]
        assert len(found) > 9 and min(found)[0] >= 4.5, min(found)
    assert ask(page, "len(sent)") == 1
    page.set_viewport_size({"width": 480, "height": 900})
    page.wait_for_function(FITS)
