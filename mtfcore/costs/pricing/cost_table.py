"""A cost in words and as a table: what takes how long, what binds, what would help, does it fit.

    >>> headline(mtf.price(prog, "v4:2x2x2"))
    'two_layers on v4:2x2x2: 3.76 µs, 53% hops, MFU 3.2%, fits (modelled)'

Next file to read: `second_paper/collectives`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mtfcore.costs.pricing.asking import label
from mtfcore.errors import sure
from mtfcore.numbers import count, digits, format_bytes, format_flops, format_seconds, quantity
from mtfcore.tables import Column, Row, Table

if TYPE_CHECKING:
    from mtfcore.costs.pricing.cost import Cost
    from mtfcore.costs.pricing.step_cost import StepCost

NAMES = {
    "compute": "compute", "hbm": "HBM", "link": "links", "hops": "hops", "launch": "starting messages",
    "latency": "latency",
}  # fmt: skip
MOST = 4  # inputs that a sentence names
MATTERS = 0.005  # gains and losses below this share of the time are not worth a sentence

COLUMNS = (
    Column("step", "step"),
    Column("what", "what", wraps=True),
    Column("times", "times", "× {:,}".format, is_number=True),
    Column("flops", "FLOPs", format_flops, is_number=True),
    Column("hbm_bytes", "HBM", format_bytes, is_number=True),
    Column("sent_bytes", "sends", format_bytes, is_number=True),
    Column("compute_seconds", "compute", format_seconds, is_number=True),
    Column("hbm_seconds", "HBM", format_seconds, is_number=True),
    Column("link_seconds", "links", format_seconds, is_number=True),
    Column("hop_seconds", "hops", format_seconds, is_number=True),
    Column("seconds", "all turns", format_seconds, is_number=True),
    Column("share", "share", "{:.1%}".format, is_number=True),
    Column("bound", "bound by"),
    Column("how", "how", wraps=True),
)


def cost_table(cost: Cost) -> Table:
    """The steps that take time, with the totals of each column, and sentences below."""
    rows = [_row(step, cost) for step in cost.steps if step.once.total]
    total = {
        "step": "all", "flops": cost.flops or None, "seconds": cost.additive_seconds, "share": 1.0,
        "compute_seconds": cost.busy["compute"], "hbm_seconds": cost.busy["hbm"], "link_seconds": cost.busy["link"],
        "hop_seconds": cost.busy["hops"] or None, "bound": NAMES[cost.bottleneck],
        "how": "totals are of all turns",
    }  # fmt: skip
    title = f"{cost.program.name} on {cost.topology} ({cost.wiring.text()}), {cost.rates.model} model: modelled"
    return Table(COLUMNS, rows, title, total, tuple(notes(cost)), "is_slowest")


def headline(cost: Cost) -> str:
    """One line: `two_layers on v4:4x4x4: 1.2 ms, 62% links, MFU 23%, fits (modelled)`."""
    share = cost.parts[cost.bottleneck] / cost.additive_seconds if cost.additive_seconds else 0.0
    fits = "fits" if cost.fits else "does not fit"
    name, where, took = cost.program.name, cost.topology, format_seconds(cost.seconds)
    return f"{name} on {where}: {took}, {share:.0%} {NAMES[cost.bottleneck]}, MFU {cost.mfu:.1%}, {fits} (modelled)"


def notes(cost: Cost) -> Iterator[str]:
    """Sentences: totals, bottleneck, what would help, contention, unequal axes, padding, memory."""
    yield (
        f"One after the other {format_seconds(cost.additive_seconds)}: computing and reading "
        f"{format_seconds(cost.local_seconds)}, collectives {format_seconds(cost.collective_seconds)}; all overlapped "
        f"{format_seconds(cost.overlapped_seconds)}; with the overlap asked for ({cost.overlap:.0%}) "
        f"{format_seconds(cost.seconds)}."
    )
    if cost.seconds:
        yield _bottleneck(cost)
        yield _what_if(cost)
        yield f"MFU {cost.mfu:.1%}: {format_flops(cost.model_flops)} on {count(cost.topology.devices, 'device')}."
    yield from _hbm(cost)
    yield from _losses(cost)
    yield from _axes(cost)
    yield _memory(cost)
    if cost.rates.model == "calibrated" and not cost.rates.is_calibrated:
        yield f"Uncalibrated: no constants are fitted for {cost.topology.chip.title}; figures as in the physical model."
    if cost.rates.constants is not None:
        yield f"With {cost.rates.constants.words}."


def _row(step: StepCost, cost: Cost) -> Row:
    once, what = step.once, step.step
    return {
        "step": step.ask.number, "what": what.label(), "times": what.times if what.times > 1 else None,
        "flops": step.ask.flops or None, "hbm_bytes": step.ask.hbm_bytes or None,
        "reads": [access.name for access in step.ask.work.reads if access.name],
        "sent_bytes": float(what.link_bytes) if what.is_collective else None,
        "compute_seconds": once.compute or None, "hbm_seconds": once.hbm or None, "link_seconds": once.link or None,
        "hop_seconds": once.hops or None, "launch_seconds": once.launch or None, "seconds_once": once.total,
        "seconds": step.seconds, "share": step.seconds / cost.additive_seconds,
        "intensity": step.intensity if what.flops else None, "bound": NAMES[step.bound],
        "how": label(step.ask, cost.wiring, cost.rates), "is_collective": what.is_collective,
        "is_slowest": step is cost.slowest,
    }  # fmt: skip


def _bottleneck(cost: Cost) -> str:
    part, step = cost.bottleneck, sure(cost.slowest)
    share = cost.parts[part] / cost.additive_seconds
    most = f"step {step.ask.number}, {step.step.label()}: {format_seconds(step.seconds)}"
    return f"Bottleneck: {NAMES[part]}, {share:.0%} of the time; most of it in {most}."


def _what_if(cost: Cost) -> str:
    """What twice as fast a resource would gain, the most helpful first."""
    gains = sorted(cost.what_if.items(), key=lambda pair: -pair[1])
    said = [f"{NAMES[name]} {format_seconds(gain)} ({gain / cost.seconds:.0%})" for name, gain in gains
            if gain > MATTERS * cost.seconds]  # fmt: skip
    return f"Twice as fast would gain: {', '.join(said)}." if said else "Nothing twice as fast would gain much."


def _hbm(cost: Cost) -> Iterator[str]:
    """What HBM is read for, the largest first."""
    found = list(cost.hbm_by_input.items())
    if found and cost.hbm_seconds > MATTERS * cost.seconds:
        said = [f"{name or 'values between'} {format_bytes(n_bytes)}" for name, n_bytes in found[:MOST]]
        more = f", and {len(found) - MOST} more" if len(found) > MOST else ""
        yield f"HBM traffic of a device: {', '.join(said)}{more}."


def _losses(cost: Cost) -> Iterator[str]:
    if cost.contention_seconds > MATTERS * cost.seconds:
        groups = {axis: max(leg.shared for leg in legs) for axis, legs in _legs(cost).items()}
        shared = [f"{axis} ({count(n, 'group')} on each link)" for axis, n in groups.items() if n > 1]
        lost = format_seconds(cost.contention_seconds)
        yield f"Contention: {lost} more than with links of their own, along {', '.join(shared)}."
    if cost.padded_share > MATTERS:
        rows, high, wide = cost.rates.tile
        yield f"Tiles of {high} x {wide}, {rows} rows at a time: {cost.padded_share:.0%} of the FLOPs done are padding."
    if idle := cost.wiring.idle:
        yield f"{idle} of {cost.topology.devices} devices are idle."
    hop = cost.topology.chip.figures.get("hop_seconds")
    if hop and hop[0].note and cost.parts["hops"] > MATTERS * cost.seconds:
        yield f"A hop is taken to last {format_seconds(hop[0].value)} ({hop[0].note})."


def _axes(cost: Cost) -> Iterator[str]:
    """The bandwidth of each mesh axis, where they differ; and where the collectives' time goes."""
    rates = {axis: min(leg.bytes_per_second for leg in legs) for axis, legs in _legs(cost).items()}
    if rates and max(rates.values()) > min(rates.values()) and not cost.rates.is_paper:
        said = [f"{axis} {quantity(rate, 'B/s')} ({cost.wiring.legs(axis)[0].kind})" for axis, rate in rates.items()]
        slow = min(rates, key=rates.__getitem__)
        times = digits(max(rates.values()) / rates[slow])
        yield f"Axes of unequal bandwidth, a link one way: {', '.join(said)}; {slow} is the slow one, {times} times."
    if len(cost.by_axes) > 1:
        said = [f"{axes} {format_seconds(took)}" for axes, took in sorted(cost.by_axes.items(), key=lambda p: -p[1])]
        yield f"Collectives by mesh axes: {', '.join(said)}."


def _legs(cost: Cost) -> dict[str, tuple]:
    found = {axis: cost.wiring.legs(axis) for axis in cost.program.mesh.names}
    return {axis: legs for axis, legs in found.items() if legs}


def _memory(cost: Cost) -> str:
    """Both verdicts, raw and with the reserve."""
    kept = cost.capacity_bytes * (1 - cost.reserve)
    verdicts = ["fits" if fits else "does not fit" for fits in (cost.fits_raw, cost.fits)]
    return (
        f"Memory {format_bytes(cost.memory.total)} a device ({cost.memory}) of {format_bytes(cost.capacity_bytes)}: "
        f"{verdicts[0]} raw; with {cost.reserve:.0%} left free ({format_bytes(kept)}) {verdicts[1]}."
    )
