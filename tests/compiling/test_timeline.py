"""Bars of a schedule: they are the walk of `timing`, event by event, of written, random and compiled texts."""

from __future__ import annotations

import functools
import json
import operator
import random
from collections.abc import Iterable

import pytest
from compiling.compiled import needs_compiler, small_report
from compiling.texts import CHAIN, DOUBLE, HEADER, LOOP, PAIR, SUM, TURNS, cycles
from hypothesis import given, settings
from hypothesis import strategies as st

import mtfcore as mtf
from mtfcore.compiling.report import CompiledReport
from mtfcore.compiling.timeline import COMPUTE, Bar, Timeline, timeline
from mtfcore.compiling.timeline_text import thinned
from mtfcore.costs.links.wiring import wire
from mtfcore.errors import LayoutError


@mtf.function
def plain(x: "batch io"):
    return mtf.relu(x)


def report_on(text: str, slice_: str = "v5e:2x2") -> CompiledReport:
    program = mtf.plan(plain, "x:2 y:2", sizes="batch:4 io:4")
    topology = mtf.topology(slice_)
    return CompiledReport(program, topology, wire(program.mesh, topology), False, "", text, "", None, None, 0.0)


def adds_up(line: Timeline) -> None:
    """The compute lane to the last digit; links to rounding, since a loop sums each lane by itself."""
    own = [bar for bar in line.bars if not bar.is_link]
    assert one_by_one(bar.seconds for bar in own if bar.kind != "wait") == line.took.compute_seconds
    assert one_by_one(bar.seconds for bar in own if bar.kind == "wait") == line.took.exposed_link_seconds
    assert sum(bar.seconds for bar in line.bars if bar.is_link) == pytest.approx(line.took.link_seconds, rel=1e-12)
    assert max((bar.end_seconds for bar in own), default=0.0) == pytest.approx(line.seconds, rel=1e-12)


def one_by_one(seconds: Iterable[float]) -> float:
    """Added as the walk adds; `sum` of newer Pythons carries lost digits along."""
    return functools.reduce(operator.add, seconds, 0.0)


# ---- written texts


def test_a_loop_is_one_turn_of_a_layer_and_one_bar_of_the_step():
    report = report_on(LOOP)
    layer, step = timeline(report), timeline(report, "step")
    assert (layer.turns, [bar.kind for bar in layer.bars]) == (5, ["all_reduce", "wait", "compute"])
    assert layer.lanes == (COMPUTE, "x", "y") and layer.bars[0].lanes == ("y",)
    assert [bar.kind for bar in step.bars] == ["compute", "loop", "wait", "loop"]
    assert step.bars[1].parts == 5 and step.bars[1].cycles == 5_000 and step.bars[3].lanes == ("y",)
    assert step.took == step.whole == layer.whole == report.took
    assert 5 * layer.seconds + 100 / 1.5e9 == pytest.approx(step.seconds)


def test_what_hides_a_link_is_named():
    line = timeline(report_on(PAIR), "step")
    link, work = (next(bar for bar in line.bars if bar.kind == kind) for kind in ("permute", "compute"))
    assert line.hidden_by(link) == [work] and line.hidden_by(work) == []
    assert link.hidden_seconds == pytest.approx(900 / 1.5e9)
    assert link.exposed_seconds == pytest.approx(line.took.exposed_link_seconds) and link.exposed_seconds > 0


def test_a_collective_beside_several_fusions_is_one_bar():
    line = timeline(report_on(CHAIN), "step")
    assert [(bar.kind, bar.name) for bar in line.bars if bar.is_link] == [("all_gather", "gather_1")]


def test_directions_are_lanes_of_their_own_where_something_goes_one_way():
    one_way = TURNS.replace("{{0,1},{1,0},{2,3},{3,2}}", "{{0,1},{2,3}}")
    assert timeline(report_on(PAIR), "step").lanes == (COMPUTE, "x", "y")
    line = timeline(report_on(PAIR.replace(TURNS, one_way)), "step")
    assert line.lanes == (COMPUTE, "x", "y →", "y ←")
    assert [bar.lanes for bar in line.bars if bar.is_link] == [("y →",)]


def test_without_a_loop_there_is_no_layer():
    with pytest.raises(LayoutError, match="no loop, so there is no layer to show; which='step' shows all"):
        timeline(report_on(PAIR))
    with pytest.raises(LayoutError, match="no timeline of 'leyer'; did you mean 'layer'"):
        timeline(report_on(LOOP), "leyer")


# ---- random texts


