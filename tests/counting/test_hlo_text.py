"""Fixtures in HLO syntax, one for each thing that a pattern on single lines gets wrong; numbers worked out by hand."""

from collections import Counter
from pathlib import Path

import pytest

from mtfcore.counting import count_hlo_text
from mtfcore.counting.hlo_module import split

FIXTURES = Path(__file__).parent / "fixtures"


def counted(name: str):
    return count_hlo_text((FIXTURES / f"{name}.txt").read_text())


def test_tuple_results_are_seen():
    """Four f32[4,2] operands are one exchange of 128 B among 4; an all-reduce of two arrays is two entries."""
    counts = counted("tuple_all_to_all")
    assert counts.traffic() == Counter({("all_to_all", 4, 128): 1, ("all_reduce", 2, 128): 1, ("all_reduce", 2, 32): 1})
    assert counts.link_bytes == 128 * 3 // 4 + 128 + 32
    assert (counts.origin, counts.scope, counts.elementwise_flops) == ("compiled", "per device", None)


def test_start_and_done_are_one():
    """bf16[256,512] is 262,144 B: a permute sends it once, a gather among 4 three times. TPU tilings are read."""
    counts = counted("start_done")
    assert counts.traffic() == Counter({("permute", 2, 262_144): 1, ("all_gather", 4, 262_144): 1})
    assert counts.link_bytes == 262_144 * (1 + 3)
    assert counts.flops == 2 * 256 * 512 * 128


def test_asynchronous_wrappers_count_what_they_call_once():
    counts = counted("async_wrapper")
    assert counts.traffic() == Counter({("reduce_scatter", 4, 256): 1, ("all_to_all", 2, 256): 1})


def test_loops_multiply_by_the_noted_count_and_unknown_ones_are_said():
    """5 outer runs of (3 all-reduces, 1 permute), then one loop of unknown length."""
    counts = counted("loops_noted")
    assert counts.traffic() == Counter({("all_reduce", 4, 32): 5 * 3 + 1, ("permute", 4, 32): 5})
    assert counts.link_bytes == 16 * 48 + 5 * 32
    assert counts.notes == ("%unknown: number of runs unknown; body counted once",)


def test_a_loop_without_a_noted_count_is_read_from_its_comparison():
    """i = 1, 3, 5, 7, 9 < 11: five runs, seen through copies, fusions and a bound carried along."""
    counts = counted("loop_compared")
    assert counts.traffic() == Counter({("all_to_all", 4, 256): 5})
    assert counts.notes == ()


def test_groups_of_one_and_permutes_in_place_are_free():
    counts = counted("groups_of_one")
    assert [c.kind for c in counts.free] == ["all_reduce", "all_gather", "permute"]
    assert counts.traffic() == Counter({("all_reduce", 8, 64): 1})
    assert counts.link_bytes == 2 * 64 * 7 // 8


def test_all_spellings_of_groups():
    """[4,2]<=[8] pairs, [2,4]<=[4,2]T(1,0) fours, y of a mesh 4, x with half of y 4, and {} all 8."""
    assert [c.group_size for c in counted("iota_groups").collectives] == [2, 4, 4, 4, 8]


def test_a_tpu_reduce_scatter_fusion_is_no_all_reduce():
    counts = counted("reduce_scatter_fusion")
    assert counts.traffic() == Counter({("reduce_scatter", 8, 131_072): 1})
    assert counts.link_bytes == 131_072 * 7 // 8


def test_the_dearest_branch_counts_in_both_spellings():
    """dot: [8,1,4] x [8,4,4] in batches: 2 * 8 * 1 * 4 * 4."""
    counts = counted("branches")
    assert counts.traffic() == Counter({("all_reduce", 4, 128): 2})
    assert counts.notes == (
        "%one: one of 2 branches runs; the dearest (number 1) is counted",
        "%two: one of 2 branches runs; the dearest (number 0) is counted",
    )
    assert counts.flops == 256


