"""What an optimizer may be told: a table of legal numbers, and all that is wrong at once.

    Adam(learning_rate=-1, beta1=2)     → LayoutError: Adam: learning_rate is -1; expected … (2 faults)

Without it a number that is none would show as NaN after hours, or as an error in the middle of a step's arithmetic.
Next file to read: `optimizers`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from mtfcore.dtypes import canonical, is_float
from mtfcore.errors import LayoutError
from mtfcore.notation import is_name
from mtfcore.ops import plain_number

POSITIVE, SHARE = "a number above 0", "a number from 0 to below 1"
LEGAL: dict[str, tuple[Callable[[float], bool], str]] = {
    "clip": (lambda n: n > 0, f"{POSITIVE}, or None"),
    "momentum": (lambda n: 0 <= n < 1, SHARE),
    "beta1": (lambda n: 0 <= n < 1, SHARE),
    "beta2": (lambda n: 0 <= n < 1, SHARE),
    "eps": (lambda n: n > 0, POSITIVE),
    "eps1": (lambda n: n > 0, POSITIVE),
    "eps2": (lambda n: n > 0, POSITIVE),
    "decay": (lambda n: n > 0, POSITIVE),
    "clip_threshold": (lambda n: n > 0, POSITIVE),
    "weight_decay": (lambda n: n >= 0, "a number of at least 0"),
}


def option_faults(optimizer: Any) -> list[str]:
    """One sentence for each field that is not legal: what it is, and what it may be."""
    faults = []
    for field in dataclasses.fields(optimizer):
        value = getattr(optimizer, field.name)
        legal = _legal(field.name, value, may_be_none=field.default is None)
        faults += [f"{field.name} is {value!r:.100}; expected {legal}"] if legal else []
    return faults


def _legal(name: str, value: Any, may_be_none: bool) -> str:
    """What a field may be, where it is not; empty where it is."""
    if value is None and may_be_none:
        return ""
    if name == "learning_rate":
        fits = callable(value) or _is_number(value, lambda n: n >= 0)
        return "" if fits else "a number of at least 0, or a function of the update's number such as warmup(1e-3, 100)"
    if name in LEGAL:
        test, legal = LEGAL[name]
        return "" if _is_number(value, test) else legal
    if name == "dtype":
        return "" if _is_float(value) else "a float such as 'f32', that of the state"
    if name == "stacked":
        return "" if isinstance(value, tuple) and all(map(is_name, value)) else "names such as ('layers',)"
    return "" if name != "scale_parameter" or isinstance(value, bool) else "True or False"


def _is_number(value: Any, test: Callable[[float], bool]) -> bool:
    number = plain_number(value)
    return number is not None and not isinstance(number, bool) and test(number) and number < float("inf")


def _is_float(dtype: Any) -> bool:
    try:
        return is_float(canonical(dtype))
    except LayoutError:
        return False


def expect_params(params: Any, about: str) -> Mapping[str, Any]:
    """Refuse what is no mapping from names to dimensions."""
    if not isinstance(params, Mapping) or not all(isinstance(name, str) for name in params):
        what = f"{type(params).__name__} {params!r:.100}"
        raise LayoutError(f"{about}: params is {what}; expected e.g. {{'w': 'io:512 hidden:2048'}}")
    return params
