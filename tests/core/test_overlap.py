"""Looped collectives: the same values as the plain program, the same bytes, and exactly the permutes that are planned.

Values are small whole numbers, so sums are exact in any order and results must be equal.
"""

from __future__ import annotations

import numpy as np
import pytest
from core.sweep.checking import check_counts, quick

import mtfcore as mtf
from mtfcore.overlap import refused
from mtfcore.overlap.rewriting import How, halves
from mtfcore.overlap.rings import rounds

MESHES = ("x:2", "x:3", "x:8", "x:4 y:2", "x:2 y:2 z:2")
SIZES = "A:6 E:48 F:96"
KINDS = [(ways, form, rows) for ways in (1, 2) for form in ("throughput", "latency") for rows in (1, 10**6)]


def planned(mesh: str, at: tuple[str, str], place: dict[str, str], out: str = "A F", dtype: str = "f32") -> mtf.Program:
    """One product, its operands gathered to `at`, its result where `out` has it."""

    @mtf.function
    def product(x: "A E", w: "E F"):
        return mtf.einsum(x, w, out=out, at=at)

    return mtf.plan(product, mesh, sizes=SIZES, place=place, dtype=dtype)


def axes(mesh: str) -> str:
    return "".join(mtf.Mesh(mesh).names)


CASES = {  # what lies where before and during the product, and after it
    "gathered, contracted": lambda on: (("A E", "E F"), {"x": f"A E:{on}", "w": "E F"}, "A F"),
    "gathered, kept": lambda on: (("A E", "E F"), {"x": "A E", "w": f"E F:{on}"}, "A F"),
    "gathered in two dimensions": lambda on: (("A E", "E F"), {"x": "A E", "w": f"E:{on[:1]} F:{on[1:]}"}, "A F"),
    "scattered": lambda on: ((f"A E:{on}", f"E:{on} F"), {"x": f"A E:{on}", "w": f"E:{on} F"}, f"A F:{on}"),
    "gathered and scattered": lambda on: (  # as the second paper's w_in: over y into the product, over x behind it
        (f"A E:{on[:1]}", f"E:{on[:1]} F:{on[1:]}"), {"x": f"A E:{on}", "w": f"E:{on[:1]} F:{on[1:]}"},
        f"A F:{on[1:]}{on[:1]}"),
}  # fmt: skip


def arrays(program: mtf.Program, seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(-3, 4, port.sharding.shape).astype(np.float32) for port in program.inputs]


def same(program: mtf.Program, looped: mtf.Program, stablehlo: bool = False) -> None:
    """Equal values, bytes and FLOPs; what is counted is what is planned."""
    given, run = arrays(program), quick(mtf.simulate(looped))
    check_counts(looped, run, stablehlo)
    assert looped.link_bytes() == program.link_bytes()
    assert looped.flops() == program.flops()
    assert {step.kind for step in looped.collectives()} == {"permute"}
    np.testing.assert_array_equal(run(*given), quick(mtf.simulate(program))(*given))


SWEEP = [  # each kind of ring on each of some meshes, and every case on all of them
    (mesh, case, KINDS[(3 * m + 5 * c + 2 * k) % len(KINDS)])
    for m, mesh in enumerate(MESHES)
    for c, case in enumerate(CASES)
    for k in range(1 if len(mesh) == 3 else 2)
    if len(mesh) > 3 or case in ("gathered, contracted", "gathered, kept", "scattered")
]


@pytest.mark.parametrize(("mesh", "case", "kind"), SWEEP)
def test_values_bytes_and_permutes(mesh, case, kind):
    program = planned(mesh, *CASES[case](axes(mesh)))
    ways, form, rows = kind
    same(program, mtf.looped(program, ways, form, rows=rows), stablehlo=rows == 1 and ways == 2)


def n_rounds(group: int, ways: int, form: str) -> int:
    """Rounds that follow one another, as a closed form: what latency multiplies."""
    if form == "throughput":
        return group - 1
    return group // 2 if ways == 2 else (group - 1).bit_length()


@pytest.mark.parametrize("group", [2, 3, 4, 5, 8, 13, 64])
@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("form", ["throughput", "latency"])
def test_rounds_bring_every_block_once(group, ways, form):
    """Closed forms: rounds, and g − 1 blocks sent, each of which was there before it went on."""
    found, held, sent = rounds(group, ways, form), {0}, 0
    assert len(found) == n_rounds(group, ways, form)
    for hops in found:
        assert {hop.back for hop in hops} <= held
        assert len({(hop.distance, hop.back) for hop in hops}) == len(hops)
        arrived = [(hop.back + hop.distance) % group for hop in hops]
        sent += len(arrived)
        held |= set(arrived)
    assert sent == group - 1 and held == set(range(group))
    if form == "throughput":
        back = {(hop.back + hop.distance) % group for hops in rounds(group, ways, form, -1) for hop in hops}
        assert back == set(range(1, group))


def test_halves_end_where_tiles_do():
    mesh = mtf.Mesh("x:4")
    for rows, first in ((7, 4), (255, 128), (256, 128), (1152, 640), (4608, 2304)):
        one, other = halves(rows, ["x"], mesh, How())
        assert (one.start, one.size, other.start, other.size) == (0, first, first, rows - first)
        assert (one.turn, other.turn) == (1, -1)
    assert halves(64, ["x"], mesh, How(form="latency")) == halves(64, ["x"], mesh, How(ways=1)) == ((1, 0, 64),)


def test_latency_takes_fewer_rounds():
    assert [len(rounds(8, ways, form)) for ways in (1, 2) for form in ("throughput", "latency")] == [7, 3, 7, 4]


