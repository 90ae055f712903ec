"""All explorers on one page, used as a class uses them: saved, dragged, walked by keys, reopened."""

from __future__ import annotations

import contextlib
import pathlib
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import nbformat
import pytest
from explorer_page import ask, do, shared_page
from playwright.sync_api import Browser, Locator, Page, expect

import widgets
from lab_browser import Watch, open_notebook, wait_ready
from lab_server import Lab

EXPLORERS = [name for name, home in widgets._HOME.items() if home.startswith("widgets.explorers.")]
ALL = f"""
import widgets
from IPython.display import display
shown = {{name: getattr(widgets, name)() for name in {EXPLORERS}}}
for each in shown.values():
    display(each)
"""
# An explorer whose picture only the page can draw: nothing in its still page, nothing of its own to save.
PAGE_DRAWN = """
import anywidget, ipywidgets
from widgets import Frame, IntBox, PlotView, Shown

class Canvas(anywidget.AnyWidget):
    _esm = '''export default { render({ el }) {
      const canvas = Object.assign(document.createElement("canvas"), { width: 200, height: 100 });
      const pen = canvas.getContext("2d");
      pen.fillStyle = "#ff0000"; pen.fillRect(0, 0, 200, 100);
      el.append(canvas);
    } };'''

class Drawn(Frame):
    question, call, start = "What does the page draw?", "drawn", {"size": 8, "seed": 0}
    def controls(self, state):
        return [IntBox("size", state["size"]), IntBox("seed", state["seed"], low=0)]
    def make_picture(self):
        self.plot = PlotView(height=200)
        return ipywidgets.VBox([Canvas(), self.plot])
    def draw(self, size, seed):
        return Shown(f"{size} B [counted]", size, [("size",), (str(size),)])
    def paint(self, shown):
        bars = {"type": "bar", "name": "bytes", "x": ["a", "b"], "y": [shown.facts, 5], "marker": {"color": "#0000ff"}}
        self.plot.show({"data": [bars]})

drawn = Drawn()
drawn
"""
PIXELS = """async bytes => {
  const image = await createImageBitmap(new Blob([new Uint8Array(bytes)], { type: "image/png" }));
  const canvas = new OffscreenCanvas(image.width, image.height), pen = canvas.getContext("2d");
  pen.drawImage(image, 0, 0);
  const { data } = pen.getImageData(0, 0, image.width, image.height), found = new Map();
  for (let n = 0; n < data.length; n += 16) {
    const colour = `${data[n]},${data[n + 1]},${data[n + 2]}`;
    found.set(colour, (found.get(colour) || 0) + 1);
  }
  const ground = Math.max(...found.values()) / (data.length / 16);
  const [red, blue] = ["255,0,0", "0,0,255"].map(colour => found.get(colour) || 0);
  return { width: image.width, colours: found.size, ground, red, blue };
}"""
BOXES = """root => {
  const found = {}, { top, left } = root.getBoundingClientRect();
  const put = (name, node) => {
    const box = node.getBoundingClientRect();
    found[name] = [box.left - left, box.top - top, box.width].map(Math.round);
  };
  for (const node of root.querySelectorAll(".mw-top [data-control]")) put(node.dataset.control, node);
  put("picture", root.querySelector(".mw-stage"));
  const line = root.querySelector(".mw-sentence");
  put("sentence", line);
  found["sentence's height"] = Math.round(line.getBoundingClientRect().height);
  return found;
}"""
# What holds the focus: where it stands, its name, whether it can be seen, and what picking it would pick.
FOCUSED = """root => {
  const node = document.activeElement;
  if (!root.contains(node)) return null;
  node.dataset.walked = "1";
  const style = getComputedStyle(node), mark = node.querySelector(":scope > .mw-mark");
  const ring = style.outlineStyle !== "none" || (mark && getComputedStyle(mark).stroke !== "none");
  const words = node.getAttribute("aria-label") || node.closest("label")?.textContent || node.textContent;
  const part = [".mw-top", ".mw-stage", ".mw-bottom"].findIndex(part => node.closest(part));
  return { name: words.trim(), seen: !!ring, pick: node.dataset.pick || "", part };
}"""
MISSED = """root => [...root.querySelectorAll("input, select, button, textarea, summary, [tabindex='0'], a[href]")]
  .filter(node => !node.dataset.walked && !node.disabled && node.checkVisibility() && node.tabIndex >= 0)
  .map(node => node.outerHTML.slice(0, 120))"""
