"""Fitting the few constants of a chip to published latencies: `python -m mtfcore.costs.calibration [--write]`.

A row is predicted as `inference` would: each step takes the longer of computing (at a share of the peak) and reading
HBM (at its published rate), each collective its bytes (at a share of the links' rate) and its messages (at so much
each), and all steps add up. So a row needs little: compute and HBM seconds of its local steps, link seconds and
messages in all. Three constants then make the sum of relative errors least; the fourth, over how many axes of a torus
a collective sends at once, is a whole number that is tried. Which rows are fitted is said in `reference/
calibration.json`, by the beginnings of their keys; every other row checks. Next file to read: `reference/figures`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import mtfcore as mtf
from mtfcore.costs.links.wiring import Wiring
from mtfcore.costs.pricing.demands import Demands, demands
from mtfcore.costs.pricing.rates import FITTED, rates
from mtfcore.costs.serving.grids import orientations
from mtfcore.reference import Published, latency_rows
from mtfcore.steps import Program

NAMES = ("compute_share", "link_share", "launch_seconds")
BEGIN = np.log([0.9, 0.6, 3e-6])
POWER, FAR = 1.5, 0.3  # errors beyond 30 % pull no harder: what the model cannot explain shall not bend it


def seconds(one: Demands, constants: Sequence[float]) -> float:
    """A program's, with these constants."""
    compute_share, link_share, launch = constants
    local = (np.maximum(one.compute / compute_share, one.hbm) * one.times).sum()
    return float(local + one.link / link_share + one.messages * launch)


@dataclass(frozen=True)
class Fitted:
    """A row with its passes: for each way round of the mesh, (how often, the passes one of which runs)."""

    row: Published
    ways: Sequence[Sequence[tuple[int, Sequence[Demands]]]]

    def seconds(self, constants: Sequence[float]) -> float:
        """The prediction: the fastest way round."""
        return min(sum(times * min(seconds(each, constants) for each in passes) for times, passes in way)
                   for way in self.ways)  # fmt: skip

    def error(self, constants: Sequence[float]) -> float:
        """Logarithm of predicted over published."""
        return float(np.log(self.seconds(constants) / self.row.seconds))


def rows_of(chip: str, busy_axes: int | None, keys: Iterable[str] = ("",)) -> list[Fitted]:
    """The published latencies on a chip whose keys begin so, planned and priced once."""
    begins = tuple(keys)
    found = [row for row in latency_rows() if mtf.topology(row.setup["topology"]).chip.name == chip]
    return [Fitted(row, _ways(row, busy_axes)) for row in found if row.key.startswith(begins)]


def _ways(row: Published, busy_axes: int | None) -> list[list[tuple[int, list[Demands]]]]:
    slice_ = mtf.topology(row.setup["topology"])
    return [_phases(row, wired, busy_axes) for wired in orientations(slice_, row.setup["ffn"])]


def _phases(row: Published, wired: Wiring, busy_axes: int | None) -> list[tuple[int, list[Demands]]]:
    setup, found = row.setup, []
    for phase in ("prefill", "decode") if setup["phase"] == "total" else (setup["phase"],):
        output = setup.get("output_tokens") or 0
        times = output if phase == "decode" and row.quantity == "latency" else 1
        kinds = ("heads", "batch") if setup["attention"] == "auto" else (setup["attention"],)
        found.append((times, [_pass(_program(setup, phase, kind, wired), wired, busy_axes) for kind in kinds]))
    return found


def _program(setup: Mapping[str, Any], phase: str, attention: str, wired: Wiring) -> Program:
    middle = setup["input_tokens"] + max((setup.get("output_tokens") or 0) - 1, 0) // 2
    new, cached = (setup["input_tokens"], 0) if phase == "prefill" else (1, middle)
    cfg = mtf.model.config(setup["model"], **setup.get("changes", {}))
    return mtf.model.plan_phase(
        cfg, phase, wired.mesh, ffn=setup["ffn"], attention=attention, batch=setup["batch"], new_tokens=new,
        cached_tokens=cached, weights=setup["weights"], cache=setup["cache"],
    )  # fmt: skip


def _pass(program: Program, wired: Wiring, busy_axes: int | None) -> Demands:
    plain = rates(wired.topology.chip, "physical")
    return demands(program, wired, replace(plain, how=replace(plain.how, busy_axes=busy_axes)))


def fit(rows: Sequence[Fitted]) -> dict[str, float]:
    """The three constants with which these rows are predicted best."""

    def badness(logs: np.ndarray) -> float:
        errors = np.abs([row.error(np.exp(logs)) for row in rows])
        return float(np.mean(np.minimum(errors, FAR) ** POWER))

    return dict(zip(NAMES, np.exp(_lowest(badness, BEGIN)).tolist(), strict=True))


def _lowest(badness: Any, at: np.ndarray, stride: float = 0.2, least: float = 1e-4) -> np.ndarray:
    """A compass search: try a stride along and against each constant, and halve it where nothing is better."""
    best = badness(at)
    while stride > least:
        tries = [at + way * stride * np.eye(len(at))[axis] for axis in range(len(at)) for way in (1, -1)]
        found = [badness(each) for each in tries]
        if min(found) < best:
            at, best = tries[int(np.argmin(found))], min(found)
        else:
            stride /= 2
    return at


def main(write: bool) -> None:
    """Fit every chip of the file anew, say what came out, and with `write` keep it."""
    kept = json.loads(FITTED.read_text(encoding="utf-8"))
    for chip, entry in kept["chips"].items():
        found = fit(rows_of(chip, entry.get("busy_axes"), entry["fitted"]))
        print(chip, ", ".join(f"{name} {value:.4g} (kept: {entry[name]:.4g})" for name, value in found.items()))
        entry |= {name: float(f"{value:.3g}") for name, value in found.items()}
    if write:
        FITTED.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m mtfcore.costs.calibration", description="Fit each chip anew.")
    parser.add_argument("--write", action="store_true", help="keep what came out")
    main(parser.parse_args().write)
