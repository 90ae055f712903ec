"""Claims about the two papers that circulate and are wrong, each with the right value and how it is computed.

    >>> wrong = errata()["one-pool"]
    >>> wrong.claim
    'A pool of 64 chips that prefills a prompt in 0.29 s serves 30 requests a second.'
    >>> wrong.checks[0].claimed, round(wrong.checks[0].computed(), 2), wrong.right
    (30, 3.45, '3.4.')

The rows are data, `reference/errata.json`: claim, right value, why, source, and as `checks` a function of this library
with its arguments. So nothing here is believed: a test computes every right value anew, and a lesson asks for some of
them. Most slips are of five kinds: elements for bytes, GB for GiB, a factor (layers, both matrices, both directions)
left out, a bound taken for a plan, and latency for throughput. Lesson 07 uses it. Next file to read: `programs`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import mtfcore as mtf
from mtfcore.costs.first_paper.two_layers import ROWS, Parts, Sizes
from mtfcore.costs.first_paper.two_layers_printed import printed_ratio
from mtfcore.costs.second_paper import cache as kept
from mtfcore.costs.second_paper import collectives, crossovers, feedforward, serving, splits
from mtfcore.errors import nearest, refuse
from mtfcore.reference import rows
from mtfcore.tables import Column, Table

TABLE = Path(mtf.__file__).parent / "reference" / "errata.json"
TOPICS = ("memory", "communication", "operating")


@dataclass(frozen=True)
class Check:
    """A number in a claim: what is claimed (None where the claim has no such number), and ours."""

    formula: str
    given: Mapping[str, Any] = field(hash=False)
    unit: str
    claimed: float | None
    value: float
    within: float  # the share by which our value may differ from the one written down
    over: Mapping[str, Any] | None = field(default=None, hash=False)

    def computed(self) -> float:
        """Our value, from the function and its arguments."""
        below = FORMULAS[self.over["formula"]](**self.over["given"]) if self.over else 1
        return float(FORMULAS[self.formula](**self.given)) / float(below)

    def accepts(self, value: float) -> bool:
        """Whether an answer is ours, as finely as it is written down."""
        return math.isclose(value, self.computed(), rel_tol=self.within, abs_tol=1e-12)


@dataclass(frozen=True)
class Erratum:
    """One wrong claim. Without checks it is about structure, not a number."""

    id: str
    topic: str
    claim: str
    right: str
    why: str
    source: str
    checks: tuple[Check, ...]


@cache
def errata() -> Mapping[str, Erratum]:
    """Every wrong claim by its short name, in the order of topics."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))["rows"]
    return MappingProxyType({row["id"]: _erratum(row) for row in table})


def _erratum(row: Mapping[str, Any]) -> Erratum:
    return Erratum(**{**row, "checks": tuple(Check(**check) for check in row["checks"])})


COLUMNS = (
    Column("claim", "claim", wraps=True), Column("right", "right", wraps=True), Column("why", "why", wraps=True),
    Column("source", "source", wraps=True),
)  # fmt: skip


def errata_table(*names: str) -> Table:
    """The claims as a table: those of some names or topics, in their order, or all."""
    known = {name: [row] for name, row in errata().items()}
    known |= {topic: [row for row in errata().values() if row.topic == topic] for topic in TOPICS}
    refuse([f"no wrong claim or topic {name!r:.60}; {nearest(name, known)}" for name in names if name not in known])
    chosen = [row for name in names or TOPICS for row in known[name]]
    shown = [{column.key: getattr(row, column.key) for column in COLUMNS} for row in chosen]
    return Table(COLUMNS, shown, "Wrong claims in circulation, and what is right")


# ---- small sums that rows need beside the papers' closed forms


def tensor_bytes(sizes: Sequence[float], itemsize: float) -> float:
    """Bytes of a tensor: elements times bytes an element."""
    return math.prod(sizes) * itemsize


def _memory_bytes(chip: str, fraction: float) -> float:
    return mtf.chip(chip).value("hbm_bytes") * fraction


def _weights_and_cache(n_params: float, itemsize: float = 2, **cached: int) -> float:
    return n_params * itemsize + kept.cache_bytes(**cached, itemsize=itemsize)


def _chip_bytes_per_flop(chip: str) -> float:
    of = mtf.chip(chip)
    return serving.bytes_per_flop(of.value("hbm_bytes_per_second"), of.value("peak_bf16"))


def _most_chips_published(table: str) -> int:
    return max(mtf.topology(row.setup["topology"]).chips for row in rows(table=table))


def _turn_seconds(decode: float, prefill: float, prefill_tokens: int, new_tokens: int) -> float:
    return decode + prefill * new_tokens / prefill_tokens


def _data_parallel_ratio(batch: int, processors: int) -> float:
    return float(printed_ratio(ROWS["batch:all"], Sizes(batch, 1, 1), Parts(batch=processors)))


FORMULAS: Mapping[str, Callable[..., Any]] = {
    **{form.__name__: form for form in (
        collectives.all_reduce, crossovers.crossover, feedforward.best_gathered, feedforward.gathered_activations,
        feedforward.gathered_weights, feedforward.weight_gathered, feedforward.ws2d, kept.cache_bytes,
        kept.longest_context, serving.adam_bytes, serving.chip_seconds_per_token, serving.faster_by,
        serving.least_chip_seconds_per_token, serving.mfu, serving.requests_per_second, serving.seconds_at_mfu,
        splits.devices_from_which_2d_wins, tensor_bytes,
    )},
    "chip_bytes_per_flop": _chip_bytes_per_flop,
    "config_figure": lambda model, figure: getattr(mtf.model.config(model), figure),
    "data_parallel_ratio": _data_parallel_ratio,
    "memory_bytes": _memory_bytes,
    "most_chips_published": _most_chips_published,
    "network_bytes_per_second": lambda chip: mtf.chip(chip).value("network_bytes_per_second"),
    "switch_bytes_per_second": lambda chip: mtf.chip(chip).link_bytes_per_second,
    "torus_dimensions": lambda chip: len(mtf.chip(chip).pod),
    "turn_seconds": _turn_seconds,
    "weights_and_cache_bytes": _weights_and_cache,
}  # fmt: skip
