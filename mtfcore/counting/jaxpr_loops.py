"""What a jaxpr says of itself: which equations are live, and how often a `while` runs.

JAX writes `fori_loop` with known bounds as a scan, whose length is a parameter. What is left are true whiles; the
number of runs of `while i < 7: i += 2` can be read if its start, its step and its bound are literals.

Next file to read: stablehlo.py.
"""

from typing import Any

from mtfcore.counting import flops


def open_jaxpr(jaxpr: Any) -> Any:
    """The jaxpr itself, whether it came with its constants (closed) or without."""
    return getattr(jaxpr, "jaxpr", jaxpr)


def live_jaxpr(jaxpr: Any) -> Any:
    """The jaxpr without dead code, by the rules that JAX itself applies before it lowers."""
    from jax.interpreters import partial_eval

    jaxpr = open_jaxpr(jaxpr)
    return partial_eval.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))[0]


def while_runs(eqn: Any) -> int | None:
    """Runs of `while i < 7: i += 1`, if start, step and bound are all written in the jaxpr."""
    test, body = open_jaxpr(eqn.params["cond_jaxpr"]), open_jaxpr(eqn.params["body_jaxpr"])
    n_test, n_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    carries, given = test.invars[n_test:], [_literal(v) for v in eqn.invars]
    made = {out: e for e in body.eqns for out in e.outvars}
    if len(test.eqns) != 1 or test.eqns[0].primitive.name not in ("lt", "le", "gt", "ge", "ne"):
        return None
    left, right = test.eqns[0].invars
    if _literal(left) is not None or left not in carries:
        return None
    i = carries.index(left)
    bound = _bound(right, test, body, given, n_test, n_body)
    start, step = given[n_test + n_body + i], _step(made.get(_name(body.outvars[i])), body.invars[n_body + i])
    if start is None or bound is None or step is None:
        return None
    return flops.trip_count(start, bound, step, test.eqns[0].primitive.name.upper())


def _bound(var: Any, test: Any, body: Any, given: list, n_test: int, n_body: int) -> int | None:
    """A bound is a literal, a constant handed in, or a carry that the body passes on unchanged."""
    if _name(var) is None:
        return _literal(var)
    at = test.invars.index(var) if var in test.invars else -1
    if 0 <= at < n_test:
        return given[at]
    unchanged = at >= n_test and body.outvars[at - n_test] is body.invars[n_body + at - n_test]
    return given[n_body + at] if unchanged else None


def _step(eqn: Any, counter: Any) -> int | None:
    if eqn is None or eqn.primitive.name not in ("add", "sub") or eqn.invars[0] is not counter:
        return None
    step = _literal(eqn.invars[1])
    return -step if step is not None and eqn.primitive.name == "sub" else step


def _name(var: Any) -> Any:
    return None if hasattr(var, "val") else var  # literals are not hashable


def _literal(var: Any) -> int | None:
    value = getattr(var, "val", None)
    return int(value) if value is not None and getattr(var.aval, "dtype", None) is not None and (
        var.aval.shape == () and var.aval.dtype.kind in "iu") else None  # fmt: skip
