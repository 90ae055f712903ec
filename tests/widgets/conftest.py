"""Widgets without a browser: nothing that goes wrong in a callback may pass in silence."""

from __future__ import annotations

import pytest

from widgets.frame import Frame


@pytest.fixture(autouse=True)
def faults_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours inside a handler fails the test that caused it (case U10)."""
    monkeypatch.setattr(Frame, "reraise", True)
