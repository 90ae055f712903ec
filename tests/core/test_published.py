"""The second paper's layouts: pinned, collective by collective; free, never dearer. And what partial sums wait for.

Source: arXiv 2211.05102, sections 3.2 and 3.3.
"""

from __future__ import annotations

import pytest

import mtfcore as mtf

CUBE = "x:4 y:4 z:4"


def collectives(program: mtf.Program) -> list[str]:
    """Every collective in order, in our notation."""
    return [f"{step.label()}: {step.arrow()}" for step in program.collectives()]


def feedforward(inside: list[str] | None, out_h: str, back: list[str] | None, out: str, search: bool = False):
    @mtf.function
    def layer(x: "B L E", w_in: "E F", w_out: "F E"):
        h = mtf.gelu(mtf.einsum(x, w_in, out=out_h, at=inside, search=search))
        return mtf.einsum(h, w_out, out=out, at=back, search=search)

    return layer


WEIGHTS = {"w_in": "E:x F:zy", "w_out": "F:zy E:x"}
SIZES = "B:64 L:1 E:512 F:2048"


@pytest.mark.parametrize("search", [False, True])
def test_the_2d_weight_stationary_layer_step_by_step(search):
    """The second paper's section 3.2.2: nothing is pinned but where x, the weights, h and the result lie."""
    layer = feedforward(None, "B L F:zyx", None, "B L E:xzy", search)
    program = mtf.plan(layer, CUBE, sizes=SIZES, place={"x": "B L E:xzy", **WEIGHTS}, dtype="bf16")
    assert [f"{step.label()}: {step.arrow()}" for step in program.steps] == [
        "all_gather over zy of E: B L E:xzy → B L E:x",
        "einsum: B L E:x , E:x F:zy → B L F:zy partialsum:x",
        "reduce_scatter over x into F: B L F:zy partialsum:x → B L F:zyx",
        "gelu: B L F:zyx → B L F:zyx",
        "all_gather over x of F: B L F:zyx → B L F:zy",
        "einsum: B L F:zy , F:zy E:x → B L E:x partialsum:yz",
        "reduce_scatter over zy into E: B L E:x partialsum:yz → B L E:xzy",
    ]
    held = 64 * 512 * 2 // 64
    assert [step.link_bytes for step in program.collectives()] == [
        held * 15, 64 * 2048 * 2 // 16 * 3 // 4, 64 * 2048 * 2 // 64 * 3, 64 * 512 * 2 // 4 * 15 // 16,
    ]  # fmt: skip


# name: (x, x and w_in during the first product, h, h and w_out during the second, the result)
PUBLISHED = {
    "ws1d": ("B L E:xyz", ["B L E", "E F:xyz"], "B L F:xyz", ["B L F:xyz", "F:xyz E"], "B L E:xyz"),
    "ws2d": ("B L E:xzy", ["B L E:x", "E:x F:zy"], "B L F:zyx", ["B L F:zy", "F:zy E:x"], "B L E:xzy"),
    "wg_x": ("B:x L E:yz", ["B:x L E", "E F:zy"], "B:x L F:zy", ["B:x L F:zy", "F:zy E"], "B:x L E:yz"),
    "wg_xy": ("B:xy L E:z", ["B:xy L E", "E F:z"], "B:xy L F:z", ["B:xy L F:z", "F:z E"], "B:xy L E:z"),
    "wg_xyz": ("B:xyz L E", ["B:xyz L E", "E F"], "B:xyz L F", ["B:xyz L F", "F E"], "B:xyz L E"),
}
MOVED = {
    "ws1d": ["all_gather over xyz of E", "reduce_scatter over xyz into E"],
    "ws2d": ["all_gather over zy of E", "reduce_scatter over x into F", "all_gather over x of F",
             "reduce_scatter over zy into E"],
    "wg_x": ["all_gather over yz of E", "all_gather over x of E", "all_gather over x of E",
             "reduce_scatter over yz into E"],
    "wg_xy": ["all_gather over z of E", "all_gather over x of E", "all_gather over y of F", "all_gather over y of F",
              "all_gather over x of E", "reduce_scatter over z into E"],
    "wg_xyz": ["all_gather over x of E", "all_gather over zy of F"] * 2,
}  # fmt: skip


def published(name: str, batch: int, pinned: bool, search: bool = False) -> mtf.Program:
    x, inside, h, back, out = PUBLISHED[name]
    layer = feedforward(inside if pinned else None, h, back if pinned else None, out, search)
    weights = {"w_in": "E F:xyz", "w_out": "F:xyz E"} if name == "ws1d" else WEIGHTS
    return mtf.plan(layer, CUBE, sizes=f"B:{batch} L:1 E:512 F:2048", place={"x": x, **weights}, dtype="bf16")