PICKS = "root => [...new Set([...root.querySelectorAll('[data-pick]')].map(node => node.dataset.pick))]"
# Nothing compiles and searches beside the tests.
QUIET = "for each in shown.values(): each.queue.stop()"


@pytest.fixture(scope="module")
def every(browser: Browser, lab: Lab) -> Iterator[Page]:
    """One page with every explorer; it asks nothing of any other machine, which `shared_page` sees to."""
    with shared_page(browser, lab, "every.ipynb", ALL, PAGE_DRAWN) as page:
        expect(page.locator(".mw-explorer")).to_have_count(len(EXPLORERS) + 1)
        do(page, QUIET)
        yield page


def explorer(page: Page, name: str) -> Locator:
    """The explorer of that name, in sight."""
    found = page.locator(".mw-explorer").nth([*EXPLORERS, "drawn"].index(name))
    found.scroll_into_view_if_needed()
    return found


def saved(page: Page, name: str, kind: str) -> pathlib.Path:
    """Press a button under the sentence and take the file."""
    with page.expect_download() as download:
        explorer(page, name).get_by_role("button", name=f"Save the picture as {kind}").click()
    assert download.value.suggested_filename.startswith(name)
    assert download.value.suggested_filename.endswith(f".{kind.lower()}")
    return pathlib.Path(download.value.path())


def pixels(page: Page, path: pathlib.Path) -> dict[str, float]:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return page.evaluate(PIXELS, list(data))


@pytest.mark.timeout(300)
def test_every_explorer_saves_its_picture_as_png_and_svg(every: Page) -> None:
    for name in EXPLORERS:
        found = pixels(every, saved(every, name, "PNG"))
        assert found["width"] >= 2 * 560 and found["colours"] > 20 and found["ground"] < 0.99, (name, found)
        text = saved(every, name, "SVG").read_text(encoding="utf-8")
        words = " ".join(node.text or "" for node in ET.fromstring(text).iter())
        assert "var(" not in text and f"{name}(" in words and str(ask(every, f"shown[{name!r}].sentence"))[:20] in words


def test_what_only_the_page_draws_is_saved_too(every: Page) -> None:
    every.wait_for_selector(".mw-plot[data-drawn]")
    found = pixels(every, saved(every, "drawn", "PNG"))
    assert found["red"] > 1000 and found["blue"] > 1000
    assert saved(every, "drawn", "SVG").read_text(encoding="utf-8").count('href="data:image/') == 2


def test_a_chart_of_plotly_is_walked_by_keys(every: Page) -> None:
    chart = explorer(every, "drawn").locator(".mw-plot")
    chart.focus()
    every.keyboard.press("ArrowRight")
    every.keyboard.press("ArrowRight")
    expect(explorer(every, "drawn").locator(".mw-heard")).to_have_text("bytes, b: 5")
    every.keyboard.press("Escape")
    expect(explorer(every, "drawn").locator(".mw-heard")).to_have_text("")


def test_a_slider_has_a_place_for_zero(every: Page) -> None:
    slider = explorer(every, "drawn").locator("[data-control=seed] input[type=range]")
    assert slider.input_value() == "-1"
    slider.focus()
    for key, seed in (("ArrowRight", 1), ("ArrowRight", 2), ("Home", 0)):
        every.keyboard.press(key)
        every.wait_for_function(ANSWERED, arg=explorer(every, "drawn").element_handle())
        assert ask(every, "drawn.state['seed']") == seed


ANSWERED = "root => root.querySelector('.mw-top').dataset.unseen === '0'"


