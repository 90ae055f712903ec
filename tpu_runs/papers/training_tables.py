"""The first paper's machines as compiled: efficiency against scale, 512 cores, what fits a core, and what is published.

    >>> print(published())                   # 6 PFLOP/s and hours of training, beside the compiled schedule
    >>> for table in tables(): print(table)     # the models, 512 cores, growth, the largest that fits, Table 1

From committed records; nothing is compiled here. Of peak: 6 FLOPs for each token and each parameter that is not looked
up, as the paper's rates are counted, over what all cores could do at their published peak; products: all FLOPs of the
compiled program, attention and layers computed again among them. Seconds are modelled from compiled schedule. The
compiler says each instruction's cycles once; those in a loop over layers are counted as often as it turns. Last file
of the first paper's machines; for the second paper's see `comparing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import mtfcore as mtf
from mtfcore import reference
from mtfcore.costs.first_paper.iteration_space import Blocks
from mtfcore.costs.first_paper.two_layers import ROWS, cost
from mtfcore.errors import sure
from mtfcore.numbers import format_bytes, format_seconds, quantity
from mtfcore.tables import Column, Row, Table
from tpu_runs.papers import training_rows as rows
from tpu_runs.papers.kept import kept
from tpu_runs.papers.machine import Machine
from tpu_runs.papers.training import LENGTH, sizes_of
from tpu_runs.records import Record

LOOKED_UP = ("embedding", "positions")  # of models whose softmax has a table of its own, as all here
CLUSTER, TRAINING = "first paper, Cluster", "first paper, Training"


def percent(share: float) -> str:
    """`52.2%`"""
    return f"{share:.1%}"


def signed(share: float) -> str:
    """`-25%`"""
    return f"{share:+.0%}"


STEP_COLUMNS = (
    Column("model", "model"), Column("params", "parameters", quantity, True), Column("cores", "cores", is_number=True),
    Column("mesh", "mesh"), Column("batch", "sequences", is_number=True),
    Column("total_bytes", "a core holds", format_bytes, True), Column("cycles", "cycles a step", quantity, True),
    Column("cycles_a_token", "core-cycles a token", quantity, True),
    Column("exposed", "links, exposed", format_seconds, True), Column("seconds", "a step", format_seconds, True),
    Column("rate", "together", lambda rate: quantity(rate, "FLOP/s"), True),
    Column("of_peak", "of peak", percent, True), Column("products", "products", percent, True),
    Column("said", "", wraps=True, below=True),
)  # fmt: skip


def step_row(one: Machine, record: Record) -> Row:
    """One training step, as compiled."""
    params, facts = one.params, record.facts
    cfg = mtf.model.config(params["model"], **params["changes"])
    cores, tokens = mtf.Mesh(params["mesh"]).size, params["batch"] * params["length"]
    changed = [f"{name} {size:,}" for name, size in params["changes"].items()]
    words = ", ".join([params["model"], *changed, *(["recomputed"] if params["recompute"] else [])])
    row = {"model": words, "params": cfg.n_params, "cores": cores, "mesh": shape(params["mesh"]),
           "batch": params["batch"], "name": one.name, "said": ""}  # fmt: skip
    if record.status != "ok":
        return row | {"said": record.reason, "total_bytes": facts.get("refusal", {}).get("needed_bytes")}
    rate = step_flops(cfg, tokens) / facts["seconds"]
    peak = mtf.topology(one.topology).peak_flops_per_device("bf16")
    return row | {
        "total_bytes": facts["memory"]["total"], "cycles": facts["cycles"], "seconds": facts["seconds"],
        "cycles_a_token": facts["cycles"] * cores / tokens, "exposed": facts["exposed_link_seconds"], "rate": rate,
        "of_peak": rate / (cores * peak), "products": record.counts["flops"] / facts["seconds"] / peak,
    }  # fmt: skip


def step_flops(cfg: mtf.model.Config, tokens: int) -> float:
    """A step's FLOPs as rates of training are counted: 6 for each token and parameter; a table that is looked up has
    none."""
    looked_up = sum(param.n_elements for name, param in cfg.params.items() if name.endswith(LOOKED_UP))
    return 6.0 * (cfg.n_params - looked_up) * tokens


def by_itself(one: Machine) -> Iterator[str]:
    """How much more than planned a program computes, where the compiler makes room by computing things again."""
    if one.name in kept():
        more = kept()[one.name].counts["flops"] / one.program().flops() - 1
        heads = one.params["changes"]["heads"]
        yield f"With {heads} heads it fits since the compiler computes things again by itself: {more:.0%} more FLOPs."


def shape(mesh: str) -> str:
    """`rows:16 cols:32` as the paper writes it, 16x32."""
    return "x".join(part.partition(":")[2] for part in mesh.split())


def steps(title: str, machines: Iterable[Machine], *notes: str) -> Table:
    """Those of the machines whose records there are."""
    found = [step_row(one, kept()[one.name]) for one in machines if one.name in kept()]
    return Table(STEP_COLUMNS, found, title, notes=notes)


# ---- what is published ------------------------------------------------------------------------------------------


def figure(table: str, quantity: str, name: str) -> float:
    """One printed figure."""
    return sure(next(row.value for row in reference.rows("first", table, quantity) if row.name == name))


def published_steps() -> Iterator[tuple[str, str, float]]:
    """Model, what the paper prints, and the seconds of a step that follow."""
    flops = step_flops(mtf.model.config("mtf-lm-4.9b"), 256 * LENGTH)
    said = f"{figure(CLUSTER, 'achieved', 'largest run'):g} PFLOP/s on 512 cores"
    yield "mtf-lm-4.9b", said, flops / (figure(CLUSTER, "achieved", "largest run") * 1e15)
    for model, name, hours in (
        ("mtf-lm-4.9b", "language model", "wall time, largest model"),
        ("mtf-translate-2.89b", "translation", "wall time, 2.9B"),
    ):
        took, done = figure(TRAINING, hours, name), figure(TRAINING, "steps", name)
        yield model, f"{took:g} h for {done:,.0f} steps", took * 3600 / done


PUBLISHED_COLUMNS = (
    Column("model", "model"), Column("said", "published"),
    Column("published", "a step, published", format_seconds, True),
    Column("seconds", "compiled", format_seconds, True), Column("off", "off", signed, True),
    Column("again", "layers computed again", format_seconds, True), Column("off_again", "off", signed, True),
)  # fmt: skip
WHY = (
    "What is left may have reasons that a compiled schedule cannot show: links run at their full rate in it, no core",
    "waits for another, for its input or for the host, and hours may hold evaluations, checkpoints and restarts. Steps",
    "are those of the authors' code; the translation model's dropout is left out. Whether layers were computed again",
    "is not published: both stand here. The compiler is not that of 2018.",
)


def published() -> Table:
    """What the paper prints of its largest runs, beside their compiled schedules."""
    own = rows.TABLE_2 | rows.TABLE_3
    again = {one.params["model"]: one for one in rows.recomputed() if shape(one.params["mesh"]) == "16x32"}
    found = []
    for model, said, seconds in published_steps():
        made = rows.own_meshes({model: own[model]})[0]
        row: Row = {"model": model, "said": said, "published": seconds} | compared("seconds", "off", made, seconds)
        found.append(row | (compared("again", "off_again", again[model], seconds) if model in again else {}))
    title = "First paper: training steps as published, and modelled from compiled schedule"
    return Table(PUBLISHED_COLUMNS, found, title, notes=(*at_peak(), *WHY))


def at_peak() -> Iterator[str]:
    """How near to the peak the compiler takes products to run: those of Table 1's layers on one device."""
    if alone := kept().get(rows.layouts()[0].name):
        rate = alone.counts["flops"] / alone.facts["compute_seconds"]
        share = rate / mtf.topology("v2:4x4").peak_flops_per_device("bf16")
        yield f"In the compiler's estimates large products run at {share:.0%} of peak, which hardware does not reach."


