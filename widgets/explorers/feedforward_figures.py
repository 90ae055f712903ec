"""Our values for Figures 6 and 7, worked out once by a worker and kept.

    >>> for done in work_out("Figure 6"): print(done.text)
    1 of 6
    …
    >>> known("Figure 6")
    {'Figure 6: 2D weight-stationary, 64 chips: step latency': 90.6…, …}

Each row is a whole estimate of PaLM 540B, a tenth of a second the first time. Next file to read: `feedforward`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mtfcore.errors import sure
from widgets.figures.feedforward_published import rows_of
from widgets.queue import Progress

_KNOWN: dict[str, float] = {}


def known(figure: str) -> dict[str, float]:
    """Row → our value, as far as it has been asked for."""
    return {row.key: _KNOWN[row.key] for row in rows_of(figure) if row.key in _KNOWN}


def work_out(figure: str) -> Iterator[Progress]:
    """Ask for what is not known yet, row by row."""
    from mtfcore.costs.against_published import predicted

    missing = [row for row in rows_of(figure) if row.key not in _KNOWN]
    for n, row in enumerate(missing, 1):
        _KNOWN[row.key] = float(sure(predicted(row)).value)
        yield Progress(n, len(missing), f"{n} of {len(missing)}", value=n)
