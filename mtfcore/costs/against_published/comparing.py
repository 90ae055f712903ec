"""Published figures beside ours: the error, whether ours rounds to what is printed, and what sets it.

    >>> one = compare("Table 1")[0]
    >>> one.row.printed, round(one.prediction.value, 1), round(100 * one.error, 2), one.agrees
    ('1,320', 1332.0, 0.91, True)

`agrees`: our value rounds to what is printed, by half a unit of the last printed digit. Errors are relative to the
printed value. Next file to read: `explained`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mtfcore.costs.against_published.explained import EXPLAINED, FAR
from mtfcore.costs.against_published.predicting import predicted
from mtfcore.costs.against_published.prediction import Prediction
from mtfcore.numbers import digits
from mtfcore.reference import Published, rows
from mtfcore.tables import Column, Table


@dataclass(frozen=True)
class Comparison:
    """One row with what we say of it."""

    row: Published
    prediction: Prediction

    @property
    def error(self) -> float | None:
        """Ours over printed, less one; None where either is words or nothing can be divided."""
        if not self.row.value or isinstance(self.prediction.value, str):
            return None
        if self.row.quantity == "more latency":  # so much more of a step: the error is the step's
            return (100 + self.prediction.value) / (100 + self.row.value) - 1
        return self.prediction.value / self.row.value - 1

    @property
    def agrees(self) -> bool:
        """Whether ours is what is printed, as finely as it is printed."""
        if self.prediction.agrees is not None:
            return self.prediction.agrees
        if self.row.value is None or isinstance(self.prediction.value, str):
            return self.prediction.value == self.row.printed
        return self.row.agrees(self.prediction.value)


def compare(table: str = "", paper: str = "") -> tuple[Comparison, ...]:
    """Every row that this library predicts, of all tables or of one."""
    pairs = ((row, predicted(row)) for row in rows(paper, table))
    return tuple(Comparison(row, found) for row, found in pairs if found is not None)


def left_out(table: str = "", paper: str = "") -> tuple[Published, ...]:
    """The rows without a prediction; each says why."""
    return tuple(row for row in rows(paper, table) if row.left_out)


# ---- for people

COLUMNS = (
    Column("table", "table"),
    Column("name", "row", wraps=True),
    Column("quantity", "quantity", wraps=True),
    Column("published", "published", is_number=True),
    Column("ours", "ours, modelled", is_number=True),
    Column("error", "error", lambda error: "0.0%" if abs(error) < 0.0005 else f"{error:+.1%}", is_number=True),
    Column("agrees", "as printed"),
    Column("bound", "set by", wraps=True),
    Column("why", "why", below=True),
)


def table_of(comparisons: Iterable[Comparison], title: str = "") -> Table:
    """Rows side by side: what is printed, what we say, and the difference."""
    comparisons = tuple(comparisons)
    lines = [
        {
            "table": each.row.table, "name": each.row.name, "quantity": each.row.quantity,
            "published": f"{each.row.printed} {each.row.unit}".strip(), "ours": _ours(each), "error": each.error,
            "agrees": "yes" if each.agrees else "", "bound": each.prediction.bound,
            "why": EXPLAINED.get(each.row.key, "") if abs(each.error or 0) > FAR else "",
        }
        for each in comparisons
    ]  # fmt: skip
    notes = tuple(f"{part}: {why}." for part, why in _assumed(comparisons).items())
    several = len({line["table"] for line in lines}) > 1
    return Table(COLUMNS if several else COLUMNS[1:], lines, title, notes=notes)


def _ours(each: Comparison) -> str:
    value = each.prediction.value
    return value if isinstance(value, str) else f"{_as_finely(value, each.row.printed)} {each.row.unit}".strip()


def _as_finely(value: float, printed: str) -> str:
    """With one digit more than is printed, and at least three."""
    places = len(printed.partition(".")[2])
    return f"{value:,.{places + 1}f}" if places else digits(value) if value < 1000 else f"{value:,.0f}"


def _assumed(comparisons: Iterable[Comparison]) -> dict[str, str]:
    """What the papers do not print of these setups, and what we took."""
    found: dict[str, str] = {}
    for each in comparisons:
        found |= {f"not printed, {part}": why for part, why in each.row.assumed.items()}
    return found
