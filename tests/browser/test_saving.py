"""Notebooks stay small: widget state is not saved, however often a cell is run (`make lab` and this harness alike)."""

from __future__ import annotations

import json

from playwright.sync_api import expect

from lab_browser import error_outputs, open_notebook, run_all, wait_done, wait_ready
from lab_server import SETTINGS
from lessons.setting_up.lab import LAB_FILES

WIDGET = "import ipywidgets\nipywidgets.VBox([ipywidgets.IntSlider(value=3), ipywidgets.Text('x' * 10_000)])"
RUN_AGAIN = (
    "async times => { for (let i = 0; i < times; i++) await jupyterapp.commands.execute('notebook:run-all-cells'); }"
)


def save(page) -> None:
    page.evaluate("async () => { await jupyterapp.commands.execute('docmanager:save'); }")


def test_running_a_widget_cell_a_hundred_times_does_not_grow_the_file(lab, page, notebook):
    path = lab.root / notebook(WIDGET)
    open_notebook(page, lab, path.name)
    wait_ready(page)
    run_all(page)
    wait_done(page)
    save(page)
    once = path.stat().st_size

    page.evaluate(RUN_AGAIN, 99)
    wait_done(page)
    save(page)
    book = json.loads(path.read_text(encoding="utf-8"))
    assert book["cells"][0]["execution_count"] == 100
    assert error_outputs(page) == []
    assert "widgets" not in book["metadata"]
    assert path.stat().st_size < min(1.05 * once, 1_000_000)


def test_a_prediction_opened_without_its_kernel_says_how_to_answer(lab, page, notebook):
    name = notebook("from widgets import predict", "predict('99 rows', 'How many rows?')")
    open_notebook(page, lab, name)
    wait_ready(page)
    run_all(page)
    wait_done(page)
    again = page.get_by_text("Run this cell to answer.")
    button = page.get_by_role("button", name="Record my prediction")
    expect(button).to_be_visible()
    expect(again).to_be_hidden()
    save(page)
    page.evaluate("async () => { await jupyterapp.shell.currentWidget.sessionContext.shutdown(); }")
    open_notebook(page, lab, name)
    expect(again).to_be_visible(timeout=30_000)
    wait_ready(page)
    expect(page.get_by_text("Error displaying widget")).to_be_hidden()
    expect(button).to_have_count(0)


def test_make_lab_turns_off_what_this_harness_turns_off():
    chosen = {name: values for name, values in LAB_FILES.items() if name.startswith("settings/")}
    assert chosen
    for name, values in chosen.items():
        extension, _, plugin = name.removeprefix("settings/").removesuffix(".jupyterlab-settings").rpartition("/")
        assert values.items() <= SETTINGS[f"{extension}:{plugin}"].items()
