"""How soon the picture follows a hand: real mouse and keys in a real page, moments from the page's own clock.

A move begins at its event's own time stamp and ends at the second animation frame after the document holds the
picture that stays, sentence included (watch.js): that frame has been painted. At the same settings the picture must be
the same at every visit, or the row misses, but for explorers whose worker adds to the picture meanwhile. Between two
moves passes a fifth of a second or more, as when a teacher talks; moves go both where somebody was before and where
nobody was. A drag sends a mouse event every 16 ms and is timed from its release. Handlers are timed in the kernel.
Next file to read: arithmetic.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page
from playwright.sync_api import TimeoutError as TimeoutError_

from .arithmetic import after_release, painted, summary, sweep, unsteady
from .pages import ask, browser_and_lab, do
from .subjects import SUBJECTS, Choose, Move, Slide, Subject, Walk

WATCH = (Path(__file__).parent / "watch.js").read_text(encoding="utf-8")
MOVES = 40  # of each explorer, over all its controls
PACE = [200, 200, 4000]  # milliseconds: between moves at least; without a change until settled; at most
STEPS_OF_A_DRAG, SECONDS_OF_A_STEP = 60, 0.016
REST_MS = 1500  # what a release has started gets so long, then it is stopped

TIMED = """
import time
from widgets.frame import Frame
handled, edited = [], Frame._edited
def timed(self, *given):
    begun = time.perf_counter()
    edited(self, *given)
    handled.append(1000 * (time.perf_counter() - begun))
Frame._edited = timed
def known(seconds):
    '''Let the dear part of the picture be found, for so long.'''
    try:
        e.queue.join(seconds)
    except TimeoutError:
        e.queue.stop()
"""
RUN_CELL = """async n => {
  const { content } = window.jupyterapp.shell.currentWidget;
  content.activeCellIndex = n;
  await content.scrollToItem(n);
  await window.jupyterapp.commands.execute('notebook:run-cell');
}"""
CLEAR_CELL = "() => window.jupyterapp.commands.execute('notebook:clear-cell-output')"
STANDS = """() => document.querySelectorAll('.mw-live:not(.mw-top)').length > 0 &&
  [...document.querySelectorAll('.mw-bottom .mw-says')].some(says => says.textContent)"""


def measured(names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A row of each explorer, or of those whose names begin with one of these."""
    chosen = {name: one for name, one in SUBJECTS.items() if not names or name.startswith(tuple(names))}
    cells = [f"from widgets import {one.explorer}\ne = {one.call}\ne" for one in chosen.values()]
    rows = []
    with browser_and_lab() as open_page:
        page = open_page("explorers.ipynb", TIMED, *cells)
        page.evaluate(WATCH)
        page.evaluate(RUN_CELL, 0)
        for number, (name, subject) in enumerate(chosen.items(), 1):
            rows.append({"name": name, **row_of(page, number, subject)})
            print(line(rows[-1]), flush=True)
    return rows


def line(row: dict[str, Any]) -> str:
    """A row while it is measured."""
    return (
        f"  {row['name']:<24} median {row['median']:4.0f} ms, 95 % {row['share95']:4.0f} ms of {row['n']} moves; "
        f"slowest {row['slowest']}; released {row['released']:.0f} ms; handler {row['handler']:.0f} ms"
    )


def row_of(page: Page, number: int, subject: Subject) -> dict[str, Any]:
    """One explorer shown, moved, and taken away."""
    page.evaluate(RUN_CELL, number)
    page.wait_for_function(STANDS)
    do(page, "known(10); handled.clear()")
    page.wait_for_timeout(500)
    moves, drags = move_all(page, subject)
    times = {move.name: list(filter(None, map(painted, of_control(moves, move)))) for move in subject.moves}
    handled = ask(page, "handled")
    if not any(times.values()):
        raise RuntimeError(f"{subject.call} does not move: {ask(page, 'e.sentence')}")
    page.evaluate(CLEAR_CELL)
    do(page, "e.close()")
    medians = {name: summary(each)["median"] for name, each in times.items() if each}
    return {
        **summary([at for each in times.values() for at in each]), "moved": list(times),
        "slowest": max(medians, key=medians.__getitem__), "unsteady": [] if subject.grows else unsteady(moves),
        "released": max((after_release(drag) for drag in drags), default=0.0),
        "handler": summary(handled)["median"], "handler95": summary(handled)["share95"],
    }  # fmt: skip