@pytest.mark.parametrize("name", PUBLISHED)
def test_pins_give_the_published_collectives(name):
    labels = [step.label() for step in published(name, 512, pinned=True).collectives()]
    assert sorted(labels) == sorted(MOVED[name])


@pytest.mark.parametrize("search", [False, True], ids=["default", "search"])
@pytest.mark.parametrize("batch", [64, 512, 8192, 65536])
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_pins_never_cost_less_than_the_free_plan(name, batch, search):
    pinned, free = published(name, batch, pinned=True), published(name, batch, pinned=False, search=search)
    assert free.link_bytes() <= pinned.link_bytes()
    assert free.flops() == pinned.flops() == 4 * batch * 512 * 2048 // 64


def test_large_batches_move_weights_and_small_ones_move_activations():
    """The crossing that the second paper draws in its figure 3, found by the planner from the same placement."""

    def weights_move(batch: int) -> bool:
        steps = published("wg_x", batch, pinned=False, search=True).collectives()
        return any(step.before[0].names in (("E", "F"), ("F", "E")) for step in steps)

    assert [weights_move(batch) for batch in (64, 65536)] == [False, True]


def test_decode_attention_by_batch_brings_queries_over():
    @mtf.function
    def queries(q: "B H D"):
        return mtf.reshard(q, "B:xzy H D")

    program = mtf.plan(queries, CUBE, sizes="B:512 H:64 D:256", place={"q": "B H:zy D partialsum:x"}, dtype="bf16")
    assert collectives(program) == [
        "reduce_scatter over x into B: B H:zy D partialsum:x → B:x H:zy D",
        "all_to_all over zy from H to B: B:x H:zy D → B:xzy H D",
    ]


def test_decode_attention_by_batch_takes_keys_by_the_cheapest_route():
    """16 kB a device against 197 kB for scattering the whole head first, at batch 512 on 4 x 4 x 4."""

    @mtf.function
    def keys(k: "B D"):
        return mtf.reshard(k, "B:xzy D")

    program = mtf.plan(keys, CUBE, sizes="B:512 D:256", place={"k": "B D partialsum:x"}, dtype="bf16")
    assert [f"{step.label()}: {step.arrow()}" for step in program.steps] == [
        "slice over zy of D: B D partialsum:x → B D:zy partialsum:x",
        "reduce_scatter over x into B: B D:zy partialsum:x → B:x D:zy",
        "all_to_all over zy from D to B: B:x D:zy → B:xzy D",
    ]
    assert program.link_bytes() == 16_128
    straight = 512 * 256 * 2 * 3 // 4
    assert straight == 196_608


def test_a_data_parallel_backward_sums_gradients_and_moves_no_activation():
    @mtf.function
    def backward(x: "B E", dy: "B F"):
        return mtf.einsum(x, dy, out="E F")

    program = mtf.plan(backward, "x:8", "B:x", sizes="B:64 E:512 F:512")
    assert [(step.kind, step.tensor) for step in program.collectives()] == [("all_reduce", program.steps[0].tensor)]
    assert program.flops() == 2 * 64 * 512 * 512 // 8


def test_partial_sums_are_scattered_into_the_later_dimension():
    @mtf.function
    def settled(t: "B L F"):
        return mtf.relu(mtf.settle(t))

    program = mtf.plan(settled, "x:4", sizes="B:8 L:8 F:8", place={"t": "B L F partialsum:x"})
    assert collectives(program) == ["reduce_scatter over x into F: B L F partialsum:x → B L F:x"]


def test_partial_sums_wait_through_linear_operations():
    """Sums of partials over the same axes, products with whole tensors, slices: one all-reduce at the very end."""

    @mtf.function
    def linear(a: "A B", b: "A B", c: "B:8"):
        t = mtf.add(mtf.sum(a, out="B partialsum:x"), mtf.sum(b, out="B partialsum:x"))
        return mtf.slice(mtf.multiply(t, c), "B", 0, 4, out="B")

    program = mtf.plan(linear, "x:2", sizes="A:8 B:8", place={"a": "A:x B", "b": "A:x B"})
    assert collectives(program) == ["all_reduce over x: B partialsum:x → B"]
    assert program.collectives()[0].n_bytes == 4 * 4


def test_a_product_of_two_partials_reduces_one_first():
    @mtf.function
    def product(a: "A B", b: "A B"):
        return mtf.multiply(mtf.sum(a, out="B partialsum:x"), mtf.sum(b, out="B partialsum:x"), out="B partialsum:x")

    program = mtf.plan(product, "x:2", sizes="A:8 B:8", place={"a": "A:x B", "b": "A:x B"})
    assert [step.kind for step in program.collectives()] == ["all_reduce"]
