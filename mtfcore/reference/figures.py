"""The two papers' figures as rows: what was measured or stated, of which setup, how finely, and where it stands.

    >>> row = latency_rows()[1]
    >>> row.key, row.printed, row.unit, row.half_unit, row.seconds
    ('Table 2: low latency, decode: latency', '1.82', 's', 0.005, 1.82)
    >>> row.setup["topology"], row.setup["batch"], row.setup["weights"], row.setup["ffn"], row.setup["attention"]
    ('v4:4x4x4', 64, 'int8', 'ws2d', 'batch')

A setup is plain data, so that any function that predicts can be called on it: `model` and `changes` (of a named
configuration), `topology`, `phase` (prefill, decode or total), `batch`, `input_tokens`, `output_tokens`, `weights`,
`cache`, `ffn`, `attention`. `assumed` names the parts that the paper does not print, with our reason; `left_out` says
why a row is not predicted. `sure` is "seen" (read in the named source) or "computed", and then `how` shows from what.

Source: "Mesh-TensorFlow" (arXiv 1811.02084) and "Efficiently Scaling Transformer Inference" (arXiv 2211.05102). Next
file to read: `arithmetic`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mtfcore.errors import sure

PAPERS = {"second": "second_paper.json", "first": "first_paper.json"}
IN_SECONDS = {"s": 1.0, "ms": 1e-3}
LATENCIES = ("latency", "step latency")
REPEATING = ("Headlines",)  # a table whose rows say again what others say
NUMBER = re.compile(r"(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e\d+)?)(?: (\S+))?")  # and at most one unit


@dataclass(frozen=True)
class Published:
    """One printed figure. `value` and `half_unit` (of the last printed digit) are None where the paper prints words."""

    paper: str  # "first" or "second"
    table: str
    name: str
    quantity: str
    printed: str
    unit: str
    value: float | None
    half_unit: float | None
    sure: str
    source: str
    how: str = ""
    left_out: str = ""
    note: str = ""
    setup: Mapping[str, Any] = field(default_factory=dict, hash=False)
    assumed: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> str:
        """Its name among all rows."""
        return f"{self.table}: {self.name}: {self.quantity}"

    @property
    def number(self) -> float:
        """Its value; an AssertionError for rows of words."""
        return sure(self.value)

    @property
    def seconds(self) -> float:
        """A latency in seconds."""
        return self.number * IN_SECONDS[self.unit]

    @property
    def is_latency(self) -> bool:
        """Whether it is the time of a phase, or of one step of decoding."""
        return self.quantity in LATENCIES

    def agrees(self, predicted: float) -> bool:
        """Whether a prediction rounds to what is printed."""
        return self.half_unit is not None and abs(predicted - self.number) <= self.half_unit * (1 + 1e-9)


def rows(paper: str = "", table: str = "", quantity: str = "") -> tuple[Published, ...]:
    """Every figure of both papers, or those of one paper, table (e.g. "Table D.2") or quantity."""
    wanted = {"paper": paper, "table": table, "quantity": quantity}
    return tuple(row for row in _all() if all(getattr(row, name) == want for name, want in wanted.items() if want))


def latency_rows() -> tuple[Published, ...]:
    """The latencies that can be predicted, one of each setup: of the phase where it is printed, else of one step."""
    found: dict[tuple[str, str], Published] = {}
    for row in sorted(_all(), key=lambda row: LATENCIES.index(row.quantity) if row.is_latency else 0):
        if row.is_latency and not row.left_out and row.table not in REPEATING:
            found.setdefault((row.table, row.name), row)
    return tuple(row for row in _all() if found.get((row.table, row.name)) is row)


def tables() -> dict[str, str]:
    """Each table and figure of both papers with a sentence on what it shows."""
    return {_titled(paper, name): table["about"] for paper in PAPERS for name, table in read(paper)["tables"].items()}


def sources() -> dict[str, Mapping[str, str]]:
    """Every source by a short name: title and address."""
    return {key: source for paper in PAPERS for key, source in read(paper)["sources"].items()}


@cache
def read(paper: str) -> Mapping[str, Any]:
    """The data of one paper as it is kept."""
    return json.loads((Path(__file__).parent / PAPERS[paper]).read_text(encoding="utf-8"))


@cache
def _all() -> tuple[Published, ...]:
    return tuple(row for paper in PAPERS for row in _rows_of(paper))


def _rows_of(paper: str) -> Iterator[Published]:
    """What a table says of all its rows, a row may say otherwise of itself, and a figure of itself again."""
    for table, about in read(paper)["tables"].items():
        for row in about["rows"]:
            for quantity, figure in row["figures"].items():
                said = {**about, **row, **(figure if isinstance(figure, dict) else {"printed": figure})}
                setup = {**about.get("setup", {}), **row.get("setup", {})}
                yield _published(paper, _titled(paper, table), quantity, said, setup)


def _titled(paper: str, table: str) -> str:
    return table if paper == "second" else f"first paper, {table}"


def _published(paper: str, table: str, quantity: str, said: Mapping[str, Any], setup: dict[str, Any]) -> Published:
    number = NUMBER.fullmatch(said["printed"])
    printed, unit = (number[1], number[2] or "") if number else (said["printed"], "")
    value = float(printed.replace(",", "")) if number else None
    half = said.get("rounding", half_of_last_digit(printed)) if number else None
    plain = {name: said[name] for name in ("name", "sure", "source") if name in said}
    more = {name: said[name] for name in ("how", "left_out", "note") if name in said}
    assumed = {name: why for name, why in said.get("assumed", {}).items() if name in setup}
    return Published(paper, table, quantity=quantity, printed=printed, unit=unit, value=value, half_unit=half,
                     setup=MappingProxyType(setup), assumed=MappingProxyType(assumed), **plain, **more)  # fmt: skip


def half_of_last_digit(printed: str) -> float:
    """Half a unit of the last printed digit: 0.005 for '1.82', 0.05 for '6.0', 0.5 for '1,331'."""
    digits, _, power = printed.replace(",", "").lower().partition("e")
    return 0.5 * 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
