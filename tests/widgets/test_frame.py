"""The frame: one event a step, errors in the sentence, nothing swallowed, runs that do not block; without a page."""

from __future__ import annotations

import threading
import time

import ipywidgets
import pytest

from mtfcore.errors import LayoutError, NotationError
from widgets.controls import Choice, IntBox, TextBox
from widgets.frame import Frame, Offer, Progress, Refused, Shown
from widgets.state import StateError


class Sharing(Frame):
    """The smallest explorer."""

    question = "How much does one device hold?"
    call = "sharing"
    start = {"size": 64, "parts": 4, "note": ""}

    def controls(self, state):
        if state["note"] == "(":
            raise NotationError("unexpected '('\n  (\n  ^")
        return [
            IntBox("size", state["size"]),
            IntBox("parts", state["parts"], high=512),
            TextBox("note", state["note"]),
            Choice("half", "no", options=(("no", "no"), ("yes", "yes"))),
        ]

    def make_picture(self):
        return ipywidgets.HTML()

    def edit(self, state, name, value):
        if name == "half":
            self.note("halved")
            return {**state, "size": state["size"] // 2}
        return super().edit(state, name, value)

    def draw(self, size, parts, note):
        if note == "fault":
            raise KeyError("a fault of ours")
        if note == "(":
            raise NotationError("unexpected '('\n  (\n  ^")
        if size % parts:
            raise Refused(f"{size} does not divide by {parts}", [Offer("use 1 part", {"parts": 1})], "the full text")
        held = size // parts
        table = [("device", "holds"), ("each", f"{held} [modelled]")]
        return Shown(f"each device holds {held} [modelled]", {"held": held}, table)

    def paint(self, shown):
        self.picture.value = str(shown.facts["held"])

    def still(self, shown):
        return f"<svg><text>{shown.facts['held']}</text></svg>"


def test_order_from_question_to_details():
    frame = Sharing()
    assert frame.children == (frame.top, frame.stage, frame.bottom) and frame.stage.children == (frame.picture,)
    assert frame.top.question == Sharing.question
    assert frame.bottom.shown["sentence"] == 'each device holds 16 <span class="mw-origin">modelled</span>'
    assert frame.value == {"held": 16} and frame.picture.value == "16"


def test_state_is_settable_checked_and_completed():
    frame = Sharing(parts=2)
    frame.state = {"size": 10}
    assert frame.state == {"size": 10, "parts": 4, "note": ""} and frame.kind == "refused"
    with pytest.raises(StateError, match="size takes a whole number"):
        frame.state = {"size": "ten"}
    with pytest.raises(StateError, match="no setting 'part'; did you mean 'parts'"):
        Sharing(part=2)


@pytest.mark.parametrize(("given", "kind"), [(None, "NoneType"), ([], "list"), ("{", "str")])
def test_what_is_no_state_is_refused_in_words(given, kind):
    frame = Sharing(parts=2)
    with pytest.raises(StateError, match=f"a state is an object such as .*parts.*, not {kind}"):
        frame.state = given
    assert frame.state["parts"] == 2 and frame.kind == "ok"


def test_copy_as_code_follows_the_state():
    frame = Sharing()
    frame.top.press({"parts": 8})
    assert frame.code == "from widgets import sharing\nsharing(size=64, parts=8, note='')"
    assert frame.bottom.shown["code"] == frame.code


def test_one_step_is_one_event_and_one_message_a_view():
    frame, events = Sharing(), []
    frame.observe(events.append, "state")
    pushes = {"picture": [], "row": [], "line": []}
    frame.picture.observe(pushes["picture"].append, "value")
    frame.top.observe(pushes["row"].append, "row")
    frame.bottom.observe(pushes["line"].append, "shown")
    frame.top.press({"parts": 8}, released=False)
    assert len(events) == 1
    assert {name: len(seen) for name, seen in pushes.items()} == {"picture": 1, "row": 1, "line": 1}


def test_impossible_values_clamp_to_the_nearest_and_say_so_with_one_event():
    frame, events = Sharing(size=1024), []
    frame.observe(events.append, "state")
    frame.top.press({"parts": 4096})
    assert frame.state["parts"] == 512 and len(events) == 1
    assert frame.sentence.startswith("Parts 4096 is not possible here; 512 is the nearest.")
    frame.top.press({"parts": 4096})  # and once more, now without a change
    assert len(events) == 1 and frame.sentence.startswith("Parts 4096 is not possible here")
    frame.top.press({"parts": 2})
    assert frame.sentence == "each device holds 512 [modelled]"


def test_what_an_earlier_edit_had_to_change_is_not_said_of_a_wrong_paste():
    frame = Sharing(size=1024)
    frame.top.press({"parts": 4096})
    frame.bottom.asked = {"number": 1, "state": "{"}
    assert frame.kind == "refused" and frame.sentence.startswith("not JSON")


def test_an_edit_that_comes_to_nothing_leaves_no_note_for_the_next():
    class Stubborn(Sharing):
        def edit(self, state, name, value):
            if name == "half":
                raise LayoutError("not now")
            return {**state, name: value}

    frame = Stubborn()
    frame.top.press({"parts": 4096, "half": "yes"})
    assert frame.kind == "refused" and frame.sentence == "not now" and frame.state["parts"] == 4
    frame.state = {"parts": 2}
    assert frame.sentence == "each device holds 32 [modelled]"


def test_an_edit_that_cannot_be_is_answered_and_its_control_goes_back():
    class Typed(Sharing):
        def edit(self, state, name, value):
            raise LayoutError("size 7 is odd")

    frame = Typed()
    frame.top.press({"size": 7}, released=False)
    assert (frame.kind, frame.sentence, frame.state["size"]) == ("refused", "size 7 is odd", 64)
    assert frame.top.row["seen"] == frame.top.edits["number"] and frame.top.row["items"][0]["value"] == 64


def test_edits_may_say_more():
    frame = Sharing()
    frame.top.press({"half": "yes"})
    assert frame.state["size"] == 32 and frame.sentence == "Halved.\neach device holds 8 [modelled]"


def test_a_refusal_dims_the_picture_keeps_the_control_and_clears():
    frame = Sharing()
    frame.top.press({"size": 6}, released=False)
    assert frame.kind == "refused" and frame.sentence == "6 does not divide by 4"
    assert "mw-dim" in frame.stage._dom_classes and frame.picture.value == "16"
    assert {item["name"]: item["value"] for item in frame.top.row["items"]}["size"] == 6
    assert frame.bottom.shown["error"] == "the full text" and "Traceback" not in frame.bottom.shown["error"]
    frame.top.press({"size": 8}, released=False)
    assert frame.kind == "ok" and "mw-dim" not in frame.stage._dom_classes and frame.picture.value == "2"
    assert not frame.bottom.shown["offers"] and not frame.bottom.shown["error"]


def test_an_offer_leads_out():
    frame = Sharing(size=6)
    assert frame.bottom.shown["offers"] == ["use 1 part"]
    frame.bottom.asked = {"number": 1, "offer": 0}
    assert frame.state["parts"] == 1 and frame.kind == "ok"


def test_text_that_does_not_parse_keeps_the_controls_and_its_caret():
    frame = Sharing()
    frame.top.press({"note": "("})
    shown = {item["name"]: item["value"] for item in frame.top.row["items"]}
    assert shown["note"] == "(" and "size" in shown
    assert frame.bottom.shown["sentence"].count('<code class="mw-caret">') == 2
    frame.top.press({"note": ""})
    assert frame.kind == "ok"


def test_a_pasted_state_is_taken_or_refused():
    frame = Sharing()
    frame.bottom.asked = {"number": 1, "state": '{"size": 8}'}
    assert frame.state["size"] == 8 and frame.kind == "ok"
    frame.bottom.asked = {"number": 2, "state": '{"size": '}
    assert frame.kind == "refused" and frame.sentence.startswith("not JSON") and frame.state["size"] == 8


def test_the_table_is_made_only_while_the_details_are_open():
    frame = Sharing()
    assert frame.bottom.shown["table"] == ""
    frame.bottom.unfolded = True
    assert '<th scope="col">device</th>' in frame.bottom.shown["table"]
    frame.top.press({"parts": 2})
    assert "<td>32 <span" in frame.bottom.shown["table"]


def test_a_fault_of_ours_is_shown_kept_and_raised(monkeypatch):
    """Elsewhere a handler that raises returns normally and nobody knows."""
    monkeypatch.setattr(Frame, "reraise", False)
    frame = Sharing()
    frame.top.press({"note": "fault"})
    assert frame.kind == "broken" and frame.sentence.startswith("This went wrong inside: KeyError: 'a fault of ours'")
    assert "Traceback" in frame.bottom.shown["error"] and "test_frame.py" in frame.bottom.shown["error"]
    with pytest.raises(KeyError, match="a fault of ours"):
        frame.check()
    frame.check()
    frame.top.press({"note": ""})
    assert frame.kind == "ok" and not frame.bottom.shown["error"]


def test_tests_get_a_fault_at_once():
    """The test harness re-raises."""
    frame = Sharing()
    with pytest.raises(KeyError, match="a fault of ours"):
        frame.top.press({"note": "fault"})
    assert frame.kind == "broken"


class Measuring(Sharing):
    """An explorer with a Run button."""

    call = "measuring"
    gate = threading.Event()

    def make_picture(self):
        self.results = ipywidgets.HTML()
        return ipywidgets.VBox([ipywidgets.HTML(), self.results])

    def paint(self, shown):
        self.picture.children[0].value = str(shown.facts["held"])

    def run(self, settings):
        if settings["note"] == "too big":
            raise LayoutError("needs 128 devices, here are 64")
        for n in range(1000):
            time.sleep(0.02)
            yield Progress(n + 1, 1000, f"repetition {n + 1} of 1000", value=n)

    def show_result(self, result):
        self.results.value = f"{result.settings['size']} after {result.value}"

    def result_part(self):
        return self.results


def enabled(frame: Frame) -> dict[str, bool]:
    return {item["name"]: item["enabled"] for item in frame.top.row["items"] if item["kind"] == "button"}


def wait_until(true, seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_dragging_and_stopping_during_a_run():
    """A 20 s run; slider and Stop answer at once; the result keeps its settings and greys."""
    frame = Measuring()
    assert enabled(frame) == {"run": True, "stop": False}
    frame.top.press({"run": True})
    wait_until(lambda: frame.top.progress["done"] >= 2)
    assert enabled(frame) == {"run": False, "stop": True}
    begun = time.monotonic()
    frame.top.press({"size": 128}, released=False)
    assert frame.picture.children[0].value == "32" and time.monotonic() - begun < 1
    frame.top.press({"run": True})  # pressed twice: not queued
    begun = time.monotonic()
    frame.top.press({"stop": True})
    frame.queue.join(2)
    assert time.monotonic() - begun < 1
    assert frame.result.stopped and frame.result.settings["size"] == 64
    assert frame.results.value.startswith("64 after")
    assert frame.stale and "mw-stale" in frame.results._dom_classes
    assert frame.top.progress["text"] == "the result is for size=64"
    frame.top.press({"size": 64})
    assert not frame.stale and "mw-stale" not in frame.results._dom_classes
    assert frame.top.progress["text"].startswith("stopped after")
    assert enabled(frame) == {"run": True, "stop": False} and not frame.queue.busy


def test_a_refused_run_says_why_in_the_sentence():
    frame = Measuring(note="too big")
    frame.top.press({"run": True})
    with pytest.raises(LayoutError):
        frame.queue.join()
    assert frame.kind == "refused" and frame.sentence == "needs 128 devices, here are 64"
    assert enabled(frame) == {"run": True, "stop": False}


class Refining(Sharing):
    """An explorer whose picture has a dear part."""

    def refine(self, settings):
        done.append(settings["size"])
        return settings["size"]


class Both(Measuring):
    """An explorer whose picture has a dear part, and a Run."""

    def refine(self, settings):
        gate.wait(5)
        yield Progress(1, 1)


gate = threading.Event()


def test_run_can_be_pressed_while_the_picture_still_grows():
    gate.clear()
    frame = Both(size=64)
    frame.top.press({"size": 32})
    wait_until(lambda: frame.busy)
    assert enabled(frame) == {"run": True, "stop": True}
    frame.top.press({"run": True})
    gate.set()
    wait_until(lambda: frame.measuring)
    assert enabled(frame) == {"run": False, "stop": True}
    frame.queue.stop()
    frame.queue.join()
    assert enabled(frame) == {"run": True, "stop": False}


done: list[int] = []


def test_dear_work_waits_for_the_release():
    done.clear()
    frame = Refining()
    for size in (8, 12, 16, 20):
        frame.top.press({"size": size}, released=False)
    frame.queue.join()
    assert done == []
    frame.top.press({"size": 24}, released=True)
    frame.queue.join()
    assert done == [24] and frame.result.value == 24
    frame.top.press({"size": 6}, released=True)  # refused: nothing to refine
    frame.queue.join()
    assert done == [24]


def test_a_state_set_from_python_counts_as_released():
    done.clear()
    frame = Refining()
    frame.state = {"size": 8}
    frame.queue.join()
    assert done == [8]


def test_closing_gives_up_every_part():
    frame = Measuring()
    frame.top.press({"run": True})
    parts = (frame, frame.top, frame.stage, frame.picture, frame.bottom)
    frame.close()
    frame.queue.join(2)
    assert all(part.comm is None for part in parts)
