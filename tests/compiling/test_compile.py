"""Small programs compiled for TPUs that are not there, and the 540B engine's own phases for 64 chips.

What is handed to the compiler has exactly the plan's collectives; what it made of them differs, and every difference
has its words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from compiling.compiled import SLICE, decode, needs_compiler, prefill, report_of, small, small_report

import mtfcore as mtf
from mtfcore.compiling import CompiledReport
from mtfcore.compiling.collectives import axes_of
from mtfcore.compiling.differences import WORDS, sent_bytes
from mtfcore.permuting import permute_axes, permute_pairs

pytestmark = needs_compiler


def planned_traffic(program: mtf.Program) -> Counter:
    """(kind, axes that move, group, bytes) → times, of the plan."""
    found: Counter = Counter()
    for step in program.collectives():
        axes, group = set(step.axes), step.group
        if step.kind == "permute":
            axes, group = moved_axes(step, program.mesh), None
        found[step.kind, frozenset(axes), group, step.n_bytes] += step.times
    return found


def moved_axes(step: mtf.Step, mesh: mtf.Mesh) -> set[str]:
    """Along which axes blocks of a permute really move."""
    axes = permute_axes(step, mesh)
    pairs = permute_pairs(step, mesh)
    inner = mtf.Mesh({axis: mesh[axis] for axis in axes})
    return set(axes_of([pair for pair in pairs if pair[0] != pair[1]], inner)[0])


def lowered_traffic(report: CompiledReport) -> Counter:
    """The same, counted in the StableHLO."""
    found: Counter = Counter()
    for one in report.lowered_counts.collectives:
        axes, whole = axes_of(one.groups, report.program.mesh)
        assert whole or one.kind == "permute"
        group = None if one.kind == "permute" else one.group_size
        found[one.kind, frozenset(axes), group, one.n_bytes] += one.times
    return found


def all_named(report: CompiledReport) -> Iterable[str]:
    """The words of every difference; what is sent otherwise than planned has at least one."""
    for match, how in report.matches:
        plan, made = sent_bytes(match)
        kinds = {p.kind for p in match.planned} == {sent.kind for sent in match.compiled}
        assert how.words or (plan == made and kinds), how
        assert bool(how.words) == bool(how.why)
        yield from how.words


def check_phase(report: CompiledReport) -> set[str]:
    """Lowered as planned, every difference named, nothing lost of what the text sends; returns the words."""
    assert lowered_traffic(report) == planned_traffic(report.program)
    assert report.link_bytes == report.counts.link_bytes
    assert sum(sent_bytes(match)[1] for match, _ in report.matches) == report.link_bytes
    assert sum(sent_bytes(match)[0] for match, _ in report.matches) == report.program.link_bytes().total
    words = set(all_named(report))
    assert words <= WORDS.keys() - {"gone", "added"}
    return words


# ---- small programs ----------------------------------------------------------------------------------------------


def test_a_small_program(capfd):
    report = small_report()
    assert report.fits and report.refusal is None and report.text.startswith("HloModule")
    assert "is_scheduled=true" in report.text and "stablehlo" in report.stablehlo
    assert check_phase(report) == set()
    assert report.version.startswith("libtpu ") and report.version in report.compiler
    assert capfd.readouterr() == ("", "")


def test_memory_is_that_of_the_plan():
    report = small_report()
    ports = {port.name: port for port in (*report.program.inputs, *report.program.outputs)}
    held = {n: port.sharding.bytes_per_device(report.program.mesh, "bf16") for n, port in ports.items()}
    assert report.memory.arguments == sum(held[name] for name in ("x", "w", "v"))
    assert report.memory.outputs == held[report.program.outputs[0].name] and report.memory.aliased == 0


def test_cycles_of_products_are_near_the_peak():
    """The compiler's cycles at the chip's clock and the chip's peak are two sources of one time."""
    program = small(batch=2048, io=4096, hidden=8192)
    report = mtf.compile(program, "v5e:2x2")
    at_peak = program.flops() / report.topology.peak_flops_per_device("bf16")
    products = [n for n, step in enumerate(program.steps) if step.flops]
    seconds = sum(report.cycles_by_step[str(n)] for n in products) / report.topology.chip.value("clock_hz")
    assert at_peak <= seconds < 1.25 * at_peak
    assert report.seconds == report.compute_seconds + report.exposed_link_seconds
    assert 0 < report.exposed_link_seconds <= report.link_seconds


def test_the_report_says_what_is_what():
    report = small_report()
    text, html = str(report), report._repr_html_()
    assert "modelled from compiled schedule" in text and "memory of one device (compiled)" in text
    assert "measured" not in text and repr(report) == f"<CompiledReport {report.headline()}>"
    assert report.origin == "compiled" and report.seconds_origin == "modelled from compiled schedule"
    for row in report.rows:
        assert row["planned"] in text and row["compiled"] in html
    assert str(report.wiring) in text


