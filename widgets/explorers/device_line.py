"""The line of progress of an explorer that runs on a device: when these settings ran there stays to be read.

    run on the device 2026-11-30 11:14 UTC · looked at plans beside this one
    the run on the device is for batch 64

What a worker looks at meanwhile stands behind it, and what was said of a job (stopped, nothing was run) goes as soon
as its settings do. Next file to read: `on_device`.
"""

from __future__ import annotations

from typing import Any

from widgets.frame import Frame
from widgets.state import State

WORDS = {"n_bytes": "bytes", "dtype": "type", "passes": "pass"}  # of settings whose names say too little


class DeviceLine(Frame):
    """A frame whose line of progress is of runs on a device; `value["device"]` is the measured point on show."""

    _idle: str = ""  # what the line says while nothing runs
    _idle_of: State | None = None  # and of which settings

    def device_state(self, state: State) -> State:
        """The settings that decide what is run on a device."""
        return self.run_settings()

    def stamp(self) -> str:
        """When these settings ran on a device, or which others did; nothing where none has."""
        point = (self.value or {}).get("device") if self._true else None
        if not point:
            return ""
        return f"the run on the device is for {point['old']}" if point["old"] else f"run on the device {point['when']}"

    def _mark(self, busy: bool, text: str, done: int = 0, total: int = 1) -> None:
        if not busy:
            self._idle, self._idle_of = text, self._asked_of()
            text = " · ".join(filter(None, (self.stamp(), text)))
        super()._mark(busy, text, done, total)

    def _redraw(self) -> None:
        super()._redraw()
        with self.drawing:  # a worker that begins now says so after this
            if not self.busy:
                self._mark(False, self._idle if self._idle_of == self._asked_of() else "")

    def _asked_of(self) -> State:
        """Settings that decide what runs, here or on a device."""
        return {**self.run_settings(), **self.device_state(self.state)} if self._true else {}


def differs(params: State, state: State) -> str:
    """In what a record's settings are others, the first two of them."""
    found = [_setting(name, value) for name, value in params.items() if state.get(name) != value]
    return f"{', '.join(found[:2]) or 'others'}{' …' if len(found) > 2 else ''}"


def _setting(name: str, value: Any) -> str:
    """A setting and its value, as a reader knows them."""
    return f"{WORDS.get(name, name.replace('_', ' '))} {f'{value:,}' if type(value) is int else value}"
