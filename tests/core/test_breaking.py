"""What broke under attack, and what must stay refused: each case is the smallest program that once went wrong."""

import copy
import functools
import pickle

import jax.numpy as jnp
import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.dtypes import cannot_hold

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def planned(body, dtype="f32", **more):
    @mtf.function
    def f(x: "A:8 B:4"):
        return body(x)

    return mtf.plan(f, "p:2 q:2", "A:p", dtype=dtype, **more)


def refused(thunk) -> str:
    with pytest.raises(mtf.LayoutError) as caught:
        thunk()
    return str(caught.value)


# ---- values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "size"), [("i8", 512), ("u8", 300), ("i8", 100), ("i16", 512), ("i32", 512)])
def test_one_hot_of_narrow_ids_counts_past_what_they_hold(dtype, size):
    run = mtf.simulate(planned(lambda x: mtf.sum(mtf.one_hot(mtf.cast(x, dtype), f"V:{size}"), "V")))
    assert (run(X) == 1).all()


@pytest.mark.parametrize("mesh", ["p:3", "p:2 q:3"])
def test_a_tensor_moved_inside_a_loop_keeps_its_name_outside(mesh):
    @mtf.function
    def f(x: "F:6 G:2", y: "F:6 G:2"):
        return mtf.repeat(lambda c: mtf.subtract(y, c), 3, (), x)

    program = mtf.plan(f, mesh, place={"x": "F:p G", "y": "F G"})
    given = np.arange(12, dtype=np.float32).reshape(6, 2), np.ones((6, 2), np.float32)
    names: dict = {}
    exec(program.source(), names)
    assert np.array_equal(names["f"](*names["place"](*given)), 1 - given[0])


@pytest.mark.parametrize("place", ["B:2 A partialsum:x", "B A:x", "B A:x partialsum:y"])
def test_ids_that_are_a_partial_sum_are_summed_before_they_are_looked_up(place):
    @mtf.function(dtypes={"ids": "i32"})
    def look_up(table: "V:8 D:4", ids: "B:2 A:4"):
        return mtf.gather(table, mtf.sum(ids, "A"), "V")

    program = mtf.plan(look_up, "x:2 y:2", place={"table": "V D partialsum:y", "ids": place})
    assert {step.kind for step in program.walk()} & {"all_reduce", "reduce_scatter"}
    ids = np.array([[0, 1, 2, 3], [1, 1, 1, 0]])
    assert np.array_equal(mtf.simulate(program)(X, ids), X[[6, 3]])


def take(x, **more):
    return mtf.gather(x, mtf.index("I:3", x), "A", **more)


IN_ANOTHER_ORDER = [
    (lambda x, **more: mtf.relu(x, **more), "B A:p"), (lambda x, **more: mtf.cast(x, "bf16", **more), "B A:p"),
    (lambda x, **more: mtf.slice(x, "A", 1, 5, **more), "B:q A:p"), (take, "B:q I"),
    (lambda x, **more: mtf.pad(x, "B", 6, **more), "B A partialsum:p"),
    (lambda x, **more: mtf.cumsum(x, "A", **more), "B:(p q) A"),
    (lambda x, **more: mtf.top_k(x, "A", 2, **more)[1], "B A:q"),
    (lambda x, **more: mtf.concat([x, x], "A", **more), "B A"), (lambda x, **more: mtf.softmax(x, "A", **more), "B A"),
    (lambda x, **more: mtf.reshape(x, "C:2 D:16", **more), "D:p C"),
    (lambda x, **more: mtf.rename(x, "A", "C", **more), "B:q C"),
    (lambda x, **more: mtf.one_hot(mtf.sum(mtf.cast(x, "i32"), "B"), "V:6", **more), "V A:q"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "out"), IN_ANOTHER_ORDER)
def test_results_have_their_dimensions_in_the_order_of_out(body, out):
    program = planned(lambda x: (body(x), body(x, out=out)))
    natural, turned = (port.sharding.names for port in program.outputs)
    assert turned == mtf.Sharding(out).names == natural[::-1]
    as_it_is, other = mtf.simulate(program)(X)
    assert np.array_equal(as_it_is.T, other)


def test_a_partial_sum_may_be_divided_before_it_is_summed():
    @mtf.function
    def f(a: "A:8 B:4", b: "A:8"):
        return mtf.divide(a, 4.0), mtf.divide(a, b), mtf.divide(b, mtf.einsum(a, out="A"))

    program = mtf.plan(f, "x:4", place={"a": "A B partialsum:x"})
    quarter, ratio, inverse = (port.sharding for port in program.outputs)
    assert quarter.partial == ratio.partial == ("x",) and not inverse.partial
    a, b = X + 1, np.arange(1, 9, dtype=np.float32)
    got = mtf.simulate(program)(a, b)
    for result, right in zip(got, (a / 4, a / b[:, None], b / a.sum(axis=1)), strict=True):
        np.testing.assert_allclose(result, right, rtol=1e-6)