def test_many_products_share_one_ring_and_scales_stay_between():
    """One gather read by two products; a reduce-scatter behind a scale and a sum of two products; casts on the way."""

    @mtf.function
    def block(x: "A E", w: "E F", v: "E F", s: "F:32", u: "F E", t: "F E"):
        h = mtf.einsum(x, mtf.cast(w, "f32"), out="A F", at=("A E", "E F:x"))
        g = mtf.einsum(x, v, out="A F", at=("A E", "E F:x")) * s
        first = mtf.einsum(h, u, out="A E partialsum:x", at=("A F:x", "F:x E"))
        second = mtf.einsum(g, t, out="A E partialsum:x", at=("A F:x", "F:x E"))
        return mtf.reshard(first + second, "A E:x")

    place = {"x": "A E:x", "w": "E F:x", "v": "E F:x", "s": "F:x", "u": "F:x E", "t": "F:x E"}
    program = mtf.plan(block, "x:4", sizes="A:8 E:16 F:32", place=place)
    looped = mtf.looped(program)
    assert refused(program) == []
    same(program, looped)
    assert len(looped.collectives()) == 12  # twice three rounds, both ways


def test_a_loop_of_layers_is_looped_inside():
    @mtf.function
    def layers(x: "A E", w: "n E F", v: "n F E"):
        def layer(x, w, v):
            h = mtf.einsum(x, w, out="A F", at=("A E", "E F:x"))
            return mtf.einsum(h, v, out="A E:x", at=("A F:x", "F:x E"))

        return mtf.repeat(layer, 3, [w, v], x)

    place = {"x": "A E:x", "w": "n E F:x", "v": "n F:x E"}
    program = mtf.plan(layers, "x:4", sizes="A:4 E:8 F:8 n:3", place=place)
    looped = mtf.looped(program, 1)
    same(program, looped, stablehlo=True)
    assert [step.times for step in looped.collectives()] == [3] * 6


def test_what_stays_as_it_is_says_why():
    """A gathered tensor that is returned, or that something else than a product reads; a sum of no product."""

    @mtf.function
    def several(x: "A E", w: "E F", v: "A F"):
        whole = mtf.reshard(x, mtf.Sharding(x.dims))
        doubled = mtf.reshard(v, mtf.Sharding(v.dims))
        h = mtf.einsum(mtf.reshard(x, "A E:x"), w, out="A F", at=("A E:x", "E:x F"))
        return whole, mtf.exp(doubled), h

    program = mtf.plan(several, "x:4", sizes="A:4 E:8 F:8", place={"x": "A E:x", "w": "E:x F", "v": "A F:x"})
    said = "\n".join(refused(program))
    assert "all_gather over x of E (A E:x → A E): it is returned whole" in said
    assert "all_gather over x of F (A F:x → A F): exp reads it whole" in said
    with pytest.raises(mtf.LayoutError, match=r"nothing in several can be looped(?s:.)*returned whole"):
        mtf.looped(program)


def test_only_what_is_wanted_is_looped():
    program = planned("x:4 y:2", *CASES["gathered and scattered"]("xy"))
    looped = mtf.looped(program, where=lambda step: step.kind == "reduce_scatter")
    assert [step.kind for step in looped.collectives()].count("all_gather") == 1
    assert "all_gather over y of E (A E:xy → A E:x): it is not wanted" in refused(program, lambda step: False)
    with pytest.raises(mtf.LayoutError, match="it is not wanted"):
        mtf.looped(program, where=lambda step: False)


def test_a_product_of_two_gathered_operands_is_looped_over_the_larger():
    program = planned("x:4 y:2", ("A E", "E F"), {"x": "A E:y", "w": "E F:x"})
    looped = mtf.looped(program)
    assert [step.label() for step in looped.collectives() if step.kind != "permute"] == ["all_gather over y of E"]
    assert refused(program) == [
        "all_gather over y of E (A E:y → A E): a product that reads it is looped over its other operand"
    ]
    given = arrays(program)
    np.testing.assert_array_equal(quick(mtf.simulate(looped))(*given), quick(mtf.simulate(program))(*given))


def test_products_that_need_each_other_share_no_ring():
    @mtf.function
    def twice(x: "A E", w: "E F", v: "F A"):
        whole = mtf.reshard(x, mtf.Sharding(x.dims))
        h = mtf.einsum(whole, w, out="A F", at=("A E", "E F"))
        again = mtf.einsum(v, h, out="A", at=("F A", "A F"))
        return mtf.einsum(whole, again, out="E", at=("A E", "A"))

    program = mtf.plan(twice, "x:4", sizes="A:4 E:8 F:8", place={"x": "A E:x", "w": "E F", "v": "F A"})
    assert any("one needs the other's result" in said for said in refused(program))


@pytest.mark.parametrize(("given", "says"), [
    ({"ways": 3}, "ways is 3"), ({"ways": True}, "ways is True"), ({"form": "fast"}, "throughput"),
    ({"rows": 0}, "rows is 0"),
])  # fmt: skip
def test_what_cannot_be_asked_for(given, says):
    with pytest.raises(mtf.LayoutError, match=says):
        mtf.looped(planned("x:4", *CASES["scattered"]("x")), **given)


def test_an_ordinary_program_in_every_other_respect():
    """Its table, its source and its events: the printed source gives the same values."""
    program = planned("x:4", *CASES["gathered, contracted"]("x"))
    looped, given = mtf.looped(program), arrays(program)
    assert "permute over x, +1 on the ring" in str(looped.table())
    scope: dict = {}
    exec(looped.source(), scope)
    printed = np.asarray(scope["product"](*scope["place"](*given)))
    np.testing.assert_array_equal(printed, quick(mtf.simulate(program))(*given))
