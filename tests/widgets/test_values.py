"""Previews of arrays."""

from __future__ import annotations

import numpy as np

from widgets.values import preview


def test_ranks_zero_to_three():
    assert preview("s", np.float32(2.5))["rows"] == [["2.5"]]
    assert preview("v", np.arange(3))["rows"] == [["0", "1", "2"]]
    assert preview("v", np.arange(9))["rows"] == [["0", "1", "2", "3", "4", "5", "…"]]
    deep = preview("t", np.arange(60.0).reshape(2, 5, 6))
    assert deep["text"] == "float64[2, 5, 6] at 0" and deep["rows"][0] == ["0", "1", "2", "3", "4", "5"]
    assert deep["rows"][-1] == ["…"] and len(deep["rows"]) == 5


def test_only_what_is_shown_is_converted():
    class Watched(np.ndarray):
        read = 0

        def __getitem__(self, key):
            Watched.read += 1
            return super().__getitem__(key)

    preview("big", np.zeros((4096, 4096)).view(Watched))
    assert Watched.read <= 40
