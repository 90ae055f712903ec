"""FLOPs, bytes and cycles of each fusion: of texts written by hand, and of a program beside its plan."""

from __future__ import annotations

import pytest
from compiling.compiled import decode, needs_compiler, report_of, small_report
from compiling.texts import DOUBLE, HEADER, cycles, scope

from mtfcore.compiling.fusions import fusions
from mtfcore.compiling.schedule import read

STACK, ROW, CACHE = "s8[118,64,32]{2,1,0}", "s8[1,64,32]{2,1,0}", "f32[16,128]{1,0}"
# A layer taken out of a stack and multiplied, a row written into a cache in place, and a copy that takes no cycles.
TEXT = f"""{HEADER}{DOUBLE}
%taken (stack: s8[118,64,32], layer: s32[]) -> s8[64,32] {{
  %stack = {STACK} parameter(0)
  %layer = s32[] parameter(1)
  %zero = s32[] constant(0)
  %slice = {ROW} dynamic-slice(%stack, %layer, %zero, %zero), dynamic_slice_sizes={{1,64,32}}
  ROOT %flat = s8[64,32]{{1,0}} bitcast(%slice)
}}
%multiplied (x: bf16[8,64], all: s8[118,64,32], which: s32[]) -> bf16[8,32] {{
  %x = bf16[8,64]{{1,0}} parameter(0)
  %all = {STACK} parameter(1)
  %which = s32[] parameter(2)
  %same = {STACK} bitcast(%all)
  %w = s8[64,32]{{1,0}} fusion(%same, %which), kind=kLoop, calls=%taken
  %wide = bf16[64,32]{{1,0}} convert(%w)
  ROOT %product = bf16[8,32]{{1,0}} dot(%x, %wide), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
%written (cache: f32[16,128], row: f32[1,128], at: s32[]) -> f32[16,128] {{
  %cache = {CACHE} parameter(0)
  %row = f32[1,128]{{1,0}} parameter(1)
  %at = s32[] parameter(2)
  %none = s32[] constant(0)
  ROOT %updated = {CACHE} dynamic-update-slice(%cache, %row, %at, %none)
}}
ENTRY %main (p0: bf16[8,64], p1: s8[118,64,32], p2: s32[], p3: f32[16,128], p4: f32[1,128]) -> (bf16[8,32], f32[16,128]) {{
  %p0 = bf16[8,64]{{1,0}} parameter(0)
  %p1 = {STACK} parameter(1)
  %p2 = s32[] parameter(2)
  %p3 = {CACHE} parameter(3)
  %p4 = f32[1,128]{{1,0}} parameter(4)
  %layer_fusion = bf16[8,32]{{1,0}} fusion(%p0, %p1, %p2), kind=kOutput, calls=%multiplied, {scope(3)}, {cycles(900)}
  %row_fusion = {CACHE} fusion(%p3, %p4, %p2), kind=kLoop, calls=%written, {scope(5)}, {cycles(100)}
  %still = f32[1,128]{{1,0}} copy(%p4)
  ROOT %out = (bf16[8,32]{{1,0}}, {CACHE}) tuple(%layer_fusion, %row_fusion)
}}
"""  # noqa: E501 - one instruction a line, as a compiler prints it


def test_what_is_read_and_written_of_a_stack_and_a_cache():
    """Of 118 layers one, of a cache of 16 rows one: the rest is neither read nor written."""
    product, row = fusions(read(TEXT))
    assert (product.name, product.step, product.flops) == ("layer_fusion", "3", 2 * 8 * 64 * 32)
    assert product.bytes_in == 2 * 8 * 64 + 64 * 32 + 4 and product.bytes_out == 2 * 8 * 32
    assert (row.name, row.flops, row.bytes_in, row.bytes_out) == ("row_fusion", 0, 4 * 128 + 4, 4 * 128)
    assert (product.share, row.share) == (0.9, 0.1)


@pytest.mark.parametrize("opcode", ["copy", "multiply"])
def test_an_instruction_that_stands_alone_counts_too(opcode):
    alone = f"%still = f32[1,128]{{1,0}} {opcode}(%p4{', %p4' if opcode == 'multiply' else ''}), {cycles(1_000)}"
    found = fusions(read(TEXT.replace("%still = f32[1,128]{1,0} copy(%p4)", alone)))
    assert [one.name for one in found] == ["layer_fusion", "row_fusion", "still"] and found[2].share == 0.5
    assert found[2].bytes_in == 512 * (2 if opcode == "multiply" else 1) and found[2].bytes_out == 512


class TestWithTheCompiler:
    pytestmark = needs_compiler

    def test_all_flops_of_a_program_are_those_of_its_plan(self):
        report = small_report()
        assert sum(one.times * one.flops for one in report.fusions) == report.program.flops() == report.counts.flops
        products = {one.step: one for one in report.fusions if one.flops}
        steps = {str(n): step for n, step in enumerate(report.program.steps) if step.flops}
        assert {number: one.flops for number, one in products.items()} == {n: s.flops for n, s in steps.items()}
        first = products[min(products)]  # x and w in, h out
        assert (first.bytes_in, first.bytes_out) == (2 * (256 * 1024 + 512 * 1024), 2 * 512 * 1024)

    def test_cycles_and_shares_add_up(self):
        report = report_of(decode())
        assert sum(one.times * one.cycles for one in report.fusions) == report.cycles
        assert abs(sum(one.share for one in report.fusions) - 1) < 1e-9
        dearest = max(report.fusions, key=lambda one: one.times * one.cycles)
        weights = 2 * 18432 * 73728 // 64  # int8, the halves of the gate side by side, one layer of the stack
        assert dearest.times == 118 and weights < dearest.bytes_in < 1.1 * weights

    def test_the_table_has_the_dearest_first_and_says_what_is_left_out(self):
        report = small_report()
        table = report.fusion_table(most=1)
        assert len(table.rows) == 1 and table.rows[0]["cycles"] == max(one.cycles for one in report.fusions)
        text = str(table)
        assert f"{len(report.fusions) - 1} more fusions with" in text and "modelled from compiled schedule" in text
        assert table.total["cycles"] == report.cycles and table.total["flops"] == report.program.flops()
