"""What an explorer's `draw` gives back: something to show, or a refusal with ways out.

    Shown("hidden is split over cols: each device holds 1 MiB [modelled]", facts, table)
    raise Refused("batch 1 does not divide over rows:8", [Offer("copy batch", {"layout": "hidden:cols"})])

Next file to read: `frame`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtfcore.errors import LayoutError
from widgets.static import Table


@dataclass(frozen=True)
class Shown:
    """A sentence with origin words, facts for the picture, a table that says the same, warnings, and ways on."""

    sentence: str
    facts: Any = None
    table: Table = ()
    notes: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = ()


@dataclass(frozen=True)
class Offer:
    """A way out that the reader can press: words, and the settings that change."""

    label: str
    settings: Mapping[str, Any]


class Refused(LayoutError):
    """Settings that cannot be, with ways out; `full` is a longer text for the details."""

    def __init__(self, message: str, offers: Sequence[Offer] = (), full: str = "") -> None:
        super().__init__(message)
        self.offers, self.full = tuple(offers), full
