"""The whole stack, once: JupyterLab, a kernel, an ipywidget and an anywidget, in a browser cut off from the world."""

from __future__ import annotations

from lab_browser import cells_executed, error_outputs, is_local, open_notebook, run_all, wait_done, wait_ready

WIDGETS = """
import anywidget, ipywidgets, traitlets

class Echo(anywidget.AnyWidget):
    _esm = '''
    function render({ model, el }) {
      const show = () => { el.dataset.value = model.get("value"); el.textContent = `value ${model.get("value")}`; };
      model.on("change:value", show);
      show();
    }
    export default { render };
    '''
    value = traitlets.Int(0).tag(sync=True)

slider = ipywidgets.IntSlider(value=3, max=10, description="rows")
echo = Echo(value=3)
slider.observe(lambda change: setattr(echo, "value", change["new"]), "value")
slider.add_class("the-slider"), echo.add_class("the-echo")
"""


def test_widgets_live_in_a_real_browser(lab, page, notebook):
    open_notebook(page, lab, notebook(WIDGETS, "ipywidgets.VBox([slider, echo])"))
    wait_ready(page)
    run_all(page)
    wait_done(page)
    assert error_outputs(page) == []
    assert cells_executed(page) == [1, 2]

    page.wait_for_selector("[data-value='3']")
    handle = page.locator(".the-slider .noUi-handle")
    handle.focus()
    handle.press("ArrowRight")
    page.wait_for_selector("[data-value='4']")
    assert page.locator("[data-value='4']").text_content() == "value 4"


def test_an_error_in_a_cell_is_seen(lab, page, notebook):
    open_notebook(page, lab, notebook("1 / 0", "'not reached'"))
    wait_ready(page)
    run_all(page)
    wait_done(page)
    assert error_outputs(page) == ["ZeroDivisionError: division by zero"]


def test_requests_to_elsewhere_are_refused_and_recorded(lab, page, watch):
    page.goto(lab.base + "/lab?token=" + lab.token)
    outcome = page.evaluate("() => fetch('https://cdn.example.com/a.js').then(() => 'answered', () => 'refused')")
    assert outcome == "refused"
    assert watch.outside == ["https://cdn.example.com/a.js"]
    watch.outside.clear()


def test_what_counts_as_this_machine():
    assert all(
        map(is_local, ["http://127.0.0.1:8888/lab", "ws://localhost:1/x", "http://[::1]/", "data:text/plain,hi"])
    )
    assert not any(map(is_local, ["https://cdn.example.com/127.0.0.1", "https://127.0.0.1.example.com/"]))
