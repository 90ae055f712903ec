"""Messages from the page that must be seen each time, also where one says the same as the last.

    >>> following({"number": 3, "value": "layer"}, value="layer")
    {'number': 4, 'value': 'layer'}

A trait that is set to what it was tells nobody, so each message carries a number that grows. The page's half is in
each view's own file. Next file to read: `pick_view`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def following(last: Mapping[str, Any], **says: Any) -> dict[str, Any]:
    """What the page sends after its last message."""
    return {"number": last["number"] + 1, **says}
