"""The price of looped programs: what rings hide, what stays exposed, and what lies in memory."""

from __future__ import annotations

import pytest

import mtfcore as mtf
from mtfcore.costs.pricing.liveness import peak_memory
from mtfcore.overlap import pays


@mtf.function
def gathered(x: "B E", w: "E F"):
    return mtf.einsum(x, w, out="B F:x", at=("B E", "E F:x"))


@mtf.function
def scattered(x: "B E", w: "E F"):
    return mtf.einsum(x, w, out="B F:x", at=("B E:x", "E:x F"))


@mtf.function
def weights_gathered(x: "B E", w: "E F"):
    return mtf.einsum(x, w, out="B:x F", at=("B:x E", "E F"))


def planned(fn, batch: int = 4096, mesh: str = "x:4", sizes: str = "E:4096 F:8192") -> mtf.Program:
    place = {
        "gathered": {"x": "B E:x", "w": "E F:x"}, "scattered": {"x": "B E:x", "w": "E:x F"},
        "weights_gathered": {"x": "B:x E", "w": "E F:x"},
    }[fn.__name__]  # fmt: skip
    return mtf.plan(fn, mesh, sizes=f"B:{batch} {sizes}", place=place, dtype="bf16")


def test_a_program_without_rings_hides_nothing():
    cost = mtf.price(planned(gathered), "v4:2x2x1")
    assert cost.hidden_seconds == 0
    assert cost.seconds == cost.additive_seconds
    assert cost.exposed_seconds == cost.collective_seconds > 0


@pytest.mark.parametrize("fn", [gathered, scattered, weights_gathered], ids=lambda fn: fn.__name__)
@pytest.mark.parametrize(("ways", "form"), [(1, "throughput"), (2, "throughput"), (2, "latency")])
def test_rings_hide_links_behind_products(fn, ways, form):
    """Computing outweighs sending here: what stays exposed is at most the first block, and far less than before."""
    program = planned(fn, 65536, sizes="E:16384 F:32768")
    before = mtf.price(program, "v4:4x1x1", wiring="x→0")
    cost = mtf.price(mtf.looped(program, ways, form), "v4:4x1x1", wiring="x→0")
    assert cost.additive_seconds == pytest.approx(cost.local_seconds + cost.collective_seconds)
    assert cost.seconds == pytest.approx(cost.additive_seconds - cost.hidden_seconds)
    assert 0 <= cost.exposed_seconds < before.exposed_seconds / 2
    assert cost.seconds < before.seconds
    assert cost.flops == before.flops and cost.mfu > before.mfu


def test_no_more_is_hidden_than_there_is_to_compute():
    """With one sequence nothing is left to hide behind: links run all the time, and that is what it takes."""
    program = planned(scattered, batch=8)
    cost = mtf.price(mtf.looped(program, 1), "v4:4x1x1", wiring="x→0")
    assert cost.hidden_seconds <= min(cost.local_seconds, cost.collective_seconds) * (1 + 1e-9)
    assert cost.seconds >= max(cost.local_seconds, cost.collective_seconds) * (1 - 1e-9)


def test_both_ways_share_the_links_of_a_ring():
    """By hand, all sending and no computing to speak of: three rounds of a block one way, of half a block both ways."""
    program = planned(gathered, batch=2048)
    links = 4.5e10  # one link of a v4, one way
    block = 2048 * 4096 // 4 * 2
    for ways, rounds in ((1, 3), (2, 1.5)):
        cost = mtf.price(mtf.looped(program, ways), "v4:4x1x1", wiring="x→0")
        sent = cost.seconds - cost.local_seconds
        assert cost.collective_seconds == pytest.approx(3 * block / links, rel=1e-6)
        assert sent <= rounds * block / links + 1e-9


def test_a_gathered_whole_never_lies_in_memory():
    """Of the weights a device holds its block and those that travel, not all of them."""
    program = planned(weights_gathered, batch=64, mesh="x:16")
    whole = 4096 * 8192 * 2
    assert peak_memory(program).between >= whole
    looped = peak_memory(mtf.looped(program, 1)).between
    assert looped < whole / 4


def test_only_what_pays_is_chosen():
    """Of a large product and a tiny one the large one's gather is looped, and the whole is no slower for it."""

    @mtf.function
    def both(x: "B E", w: "E F", y: "C G", v: "G H"):
        large = mtf.einsum(x, w, out="B F:x", at=("B E", "E F:x"))
        return large, mtf.einsum(y, v, out="C H:x", at=("C G", "G H:x"))

    place = {"x": "B E:x", "w": "E F:x", "y": "C G:x", "v": "G H:x"}
    program = mtf.plan(both, "x:4", sizes="B:8192 E:4096 F:32768 C:1 G:512 H:512", place=place, dtype="bf16")
    wanted = pays(program, "v4:2x2x1")
    large, tiny = program.collectives()
    assert wanted(large) and not wanted(tiny)
    before, after = (mtf.price(p, "v4:2x2x1") for p in (program, mtf.looped(program, where=wanted)))
    assert after.seconds < before.seconds
    assert after.seconds <= mtf.price(mtf.looped(program), "v4:2x2x1").seconds