@pytest.mark.parametrize("keys", [("out",), ("out0", "out1"), ('a"b', "c\\"), ("n\n", "é"), (1, 2)])
def test_printed_programs_return_dictionaries_with_the_same_keys(keys):
    program = planned(lambda x: {key: x * number for number, key in enumerate(keys)})
    names: dict = {}
    exec(program.source(), names)
    got, expected = names["f"](*names["place"](X)), mtf.simulate(program)(X)
    assert set(got) == set(expected) == set(keys)
    assert all(np.array_equal(got[key], expected[key]) for key in keys)
    assert str(program.table())


def test_traffic_is_copied_with_its_axes():
    sent = planned(lambda x: mtf.sum(x, out="")).link_bytes()
    for copied in (pickle.loads(pickle.dumps(sent)), copy.copy(sent), copy.deepcopy(sent)):
        assert copied == sent > 0 and copied.by_axis == sent.by_axis


# ---- what cannot be ---------------------------------------------------------------------------------------------

OPERATIONS = [
    (lambda x: x + 2**40, "i32", "out of its range, -2147483648 to 2147483647"),
    (lambda x: x + (-1), "u8", "-1 beside a tensor of u8 is out of its range, 0 to 255"),
    (lambda x: mtf.maximum(x, 200), "i8", "out of its range, -128 to 127"),
    (lambda x: x + 10**400, "f32", "too large for any float"),
    (lambda x: mtf.power(x, -1), "i32", "is no whole number"),
    (lambda x: mtf.pad(x, "A", 12, 2**40), "i32", "expected a number that i32 can hold"),
    (lambda x: mtf.pad(x, "A", 12, -1), "u8", "expected a number that u8 can hold"),
    (lambda x: mtf.pad(mtf.greater(x, 1), "A", 12, 2), "f32", "expected a number that bool can hold"),
    (lambda x: mtf.index("V:512", x, "i8"), "f32", "i8 cannot count to 511 along V:512"),
    (lambda x: mtf.index("V:4", x, "bool"), "f32", "bool cannot count"),
    (lambda x: mtf.slice(x, "A", np.ones(3), 4), "f32", "expected a whole number"),
    (lambda x: mtf.softmax(x, np.ones(3)), "f32", "has no dimension"),
    (lambda x: mtf.concat(5, "A"), "f32", "needs a sequence"),
    (lambda x: mtf.repeat("block", 2, (), x), "f32", "expected a function of the carry"),
    (lambda x: mtf.repeat(lambda c: c, np.ones(3), (), x), "f32", "expected a whole number"),
    (lambda x: mtf.repeat(lambda c: mtf.transpose(c, "B A"), 2, (), x), "f32", "use mtf.transpose(t, 'A B')"),
    (lambda x: mtf.repeat(lambda c: mtf.cast(c, "bf16"), 2, (), x), "f32", "use mtf.cast(t, 'f32')"),
    (lambda x: mtf.sum(x, "y" * 5_000), "f32", "legal here: 'A', 'B'"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "dtype", "words"), OPERATIONS)
def test_operations_refuse_before_anything_runs(body, dtype, words):
    said = refused(lambda: planned(body, dtype))
    assert words in said and len(said) < 1_000


@pytest.mark.parametrize(("name", "offer"), [("größe", "groe"), ("é", "e"), ("日本", "rows")])
def test_axes_whose_names_would_end_the_process(name, offer):
    assert f"e.g. {offer!r}" in refused(lambda: mtf.Mesh(f"{name}:2"))
    assert mtf.simulate(planned(lambda x: mtf.rename(x, "A", name)))(X).shape == X.shape  # dimensions may


@pytest.mark.parametrize("value", [np.float32(1), np.bool_(True), np.array(1), 1, True])
def test_numbers_of_any_kind_are_constants(value):
    assert (mtf.simulate(planned(lambda x: mtf.pad(x, "A", 9, value)))(X)[8] == 1).all()
    assert (mtf.simulate(planned(lambda x: mtf.where(mtf.less(x, 0), x, value)))(X) == 1).all()


