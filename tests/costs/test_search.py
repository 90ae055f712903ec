"""Layout search: against brute force, on the first paper's language model, and where it is given nonsense."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from costs.brute_force import best, plans, seconds
from costs.functions_to_search import PAPER, SMALL, language_model, random_function, trained, two_layers

import mtfcore as mtf
from mtfcore.costs.pricing.liveness import peak_memory
from mtfcore.functions import Function

NET = "batch:64 io:512 hidden:2048"
SECTION_9 = "batch:rows vocab:cols d_ff:cols heads:cols"


@pytest.mark.parametrize("where", ["v5e:2x2", "a100:6"])
@pytest.mark.parametrize("seed", range(10))
def test_brute_force_finds_nothing_better(seed, where):
    fn, sizes = random_function(seed)
    found = mtf.search_layout(fn, where, sizes=sizes, dtype="bf16")
    least, _ = best(fn, mtf.topology(where), sizes=sizes, dtype="bf16")
    assert found.best.seconds.total == pytest.approx(least, rel=1e-9)
    assert found.is_optimal and found.gap == 0


@pytest.mark.parametrize("sizes", ["batch:8 io:12 hidden:4", "batch:4 io:2 hidden:16", "batch:24 io:2 hidden:2"])
@pytest.mark.parametrize("where", ["v5e:2x2", "a100:6"])
def test_brute_force_finds_nothing_better_for_training(sizes, where):
    found = mtf.search_layout(trained, where, sizes=sizes, dtype="bf16")
    least, _ = best(trained, mtf.topology(where), sizes=sizes, dtype="bf16")
    assert found.best.seconds.total == pytest.approx(least, rel=1e-9) and found.is_optimal


@pytest.mark.parametrize("seed", range(100, 112))
def test_brute_force_finds_nothing_better_that_fits(seed):
    """Memory in the middle of what layouts need, so that the quickest may not do."""
    fn, sizes = random_function(seed)
    where = mtf.topology("v5e:2x2")
    every = [(seconds(p, where), peak_memory(p).total) for p in plans(fn, 4, sizes=sizes, dtype="bf16")]
    for share in (0, 1, 2):
        held = sorted({n_bytes for _, n_bytes in every})
        limit = held[share * (len(held) - 1) // 4]
        found = mtf.search_layout(fn, where, sizes=sizes, memory=limit, dtype="bf16")
        assert found.best.seconds.total == pytest.approx(min(s for s, n in every if n <= limit), rel=1e-9)
        assert found.is_optimal and found.best.fits


def test_what_is_shown_is_what_plan_says():
    found = mtf.search_layout(two_layers, "v2:4x4", sizes=NET, dtype="bf16")
    for one in found.found:
        program = mtf.plan(two_layers, one.mesh, one.layout, sizes=NET, dtype="bf16")
        assert one.seconds.compute == pytest.approx(program.flops() / 22.5e12)
        assert one.seconds.communicate == pytest.approx(float(program.link_bytes()) / 60e9)
        assert one.memory.total == peak_memory(program).total
    times = [one.seconds.total for one in found.found]
    assert times == sorted(times) and len(times) == 5


def test_the_language_model_of_section_9_on_512_cores():
    """The 4.9 billion parameters of Table 2: the paper's rule for which dimensions share an axis, proved the best."""
    found = mtf.search_layout(language_model, "v2:16x16", sizes=PAPER, dtype="bf16")
    assert len(found.meshes) == 12 and found.is_optimal
    placed = dict(found.best.layout.rules)
    (wide,) = {placed[dim] for dim in ("vocab", "d_ff", "heads")}
    assert placed.keys() == {"batch", "vocab", "d_ff", "heads"} and placed["batch"] != wide
    paper = found.compare(SECTION_9, "rows:16 cols:32")
    assert paper.fits and paper.seconds.total > found.best.seconds.total
    said = found.why(paper)
    assert "longer: batch in 16 parts, not 256" in said and "all-reduce" in said and "d_ff in 32 parts" in said
    assert found.why(found.compare(found.best.layout)) == "is the winner itself"
    assert found.compare(SECTION_9, "rows:256 cols:2").seconds.total == pytest.approx(found.best.seconds.total)


