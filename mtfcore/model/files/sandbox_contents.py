"""What a chat template finds in its sandbox: filters and functions, each metered.

    {{ names | join(", ") }}         as Jinja's, but measured before it joins
    {{ "x" | center(1000000000) }}   no filter named 'center'

Those of Jinja's own that can make much of little (center, format, indent, round, sum …) are left out, or are here with
their sizes looked at first. Next file to read: `metering`.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator
from typing import Any

from jinja2 import TemplateError, pass_context
from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.utils import Namespace

from mtfcore.errors import LayoutError
from mtfcore.model.files.metering import Meter

METER = "the meter"  # where a rendering's variables hold its meter: no name that a template could write
KEPT = (
    "abs capitalize count d default dictsort first float int items last length list lower map max min reject "
    "rejectattr reverse select selectattr sort title unique upper"
).split()
MOST_ARGUMENT = 1_000  # characters of what is looked for or stripped: Python's ways of searching from behind are slow


@pass_context
def _metered(context: Context, value: Any) -> Any:
    """A value that was just made: measured, and made whole if it would be made bit by bit later."""
    meter: Meter = context.parent[METER]
    if isinstance(value, Namespace):
        meter.step()
        return value
    if isinstance(value, Iterator) or type(value) in (type({}.keys()), type({}.values()), type({}.items())):
        value = list(meter.looped(value))
    meter.value(value)
    return value


@pass_context
def _looped(context: Context, items: Any) -> Iterator[Any]:
    return context.parent[METER].looped(items)


@pass_context
def _printed(context: Context, value: Any) -> str:
    return context.parent[METER].printed(value)


@pass_context
def _string(context: Context, value: Any) -> str:
    context.parent[METER].value(value)
    return str(value)


@pass_context
def _join(context: Context, items: Any, between: str = "", attribute: str | None = None) -> str:
    meter: Meter = context.parent[METER]
    parts = [context.environment.getitem(item, attribute) if attribute else item for item in meter.looped(items)]
    meter.value(parts)
    return _joined(context, parts, between)


@pass_context
def _joined(context: Context, parts: list[Any], between: str = "") -> str:
    meter: Meter = context.parent[METER]
    meter.value(parts)
    texts = [str(part) for part in parts]
    _joined_size(meter, between, texts)
    return between.join(texts)


def looked_at(meter: Meter, method: str, text: str, args: tuple[Any, ...]) -> None:
    """Refuse a text's method whose result or time would be out of all proportion."""
    if method == "join":
        return _joined_size(meter, text, *args)
    if method == "replace":
        _replaced(meter, text, *args)
        args = args[:1]
    for arg in args:
        if isinstance(arg, str):
            _short(meter, arg)


def _short(meter: Meter, text: str) -> None:
    if len(text) > MOST_ARGUMENT:
        meter.over(f"a search for a text of {len(text):,} characters")


def _joined_size(meter: Meter, between: str, texts: Any) -> None:
    if not isinstance(between, str) or not isinstance(texts, (list, tuple)):
        raise LayoutError("the chat template joins what is no list of texts")
    meter.sized(len(between) * len(texts) + sum(len(text) for text in texts if isinstance(text, str)))


@pass_context
def _replace(context: Context, text: str, old: str, new: str, count: int | None = None) -> str:
    text, meter = str(text), context.parent[METER]
    _replaced(meter, text, old, new)
    _short(meter, old)
    return text.replace(old, new, -1 if count is None else count)


def _replaced(meter: Meter, text: str, old: str, new: str, *_: Any) -> None:
    if not isinstance(old, str) or not isinstance(new, str):
        raise LayoutError("the chat template replaces what is no text")
    times = len(text) // len(old) if old else len(text) + 1
    meter.sized(len(text) + times * len(new))


@pass_context
def _trim(context: Context, text: Any, chars: str | None = None) -> str:
    _short(context.parent[METER], chars or "")
    return _string(context, text).strip(chars)


@pass_context
def _tojson(context: Context, value: Any, indent: int | None = None) -> str:
    """As models were taught it: no escaping for HTML."""
    context.parent[METER].value(value)
    if indent is not None and not 0 <= indent <= 8:
        raise LayoutError("the chat template wants JSON indented by more than 8")
    return json.dumps(value, ensure_ascii=False, indent=indent)


@pass_context
def _range(context: Context, *bounds: int) -> range:
    found = range(*bounds)
    context.parent[METER].sized(len(found))
    return found


def _raise(message: str = "") -> None:
    raise TemplateError(str(message)[:300])


def _now(form: str) -> str:
    if len(form) > 100:
        raise LayoutError("the chat template asks for a date in a form of over 100 characters")
    return datetime.datetime.now().strftime(form)


FILTERS_HERE: dict[str, Callable[..., Any]] = {
    **{name: FILTERS[name] for name in KEPT},
    "metered": _metered, "looped": _looped, "printed": _printed, "joined": _joined, "string": _string, "join": _join,
    "replace": _replace, "tojson": _tojson, "trim": _trim, "safe": lambda value: value,
}  # fmt: skip
FUNCTIONS = {
    "range": _range, "namespace": Namespace, "dict": dict, "raise_exception": _raise, "strftime_now": _now,
}  # fmt: skip
