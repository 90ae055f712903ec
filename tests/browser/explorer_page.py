"""Use an explorer in the page as a reader does, and ask the kernel what it knows.

    explorer = open_explorer(page, lab, notebook("from widgets import slices", "e = slices()\\ne"))
    set_number(page, "size.batch", 6)
    assert ask(page, "e.kind") == "refused"

Next file to read: test_slices.py.
"""

from __future__ import annotations

import ast
import contextlib
import pathlib
from collections.abc import Iterator

import nbformat
from playwright.sync_api import Browser, Locator, Page

from lab_browser import Watch, error_outputs, open_notebook, run_all, wait_done, wait_ready
from lab_server import Lab

SIZE = {"width": 1300, "height": 1000}

# Runs an expression in the notebook's kernel, beside what the page does, and gives its repr.
ASK = """async source => {
  const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const future = kernel.requestExecute({ code: source, store_history: false, silent: false });
  let text = '', wrong = '';
  future.onIOPub = message => {
    if (message.header.msg_type === 'stream') text += message.content.text;
    if (message.header.msg_type === 'error') wrong = `${message.content.ename}: ${message.content.evalue}`;
  };
  await future.done;
  if (wrong) throw new Error(wrong);
  return text;
}"""

SETTLED = """() => {
  const controls = document.querySelector('.mw-top'), model = document.querySelector('.mw-bottom');
  return !!controls && !!model && !!model.querySelector('.mw-says').textContent;
}"""


def open_explorer(page: Page, lab: Lab, name: str) -> None:
    """Open a notebook, run it, and wait until the explorer stands in the page."""
    open_notebook(page, lab, name)
    wait_ready(page)
    run_all(page)
    wait_done(page)
    assert not (errors := error_outputs(page)), errors
    page.wait_for_function(SETTLED, timeout=30_000)


@contextlib.contextmanager
def shared_page(browser: Browser, lab: Lab, name: str, *cells: str) -> Iterator[Page]:
    """One page with an explorer for a whole file of tests; it reaches nothing but this machine."""
    write_notebook(lab.root / name, *cells)
    context, watch = browser.new_context(viewport=SIZE, service_workers="block"), Watch()
    page = context.new_page()
    watch.attach(page)
    open_explorer(page, lab, name)
    yield page
    context.close()
    assert not watch.outside and not watch.crashes


def write_notebook(path: pathlib.Path, *cells: str) -> None:
    """A notebook with these code cells, for tests that need one outside the `notebook` fixture."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    nbformat.write(book, path)


def ask(page: Page, expression: str) -> object:
    """The value of an expression in the kernel."""
    return ast.literal_eval(page.evaluate(ASK, f"print(repr({expression}))"))


def do(page: Page, source: str) -> None:
    """Run statements in the kernel."""
    page.evaluate(ASK, source)


def control(page: Page, name: str, kind: str = "input") -> Locator:
    """The element of a control."""
    return page.locator(f".mw-top [data-control='{name}'] {kind}")


def set_number(page: Page, name: str, value: int) -> None:
    """Type into a number's box."""
    control(page, name, "input[type=number]").fill(str(value))
    page.keyboard.press("Enter")


def drag(page: Page, slider: Locator, share: float) -> None:
    """Drag a range input's handle with the mouse to a share of its width."""
    slider.hover()  # waits until nothing moves any more
    box = slider.bounding_box()
    low, high, now = (float(slider.evaluate(f"e => e.{name}")) for name in ("min", "max", "value"))
    middle, span = box["y"] + box["height"] / 2, box["width"] - 16
    page.mouse.move(box["x"] + 8 + span * (now - low) / (high - low), middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 8 + span * share, middle, steps=12)
    page.mouse.up()


def set_text(page: Page, name: str, value: str) -> None:
    """Type into a text box."""
    control(page, name).fill(value)
    page.keyboard.press("Enter")


def wait_kind(page: Page, kind: str) -> None:
    """Wait until the sentence is of this kind."""
    page.wait_for_selector(f".mw-bottom[data-kind={kind}]")


def panel(page: Page, tensor: str) -> Locator:
    """A live panel (the still page, hidden meanwhile, has the same)."""
    return page.locator(f".mw-slices [data-tensor='{tensor}']")


def wait_panel(page: Page, tensor: str, attribute: str, value: object) -> None:
    """Wait until a panel's data attribute has a value."""
    page.wait_for_selector(f".mw-slices [data-tensor='{tensor}'][data-{attribute}='{value}']")


def box(page: Page, selector: str) -> tuple[float, float]:
    """(top relative to the explorer, height) of an element."""
    top = page.locator(".mw-top").bounding_box()
    own = page.locator(selector).bounding_box()
    return round(own["y"] - top["y"], 1), round(own["height"], 1)


CONTRASTS = """root => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const over = (top, under) => { const a = top[3] ?? 1; return [0, 1, 2].map(n => top[n] * a + under[n] * (1 - a)); };
  const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = rgb => { const [r, g, b] = rgb.map(v => linear(v / 255)); return .2126 * r + .7152 * g + .0722 * b; };
  const ground = node => {
    const layers = [];
    for (let e = node; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((under, top) => top.length ? over(top, under) : under, [255, 255, 255]);
  };
  const reads = node => node.getClientRects().length && !node.disabled && !node.closest('style, title, option') &&
    (node.matches('input:not([type=range]), select, textarea') ||
     [...node.childNodes].some(child => child.nodeType === 3 && child.textContent.trim()));
  const measure = node => {
    const style = getComputedStyle(node), under = ground(node);
    const colour = over(parse(node instanceof SVGElement ? style.fill : style.color), under);
    const [low, high] = [light(colour), light(under)].sort((a, b) => a - b);
    const name = `${node.tagName}.${node.getAttribute('class') || ''}`;
    return [(high + .05) / (low + .05), name, node.textContent.slice(0, 30)];
  };
  const parts = [...document.querySelectorAll(root)];
  return parts.flatMap(part => [...part.querySelectorAll('*')].filter(reads).map(measure));
}"""


def contrasts(page: Page, root: str) -> list[tuple[float, str, str]]:
    """(contrast, element, text) of everything that can be read under `root`."""
    return [tuple(row) for row in page.evaluate(CONTRASTS, root)]


def switch_theme(page: Page, name: str) -> None:
    """Change JupyterLab's theme and wait until it is on and its splash is gone."""
    page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", name)
    page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)
    page.wait_for_selector("#jupyterlab-splash", state="detached")
