"""A few numbers of an array, as texts: enough to tell two devices apart.

    >>> preview("x", np.arange(6.0).reshape(2, 3))
    {'name': 'x', 'text': 'float64[2, 3]', 'rows': [['0', '1', '2'], ['3', '4', '5']]}

Only what is shown is converted, so a large array costs nothing. Next file to read: `views/slices_view`.
"""

from __future__ import annotations

from typing import Any

ROWS, COLUMNS = 4, 6


def preview(name: str, array: Any, rows: int = ROWS, columns: int = COLUMNS) -> dict[str, Any]:
    """Type, shape and the first rows and columns; leading dimensions at their first index, which the text says."""
    shape = tuple(array.shape)
    corner = array[(0,) * max(len(shape) - 2, 0)] if len(shape) > 2 else array
    at = f" at {', '.join('0' for _ in shape[:-2])}" if len(shape) > 2 else ""
    text = f"{array.dtype}[{', '.join(map(str, shape))}]{at}"
    return {"name": name, "text": text, "rows": _rows(corner, shape[-2:], rows, columns)}


def _rows(corner: Any, shape: tuple[int, ...], most_rows: int, most_columns: int) -> list[list[str]]:
    if not shape:
        return [[_word(corner)]]
    lines = [corner] if len(shape) == 1 else [corner[n] for n in range(min(shape[0], most_rows))]
    rows = [[_word(line[n]) for n in range(min(shape[-1], most_columns))] for line in lines]
    more = ["…"] if shape[-1] > most_columns else []
    return [row + more for row in rows] + ([["…"]] if len(shape) == 2 and shape[0] > most_rows else [])


def _word(value: Any) -> str:
    return f"{float(value):.4g}"
