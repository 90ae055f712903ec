"""What writing rows costs: their bytes, not those of what they are written into; and whose memory the result has."""

import mtfcore as mtf
from mtfcore.costs.pricing.liveness import peak_memory
from mtfcore.costs.pricing.step_work import hbm_bytes, works
from mtfcore.costs.search.walk import Walk
from mtfcore.costs.templates.template import Template

SIZES = "layers:3 B:8 S:{S} K:4 D:8 N:2"
LAYOUT = "B:x K:y"
ROWS, HELD = 3 * 8 * 2 * 4 * 8 * 2 // 4, 3 * 8 * 64 * 4 * 8 * 2 // 4  # bf16 on 2 x 2 devices, S 64


@mtf.function(dtypes={"at": "i32"})
def once(cache: "layers B S K D", new: "layers B N K D", at: "B N"):
    return {"cache": mtf.write(cache, new, at, "S")}


@mtf.function(dtypes={"at": "i32"})
def in_turns(cache: "layers B S K D", x: "B K D", at: "B"):
    """A decode loop: each turn reads all of the cache, layer by layer, and adds a row for each sequence."""

    def layer(x, c):
        weights = mtf.softmax(mtf.einsum(x, c, out="B K S"), "S")
        x = mtf.einsum(weights, c, out="B K D")
        return x, x

    def turn(cache, at):
        _, new = mtf.repeat(layer, 3, cache, x)
        rows, places = mtf.reshape(new, "layers B N:1 K D"), mtf.reshape(at, "B N:1")
        return mtf.write(cache, rows, places, "S"), at + 1

    return {"cache": mtf.repeat(turn, 5, (), cache, at)[0]}


def planned(fn=once, s=64, layout=LAYOUT):
    sizes = SIZES.format(S=s) if "new" in fn.arguments else SIZES.format(S=s).removesuffix(" N:2")
    return mtf.plan(fn, "x:2 y:2", layout, sizes=sizes, dtype="bf16")


def written(program):
    """The work of the one step that writes."""
    (work,) = [work for work in works(program) if work.step.kind == "write"]
    return work


def test_rows_are_read_and_written_and_nothing_else():
    for s in (64, 4096):
        work = written(planned(s=s))
        assert [access.name for access in (*work.reads, *work.writes)] == ["new", "at", "cache"]
        assert hbm_bytes(work, planned().mesh, 1e6) == 2 * ROWS + 4 * 8 * 2 // 2
    assert mtf.price(planned(), "v4:2x2x1").hbm_seconds == mtf.price(planned(s=4096), "v4:2x2x1").hbm_seconds > 0


def test_a_cache_carried_through_turns_is_read_where_it_is_an_input():
    """However large the fast memory: what a turn carries is the input's own memory with more rows in it."""
    program = planned(in_turns)
    reads = [work for work in works(program) if any(a.name == "cache" for a in work.reads)]
    assert {work.step.times for work in reads} == {15} and len(reads) == 2
    assert all(hbm_bytes(work, program.mesh, 1e9) == HELD // 3 for work in reads)
    assert [access.name for access in written(program).writes] == ["cache"] and written(program).step.times == 5


def test_the_result_has_the_memory_of_what_is_written_into():
    memory = peak_memory(planned())
    assert (memory.outputs, memory.between) == (0, 0) and memory.inputs == HELD + ROWS + 4 * 8 * 2 // 2

    @mtf.function(dtypes={"at": "i32"})
    def other(cache: "layers B S K D", new: "layers B N K D", at: "B N"):
        return {"after": mtf.write(cache, new, at, "S")}

    assert peak_memory(planned(other)).outputs == HELD  # under another name the cache goes on as it was


def test_a_loop_that_carries_a_cache_holds_it_once():
    small, large = (peak_memory(planned(in_turns, s)) for s in (64, 128))
    assert small.outputs == 0
    entry = HELD // 3  # of one layer: what a turn of the inner loop takes from the stack
    scores = 8 * 64 * 4 // 4 * 2  # of a layer: a few such values live at once, but no second cache
    assert large.inputs - small.inputs == HELD
    assert entry <= large.between - small.between < entry + 8 * scores < HELD + entry


def test_a_template_knows_it():
    plans = [planned(s=s) for s in (3 * 32, 5 * 64)]
    sizes = [{"layers": 3, "B": 8, "S": s, "K": 4, "D": 8, "N": 2} for s in (3 * 32, 5 * 64)]
    found = Template.of(*plans, sizes=sizes).evaluate(sizes[0] | {"S": 999}, {"x": 2, "y": 2})
    assert int(found.hbm_bytes.sum()) == 2 * ROWS + 4 * 8 * 2 // 2


def test_a_search_plans_it_as_the_planner_does():
    walk = Walk(planned().graph, mtf.Mesh("x:2 y:2"))
    for layout in ("B:x K:y", "S:xy", "D:x S:y", "B:x K:y"):
        mine, other = walk.program(mtf.Layout(layout)), planned(layout=layout)
        assert [(s.kind, s.inputs, s.outputs, s.before, s.after) for s in mine.steps] == [
            (s.kind, s.inputs, s.outputs, s.before, s.after) for s in other.steps
        ]
