"""Named functions whose arguments are data."""

import inspect

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.functions import Function

ARGUMENTS = {"x": "batch io", "w": "io hidden"}


def product(x, w):
    """One matrix product."""
    return mtf.einsum(x, w, out="batch hidden")


def test_it_is_what_the_decorator_makes():
    made = Function.of("product", ARGUMENTS, product)
    x, w = np.arange(8, dtype=np.float32).reshape(4, 2), np.ones((2, 6), np.float32)
    program = mtf.plan(made, "rows:2", "batch:rows", sizes="batch:4 io:2 hidden:6")
    assert (program.name, [port.name for port in program.inputs]) == ("product", ["x", "w"])
    for found in (made(x, w), made(w=w, x=x), mtf.simulate(program)(x, w), mtf.simulate(program)(w=w, x=x)):
        np.testing.assert_array_equal(found, x @ w)
    assert made.__doc__ == "One matrix product."
    assert "mtf.einsum(x, w" in inspect.getsource(made)


def test_a_call_that_takes_any_keywords_gets_every_tensor_by_name():
    made = Function.of("named", ARGUMENTS | {"ids": "batch"}, lambda **given: given, dtypes={"ids": "i32"})
    graph = made.trace("batch:4 io:2 hidden:6")
    assert list(graph.outputs) == ["x", "w", "ids"]
    assert [graph.ops[number].dtype for number in graph.outputs.values()] == ["f32", "f32", "i32"]


def test_a_dimension_may_be_called_as_a_name_of_the_module():
    graph = Function.of("same", {"x": "inspect"}, lambda x: x).trace("inspect:4")
    assert graph.ops[0].names == ("inspect",)


def test_it_is_called_inside_another_function():
    made = Function.of("product", ARGUMENTS, product)

    @mtf.function
    def twice(x: "batch io", w: "io hidden"):
        return made(x, w) + made(x=x, w=w)

    x, w = np.ones((4, 2), np.float32), np.ones((2, 6), np.float32)
    np.testing.assert_array_equal(twice(x, w), 2 * x @ w)


@pytest.mark.parametrize(
    ("arguments", "call", "text"),
    [
        ({"w in": "io hidden"}, product, "argument 'w in' cannot be a keyword of a function"),
        ({"lambda": "io hidden"}, product, "argument 'lambda' cannot be a keyword of a function"),
        (["x"], product, "expected arguments such as {'x': 'batch io'} and a function, got list and function"),
        (ARGUMENTS, None, "got dict and NoneType"),
        ({"x": 3}, product, "argument x does not say its dimensions"),
        ({"x": "a a"}, product, "dimension 'a' stands 2 times"),
    ],
)  # fmt: skip
def test_what_is_refused(arguments, call, text):
    with pytest.raises(mtf.LayoutError) as refusal:
        Function.of("product", arguments, call)
    assert text in str(refusal.value)


def test_dtypes_of_arguments_that_are_not_there():
    with pytest.raises(mtf.LayoutError, match="no argument 'tokens'"):
        Function.of("product", ARGUMENTS, product, dtypes={"tokens": "i32"})
