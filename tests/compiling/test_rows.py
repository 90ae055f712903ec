"""Rows of reports, made of texts written by hand: each collective with its kind, bytes, groups, axes and turns."""

from __future__ import annotations

from dataclasses import replace

import pytest
from compiling.texts import CHAIN, HEADER, LOOP, SUM, scope

import mtfcore as mtf
from mtfcore.compiling import CompiledReport
from mtfcore.compiling.matching import planned
from mtfcore.compiling.memory import Compiled, refusal
from mtfcore.costs.links.wiring import wire

MESH = mtf.Mesh("x:4 y:2")
OVER_X, OVER_Y = ((0, 2, 4, 6), (1, 3, 5, 7)), ((0, 1), (2, 3), (4, 5), (6, 7))
RING = ((0, 2), (2, 4), (4, 6), (6, 0), (1, 3), (3, 5), (5, 7), (7, 1))


@mtf.function
def moved(a: "B L", b: "B L", c: "B L", d: "B L"):
    """a is gathered over x, b is scattered over x into B, c and d are summed over y."""
    return {"a": mtf.reshard(a, "B L"), "b": mtf.reshard(b, "B:x L:y"), "c": mtf.reshard(c, "B L"),
            "d": mtf.reshard(d, "B L")}  # fmt: skip


PLACE = {"a": "B L:x", "b": "B L:y partialsum:x", "c": "B L partialsum:y", "d": "B L partialsum:y"}
PROGRAM = mtf.plan(moved, MESH, "", sizes="B:64 L:32", place=PLACE, dtype="f32")
GATHER, SCATTER, SUM_C, SUM_D = planned(PROGRAM)


def printed(groups: tuple[tuple[int, ...], ...]) -> str:
    return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"


def permutes() -> str:
    """A gather taken apart: three times round the ring, each begun and waited for."""
    lines, of = [], "a"
    for turn in range(3):
        pairs = f"source_target_pairs={printed(RING)}, {scope(int(GATHER.number))}"
        lines.append(f"  %go{turn} = (f32[64,8]{{1,0}}, f32[64,8]{{1,0}}) collective-permute-start(%{of}), {pairs}")
        lines.append(f"  %round{turn} = f32[64,8]{{1,0}} collective-permute-done(%go{turn})")
        of = f"round{turn}"
    return "\n".join(lines)


OUT = "f32[64,16], f32[64,32], f32[64,32], f32[64,8]"
WHOLE = "f32[64,32]{1,0}"
TEXT = f"""{HEADER.replace("num_partitions=4", "num_partitions=8")}{SUM}
ENTRY %main (a: f32[64,8], b: f32[64,16], c: f32[64,32], d: f32[64,32]) -> ({OUT}) {{
  %a = f32[64,8]{{1,0}} parameter(0)
  %b = f32[64,16]{{1,0}} parameter(1)
  %c = {WHOLE} parameter(2)
  %d = {WHOLE} parameter(3)
{permutes()}
  %all = f32[64,16]{{1,0}} all-reduce(%b), replica_groups={printed(OVER_X)}, to_apply=%sum, {scope(int(SCATTER.number))}
  %both = ({WHOLE}, {WHOLE}) all-reduce(%c, %d), replica_groups={printed(OVER_Y)}, to_apply=%sum, {scope(int(SUM_C.number))}
  %alone = f32[64,16]{{1,0}} all-reduce(%all), replica_groups={{{{0}},{{1}},{{2}},{{3}},{{4}},{{5}},{{6}},{{7}}}}, to_apply=%sum
  %c_sum = {WHOLE} get-tuple-element(%both), index=0
  %d_sum = {WHOLE} get-tuple-element(%both), index=1
  ROOT %out = ({OUT}) tuple(%alone, %c_sum, %d_sum, %round2)
}}
"""  # noqa: E501 - one instruction a line, as a compiler prints it


def report(text: str, program: mtf.Program = PROGRAM, slice_: str = "v5e:4x2") -> CompiledReport:
    wired = wire(program.mesh, slice_)
    memory = Compiled(8192, 4096, 1024, 512, 256) if text else None
    return CompiledReport(program, wired.topology, wired, False, "libtpu 0.0.0, by hand", text, "", memory, None, 0.5)


