"""One illegal input a case: each is refused before anything runs, by a message that says what would be right."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.errors import nearest, refuse

DIMS = "batch io"
SIZES = "B:8 E:4 F:6"
MESH = "x:2 y:2"
TENSOR = "expected a tensor of a named function, got "


def build(body: Callable[..., object]) -> mtf.tensor.Function:
    """A named function of x[B, E], w[E, F] (f32), ids[B] (i32) and mask[B] (bool)."""

    def case(x: "B E", w: "E F", ids: B, mask: B):
        return body(x, w, ids, mask)

    return mtf.function(case, dtypes={"ids": "i32", "mask": "bool"})


def refused(body: Callable[..., object], layout: str = "", **more: object) -> str:
    with pytest.raises(mtf.LayoutError) as caught:
        mtf.plan(build(body), MESH, layout, **{"sizes": SIZES, **more})
    return str(caught.value)


OPERATIONS = [
    # einsum
    (lambda x, w, i, m: mtf.einsum(out="B"), "einsum needs at least one operand, e.g. mtf.einsum(x, w, out="),
    (lambda x, w, i, m: mtf.einsum(x, w, out=5), "expected a text such as 'batch:64 io:512', got int: 5"),
    (lambda x, w, i, m: mtf.einsum(x, w, out="B G"),
     "einsum of x[B:8, E:4], w[E:4, F:6], out='B G': 'G' is in no operand and has no size; legal here: 'B', 'E', 'F'"),
    (lambda x, w, i, m: mtf.einsum(x, w, out="B:9 F"), "B has sizes 8 and 9"),
    (lambda x, w, i, m: mtf.einsum(x, w, out="B B"), "rename one of them, e.g. 'B' and 'B_out'"),
    (lambda x, w, i, m: mtf.einsum(x, w, out="B:x F:x"), "mesh axis 'x' is used twice in one tensor: on B and on F"),
    (lambda x, w, i, m: mtf.einsum(x, w, out="B:z F"),
     "tensor 'B:8 F:6' placed 'B:z F' on mesh 'x:2 y:2': unknown mesh axis 'z' on B; legal here: 'x', 'y'"),
    (lambda x, w, i, m: mtf.einsum(x, w, out="B F:3x"), "'3x' is neither a size (digits only) nor a mesh axis"),
    (lambda x, w, i, m: mtf.einsum(x, w, out="B F:xy"),
     "dimension F of size 6 does not divide over mesh axis x:2 x y:2 (4 parts); nearest sizes that do: 4 or 8, or "
     "leave F whole, or pad on request: mtf.pad(t, 'F', 8)"),
    (lambda x, w, i, m: mtf.einsum(x, 5, out="B F"), TENSOR + "int"),
    (lambda x, w, i, m: mtf.einsum(x, mtf.cast(w, "i32"), out="B F"),
     "einsum: operands of different dtypes (x[B:8, E:4] is f32, cast(w)[E:4, F:6] is i32); use mtf.cast(t, 'f32')"),
    (lambda x, w, i, m: mtf.einsum(x, mtf.slice(w, "E", 0, 2), out="B F"),
     "E has sizes 4 and 2; one name has one size; rename one of them"),
    (lambda x, w, i, m: mtf.einsum(x, w, out="B F", at={"q": "B E"}),
     "at: no operand 'q'; legal here: 'x', 'w', '0', '1'"),
    (lambda x, w, i, m: mtf.einsum(x, w, out="B F", at={2: "B E"}), "at: no operand 2; legal here: 'x', 'w', '0', '1'"),
    (lambda x, w, i, m: mtf.einsum(x, w, out="B F", at={"x": 5}),
     "expected a text such as 'batch:64 io:512', got int: 5"),
    (lambda x, w, i, m: mtf.einsum(x, w, out="B F", at="B E"), "at: expected e.g. {'x': 'B L E:x'}, got str: 'B E'"),
    (lambda x, w, i, m: mtf.einsum(x, w, out="B F", at={"x": "B E:x", "w": "E F"}),
     "at= of einsum(x, w): w has E on 'nothing', another operand on 'x'"),
    (lambda x, w, i, m: mtf.einsum(x, w, out="B F", at={"x": "B:x E", "w": "E F:x"}),
     "at= of einsum(x, w): mesh axis 'x' has two roles at once"),
    (lambda x, w, i, m: mtf.einsum(x, w, out="B F", at={"x": "B:q E"}),
     "unknown mesh axis 'q' on B; legal here: 'x', 'y'"),
    # elementwise
    (lambda x, w, i, m: mtf.add(x), "add takes 2 operands, got 1"),
    (lambda x, w, i, m: mtf.relu(x, x), "relu takes 1 operand, got 2"),
    (lambda x, w, i, m: mtf.add(x, w),
     "add of x[B:8, E:4], w[E:4, F:6]: no operand has all the dimensions B, E, F, so the result would be larger than "
     "each; if that is meant, give it: out='B E F'"),
    (lambda x, w, i, m: mtf.add(1, 2), "add needs at least one tensor of a named function, got (1, 2)"),
    (lambda x, w, i, m: mtf.add(x, "a"), "expected a tensor or a number, got str: 'a'"),
    (lambda x, w, i, m: x + None, "expected a tensor or a number, got NoneType: None"),
    (lambda x, w, i, m: x + np.ones(4), "expected a tensor or a number, got ndarray"),
    (lambda x, w, i, m: i * 0.5, "0.5 beside a tensor of i32 would be cut to a whole number; use mtf.cast(t, 'f32')"),
    (lambda x, w, i, m: i + float("inf"), "inf beside a tensor of i32 would be cut"),
    (lambda x, w, i, m: m * 2, "multiply of mask[B:8]: dtype is bool; use mtf.cast(t, 'f32') first"),
    (lambda x, w, i, m: x + i, "add: operands of different dtypes (x[B:8, E:4] is f32, ids[B:8] is i32)"),
    (lambda x, w, i, m: mtf.relu(x, out="B"), "relu: out='B' leaves out 'E'; use mtf.sum or mtf.einsum to sum over it"),
    (lambda x, w, i, m: mtf.cast(x, out="B", dtype="f32"), "cast, out='B': out leaves out 'E'"),
    (lambda x, w, i, m: mtf.cast(x, "f33"), "unknown dtype 'f33'; did you mean 'f32'? legal here: 'f64'"),
    (lambda x, w, i, m: mtf.cast(5, "f32"), TENSOR + "int"),
    (lambda x, w, i, m: mtf.where(x, x, x), "where: the first operand is x[B:8, E:4]; expected a bool tensor"),
    (lambda x, w, i, m: mtf.where(True, x, x), "where: the first operand is True; expected a bool tensor"),
    (lambda x, w, i, m: mtf.where(m, x), "where takes 3 operands, got 2"),
    # signs that Python has and tensors lack
    (lambda x, w, i, m: x == w, "x[B:8, E:4]: tensors have no ==; use mtf.equal(a, b)"),
    (lambda x, w, i, m: x != 0, "tensors have no !=; use mtf.logical_not(mtf.equal(a, b))"),
    (lambda x, w, i, m: x < 0, "tensors have no <; use mtf.less(a, b)"),
    (lambda x, w, i, m: x > 0, "tensors have no >; use mtf.greater(a, b)"),
    (lambda x, w, i, m: x**2, "tensors have no **; use mtf.power(t, 2)"),
    (lambda x, w, i, m: x @ w, "tensors have no @; use mtf.einsum(x, w, out='batch hidden')"),
    (lambda x, w, i, m: x[0], "tensors have no []; use mtf.slice(t, 'batch', 0, 8)"),
    (lambda x, w, i, m: abs(x), "tensors have no abs; use mtf.absolute(t)"),
    (lambda x, w, i, m: ~m, "tensors have no ~; use mtf.logical_not(t)"),
    (lambda x, w, i, m: x if m else w, "mask[B:8] has no value while the function is being planned; use mtf.where"),
    (lambda x, w, i, m: x.dim("b"), "x[B:8, E:4] has no dimension 'b'; did you mean 'B'? legal here: 'B', 'E'"),
    # reductions
    (lambda x, w, i, m: mtf.sum(x, "Q"), "x[B:8, E:4] has no dimension 'Q'; legal here: 'B', 'E'"),
    (lambda x, w, i, m: mtf.sum(x, "B B"), "dimension 'B' stands 2 times in one tensor"),
    (lambda x, w, i, m: mtf.sum(x, "B", out="B E"),
     "sum of x[B:8, E:4], out='B E': 'B' is reduced, so the result lacks it"),
    (lambda x, w, i, m: mtf.sum(x, out="B F"),
     "sum of x[B:8, E:4], out='B F': 'F' is not one of its dimensions; legal here: 'B', 'E'"),
    (lambda x, w, i, m: mtf.max(x, out="B F"), "max of x[B:8, E:4], out='B F': 'F' is not one of its dimensions"),
    (lambda x, w, i, m: mtf.max(x, out="Q"), "'Q' is in no operand and has no size"),
    (lambda x, w, i, m: mtf.sum(np.ones(4)), TENSOR + "ndarray"),
    (lambda x, w, i, m: mtf.min("x"), TENSOR + "str"),
    (lambda x, w, i, m: mtf.sum(m),
     "sum of mask[B:8]: dtype is bool; to count, use mtf.cast(t, 'i32') first, or use mtf.any"),
    (lambda x, w, i, m: mtf.cumsum(m, "B"), "cumsum of mask[B:8]: dtype is bool; to count, use mtf.cast(t, 'i32')"),
    (lambda x, w, i, m: mtf.mean(i), "mean of ids[B:8]: dtype is i32, expected a float; use mtf.cast(t, 'f32')"),
    (lambda x, w, i, m: mtf.any(x),
     "any of x[B:8, E:4]: dtype is f32, expected bool; compare first, e.g. mtf.greater(t, 0)"),
    (lambda x, w, i, m: mtf.all(x, "B"), "all of x[B:8, E:4]: dtype is f32, expected bool"),
    (lambda x, w, i, m: mtf.softmax(x, "Q"), "x[B:8, E:4] has no dimension 'Q'"),
    (lambda x, w, i, m: mtf.softmax(i, "B"),
     "softmax of ids[B:8]: dtype is i32, expected a float; use mtf.cast(t, 'f32')"),
    (lambda x, w, i, m: mtf.logsumexp(i), "logsumexp of ids[B:8]: dtype is i32, expected a float"),
    (lambda x, w, i, m: mtf.cumsum(x, "Q"), "x[B:8, E:4] has no dimension 'Q'"),
    # indices
    (lambda x, w, i, m: mtf.argmax(x, "Q"), "x[B:8, E:4] has no dimension 'Q'"),
    (lambda x, w, i, m: mtf.top_k(x, "B", 9), "top_k of x[B:8, E:4]: k is 9; B has size 8, so k is 1 to 8"),
    (lambda x, w, i, m: mtf.top_k(x, "B", 0), "k is 0; B has size 8, so k is 1 to 8"),
    (lambda x, w, i, m: mtf.top_k(x, "B", 2.5), "top_k: k is 2.5; expected a whole number"),
    (lambda x, w, i, m: mtf.gather(w, x, "E"),
     "gather: ids x[B:8, E:4] are f32, expected integers; use mtf.cast(ids, 'i32')"),
    (lambda x, w, i, m: mtf.gather(x, i, "B"),
     "ids ids[B:8] have the dimension 'B' that is looked up; rename it in ids"),
    (lambda x, w, i, m: mtf.gather(w, i, "Q"), "w[E:4, F:6] has no dimension 'Q'"),
    (lambda x, w, i, m: mtf.one_hot(x, "V:5"), "one_hot: ids x[B:8, E:4] are f32, expected integers"),
    (lambda x, w, i, m: mtf.one_hot(i, "V"), "the size of 'V' is not known; write e.g. index('V:512', like)"),
    (lambda x, w, i, m: mtf.one_hot(i, "B"),
     "one_hot of ids[B:8]: 'B' is a dimension of the ids already; give the new one another name"),
    (lambda x, w, i, m: mtf.index("Q R", x), "expected one dimension such as 'batch:64' or ('batch', 64), got 'Q R'"),
    # shapes
    (lambda x, w, i, m: mtf.reshape(x, "Q:32 B"),
     "reshape 'B:8 E:4' (32 elements) to 'Q:32 B:8' (256 elements): the numbers of elements differ"),
    (lambda x, w, i, m: mtf.reshape(x, "B E:5"), "reshape of x[B:8, E:4], out='B E:5': E has sizes 4 and 5"),
    (lambda x, w, i, m: mtf.reshape(x, "Q"), "'Q' is in no operand and has no size"),
    (lambda x, w, i, m: mtf.rename(x, "Q", "R"), "x[B:8, E:4] has no dimension 'Q'"),
    (lambda x, w, i, m: mtf.rename(x, "B", "E"), "rename of x[B:8, E:4]: dimension 'E' stands 2 times in one tensor"),
    (lambda x, w, i, m: mtf.rename(x, "B", "R S"), "rename: 'R S' is not one name: letters, digits and _ only"),
    (lambda x, w, i, m: mtf.split(x, "B", "C:3 D"), "into 'C:3 D': no size for D; 8 does not divide by 3"),
    (lambda x, w, i, m: mtf.split(x, "B", "C D"), "into 'C D': no size for C, D; only one size may be left out"),
    (lambda x, w, i, m: mtf.split(x, "B", "C:4 D:3"), "split of x[B:8, E:4]: B has size 8, but 'C:4 D:3' makes 12"),
    (lambda x, w, i, m: mtf.merge(x, "", "C"), "no dimensions are named; write e.g. mtf.merge(t, 'heads kv', 'hk')"),
    (lambda x, w, i, m: mtf.merge(x, "B Q", "C"), "x[B:8, E:4] has no dimension 'Q'"),
    (lambda x, w, i, m: mtf.merge(x, "B E", "C D"), "merge: 'C D' is not one name"),
    (lambda x, w, i, m: mtf.transpose(x, "E Q"),
     "transpose of x[B:8, E:4] to 'E Q': 2 faults\n  1. 'Q' is not one of its dimensions; legal here: 'B', 'E'\n"
     "  2. 'B' is left out"),
    (lambda x, w, i, m: mtf.slice(x, "B", 2, 9), "slice of x[B:8, E:4]: B runs from 0 to 8, not 2 to 9"),
    (lambda x, w, i, m: mtf.slice(x, "B", 3, 3), "B runs from 0 to 8, not 3 to 3"),
    (lambda x, w, i, m: mtf.slice(x, "B", 0.5, 3), "slice: start is 0.5; expected a whole number"),
    (lambda x, w, i, m: mtf.slice(x, "B", 0, None), "slice: stop is None; expected a whole number"),
    (lambda x, w, i, m: mtf.pad(x, "B", 4),
     "pad of x[B:8, E:4]: B has size 8 already, more than 4; use mtf.slice to cut"),
    (lambda x, w, i, m: mtf.pad(x, "B", "9"), "pad: size is '9'; expected a whole number"),
    (lambda x, w, i, m: mtf.pad(i, "B", 9, value=0.5),
     "pad of ids[B:8]: value is 0.5; expected a number that i32 can hold"),
    (lambda x, w, i, m: mtf.concat([], "B"),
     "concat needs a sequence of at least one tensor, e.g. mtf.concat([a, b], "),
    (lambda x, w, i, m: mtf.concat(x, "B"), "concat needs a sequence of at least one tensor"),
    (lambda x, w, i, m: mtf.concat([x, 5], "B"), TENSOR + "int"),
    (lambda x, w, i, m: mtf.concat([x, w], "B"), "concat along 'B': w[E:4, F:6] has other dimensions than x[B:8, E:4]"),
    (lambda x, w, i, m: mtf.concat([x, x], "Q"), "x[B:8, E:4] has no dimension 'Q'"),
    (lambda x, w, i, m: mtf.reshard(x, "B Q:x"),
     "reshard, out='B Q:x': 2 faults\n  1. out names 'Q', which the result does not have; legal here: 'B', 'E'\n"
     "  2. out leaves out 'E'"),
    (lambda x, w, i, m: mtf.reshard(x, "B:3 E:x"), "B has size 8 in the dimensions and size 3 where they are placed"),
    (lambda x, w, i, m: mtf.reshard(x, "B E:z"), "unknown mesh axis 'z' on E; legal here: 'x', 'y'"),
    (lambda x, w, i, m: mtf.reshard(x, None), "expected a text such as 'batch:64 io:512', got NoneType: None"),
    (lambda x, w, i, m: mtf.exp(i), "dtype is i32, expected a float; use mtf.cast(t, 'f32')"),
    (lambda x, w, i, m: mtf.divide(i, 2), "dtype is i32, expected a float; use mtf.cast(t, 'f32')"),
    (lambda x, w, i, m: mtf.einsum(m, out="B"), "dtype is bool, which has no sums; use mtf.cast(t, 'f32')"),
    # loops
    (lambda x, w, i, m: mtf.repeat(lambda c: c, 4, w, x),
     "repeat: <lambda> is called with the carry and 1 part of the stack (part0): too many positional arguments"),
    (lambda x, w, i, m: mtf.repeat(lambda c: c, 0, (), x), "repeat: n is 0; expected a whole number of at least 1"),
    (lambda x, w, i, m: mtf.repeat(lambda c, p: c, 3, w, x),
     "repeat: stacked p w[E:4, F:6]: the first dimension must have size 3, it is E:4"),
    (lambda x, w, i, m: mtf.repeat(lambda c, p: c, 3, 5, x),
     "repeat: stacked is 5; expected tensors whose first dimension"),
    (lambda x, w, i, m: mtf.repeat(lambda c: c, 3, (), 5), TENSOR + "int"),
    (lambda x, w, i, m: mtf.repeat(lambda c: c, 3, (), x, x), "is called with 2 carries and 0 parts of the stack"),
    (lambda x, w, i, m: mtf.repeat(lambda c: mtf.sum(c, "B"), 3, (), x),
     "repeat: <lambda> was given x[B:8, E:4] (f32) and returns einsum(carry)[E:4] (f32); each turn must return what "
     "the next one takes"),
    # what a function returns
    (lambda x, w, i, m: None, "case returns NoneType None; expected tensors (is a return missing?)"),
    (lambda x, w, i, m: (x, 5), "case returns int 5; expected tensors"),
    (lambda x, w, i, m: {"a": x, "b": "w"}, "case returns str 'w'; expected tensors"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), OPERATIONS, ids=[f"{n}-{m[:30]}" for n, (_, m) in enumerate(OPERATIONS)])
def test_refused_operations(body: Callable[..., object], message: str) -> None:
    assert message in refused(body)


def two_layers() -> mtf.tensor.Function:
    @mtf.function
    def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
        h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
        return mtf.einsum(h, v, out="batch io")

    return two_layers


PLANS = [
    ({"mesh": None}, "expected mesh axes with sizes, such as 'rows:4 cols:2'"),
    ({"layout": None}, "expected rules such as 'batch:rows hidden:cols'"),
    ({"sizes": None}, "expected dimensions such as 'batch:64 io:512', got NoneType"),
    ({"sizes": "batch:8 io:4"}, "sizes of two_layers: no size for dimension 'hidden' (legal here: 'batch', 'io')"),
    ({"sizes": ""}, "sizes of two_layers: 3 faults\n  1. no size for dimension 'batch' (legal here: none)"),
    ({"sizes": "bath:8 io:4 hidden:4"}, "no size for dimension 'batch' (did you mean 'bath'? legal here: 'bath'"),
    ({"sizes": "batch:0 io:4"}, "batch has size 0; a size is at least 1\n  batch:0 io:4\n        ^"),
    ({"dtype": "bf17"}, "unknown dtype 'bf17'; did you mean 'bf16'?"),
    ({"place": {"z": "batch io"}}, "place of two_layers: no input 'z'; legal here: 'x', 'w', 'v'"),
    ({"place": {"x": "batch:rows seq"}}, "input x: tensor 'batch:8 io:4': no dimension 'seq' in this tensor"),
    ({"place": {"x": 5}}, "input x: expected a text such as 'batch:64 io:512', got int: 5"),
    ({"place": "batch io"}, "place: expected e.g. {'x': 'batch:rows io'}, got str: 'batch io'"),
    ({"place": {"x": mtf.Sharding("batch:16 io:4", "batch:rows")}},
     "input x: batch has size 8, the sharding given says batch:16"),
    ({"place": {"x": "batch:row io", "w": "io:col hidden"}},
     "2 faults\n  1. input x: tensor 'batch:8 io:4' placed 'batch:row io' on mesh 'rows:4 cols:2': unknown mesh axis "
     "'row' on batch; did you mean 'rows'? legal here: 'rows', 'cols'\n  2. input w: "),
    ({"layout": "batch:rows io:rows"}, "input x: tensor 'batch:8 io:4' under layout 'batch:rows io:rows' on mesh "
     "'rows:4 cols:2': mesh axis 'rows' is used twice in one tensor: on batch and on io"),
    ({"layout": "io:(rows cols)"}, "2. input w: tensor 'io:4 hidden:4' under layout 'io:(rows cols)' on mesh 'rows:4 "
     "cols:2': dimension io of size 4 does not divide over mesh axis rows:4 x cols:2 (8 parts); nearest sizes that "
     "do: 8"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), PLANS, ids=[f"{n}-{m[:30]}" for n, (_, m) in enumerate(PLANS)])
def test_refused_plans(wrong: dict[str, object], message: str) -> None:
    given = {"mesh": "rows:4 cols:2", "layout": "batch:rows", "sizes": "batch:8 io:4 hidden:4", **wrong}
    with pytest.raises(mtf.LayoutError) as caught:
        mtf.plan(two_layers(), **given)
    assert message in str(caught.value)


def test_faults_inside_faults_are_indented() -> None:
    with pytest.raises(mtf.LayoutError) as caught:
        mtf.plan(two_layers(), "rows:4 cols:2", "batch:rows io:rows", sizes="batch:6 io:6 hidden:4")
    lines = str(caught.value).split("\n")
    assert lines[0] == "3 faults" and lines[1].startswith("  1. input x: ") and lines[2].startswith("     1. mesh axis")


@pytest.mark.parametrize("way", [mtf.simulate, mtf.attach, mtf.single, mtf.partitioned])
@pytest.mark.parametrize("given", [None, two_layers(), "batch:8"])
def test_only_programs_run(way: Callable, given: object) -> None:
    message = f"expected a program made by mtf.plan(function, mesh, layout, sizes=...), got {type(given).__name__}"
    with pytest.raises(mtf.LayoutError, match=re.escape(message)):
        way(given)


def test_64_bits_are_not_cut_in_silence() -> None:
    program = mtf.plan(two_layers(), "rows:4", "batch:rows", sizes="batch:8 io:4 hidden:4", dtype="f64")
    for way in (mtf.simulate, mtf.single):
        with pytest.raises(mtf.LayoutError, match="two_layers uses f64, which JAX would cut to 32 bits; plan it"):
            way(program)(np.ones((8, 4)), np.ones((4, 4)), np.ones((4, 4)))


def test_refused_functions() -> None:
    with pytest.raises(mtf.LayoutError, match=r"expected a function made with @mtf\.function, got function "):
        mtf.plan(lambda x: x, "x:2", sizes="B:2")
    with pytest.raises(mtf.LayoutError) as caught:

        @mtf.function
        def bare(x, y: int, *more: B):
            return x

    assert str(caught.value).split("\n") == [
        "function bare: 3 faults",
        *[f"  {n}. argument {name} does not say its dimensions; write e.g. {name}: 'batch io'"
          for n, name in enumerate(("x", "y", "more"), 1)],
    ]  # fmt: skip
    with pytest.raises(mtf.LayoutError, match="dtypes of one: no argument 'y'; legal here: 'x'"):

        @mtf.function(dtypes={"y": "i32"})
        def one(x: B):
            return x

    @mtf.function
    def fixed(x: "B:4"):
        return x

    with pytest.raises(mtf.LayoutError, match="sizes of fixed: argument x says B:4, sizes say B:8"):
        mtf.plan(fixed, "x:2", sizes="B:8")


def test_dimensions_are_read_in_every_form_that_python_keeps() -> None:
    def plain(x: B, y: DIMS, eps=1e-6):
        return x * eps

    assert {n: [d.name for d in dims] for n, dims in mtf.function(plain).arguments.items()} == {
        "x": ["B"], "y": ["batch", "io"],
    }  # fmt: skip
    plain.__annotations__ = {"x": "batch io", "y": "'io'"}
    assert [len(dims) for dims in mtf.function(plain).arguments.values()] == [2, 1]


def test_a_tensor_cannot_leave_the_function_that_made_it() -> None:
    kept = []

    @mtf.function
    def first(x: B):
        kept.append(x)
        return x

    @mtf.function
    def second(x: B):
        return x + kept[0]

    mtf.plan(first, "x:2", sizes="B:2")
    with pytest.raises(mtf.LayoutError, match="belongs to another call; a tensor cannot leave the function that"):
        mtf.plan(second, "x:2", sizes="B:2")


RUNS = [
    ((), {}, "run of two_layers: 3 faults\n  1. input x (batch:8 io:4) is missing"),
    ((0, 0, 0, 0), {}, "4 arrays given, the inputs are x, w, v"),
    ((np.ones((8, 4)),), {"x": 1}, "input 'x' is given twice"),
    ((), {"y": 1}, "no input 'y'; legal here: 'x', 'w', 'v'"),
    ((np.ones((4, 8)),), {}, "input x has shape (4, 8), expected (8, 4) (batch:8 io:4)"),
]


@pytest.mark.parametrize(("args", "kwargs", "message"), RUNS, ids=[message[:30] for _, _, message in RUNS])
def test_refused_runs(args: tuple, kwargs: dict, message: str) -> None:
    program = mtf.plan(two_layers(), "rows:4 cols:2", "batch:rows", sizes="batch:8 io:4 hidden:4")
    for way in (mtf.simulate, mtf.single):
        with pytest.raises(mtf.LayoutError) as caught:
            way(program)(*args, **kwargs)
        assert message in str(caught.value)


def test_values_before_a_run_and_of_no_step() -> None:
    program = mtf.plan(two_layers(), "rows:4 cols:2", "batch:rows", sizes="batch:8 io:4 hidden:4")
    run = mtf.simulate(program)
    with pytest.raises(mtf.LayoutError, match=r"no values yet: call the run on arrays first, e\.g\. run"):
        run.values(0)
    run(np.ones((8, 4)), np.ones((4, 4)), np.ones((4, 4)))
    with pytest.raises(mtf.LayoutError, match=r"has steps 0 to \d+, not 99"):
        run.values(99)
    for wrong in ("0", 1.5, None, ()):
        with pytest.raises(mtf.LayoutError, match=r"a step is given by its number \(0 to \d+\) or as one of"):
            run.values(wrong)
    with pytest.raises(mtf.LayoutError, match="mesh 'rows:4 cols:2' has devices 0 to 7, not 8"):
        run.values(0, device=8)
    other = mtf.plan(two_layers(), "rows:4", "batch:rows", sizes="batch:8 io:4 hidden:4")
    with pytest.raises(mtf.LayoutError, match=r"is not a step of .*; use those of prog\.steps"):
        run.values(other.steps[0])


def test_refused_calls_on_arrays() -> None:
    with pytest.raises(mtf.LayoutError, match=re.escape("argument x has 1 dimensions (8,), expected 'batch io'")):
        two_layers()(np.ones(8), np.ones((4, 4)), np.ones((4, 4)))
    with pytest.raises(mtf.LayoutError, match=re.escape("call of two_layers: io has sizes 4 and 5 (in w)")):
        two_layers()(np.ones((8, 4)), np.ones((5, 4)), np.ones((4, 4)))


def test_numpy_numbers_are_numbers() -> None:
    def body(x, w, i, m):
        return np.float32(2) * x + np.int64(1) - mtf.where(m, np.float64(0.5), 0.25)

    program = mtf.plan(build(body), MESH, "B:x", sizes=SIZES)
    mask = np.arange(8) % 2 == 0
    found = mtf.simulate(program)(np.ones((8, 4)), np.ones((4, 6)), np.zeros(8, int), mask)
    np.testing.assert_array_equal(found, np.broadcast_to(np.where(mask, 2.5, 2.75)[:, None], (8, 4)))


def test_truth_values_join_in_as_zero_and_one() -> None:
    program = mtf.plan(build(lambda x, w, i, m: x * m + m), MESH, "B:x", sizes=SIZES)
    mask = np.arange(8) % 3 == 0
    found = mtf.simulate(program)(np.full((8, 4), 2.0), np.ones((4, 6)), np.zeros(8, int), mask)
    np.testing.assert_array_equal(found, np.broadcast_to(3.0 * mask[:, None], (8, 4)))


def test_the_order_of_partial_axes_has_no_meaning() -> None:
    import jax.numpy as jnp

    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    for at, out in (({"x": "B E partialsum:yx"}, None), (None, "B F partialsum:yx")):

        @mtf.function
        def product(x: "B E", w: "E F", at=at, out=out):
            return mtf.einsum(x, w, out=out or "B F", at=at)

        program = mtf.plan(product, MESH, "E:yx", sizes="B:8 E:8 F:8", place={"x": "B E partialsum:yx", "w": "E F"})
        np.testing.assert_array_equal(mtf.simulate(program)(x, x), jnp.asarray(x @ x))


def test_the_helpers_behind_the_texts() -> None:
    assert nearest("row", ["rows", "cols"]) == "did you mean 'rows'? legal here: 'rows', 'cols'"
    assert nearest("q", []) == "legal here: none" and nearest(0, ["x"]) == "legal here: 'x'"
    refuse([])
    with pytest.raises(mtf.LayoutError, match=r"^here: a$"):
        refuse(["a", "a"], "here")
    assert issubclass(mtf.NotationError, mtf.LayoutError) and issubclass(mtf.LayoutError, ValueError)
    assert issubclass(mtf.DeviceError, RuntimeError) and issubclass(mtf.LayoutWarning, UserWarning)


def test_too_few_attached_devices_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    chips = [SimpleNamespace(device_kind="TPU v4", platform="tpu")] * 4
    monkeypatch.setattr("mtfcore.device_pool.attached_devices", lambda: chips)
    program = mtf.plan(two_layers(), "rows:4 cols:2", "batch:rows", sizes="batch:8 io:4 hidden:4")
    with pytest.raises(mtf.DeviceError, match="mesh 'rows:4 cols:2' needs 8 devices; attached: 4 x TPU v4"):
        mtf.attach(program)


def test_a_function_inside_another_takes_what_it_says() -> None:
    inner = two_layers()

    @mtf.function
    def outer(x: "io batch", w: "io hidden", v: "hidden io"):
        return inner(x, w, v)

    message = r"argument x says 'batch io', got x\[io:4, batch:8\]; use mtf\.rename or mtf\.transpose"
    with pytest.raises(mtf.LayoutError, match=message):
        mtf.plan(outer, "rows:4", sizes="batch:8 io:4 hidden:4")
