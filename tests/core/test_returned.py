"""A function's outputs come back in the form in which it returned them, whatever the way to run."""

import numpy as np
import pytest

import mtfcore as mtf

FORMS = {
    "one": lambda a: a,
    "tuple of one": lambda a: (a,),
    "tuple of two": lambda a: (a, a * 2),
    "dictionary": lambda a: {"twice": a * 2, "once": a},
    "dictionary with the names of a tuple": lambda a: {"out": a},
}


@pytest.mark.parametrize("form", FORMS)
def test_outputs_keep_the_form_that_the_function_gave_them(form):
    @mtf.function
    def fn(a: "x y"):
        return FORMS[form](a)

    a = np.arange(8, dtype=np.float32).reshape(4, 2)
    program = mtf.plan(fn, "rows:2", "x:rows", sizes="x:4 y:2")
    expected = FORMS[form](a)
    for found in (fn(a), mtf.simulate(program)(a), mtf.single(program)(a), mtf.partitioned(program)(a)):
        assert type(found) is type(expected)
        if isinstance(expected, dict):
            assert list(found) == list(expected)
            found, wanted = list(found.values()), list(expected.values())
        else:
            wanted = expected
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
