"""A student's progress in the browser: exported by keyboard, still there without a kernel; a class of one."""

from __future__ import annotations

import json

from playwright.sync_api import expect

from lab_browser import error_outputs, open_notebook, run_all, wait_done, wait_ready
from widgets.learning.outline import course

CHECK = course()[0].checks[0]
WORK = (
    "from widgets import classroom, progress\nfrom widgets.learning.progress import Progress\n"
    f"Progress().update('checks', {CHECK!r}, passed=True, tries=2)"
)
NAME = "Ada <b>"


def test_progress_is_exported_by_keyboard_read_by_a_teacher_and_kept_in_the_notebook(lab, page, notebook):
    name = notebook(WORK, "progress()", "classroom('.')")
    open_notebook(page, lab, name)
    wait_ready(page)
    run_all(page)
    wait_done(page)
    assert not error_outputs(page)
    table = page.get_by_role("table", name="Each lesson")
    first = table.get_by_role("row", name=course()[0].title)
    expect(first).to_contain_text(f"1 of {len(course()[0].checks)}")

    page.get_by_label("Name").focus()
    page.keyboard.type(NAME)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    said = page.get_by_role("status").filter(has_text="Give it to your teacher.")
    expect(said).to_contain_text("meshwork-progress-Ada-b.json")
    made = lab.root / "meshwork-progress-Ada-b.json"
    assert json.loads(made.read_text(encoding="utf-8"))["name"] == NAME
    assert page.get_by_role("link", name=made.name).count() == 1

    run_all(page)  # now the class has a student
    wait_done(page)
    expect(page.get_by_role("rowheader", name=NAME, exact=True)).to_be_visible()
    made.unlink()

    page.set_viewport_size({"width": 480, "height": 900})
    expect(table).to_be_visible()
    fits = "table => table.getBoundingClientRect().width <= table.parentElement.clientWidth"
    page.evaluate("async () => { await jupyterapp.commands.execute('application:toggle-left-area'); }")
    page.wait_for_function(f"() => ({fits})(document.querySelector('.mw-learning table'))")
    page.evaluate("async () => { await jupyterapp.commands.execute('docmanager:save'); }")
    page.evaluate("async () => { await jupyterapp.shell.currentWidget.sessionContext.shutdown(); }")
    open_notebook(page, lab, name)
    expect(table).to_be_visible(timeout=30_000)
    expect(page.get_by_text("Run this cell to see it as it is now")).to_be_visible()
    expect(page.get_by_role("button", name="Export for your teacher")).to_have_count(0)
