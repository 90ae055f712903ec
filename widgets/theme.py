"""The one look: a colour for each mesh axis, three for compute, memory and links, and plotly's template.

    >>> axis_colours(["rows", "cols"])
    {'rows': '#0072B2', 'cols': '#D55E00'}

The palette is Okabe and Ito's, which colour-blind eyes tell apart (https://jfly.uni-koeln.de/color/). x, y and z
keep their colours in every mesh; other axes take the free ones in mesh order. Colour never stands alone: an axis
also has a pattern of its own (`PATTERNS`), and text is never coloured, since no such colour reads well on both
white and black. Next file to read: `frame`.
"""

from __future__ import annotations

from collections.abc import Iterable

LETTERS = {"x": "#0072B2", "y": "#D55E00", "z": "#009E73", "w": "#CC79A7"}
AXES = (*LETTERS.values(), "#8C8C8C")
PATTERNS = ("tint", "hatch", "dots", "cross", "tint")

COMPUTE, MEMORY, LINKS = "#E69F00", "#56B4E9", "#F0E442"

# A drawing's ground, its text, text that steps back, and a band behind a row: the page's own, or light in a file.
GROUND, INK = "var(--jp-layout-color0, #fff)", "var(--jp-ui-font-color0, #111)"
FAINT, BAND = "var(--jp-ui-font-color1, #555)", "var(--jp-layout-color2, #f0f0f0)"

# A text colour for static charts, which cannot follow a theme; live charts take the page's own (see plot_view).
TEXT = "#808080"


def axis_colours(axes: Iterable[str]) -> dict[str, str]:
    """Mesh axis → colour. Letters keep theirs; the rest take what is free, in order, then start again."""
    axes = list(axes)
    taken = {LETTERS[axis] for axis in axes if axis in LETTERS}
    free = [colour for colour in AXES if colour not in taken] or list(AXES)
    others = [axis for axis in axes if axis not in LETTERS]
    found = {axis: free[place % len(free)] for place, axis in enumerate(others)}
    return {axis: LETTERS.get(axis) or found[axis] for axis in axes}


def plotly_template() -> dict[str, object]:
    """A template as plain JSON: transparent, grey text and grid, and the palette for traces."""
    line = {"gridcolor": "rgba(128,128,128,0.3)", "zerolinecolor": "rgba(128,128,128,0.5)", "automargin": True}
    return {
        "layout": {
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": TEXT, "family": "system-ui, sans-serif", "size": 12},
            "colorway": list(AXES),
            "xaxis": line,
            "yaxis": line,
            "margin": {"l": 50, "r": 16, "t": 36, "b": 40},
            "hoverlabel": {"font": {"family": "system-ui, sans-serif"}},
        }
    }
