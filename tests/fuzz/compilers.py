"""Compilers' texts, and what is kept of them.

Next file to read: `pages`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from fuzz import mutating
from fuzz.parser import ROOT, Parser, fixed

FIXTURES = ROOT / "tests" / "counting" / "fixtures"


def _hlo() -> Sequence[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(FIXTURES.glob("*.txt"))]


def _schedule(text: str) -> None:
    from mtfcore.compiling import schedule

    found = schedule.read(text)
    for slot in found.slots:
        repr((slot.cycles, slot.step, slot.kind, slot.ends, slot.is_async))
    assert found.cycles >= 0


@cache
def _stablehlo() -> Sequence[str]:
    import jax
    import jax.numpy as jnp

    def looped(x: Any) -> Any:
        return jax.lax.scan(lambda c, _: (jnp.tanh(c @ c), None), x, None, length=5)[0]

    args = (jnp.ones((8, 8)),)
    return [jax.jit(f).lower(*args).as_text() for f in (lambda x: x @ x + 1, looped)]


def _count(which: str) -> Callable[[str], None]:
    def read(text: str) -> None:
        from mtfcore import counting

        counts = getattr(counting, which)(text)
        counts.traffic(), str(counts), counts.link_bytes

    return read


def _timeline(value: Any) -> None:
    from mtfcore.compiling.timeline import Timeline

    repr(Timeline.from_json(value))


def _timelines() -> Sequence[Any]:
    lines = (ROOT / "tpu_runs" / "records" / "papers_inference.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line)["facts"].get("timeline") for line in lines]
    return sorted(filter(None, found), key=lambda one: len(json.dumps(one)))[:2]


def _constants(text: str) -> None:
    from mtfcore.costs.pricing.constants import Constants

    str(Constants.from_json(text))


CONSTANTS = {
    "chip": "v4",
    "device_kind": "TPU v4",
    "n": 3,
    "intervals": [["compute_share", 0.7, 0.8]],
    "versions": ["jax 1"],
    "first": "2026-01-01",
    "last": "2026-01-02",
    "compute_share": 0.75,
    "hbm_share": 0.9,
    "link_share": 0.8,
}
COMPILERS = {
    "HLO": Parser(_count("count_hlo_text"), _hlo, errors=(ValueError,)),
    "scheduled HLO": Parser(_schedule, _hlo, errors=(ValueError,)),
    "StableHLO": Parser(_count("count_stablehlo"), _stablehlo, errors=(ValueError,)),
    "timeline": Parser(_timeline, _timelines, mutating.values),
    "constants": Parser(_constants, fixed(CONSTANTS), mutating.json_texts),
}
