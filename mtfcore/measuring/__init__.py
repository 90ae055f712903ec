"""Measuring on the TPU or GPU in the room, or on simulated devices that say so: `mtf.measure`.

    found = mtf.measure(prog)                   # → Measured: raw repetitions, compile time apart, answer checked
    for now in measuring.steps(prog): ...       # the same, with a place to stop before each part

First file to read: `chip_state`, which tells whether there is a chip; then `measured` and `timing`.
"""

import importlib
from typing import Any

_LATER = {
    "Measured": "measured", "Progress": "measured", "Share": "measured", "WrongAnswer": "checking",
    "measure": "timing", "steps": "timing",
}  # fmt: skip
__all__ = ["Measured", "Progress", "Share", "WrongAnswer", "measure", "steps"]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'mtfcore.measuring' has no attribute {name!r}")
    return getattr(importlib.import_module(f"mtfcore.measuring.{_LATER[name]}"), name)
