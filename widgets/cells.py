"""Which frames belong to which notebook cell, so that running a cell again does not pile widgets up.

A frame that an earlier run of the same cell displayed is closed when the cell displays a new one: its worker ends
and its models leave the notebook's saved widget state, so the file does not grow. Next file to read: `frame`.
"""

from __future__ import annotations

import weakref
from typing import Protocol


class Closable(Protocol):
    """Anything that can be closed."""

    def close(self) -> None: ...


# cell id → (the execution that displayed them, the frames)
_displayed: dict[str, tuple[str, weakref.WeakSet]] = {}


def running_cell() -> tuple[str, str] | None:
    """The id of the running cell and of this run of it; None outside a notebook that says so."""
    from IPython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    parent = kernel.get_parent() if kernel is not None else {}
    cell = parent.get("metadata", {}).get("cellId")
    return (cell, parent["header"]["msg_id"]) if cell else None


def adopt(frame: Closable, where: tuple[str, str] | None) -> None:
    """Note that `where` displays this frame, and close those of its earlier runs."""
    if where is None:
        return
    cell, run = where
    earlier, frames = _displayed.get(cell, (run, weakref.WeakSet()))
    if earlier != run:
        for old in list(frames):
            if old is not frame:
                old.close()
        frames = weakref.WeakSet()
    frames.add(frame)
    _displayed[cell] = (run, frames)