def compared(key: str, off: str, one: Machine, seconds: float) -> dict[str, float]:
    """A step's seconds under one name and their error under another; nothing where there is no record."""
    record = kept().get(one.name)
    return {key: record.facts["seconds"], off: record.facts["seconds"] / seconds - 1} if record else {}


# ---- Table 1, Appendix B, and all tables -----------------------------------------------------------------------

SMALL_COLUMNS = (
    Column("name", "program"), Column("formula_bytes", "sends, by formula", format_bytes, True),
    Column("link_bytes", "sends, compiled", format_bytes, True),
    Column("total_bytes", "a core holds", format_bytes, True), Column("cycles", "cycles", quantity, True),
    Column("exposed", "links, exposed", format_seconds, True),
    Column("seconds", "in all", format_seconds, True), Column("computing", "computing", percent, True),
)  # fmt: skip


def small_row(one: Machine, record: Record) -> Row:
    """One of the programs that the paper reasons with; its bytes by the paper's formula, factors kept."""
    facts = record.facts
    return {
        "name": one.name, "formula_bytes": formula_bytes(one.params), "link_bytes": record.counts["link_bytes"],
        "total_bytes": facts["memory"]["total"], "cycles": facts["cycles"], "seconds": facts["seconds"],
        "exposed": facts["exposed_link_seconds"], "computing": facts["compute_seconds"] / facts["seconds"],
    }  # fmt: skip


def formula_bytes(params: Mapping[str, Any]) -> float:
    """What a processor sends, by Table 1's formulas or Appendix B's, in bf16."""
    if params["what"] == "product":
        return float(2 * Blocks(*params["blocks"]).sent(params["edge"]))
    row = ROWS[params["layout"]]
    return float(cost(row, sizes_of(params), row.parts(*params["parts"])).sent_bytes)


def small(title: str, machines: Iterable[Machine], *notes: str) -> Table:
    """Those of the machines whose records there are."""
    found = [small_row(one, kept()[one.name]) for one in machines if one.name in kept()]
    return Table(SMALL_COLUMNS, found, title, notes=notes)


ORIGINS = (
    "Seconds, rates and shares are modelled from compiled schedule; cycles and what a core holds or sends, compiled."
)


def tables() -> tuple[Table, ...]:
    """All but the published figures."""
    first = "First paper, "
    return (
        steps(f"{first}Table 2: language models, each on its own mesh", rows.own_meshes(rows.TABLE_2), ORIGINS),
        steps(f"{first}Table 3: translation models, each on its own mesh", rows.own_meshes(rows.TABLE_3), ORIGINS),
        steps(f"{first}the largest language model on 512 cores; recomputed: layers computed again in the backward pass",
              (*rows.meshes(), *rows.recomputed()), ORIGINS),
        steps(f"{first}section 8: rows and columns grow, cores with their square", rows.growing_2d(), ORIGINS),
        steps(f"{first}section 8: rows, columns and planes grow, cores with their cube", rows.growing_3d(), ORIGINS),
        steps(f"{first}data-parallel on 32 cores: the largest that fits, and the first that is refused",
              rows.largest(), *by_itself(rows.data_parallel(rows.LARGEST[False])), ORIGINS),
        small(f"{first}Table 1: two layers under five layouts, forward and backward, on 32 cores", rows.layouts(),
              ORIGINS),
        small(f"{first}Appendix B: a product on 64 processors, in slabs, pencils and cubes", rows.products(), ORIGINS),
    )  # fmt: skip