def test_too_large_a_program_is_refused_with_its_bytes():
    report = mtf.compile(small(batch=2**20, io=8192, hidden=2**16), "v2:2x1")
    assert not report.fits and report.memory is None and not report.text and not report.matches
    assert report.refusal.needed_bytes > report.refusal.available_bytes > 7 * 2**30
    assert "does not fit, needs " in repr(report) and "RESOURCE_EXHAUSTED" in str(report)
    assert lowered_traffic(report) == planned_traffic(report.program)
    with pytest.raises(mtf.LayoutError, match=r"was refused for v2:2x1: needs .*; no text to read"):
        _ = report.cycles
    with pytest.raises(mtf.LayoutError, match="no text to read"):
        _ = report.counts


def check_partitioned(explicit: CompiledReport, theirs: CompiledReport) -> None:
    """The compiler's own choice of collectives sends no less, and starts from the same memory.

    Either may order an argument's dimensions as it likes, so their padding to tiles differs: 0.2 % for PaLM's decode.
    """
    assert theirs.partitioned and theirs.memory.arguments == pytest.approx(explicit.memory.arguments, rel=0.005)
    assert explicit.link_bytes <= theirs.link_bytes == theirs.counts.link_bytes


def test_partitioned_by_the_compiler_never_sends_less():
    theirs = mtf.compile(small(), "v5e:2x2", partitioned=True)
    check_partitioned(small_report(), theirs)
    assert "shard_map" not in theirs.text and "shard_map" in small_report().text


@mtf.function
def update(w: "A B", g: "A B"):
    return {"w": w - 0.5 * g}


def test_what_is_updated_in_place_shares_its_memory():
    program = mtf.plan(update, "x:4", "A:x", sizes="A:512 B:1024", dtype="f32")
    report = mtf.compile(program, "v5e:2x2")
    assert report.memory.aliased == report.memory.outputs == 512 * 1024 * 4 / 4
    assert mtf.compile(program, "v5e:2x2", donate=()).memory.aliased == 0


@mtf.function
def gathered(a: "A B"):
    return mtf.reshard(a, "A B")


@pytest.mark.parametrize("wiring", ["x→0, y→1", "x→1, y→0"])
def test_the_mesh_lies_as_asked(wiring):
    program = mtf.plan(gathered, "x:4 y:2", "", sizes="A:512 B:1024", place={"a": "A:x B"}, dtype="f32")
    report = mtf.compile(program, "v5e:4x2" if wiring.startswith("x→0") else "v5e:2x4", wiring=wiring)
    assert str(report.wiring) == wiring
    assert {sent.axes for sent in report.collectives} == {("x",)}


@pytest.mark.long
@pytest.mark.parametrize("slice_", ["v2:2x1", "v3:2x1", "v4:2x2x1", "v5p:2x2x1", "v6e:2x2", "v7x:2x1x1"])
def test_every_kind_of_tpu(slice_):
    report = small_report(slice_)
    assert report.fits and report.cycles > 0 and lowered_traffic(report) == planned_traffic(report.program)
    assert set(all_named(report)) <= WORDS.keys()


# ---- the 540B engine on 64 chips -----------------------------------------------------------------------------------


def test_decode_of_540b():
    report = report_of(decode())
    words = check_phase(report)
    assert words == {"combined", "all-reduce"}
    combined = [match for match, how in report.matches if "combined" in how.words]
    assert all(len(match.planned) == 2 and len(match.compiled) == 1 for match in combined)
    in_loop = [sent for sent in report.collectives if sent.times == 118]
    assert in_loop and {sent.times for sent in report.collectives} == {1, 118}
    assert report.memory.total < report.topology.hbm_bytes_per_device


def test_the_cache_is_updated_in_place():
    for program in (decode(), prefill()):
        memory = report_of(program).memory
        mesh = program.mesh
        cache = [port.sharding.bytes_per_device(mesh, port.dtype) for port in program.outputs if "cache" in port.name]
        assert memory.aliased >= sum(cache) > 0.9 * memory.outputs and memory.temporaries < 0.01 * sum(cache)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_several_tokens_in_one_launch():
    report = report_of(decode(turns=4, drawn=True))
    assert check_phase(report) >= {"combined", "all-reduce"}
    assert {4, 4 * 118} <= {sent.times for sent in report.collectives}


def test_decode_seconds_are_those_of_the_paper():
    """Table 2: 28.5 ms a token at batch 64 with int8 weights: cycles, and links that nothing hides."""
    report = report_of(decode())
    assert abs(report.seconds / 28.5e-3 - 1) < 0.05
    assert 0.5 * report.seconds < report.compute_seconds < report.seconds


def test_prefill_of_540b():
    report = report_of(prefill())
    assert check_phase(report) >= {"combined", "all-reduce"}
    names = [p.number for match, how in report.differences for p in match.planned]
    assert len(names) == len(set(names))


def test_every_instruction_that_computes_names_its_step():
    report = report_of(decode())
    named = sum(cycles for number, cycles in report.cycles_by_step.items() if number)
    assert named > 0.95 * report.cycles
    numbers = {row["step"] for row in report.program.table().rows}
    assert {number for number in report.cycles_by_step if number} <= numbers


@pytest.mark.long
@pytest.mark.timeout(600)
def test_partitioned_by_the_compiler_decode_is_slower():
    explicit, theirs = report_of(decode()), report_of(decode(), partitioned=True)
    check_partitioned(explicit, theirs)
    assert explicit.seconds < theirs.seconds
    assert f"decode (partitioned by the compiler) for {SLICE}" in repr(theirs)