def random_text(seed: int) -> str:
    """Fusions, waited-for sums, permutes with work beside them, and loops in loops, in a random order."""
    rng, parts, names = random.Random(seed), [], iter(range(10_000))

    def lines(depth: int, carried: str) -> tuple[list[str], str]:
        found, now, flying = [], carried, []
        for _ in range(rng.randint(1, 8)):
            n, what = next(names), rng.choice(("work", "work", "sum", "start", "done", "loop"))
            if what == "work":
                cost = cycles(rng.randint(0, 5_000))
                found.append(f"%v{n} = f32[64]{{0}} fusion({now}), kind=kLoop, calls=%double, {cost}")
            elif what == "sum":
                groups = rng.choice(("{{0,1},{2,3}}", "{{0,2},{1,3}}", "{{0,1,2,3}}"))
                found.append(f"%v{n} = f32[64]{{0}} all-reduce({now}), replica_groups={groups}, to_apply=%sum")
            elif what == "start":
                pairs = rng.choice((TURNS, "source_target_pairs={{0,1},{2,3}}", "source_target_pairs={{2,0},{3,1}}"))
                state = "(f32[64]{0}, f32[64]{0}, u32[], u32[])"
                found.append(f"%v{n} = {state} collective-permute-start({now}), {pairs}")
                flying.append(n)
                continue
            elif what == "done" and flying:
                found.append(f"%v{n} = f32[64]{{0}} collective-permute-done(%v{flying.pop(0)})")
            elif what == "loop" and depth < 2:
                found += loop(n, depth, now)
            else:
                continue
            now = f"%v{n}"
        return found, now

    def loop(n: int, depth: int, carried: str) -> list[str]:
        inner, last = lines(depth + 1, f"%x{n}")
        state = "(s32[], f32[64]{0})"
        parts.append(f"""%test{n} (s: (s32[], f32[64])) -> pred[] {{
  %s{n} = {state} parameter(0)
  %t{n} = s32[] get-tuple-element(%s{n}), index=0
  %m{n} = s32[] constant({rng.randint(1, 9)})
  ROOT %l{n} = pred[] compare(%t{n}, %m{n}), direction=LT
}}
%body{n} (c: (s32[], f32[64])) -> (s32[], f32[64]) {{
  %c{n} = {state} parameter(0)
  %i{n} = s32[] get-tuple-element(%c{n}), index=0
  %o{n} = s32[] constant(1)
  %n{n} = s32[] add(%i{n}, %o{n})
  %x{n} = f32[64]{{0}} get-tuple-element(%c{n}), index=1
  {chr(10).join(inner)}
  ROOT %r{n} = {state} tuple(%n{n}, {last})
}}
""")
        return [f"%z{n} = s32[] constant(0)", f"%b{n} = {state} tuple(%z{n}, {carried})",
                f"%w{n} = {state} while(%b{n}), condition=%test{n}, body=%body{n}",
                f"%v{n} = f32[64]{{0}} get-tuple-element(%w{n}), index=1"]  # fmt: skip

    body, last = lines(0, "%p")
    main = "\n  ".join(["%p = f32[64]{0} parameter(0)", *body, f"ROOT %end = (f32[64]{{0}}) tuple({last})"])
    return f"{HEADER}{SUM}\n{DOUBLE}\n{''.join(parts)}ENTRY %main (p: f32[64]) -> (f32[64]) {{\n  {main}\n}}\n"


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_bars_of_random_schedules_add_up_to_what_the_report_says(seed):
    report = report_on(random_text(seed))
    step = timeline(report, "step")
    adds_up(step)
    assert step.took == report.took and sum(bar.cycles for bar in step.bars) == report.cycles
    if "while(" in report.text:
        adds_up(timeline(report))
    for size in (8_000, 1_200):
        data = step.to_json(size)
        assert Timeline.from_json(json.loads(json.dumps(data))).took == report.took


# ---- plain data


def test_a_long_timeline_is_kept_in_8_kb():
    works = [Bar("compute", f"fusion.{n}", "", (COMPUTE,), n * 1e-6, (n + 1) * 1e-6, 1e-6, cycles=9) for n in range(5)]
    links = [Bar("permute", f"permute.{n}", "", ("x",), n * 1e-6, n * 1e-6 + 5e-7, 5e-7) for n in range(5)]
    found = thinned([*works, *links], 1e-5)
    assert [(bar.parts, bar.cycles, bar.kind) for bar in found] == [(5, 45, "compute"), (5, 0, "permute")]
    assert found[0].share == pytest.approx(1) and found[1].share == pytest.approx(5 * 5e-7 / 4.5e-6)
    assert len(thinned([*works, *links], 1e-7)) == 10


FAULTS = [
    ({"timeline": 2}, "it is an object with"), ({"which": "day"}, "which cannot be 'day'"),
    ({"took": [1.0, 2.0]}, "took cannot be"), ({"took": [1.0, float("nan"), 0.0]}, "took cannot be"),
    ({"lanes": ["x"]}, "lanes cannot be"), ({"clock_hz": 0}, "clock_hz cannot be"), ({"turns": True}, "turns cannot"),
    ({"bars": [["compute"]]}, "bar 0 cannot be"), ({"bars": []}, "its bars add up to 0 s where compute_seconds says"),
    ({"bars": [["compute", "f", "", [7], 0, 1, 1, 0, 1, 1]]}, "bar 0 cannot be"), ({"steps": {"1": 2}}, "steps cannot"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), FAULTS)
def test_data_that_no_timeline_wrote_is_refused(change, words):
    data = timeline(report_on(LOOP)).to_json()
    with pytest.raises(LayoutError, match="a timeline's data") as caught:
        Timeline.from_json({**data, **change})
    assert words in str(caught.value)
    with pytest.raises(LayoutError):
        Timeline.from_json("[]")


# ---- compiled


class TestCompiled:
    pytestmark = needs_compiler

    def test_bars_add_up_and_name_the_plans_steps(self):
        report = small_report()
        line = timeline(report, "step")
        adds_up(line)
        assert line.took == report.took and line.origin == "modelled from compiled schedule"
        numbers = {number for bar in line.bars for number in bar.steps}
        assert numbers <= set(line.steps) and any(words.startswith("einsum") for words in line.steps.values())
        links = [bar for bar in line.bars if bar.is_link]
        assert len(links) == len(report.collectives) and all(line.words(bar) for bar in links)
