"""The library's one formatter, and the five words that say where a number comes from.

    >>> origin(quantity(16_384, "iB"), "modelled")
    '16 KiB [modelled]'

The word in square brackets is drawn as a small tag by the views and reads as it stands everywhere else.
Next file to read: `theme`.
"""

from __future__ import annotations

import html
import re

from mtfcore.numbers import count, quantity

ORIGINS = ("modelled", "counted", "compiled", "measured", "published")
_TAG = re.compile(r"\[(" + "|".join(ORIGINS) + r")\]")


def origin(text: str, word: str) -> str:
    """Mark where a number comes from; only the five words are allowed."""
    if word not in ORIGINS:
        raise ValueError(f"unknown origin {word!r}; the words are {', '.join(ORIGINS)}")
    return f"{text} [{word}]"


def modelled(value: float, unit: str = "iB") -> str:
    """A quantity, bytes unless told otherwise, with the word that says that it comes from a formula or a plan."""
    return origin(quantity(value, unit), "modelled")


def tagged_html(text: str) -> str:
    """Escape a text for a page and turn its [modelled] and the like into small tags."""
    return _TAG.sub(r'<span class="mw-origin">\1</span>', html.escape(text))


__all__ = ["ORIGINS", "count", "modelled", "origin", "quantity", "tagged_html"]