def drag(page: Page, root: Locator, slider: Locator) -> Iterator[str]:
    """Hold a slider, take it to both ends and back; after each move, when the kernel has answered, say where it is."""
    slider.scroll_into_view_if_needed()
    box, handle = slider.bounding_box(), root.element_handle()
    low, high, now = slider.evaluate("e => [e.min, e.max, e.value].map(Number)")
    if low == high:
        return
    middle, span = box["y"] + box["height"] / 2, box["width"] - 16
    places = [box["x"] + 8 + span * (value - low) / (high - low) for value in (now, low, high, now)]
    page.mouse.move(places[0], middle)
    page.mouse.down()
    for place, words in zip(places[1:], ("low", "high", "back")):
        page.mouse.move(place, middle, steps=3)
        page.wait_for_function(ANSWERED, arg=handle, timeout=60_000)
        yield words
    page.mouse.up()


def moved(before: list[int] | int | None, after: list[int] | int | None) -> bool:
    """Whether a place is another, by more than what rounding to pixels does."""
    if not isinstance(before, list) or not isinstance(after, list):
        return before != after
    return any(abs(a - b) > 1 for a, b in zip(before, after))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("most", [1, pytest.param(99, marks=pytest.mark.long)])
def test_nothing_jumps_while_sliders_are_dragged(every: Page, most: int) -> None:
    jumped = []
    for name in EXPLORERS:
        root = explorer(every, name)
        for slider in root.locator(".mw-top input[type=range]").all()[:most]:
            before = root.evaluate(BOXES)
            for where in drag(every, root, slider):
                after = root.evaluate(BOXES)
                jumped += [
                    (name, slider.get_attribute("aria-label"), where, part, before.get(part), after.get(part))
                    for part in sorted({*before, *after})
                    if moved(before.get(part), after.get(part))
                ]
        do(every, QUIET)
    assert not jumped, jumped[:10]


def test_nothing_jumps_when_something_is_refused(every: Page) -> None:
    for name in EXPLORERS:
        root = explorer(every, name)
        before = root.evaluate(BOXES)
        do(every, f"shown[{name!r}].bottom.asked = {{'number': -1, 'state': 'nonsense'}}")
        expect(root.locator(".mw-bottom")).to_have_attribute("data-kind", "refused")
        assert root.evaluate(BOXES) == before, name
        do(every, f"shown[{name!r}].state = {{}}; shown[{name!r}]._redraw()")
        expect(root.locator(".mw-bottom")).to_have_attribute("data-kind", "ok")


def test_every_explorer_is_used_by_keys_alone(every: Page) -> None:
    for name in EXPLORERS:
        root = explorer(every, name)
        picks = set(root.evaluate(PICKS))
        root.locator("input, select, button").first.focus()
        stops = []
        while (stop := root.evaluate(FOCUSED)) and len(stops) < 150:
            stops.append(stop)
            every.keyboard.press("Tab")
        assert stop is None, f"{name}: Tab does not leave it"
        assert not root.evaluate(MISSED), name
        assert picks <= {stop["pick"] for stop in stops}, name
        assert all(stop["name"] for stop in stops), name
        assert all(stop["seen"] for stop in stops), (name, [stop for stop in stops if not stop["seen"]][:3])
        parts = [stop["part"] for stop in stops if stop["part"] >= 0]
        assert parts[: parts.index(2)] == sorted(parts[: parts.index(2)]), f"{name}: controls, picture, sentence"


# How many parts would move by themselves while a picture dims and steps light up.
MOVING = """() => {
  const classes = [["mw-dim", ".mw-stage"], ["mw-light", ".mw-program-view"]];
  const all = where => [...document.querySelectorAll(where)];
  const turn = on => classes.forEach(([name, where]) => all(where).forEach(part => part.classList.toggle(name, on)));
  turn(true);
  const moves = style => style.animationName !== "none" || parseFloat(style.transitionDuration) > 0;
  const found = all(".mw-explorer, .mw-explorer *").filter(node => moves(getComputedStyle(node)));
  turn(false);
  return found.length;
}"""


def test_nothing_moves_by_itself_for_who_asks_for_less_motion(every: Page) -> None:
    assert every.evaluate(MOVING) >= len(EXPLORERS)
    every.emulate_media(reduced_motion="reduce")
    assert every.evaluate(MOVING) == 0
    every.emulate_media(reduced_motion="no-preference")