def of_control(moves: Sequence[dict[str, Any]], move: Move) -> list[dict[str, Any]]:
    """Those of one control."""
    return [one for one in moves if one["name"] == move.name]


def move_all(page: Page, subject: Subject) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(moves, drags) of all controls, each with its name."""
    each, moves, drags = -(-MOVES // len(subject.moves)), [], []
    for move in subject.moves:
        moves += [{"name": move.name, **one} for one in moved(page, move, each)]
        if isinstance(move, Slide) and not drags:  # the first slider: eight minutes are for everything
            drags.append(dragged(page, page.locator(move.selector).first))
    return moves, drags


def moved(page: Page, move: Move, n: int) -> list[dict[str, Any]]:
    """`n` single moves of a control."""
    place = page.locator(move.selector).first
    if isinstance(move, Slide):
        return _slid(page, place, n)
    place.focus()
    keys = _keys(move, n)
    return [_watched(page, lambda key=key: place.press(key), isinstance(move, Choose)) for key in keys]


def _keys(move: Choose | Walk, n: int) -> list[str]:
    if isinstance(move, Walk):
        return (([move.keys[0]] * 3 + [move.keys[1]] * 3) * n)[:n]
    return [("ArrowDown", "ArrowUp")[step % 2] for step in range(n)]


def _slid(page: Page, slider: Locator, n: int) -> list[dict[str, Any]]:
    low, high, now = ends(slider)
    grasp(page, slider)
    found = [_watched(page, lambda to=to: page.mouse.move(*point(slider, to))) for to in sweep(now, low, high, n)]
    page.mouse.up()
    _rest(page)
    return found


def ends(slider: Locator) -> tuple[int, int, int]:
    """Lowest, highest and present position."""
    return tuple(slider.evaluate("e => [+e.min, +e.max, +e.value]"))


def grasp(page: Page, slider: Locator) -> None:
    """Take the handle."""
    slider.hover()
    page.mouse.move(*point(slider, ends(slider)[2]))
    page.mouse.down()


def point(slider: Locator, value: float) -> tuple[float, float]:
    """Where the handle's middle is at a value; a handle is 16 pixels wide."""
    box, (low, high, _) = slider.evaluate("e => e.getBoundingClientRect().toJSON()"), ends(slider)
    return box["x"] + 8 + (box["width"] - 16) * (value - low) / max(high - low, 1), box["y"] + box["height"] / 2


def _watched(page: Page, act: Callable[[], None], answers: bool = True) -> dict[str, Any]:
    page.evaluate("meshworkSpeed.begin()")
    act()
    return page.evaluate("given => meshworkSpeed.settled(given)", [*PACE, answers])


def _rest(page: Page) -> None:
    """Give what a release has started some time, then stop it, so that the next control finds a free kernel."""
    page.wait_for_timeout(150)
    rests = "() => [...document.querySelectorAll('.mw-run')].every(run => run.dataset.busy !== 'true')"
    try:
        page.wait_for_function(rests, timeout=REST_MS)
    except TimeoutError_:
        do(page, "e.top.press({'stop': True})")  # as its button does, which ends a compiler too; then the hand goes on


def dragged(page: Page, slider: Locator) -> dict[str, Any]:
    """A drag over three positions with a mouse event every 16 ms, and what happened until its picture stayed."""
    low, high, now = ends(slider)
    end = now - 3 if now - 3 >= low else min(high, now + 3)
    grasp(page, slider)
    (x, y), (to, _) = point(slider, now), point(slider, end)
    page.evaluate("meshworkSpeed.begin()")
    for step in range(1, STEPS_OF_A_DRAG + 1):
        begun = time.perf_counter()
        page.mouse.move(x + (to - x) * step / STEPS_OF_A_DRAG, y)
        time.sleep(max(0.0, SECONDS_OF_A_STEP - (time.perf_counter() - begun)))
    page.mouse.up()
    found = page.evaluate("given => meshworkSpeed.settled(given)", [*PACE, True])
    _rest(page)
    return found