def test_every_difference_has_its_row_with_exact_numbers():
    rows = {row["number"]: row for row in report(TEXT).rows}
    combined = f"{SUM_C.number}, {SUM_D.number}"
    assert list(rows) == [GATHER.number, SCATTER.number, combined]
    gather, scatter, summed = rows.values()
    assert (gather["words"], gather["planned"]) == (("permutes",), "all_gather over x")
    assert "all_gather taken apart into 3 permutes" in gather["why"] and gather["is_async"]
    assert gather["planned_bytes"] == gather["compiled_bytes"] == 3 * 64 * 8 * 4
    assert scatter["words"] == ("all-reduce",) and not scatter["is_async"]
    assert (scatter["planned_bytes"], scatter["compiled_bytes"]) == (64 * 16 * 4 * 3 / 4, 2 * 64 * 16 * 4 * 3 / 4)
    assert summed["words"] == ("combined",) and f"steps {SUM_C.number} and {SUM_D.number} travel in" in summed["why"]
    assert summed["planned_bytes"] == summed["compiled_bytes"] == 2 * 64 * 32 * 4


def test_every_collective_has_all_that_is_known_of_it():
    gather, scatter, summed = (row["sent"] for row in report(TEXT).rows)
    assert [(one["kind"], one["axes"], one["groups"], one["n_bytes"]) for one in gather] == [
        ("permute", ("x",), RING, 64 * 8 * 4)
    ] * 3
    (one,) = scatter
    assert (one["kind"], one["axes"], one["whole"], one["group"], one["groups"]) == (
        "all_reduce",
        ("x",),
        True,
        4,
        OVER_X,
    )
    assert (one["n_bytes"], one["link_bytes"], one["times"], one["name"]) == (4_096, 6_144, 1, "all")
    (one,) = summed
    assert (one["parts"], one["dtypes"], one["groups"]) == ((8_192, 8_192), ("f32", "f32"), OVER_Y)
    assert [row["groups"] for row in report(TEXT).rows] == ["", "2 of 4", "4 of 2"]


def test_groups_of_one_send_nothing_and_have_no_row():
    made = report(TEXT)
    assert "alone" not in {one.name for one in made.collectives}
    assert made.link_bytes == made.counts.link_bytes == sum(row["compiled_bytes"] for row in made.rows)


@pytest.mark.parametrize(
    ("text", "kind", "axes", "group", "n_bytes", "times", "is_async"),
    [(LOOP, "all_reduce", ("y",), 2, 256, 5, False), (CHAIN, "all_gather", ("x",), 2, 128, 1, True)],
    ids=["loop", "wrapped"],
)
def test_turns_and_waiting_of_what_is_added(text, kind, axes, group, n_bytes, times, is_async):
    program = mtf.plan(moved, "x:2 y:2", "", sizes="B:64 L:32", place=PLACE, dtype="f32")
    row = report(text, program, "v5e:2x2").rows[-1]
    (one,) = row["sent"]
    assert (row["words"], row["times"], row["is_async"], row["number"]) == (("added",), times, is_async, "")
    assert (one["kind"], one["axes"], one["group"], one["n_bytes"], one["times"]) == (kind, axes, group, n_bytes, times)


def test_memory_by_kind_and_the_refusal_of_the_compiler():
    made = report(TEXT)
    assert made.fits and made.memory.total == 8192 + 4096 + 1024 - 512 + 256
    assert "arguments 8 KiB, outputs 4 KiB, temporaries 1 KiB, aliased 512 B, code 256 B; in all 12.8 KiB" in str(made)
    words = "RESOURCE_EXHAUSTED: sizes of HLO temporaries (49.25G) exceeds available HBM (15.75G)"
    refused = replace(report(""), refusal=refusal(words))
    assert not refused.fits and "does not fit, needs 49.2 GiB of 15.8 GiB (compiled)" in refused.headline()
    assert f"the compiler: {words}" in str(refused) and not refused.rows
