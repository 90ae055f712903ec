"""Widgets without a browser: nothing that goes wrong in a callback may pass in silence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from widgets.frame import Frame


@pytest.fixture(autouse=True)
def faults_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours inside a handler fails the test that caused it."""
    monkeypatch.setattr(Frame, "reraise", True)


@pytest.fixture(autouse=True, scope="session")
def no_records_of_yours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What ran on this computer before is not shown to tests, and what they run is not kept among it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MESHWORK_RECORDS", str(tmp_path_factory.mktemp("records")))
        patch.delenv("MESHWORK_CLASS", raising=False)
        yield