def test_what_a_dtype_holds():
    limits = {"i8": (-128, 127), "u8": (0, 255), "i16": (-(2**15), 2**15 - 1), "i64": (-(2**63), 2**63 - 1)}
    for dtype, (least, most) in limits.items():
        assert not cannot_hold(dtype, least) and not cannot_hold(dtype, most)
        assert cannot_hold(dtype, least - 1) and cannot_hold(dtype, most + 1) and cannot_hold(dtype, 0.5)
    assert not cannot_hold("bf16", float("nan")) and cannot_hold("i32", float("nan"))


def base(x: "A:4", k=2):
    return x * k


def test_functions_of_any_kind():
    class Doubled:
        def __call__(self, x: "A:4"):
            return x * 2

    for call in (base, functools.partial(base, k=2), Doubled(), Doubled().__call__, mtf.function(base)):
        assert mtf.simulate(mtf.plan(mtf.function(call), "p:2", "A:p"))(np.ones(4)).tolist() == [2, 2, 2, 2]

    def positional(x: "A:4", /):
        return x

    assert "leave the '/' out" in refused(lambda: mtf.function(positional))
    assert "expected a Python function, got int" in refused(lambda: mtf.function(5))
    assert "one entry an argument" in refused(lambda: mtf.function(base, dtypes="i32"))


def test_a_size_that_one_argument_says_holds_for_the_others():
    @mtf.function
    def product(x: "A:8 B:4", y: "B C"):
        return mtf.einsum(x, y, out="A C")

    assert mtf.plan(product, "p:2", "A:p", sizes="C:6").inputs[1].sharding.shape == (4, 6)
    assert "argument x says B:4, sizes say B:8" in refused(lambda: mtf.plan(product, "p:2", sizes="B:8 C:6"))
    assert "no size for dimension 'C'" in refused(lambda: mtf.plan(product, "p:2"))


# ---- arrays and values of a run ---------------------------------------------------------------------------------

ARRAYS = [
    ("f32", "abc", "is str, expected an array of real numbers"), ("f32", None, "is NoneType"),
    ("f32", [[1], [2, 3]], "different lengths"), ("f32", X * 1j, "is complex64"), ("f32", X.astype(str), "is <U32"),
    ("i32", X + 0.5, "holds 0.5, which i32 cannot hold"), ("i8", X + 200, "holds 200.0, which i8 cannot hold"),
    ("bool", X, "holds 2.0, which bool cannot hold"), ("i32", X * np.nan, "holds nan"),
    ("i32", X.astype(np.int64) << 32, "holds 4294967296"), ("f32", np.float32, "is type"),
    ("f32", np.ma.masked_equal(X, 2), "masked values, and a run would read what lies below"),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "array", "words"), ARRAYS)
def test_arrays_that_are_not_what_the_input_says(dtype, array, words):
    program = planned(lambda x: x, dtype)
    for run in (mtf.simulate(program), mtf.single(program)):
        assert words in refused(lambda run=run: run(array))


def test_arrays_that_only_need_converting():
    ints = mtf.simulate(planned(lambda x: x, "i32"))
    for array in (X, X.astype(np.int64), jnp.asarray(X), X.tolist(), X.astype(np.uint8), np.ma.array(X)):
        assert ints(array).dtype == np.int32 and (ints(array) == X).all()
    assert mtf.simulate(planned(lambda x: x, "bool"))(X * 0).dtype == bool


def test_a_call_on_arrays_takes_the_dtypes_that_the_function_says():
    @mtf.function(dtypes={"ids": "i32"})
    def look_up(table: "V D", ids: "B"):
        return mtf.gather(table, ids, "V")

    assert look_up(X, [1.0, 0.0]).tolist() == X[[1, 0]].tolist()
    assert "argument ids holds 0.5, which i32 cannot hold" in refused(lambda: look_up(X, [0.5]))
    assert "argument table is str" in refused(lambda: look_up("table", [1]))
    assert "argument table has masked values" in refused(lambda: look_up(np.ma.masked_equal(X, 2), [1]))


@pytest.mark.parametrize("turn", [3, -4, "a", 1.5, None])
def test_turns_that_a_loop_does_not_have(turn):
    run = mtf.simulate(planned(lambda x: mtf.repeat(mtf.tanh, 3, (), x)))
    run(X)
    assert "turns 0 to 2" in refused(lambda: run.values((0, 0), 0, turn))
    assert "turns 0 to 2" in refused(lambda: run.before((0, 0), 0, turn))


def test_same_sets_asks_for_a_sharding():
    assert "expected another Sharding, got str" in refused(lambda: mtf.Sharding("B:4", "B:p").same_sets("B:p"))
