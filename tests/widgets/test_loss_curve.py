"""The loss curve without a page: every event is handed on, the last picture shows all, and it does not flood a page."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from widgets import loss_curve
from widgets.loss_curve import LossCurve


@dataclass
class Event:
    loss: float


@pytest.fixture
def pages(monkeypatch):
    """What is put into the output, first and then again."""
    shown = []
    monkeypatch.setattr("widgets.static.display", lambda page, display_id: shown.append(page.data) or Handle(shown))
    return shown


class Handle:
    def __init__(self, shown):
        self.shown = shown

    def update(self, page):
        self.shown.append(page.data)


def events(*losses):
    return map(Event, losses)


def test_events_are_handed_on_and_all_losses_kept(pages):
    curve = LossCurve(level=2.0, level_name="chance")
    assert [event.loss for event in curve.follow(events(5, 4, 3))] == curve.losses == [5, 4, 3]
    assert "After 3 steps: 3.00 nats a token (measured), at first 5.00." in pages[-1]
    assert "<svg" in pages[-1] and "chance" in pages[-1]


def test_a_fast_run_draws_first_and_last_only(pages, monkeypatch):
    monkeypatch.setattr(loss_curve, "PAUSE_SECONDS", 1e6)
    list(LossCurve().follow(events(*range(500, 0, -1))))
    assert len(pages) == 2 and "After 500 steps" in pages[-1]


def test_a_slow_run_draws_every_step(pages, monkeypatch):
    monkeypatch.setattr(loss_curve, "PAUSE_SECONDS", 0)
    list(LossCurve().follow(events(5, 4, 3)))
    assert [page.split("After ")[1].split(" step")[0] for page in pages] == ["1", "2", "3"]


def test_a_run_that_is_stopped_shows_what_it_did(pages):
    curve = LossCurve()
    run = curve.follow(events(5, 4, 3))
    assert len(list(itertools.islice(run, 2))) == 2
    run.close()
    assert "After 2 steps: 4.00" in pages[-1]


def test_a_second_run_goes_on_in_the_same_picture(pages):
    curve = LossCurve()
    list(curve.follow(events(5, 4)))
    list(curve.follow(events(3)))
    assert curve.figure()["data"][0]["x"] == [1, 2, 3]


def test_the_level_is_a_line_across():
    data = LossCurve(level=2.5, level_name="chance").figure()["data"]
    assert data[1]["y"] == [2.5, 2.5] and data[1]["line"]["dash"] == "dash"
    assert len(LossCurve().figure()["data"]) == 1


@pytest.mark.parametrize("most", [0.03, 0.9, 3.1, 5.9, 9.99, 10, 64, 400])
def test_ticks_are_few_round_and_within(most):
    ticks = loss_curve._ticks(most)
    assert 3 <= len(ticks) <= 10 and ticks[0] == 0 and ticks[-1] <= most * (1 + 1e-9) and most - ticks[-1] < ticks[1]


def test_a_loss_that_is_no_number_leaves_a_picture(pages):
    list(LossCurve().follow(events(5, float("inf"), float("nan"), 4)))
    assert "nan" not in pages[-1].split("<p>")[0] and "After 4 steps" in pages[-1]


@pytest.mark.parametrize(
    "losses", [(0.0,), (0.0, 0.0), (-1.0, -2.0), (1e-300,), (1e308, 1e300), (float("nan"),), (float("inf"), 2.0)]
)
def test_strange_losses_are_drawn_too(pages, losses):
    curve = LossCurve()
    assert len(list(curve.follow(events(*losses)))) == len(losses)
    low, high = curve.figure()["layout"]["yaxis"]["range"]
    assert low < high and all(low <= y <= high for y in curve.figure()["data"][0]["y"])
    assert "<svg" in pages[-1]
    assert curve.sentence().startswith("After 1 step:" if len(losses) == 1 else "After 2 steps:")
