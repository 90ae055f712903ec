"""The first paper's machines: their records are of the programs that they name, and say what lessons say of them."""

from __future__ import annotations

import os
import random

import pytest

import mtfcore as mtf
from tpu_runs.papers import training_rows as rows
from tpu_runs.papers import training_tables as tables
from tpu_runs.papers.kept import kept
from tpu_runs.papers.machine import machine_of
from tpu_runs.papers.making import make
from tpu_runs.papers.remaking import differences, other_compiler
from tpu_runs.papers.training import step

MOST_BYTES = 3_000  # of a record
SEED = int(os.environ.get("MESHWORK_PAPERS_SEED") or random.randrange(10**6))
PEAK_512 = 11.5e15  # published: 512 cores


def record_of(one):
    return kept()[one.name]


def of_peak(one) -> float:
    return tables.step_row(one, record_of(one))["of_peak"]


def test_every_machine_has_a_small_record_of_itself():
    ours = {name: record for name, record in kept().items() if record.params["kind"] == "training"}
    assert {one.name for one in rows.machines()} <= set(ours)
    assert all(len(record.line()) < MOST_BYTES for record in ours.values())
    assert all(machine_of(ours[one.name].params) == machine_of(one.asked()) for one in rows.machines())


def test_a_name_says_how_a_machine_differs_from_the_papers():
    plain = step("mtf-lm-0.37b", "v2:4x4", "rows:8 cols:4")
    assert plain.name == "mtf-lm-0.37b/step/8x4/v2:4x4" and plain.params["batch"] == 256
    other = step("mtf-lm-0.37b", "v2:4x4", "rows:8 cols:4", batch=64, recompute=True, d_ff=4096)
    assert other.name == f"{plain.name}/batch=64/d_ff=4096/recompute"
    assert step("mtf-translate-0.42b", "v2:4x4", "rows:8 cols:4").params["batch"] == 128


@pytest.mark.parametrize("one", [*rows.layouts(), *rows.products()], ids=lambda one: one.name)
def test_what_is_sent_is_what_the_papers_formulas_say(one):
    """Table 1's and Appendix B's programs, in bf16: formula, plan and compiled text agree byte for byte."""
    record = record_of(one)
    assert tables.formula_bytes(one.params) == record.counts["link_bytes"] == record.facts["planned_link_bytes"]


def test_weights_are_kept_in_f32_and_gradients_travel_in_bf16():
    program = step("mtf-lm-0.14b", "v2:4x4", "all:32").program()
    cfg = mtf.model.config("mtf-lm-0.14b")
    assert {port.dtype for port in program.inputs if port.name in cfg.params} == {"f32"}
    assert program.link_bytes().total == pytest.approx(2 * 2 * cfg.n_params * 31 / 32, rel=1e-3)


@pytest.mark.parametrize("again", rows.LARGEST)
def test_one_head_more_than_the_largest_is_refused(again):
    largest, larger = (record_of(rows.data_parallel(rows.LARGEST[again] + more, again)) for more in (0, 1))
    needs = larger.facts["refusal"]
    assert (largest.status, larger.status) == ("ok", "refused")
    assert largest.facts["memory"]["total"] <= needs["available_bytes"] < needs["needed_bytes"]
    assert needs["available_bytes"] < mtf.topology("v2:4x4").hbm_bytes_per_device


def test_of_512_cores_the_papers_mesh_is_the_fastest():
    """Published: 16 x 32. Cubes that cut d_model of 1,024 send whole hidden layers, and hold them."""
    made = {one.params["mesh"]: record_of(one) for one in rows.meshes()}
    fits = {mesh: record.facts["seconds"] for mesh, record in made.items() if record.status == "ok"}
    assert min(fits, key=fits.get) == "rows:16 cols:32"
    assert made["rows:8 cols:8 planes:8"].status == "refused"
    assert record_of(rows.recomputed()[-1]).status == "ok"


@pytest.mark.parametrize("growing", [rows.growing_2d, rows.growing_3d])
def test_efficiency_stays_while_cores_grow_with_the_square_or_the_cube(growing):
    """Section 8, from 8 cores to 512: each takes as many cycles but for the vocabulary, which does not grow."""
    shares = [of_peak(one) for one in growing()]
    assert max(shares) - min(shares) < 0.08 and shares[-1] > shares[-2]  # 512 cores are a torus, fewer are not
    cycles = [record_of(one).facts["cycles"] for one in growing()]
    assert cycles == sorted(cycles, reverse=True) and cycles[-1] > 0.85 * cycles[0]


def test_larger_models_are_more_efficient_on_the_same_cores():
    """Table 2's: four on 32 cores and two on 512, all with 256 sequences."""
    shares = {one.params["model"]: of_peak(one) for one in rows.own_meshes(rows.TABLE_2)}
    on_32 = [shares[f"mtf-lm-{size}b"] for size in ("0.14", "0.22", "0.37", "0.67")]
    assert on_32 == sorted(on_32) and shares["mtf-lm-2.48b"] < shares["mtf-lm-4.9b"]
    assert all(share > 0.5 for share in shares.values())


def test_published_rates_stand_beside_the_compiled_ones():
    table = tables.published()
    assert [round(row["published"], 3) for row in table.rows] == [0.319, 0.344, 0.514]
    assert all(-0.35 < row["off"] < 0 for row in table.rows)
    assert -0.15 < table.rows[0]["off_again"] < 0
    (row,) = [row for row in tables.steps("", rows.meshes()).rows if row["mesh"] == "16x32"]
    assert row["rate"] / PEAK_512 == pytest.approx(row["of_peak"], rel=1e-2) and row["rate"] > 6e15


def test_every_table_can_be_read():
    for table in (tables.published(), *tables.tables()):
        assert table.rows and str(table).startswith(table.title)
        assert "refused" not in str(table) or "needs" in str(table)


@pytest.mark.long
@pytest.mark.xdist_group("compiling")
@pytest.mark.parametrize("which", range(3))
def test_a_training_step_is_what_the_compiler_makes_again(which):
    """By chance; a step takes half a minute and more to compile. Small programs are made again in every run."""
    print(f"MESHWORK_PAPERS_SEED={SEED}")
    ours = sorted(one.name for one in rows.machines() if one.params["what"] == "step")
    record = kept()[random.Random(SEED).sample(ours, 3)[which]]
    if reason := other_compiler(record):
        pytest.skip(reason)
    assert differences(record, make(machine_of(record.params))) == [], record.params["name"]