# ---- the file, opened again -----------------------------------------------------------------------------------------

REOPENED = """() => [...document.querySelectorAll(".mw-still")].map(page => {
  const high = page.getBoundingClientRect().height, seen = part => part.getClientRects().length > 0;
  const drawn = [...page.querySelectorAll("svg")].filter(seen).length, poster = page.querySelector("img.mw-plain");
  const table = page.querySelectorAll("table").length, wide = page.closest(".jp-OutputArea").clientWidth;
  const image = poster && seen(poster) ? [poster.naturalWidth, poster.getBoundingClientRect().width <= wide] : null;
  const cut = page.querySelector(".mw-drawn"), loose = cut !== null && seen(cut) && !drawn && !table;
  return { high, drawn, table, image, loose, says: page.querySelector(".mw-says").textContent };
})"""
NO_KERNEL = {"name": "elsewhere", "display_name": "Elsewhere", "language": "other"}


@contextlib.contextmanager
def fresh_page(browser: Browser) -> Iterator[tuple[Page, Watch]]:
    """A page of its own, with the record of what went wrong in it."""
    context, watch = browser.new_context(viewport={"width": 1300, "height": 1000}, service_workers="block"), Watch()
    page = context.new_page()
    watch.attach(page)
    yield page, watch
    context.close()
    assert not watch.outside and not watch.crashes


def close_with(every: Page, lab: Lab) -> None:
    """Save the notebook of all explorers, and copies as a stranger's file gets here: its signature is unknown."""
    every.evaluate("async () => { await jupyterapp.commands.execute('docmanager:save'); }")
    file = lab.root / "every.ipynb"
    assert file.stat().st_size < 1_500_000, "a notebook of all explorers"
    book = nbformat.read(file, as_version=4)
    assert "widgets" not in book.metadata
    book.cells[0].source += "\n# from a stranger"
    book.cells[0].outputs[0].metadata["from"] = "a stranger"
    nbformat.write(book, lab.root / "stranger.ipynb")
    book.metadata["kernelspec"] = NO_KERNEL
    del book.metadata["language_info"]
    nbformat.write(book, lab.root / "no_kernel.ipynb")
    every.evaluate("async () => { await jupyterapp.shell.currentWidget.sessionContext.shutdown(); }")


def test_a_saved_notebook_reopens_with_pictures_and_without_errors(every: Page, browser: Browser, lab: Lab) -> None:
    """Trusted; as a stranger's file, without the drawings; without any kernel. Small enough to hand in."""
    close_with(every, lab)
    for name in ("every.ipynb", "stranger.ipynb", "no_kernel.ipynb"):
        with fresh_page(browser) as (page, watch):
            open_notebook(page, lab, name)
            if name == "no_kernel.ipynb":
                page.locator(".jp-Dialog").get_by_role("button", name="No Kernel").click()
                expect(page.locator(".jp-Toolbar-kernelName").locator("visible=true")).to_have_text("No Kernel")
            else:
                wait_ready(page)  # a kernel that knows nothing of these explorers
            expect(page.locator(".mw-still")).to_have_count(len(EXPLORERS) + 1)
            page.wait_for_function("() => [...document.querySelectorAll('img.mw-plain')].every(each => each.complete)")
            *pages, _ = page.evaluate(REOPENED)
            poor = [each for each in pages if each["high"] < 200 or each["loose"] or not each["says"]]
            assert not poor, (name, poor)
            if name == "every.ipynb":
                assert not any(each["image"] for each in pages) and all(
                    each["drawn"] or each["table"] for each in pages
                )
            else:
                assert all(each["image"] and each["image"][0] >= 300 and each["image"][1] for each in pages), pages
            for words in ("Loading widget", "Error displaying widget", "Error creating widget"):
                expect(page.get_by_text(words).locator("visible=true")).to_have_count(0)
            # JupyterLab's own line about a widget whose kernel is gone; nothing of it is in the page
            wrong = [
                line for line in watch.console if line.startswith("error") and "widget model not found" not in line
            ]
            assert not wrong