def test_convolutions_count_real_multiply_adds():
    """Stride 2 over 8 with one pad row: outputs 0..3 meet 2+3+3+3 = 11 kernel rows. The batched product is written
    as a dilated convolution whose kernel meets one real row for each of the 4 batches."""
    counts = counted("convolutions")
    assert counts.flops == 2 * (2 * 16 * 3 * 11 * 11) + 2 * (4 * 8 * 32 * 64)
    assert counts.notes == ("custom call __onednn$matmul: its FLOPs are hidden and not counted",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty text: expected HLO"),
        ("module @jit_f {\n}", r"HLO line 1: expected 'HloModule NAME, ...', found 'module @jit_f"),
        ("hello", "HLO line 1: expected 'HloModule NAME"),
        ("HloModule m", "without an ENTRY computation; it has none at all"),
        ("HloModule m\nnonsense here", "HLO line 2: expected a computation"),
        (
            "HloModule m\n%f (x: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n}",
            "without an ENTRY computation; it has f",
        ),
        ("HloModule m\nENTRY %f (x: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n", "HLO line 2: .* is not closed"),
        ("HloModule m\nENTRY %f () -> f32[] {\n  what is this\n}", "HLO line 3: expected an instruction"),
        ("HloModule m\nENTRY %f () -> f32[] {\n  %x = banana(0)\n}", r"HLO line 3: expected a shape such as bf16\[8"),
        ("HloModule m\nENTRY %f () -> f32[] {\n  %x = f32[2] 5\n}", r"HLO line 3: expected 'opcode\(operands\)'"),
        ("HloModule m\nENTRY %f () -> f32[] {\n  %x = f32[?] iota()\n}", "expected a known size in every dimension"),
        ("HloModule m\nENTRY %f () -> f32[] {\n}", "ends without any instruction"),
    ],
)
def test_what_is_not_hlo_is_refused_by_line(text, message):
    with pytest.raises(ValueError, match=message):
        count_hlo_text(text)


def _one(instruction: str) -> str:
    entry = f"ENTRY %e (x: f32[4]) -> f32[4] {{\n  %x = f32[4] parameter(0)\n  {instruction}\n}}"
    return f"HloModule m, num_partitions=4\n{entry}"


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (
            "%r = f32[4] all-reduce(%x), replica_groups=everyone",
            r"line 4, all-reduce %r: replica_groups=everyone: expected",
        ),
        ("%r = f32[4] all-reduce(%y), replica_groups={}", "operand 'y' is not defined in computation %e"),
        ("%r = f32[4] all-reduce(%x), replica_groups=mesh[x=4] {z}", "axis 'z', expected one of x"),
        ("%r = f32[4] collective-permute(%x)", "source_target_pairs=None: expected"),
        ("%r = f32[4] fusion(%x), kind=kLoop, calls=%gone", "calls %gone, expected one of the computations"),
        ("%r = f32[4] while(%x)", r"calls \?, expected one of the computations"),
        ("%r = f32[4] conditional(%x)", "expected branch_computations"),
        ("%r = f32[4] convolution(%x, %x)", "dim_labels=None: expected letters"),
        ("%r = f32[4] all-reduce()", "expected at least one operand"),
    ],
)
def test_what_cannot_be_counted_is_refused_by_line(instruction, message):
    with pytest.raises(ValueError, match=message):
        count_hlo_text(_one(instruction))


def test_uneven_groups_and_unknown_communication_are_noted():
    counts = count_hlo_text(_one("%r = f32[4] all-reduce(%x), replica_groups={{0,1,2},{3}}"))
    assert counts.notes == ("%r: groups of [1, 3] devices; the largest is counted",)
    counts = count_hlo_text(_one("%r = f32[4] ragged-all-to-all(%x)"))
    assert counts.notes == ("%r: ragged-all-to-all is not counted",)


def test_only_text_is_taken():
    with pytest.raises(TypeError, match=r"expected the text that compiled\.as_text"):
        count_hlo_text(None)


def test_splitting_respects_brackets_and_quotes():
    assert split('a={1,2}, b="x, \\" y)", c=[2,4]<=[8]T(1,0)') == ["a={1,2}", 'b="x, \\" y)"', "c=[2,4]<=[8]T(1,0)"]


@pytest.mark.parametrize(
    ("groups", "listed"),
    [
        ("{{0,2},{1,3}}", ((0, 2), (1, 3))),
        ("[2,2]<=[4]", ((0, 1), (2, 3))),
        ("[2,2]<=[2,2]T(1,0)", ((0, 2), (1, 3))),
        ("[2,4]<=[2,2,2]T(2,0,1)", ((0, 2, 4, 6), (1, 3, 5, 7))),
        ("mesh['x'=2,'y'=2] {'x'}", ((0, 2), (1, 3))),
        ("mesh['x'=2,'y'=2] {'y','x'}", ((0, 2, 1, 3),)),
        ("mesh['x'=2,'y'=4] {'y':(1)2}", ()),
    ],
)
def test_groups_are_listed_device_by_device(groups, listed):
    """In each spelling; empty where they run along a part of a mesh axis."""
    (found,) = count_hlo_text(_one(f"%r = f32[4] all-reduce(%x), replica_groups={groups}")).collectives
    assert found.groups == listed


def test_a_permute_lists_its_pairs():
    text = _one("%r = f32[4] collective-permute(%x), source_target_pairs={{0,1},{1,0}}")
    assert count_hlo_text(text).collectives[0].groups == ((0, 1), (1, 0))