def test_training_it_is_best_as_the_paper_trained_it():
    """Forward and backward: of all meshes of 512 cores 16 x 32 with section 9's layout, proved."""
    cfg = mtf.model.config("mtf-lm-4.9b")
    loss = mtf.model.loss(cfg)
    arguments = {name: " ".join(map(str, dims)) for name, dims in loss.arguments.items()}

    def gradients(**tensors):
        return mtf.gradients(loss(**tensors), {name: tensors[name] for name in cfg.params})

    found = mtf.search_layout(
        Function.of("gradients", arguments, gradients, loss.dtypes), "v2:16x16", sizes="B:256 L:256"
    )
    assert found.is_optimal and str(found.best.mesh) == "rows:16 cols:32"
    assert set(found.best.layout.rules) == set(mtf.model.read_layout(SECTION_9).rules)
    assert found.best.seconds.efficiency > 0.5, "the paper reports more than half of the peak (section 9)"


def test_a_search_loads_no_jax():
    code = (
        "import sys, mtfcore as mtf\n"
        "@mtf.function\n"
        "def product(x: 'a b', w: 'b c'): return mtf.einsum(x, w, out='a c')\n"
        "print(mtf.search_layout(product, 'v2:2x2', sizes='a:8 b:8 c:8'))\n"
        "assert 'jax' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and "optimal" in done.stdout, done.stderr


def test_on_the_papers_own_mesh_its_rule_is_the_best():
    """Forward alone, batch on the longer axis is a little better still: activations travel, gradients do not."""
    found = mtf.search_layout(language_model, "v2:16x16", sizes=PAPER, mesh="rows:16 cols:32", dtype="bf16")
    swapped = {dim: {"rows": "cols", "cols": "rows"}[axis] for dim, (axis,) in mtf.Layout(SECTION_9).rules}
    layouts = [dict(one.layout.rules) for one in found.found[:2]]
    assert layouts == [dict(mtf.Layout(swapped).rules), dict(mtf.Layout(SECTION_9).rules)]
    assert found.is_optimal and "batch in 16 parts, not 32" in found.why(1)


def test_less_memory_makes_a_finer_cut_win():
    loose = mtf.search_layout(two_layers, "v5e:2x2", sizes=NET, top=1, dtype="bf16").best
    tight = mtf.search_layout(two_layers, "v5e:2x2", sizes=NET, top=1, memory=loose.memory.total - 1, dtype="bf16").best
    assert tight.memory.total < loose.memory.total and tight.seconds.total >= loose.seconds.total


def test_inputs_stay_where_place_says():
    found = mtf.search_layout(two_layers, "v5e:2x2", sizes=NET, place={"w": "io:rows hidden"}, top=3, dtype="bf16")
    for one in found.found:
        (w,) = [port for port in one.program.inputs if port.name == "w"]
        assert w.sharding.text() == "io:rows hidden" and "rows" in one.mesh


def test_a_search_cut_short_says_how_far_it_may_be_off():
    found = mtf.search_layout(language_model, "v2:16x16", sizes=PAPER, seconds=1e-9, top=1, dtype="bf16")
    assert not found.is_optimal and 0 < found.gap < 1
    assert "not proved optimal" in str(found) and "could be saved" in str(found)


def test_the_table_shows_proof_runners_up_and_reasons():
    found = mtf.search_layout(language_model, "v2:2x2", sizes=SMALL, dtype="bf16")
    text = str(found)
    assert "modelled" in text and "optimal: no legal layout over 3 meshes of 8 devices" in text
    assert text.count("longer: ") + text.count("takes as long: ") == len(found.found) - 1
    assert "<table" in found._repr_html_() and "optimal" in repr(found)
    assert found.why(1) in text and found.n_layouts > found.n_planned


def test_ties_are_counted_and_the_plainest_shown():
    @mtf.function
    def product(x: "a b", w: "b c"):
        return mtf.einsum(x, w, out="a c")

    found = mtf.search_layout(product, "v5e:2x2", sizes="a:8 b:8 c:8", top=20, dtype="bf16")
    keys = [(one.seconds.total, one.memory.total) for one in found.found]
    assert len(set(keys)) == len(keys) and found.n_ties > 0
    assert len(found.best.mesh.axes) <= 2


def test_one_device_has_one_layout():
    found = mtf.search_layout(two_layers, "v5e:1x1", sizes=NET, dtype="bf16")
    assert [str(one.layout) for one in found.found] == [""] and found.best.seconds.communicate == 0
    assert "there is no runner-up" in found.why()


def test_axes_that_the_function_names_must_be_those_of_the_mesh():
    @mtf.function
    def named(x: "batch io", w: "io hidden"):
        return mtf.reshard(mtf.einsum(x, w, out="batch hidden"), "batch:y hidden")

    with pytest.raises(mtf.LayoutError, match=r"names mesh axis y; give the meshes to search, e.g. mesh='y:4'"):
        mtf.search_layout(named, "v5e:2x2", sizes=NET)
    found = mtf.search_layout(named, "v5e:2x2", sizes=NET, mesh=["x:2 y:2", "y:4"])
    assert "y" in found.best.mesh and found.is_optimal
    with pytest.raises(mtf.LayoutError, match="unknown mesh axis 'y'"):
        mtf.search_layout(named, "v5e:2x2", sizes=NET, mesh="x:4")


def test_layouts_that_the_planner_refuses_are_passed_over():
    """Two pieces of io 6 and 2 are joined: cut in two, both divide; in four, neither does."""

    @mtf.function
    def joined(x: "batch io:6", y: "batch io:2", w: "io:8 hidden"):
        return mtf.einsum(mtf.concat([x, y], "io"), w, out="batch hidden")

    found = mtf.search_layout(joined, "v5e:2x2", sizes="batch:8 hidden:8")
    least, _ = best(joined, mtf.topology("v5e:2x2"), sizes="batch:8 hidden:8")
    assert found.best.seconds.total == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"topology": "v2:3x3"}, "no topology 'v2:3x3'.*nearest"),
        (
            {"mesh": "rows:4 cols:4"},
            "mesh 'rows:4 cols:4' names 16 devices, v5e:2x2 has 4; e.g. 'all:4', 'rows:2 cols:2'",
        ),
        ({"memory": -1}, r"memory is -1; expected bytes on one device, e.g. 8 \* 2\*\*30"),
        ({"memory": 1000}, r"nothing fits in 1,000 B a device; closest is layout '.*' on mesh '.*' with .* too much"),
        ({"place": {"y": "batch:rows"}}, "place: no input 'y'; legal here: 'x', 'w', 'v'"),
        ({"place": ["x"]}, "place: expected e.g."),
        ({"model": "exact"}, "no model of time 'exact'; legal here: 'paper'"),
        ({"top": 0}, "top is 0; expected how many"),
        ({"seconds": "60"}, "seconds is '60'; expected for how long to search"),
        ({"mesh": 0.5}, "0.5"),
        ({"sizes": "batch:64 io:512"}, "no size for dimension 'hidden'"),
        ({"dtype": "f64"}, "TPU v5e has no published peak for f64; it has"),
        ({"fn": len}, "expected a function made with @mtf.function, got builtin"),
    ],
)
def test_bad_input_is_refused_with_what_would_do(how, said):
    given = {"fn": two_layers, "topology": "v5e:2x2", "sizes": NET} | how
    with pytest.raises(mtf.LayoutError, match=said):
        mtf.search_layout(**given)


def test_a_size_that_no_tensor_has_is_said():
    with pytest.warns(mtf.LayoutWarning, match="size of 'hiden' ignored, no tensor has it"):
        mtf.search_layout(two_layers, "v5e:2x2", sizes=NET + " hiden:8", top=1, dtype="bf16")


def test_a_wrong_runner_up_is_refused():
    found = mtf.search_layout(two_layers, "v5e:2x2", sizes=NET, top=2, dtype="bf16")
    with pytest.raises(mtf.LayoutError, match="why: 7 is no runner-up; legal here: 1 to 1"):
        found.why(7)
    assert math.isfinite(found.bound)


def test_what_takes_no_time_by_the_model_is_optimal():
    @mtf.function
    def plain(x: "batch io"):
        return mtf.sin(x)

    found = mtf.search_layout(plain, "v5e:2x2", sizes="batch:64 io:512", dtype="bf16")
    assert found.best.seconds.total == 0 and found.is_optimal
    assert found.why()
    assert repr(found)
