"""Named functions: Python whose arguments say their dimensions.

    @mtf.function
    def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
        h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
        return mtf.einsum(h, v, out="batch io")

`two_layers.trace(sizes)` runs the Python once on `Tensor`s and gives the `Graph`; `two_layers(x, w, v)` on arrays is
the oracle: one run on whole arrays, without mesh. Next file to read: `ops`.
"""

from __future__ import annotations
import __future__

import functools
import inspect
import keyword
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mtfcore.dims import DimsLike, parse_dims
from mtfcore.dtypes import canonical
from mtfcore.errors import LayoutError, nearest, refuse, sure
from mtfcore.notation import is_name
from mtfcore.tensor import Graph, Tensor


class Function:
    """A named function: Python whose arguments say their dimensions. Made by `mtf.function`."""

    def __init__(self, call: Callable, dtypes: Mapping[str, str] | None = None) -> None:
        if not callable(call):
            raise LayoutError(f"mtf.function: expected a Python function, got {type(call).__name__}: {call!r:.200}")
        if dtypes is not None and not isinstance(dtypes, Mapping):
            what = f"{type(dtypes).__name__}: {dtypes!r:.200}"
            raise LayoutError(f"mtf.function: dtypes is e.g. {{'tokens': 'i32'}}, one entry an argument, got {what}")
        self.call, self.__doc__ = call, call.__doc__
        self.__name__ = getattr(call, "__name__", None) or type(call).__name__  # a partial has none
        self.__wrapped__ = call
        self.dtypes = {name: canonical(dtype) for name, dtype in (dtypes or {}).items()}
        self.arguments = {name: parse_dims(text) for name, text in _annotations(call, self.__name__).items()}
        unknown = [name for name in self.dtypes if name not in self.arguments]
        faults = [f"no argument {name!r}; {nearest(name, self.arguments)}" for name in unknown]
        refuse(faults, f"dtypes of {self.__name__}")

    @classmethod
    def of(
        cls, name: str, arguments: Mapping[str, str], call: Callable, dtypes: Mapping[str, str] | None = None
    ) -> Function:
        """A named function whose arguments are data, not a Python signature: `call(**tensors)`, one keyword each.

        A model's parameters are a table; `Function.of("loss", {"tokens": "B L", "embedding": "V E"}, call)` makes of
        it what `@mtf.function` makes of a `def`.
        """
        if not isinstance(arguments, Mapping) or not callable(call):
            what = f"{type(arguments).__name__} and {type(call).__name__}"
            raise LayoutError(f"Function.of: expected arguments such as {{'x': 'batch io'}} and a function, got {what}")
        bad = [word for word in arguments if not is_name(word) or keyword.iskeyword(word)]
        refuse([f"argument {word!r:.200} cannot be a keyword of a function" for word in bad], f"function {name}")
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        listed = [inspect.Parameter(word, kind, annotation=text) for word, text in arguments.items()]
        made: Any = functools.partial(_by_keyword, inspect.Signature(listed), call)
        made.__signature__, made.__name__, made.__doc__ = inspect.Signature(listed), name, call.__doc__
        found = cls(made, dtypes)
        found.__wrapped__ = call  # so that `inspect.getsource` shows what was written
        return found

    def trace(self, sizes: DimsLike = "", dtype: object = "f32", **options: Any) -> Graph:
        """Run the Python once on tensors without values; refuses missing sizes, all at once."""
        known = self._said() | {dim.name: dim.size for dim in parse_dims(sizes) if dim.size is not None}
        graph = Graph(self.__name__, known, canonical(dtype))
        placed = {name: tuple(map(graph.size, dims)) for name, dims in self.arguments.items()}
        missing = dict.fromkeys(d.name for dims in placed.values() for d in dims if d.size is None)
        hints = {name: nearest(name, known) for name in missing}
        refuse([f"no size for dimension {n!r} ({hint})" for n, hint in hints.items()], f"sizes of {self.__name__}")
        refuse(self._clashes(known), f"sizes of {self.__name__}")
        tensors = {n: graph.input(n, dims, self.dtypes.get(n, graph.dtype)) for n, dims in placed.items()}
        record_outputs(graph, self.call(**tensors, **options))
        return graph

    def _said(self) -> dict[str, int]:
        """The sizes that arguments say themselves, `x: "batch io:512"`: they hold for the other arguments too."""
        dims = dict.fromkeys(dim for dims in self.arguments.values() for dim in dims if dim.size is not None)
        names = [dim.name for dim in dims]
        return {dim.name: sure(dim.size) for dim in dims if names.count(dim.name) == 1}

    def _clashes(self, known: Mapping[str, int]) -> list[str]:
        return [
            f"argument {argument} says {dim}, sizes say {dim.name}:{known[dim.name]}"
            for argument, dims in self.arguments.items()
            for dim in dims
            if dim.size is not None and known.get(dim.name, dim.size) != dim.size
        ]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """On tensors: part of a larger function. On arrays: one run on whole arrays, without mesh (the oracle)."""
        bound = inspect.signature(self.call).bind(*args, **kwargs)
        if any(isinstance(value, Tensor) for value in bound.arguments.values()):
            self._check_names(bound.arguments)
            return self.call(*bound.args, **bound.kwargs)
        from mtfcore.whole import call_on_arrays

        return call_on_arrays(self, bound.arguments)

    def _check_names(self, arguments: Mapping[str, Any]) -> None:
        """A tensor handed to a function inside a function must have the names that the argument says."""
        faults = []
        for name, dims in self.arguments.items():
            said, given = [dim.name for dim in dims], arguments.get(name)
            if isinstance(given, Tensor) and list(given.names) != said:
                what = f"argument {name} says '{' '.join(said)}', got {given!r}"
                faults.append(f"{what}; use mtf.rename or mtf.transpose")
        refuse(faults, f"call of {self.__name__}")

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}: {' '.join(map(str, dims))!r}" for name, dims in self.arguments.items())
        return f"<mtf.function {self.__name__}({inside})>"


def function(call: Callable | None = None, *, dtypes: Mapping[str, str] | None = None) -> Any:
    """Make a named function: each argument's annotation is its dimensions, e.g. `x: "batch io"`.

    An argument with a default and no such annotation is an ordinary Python value, e.g. `eps=1e-6`.
    `dtypes` gives arguments that are not of the program's dtype: `@mtf.function(dtypes={"tokens": "i32"})`.

    `call`: the function that is decorated. What it does is recorded when it is planned; called with arrays it runs on
    one device.

    Raises `LayoutError` (`NotationError` with a caret) for annotations that are no dimensions.
    """
    return Function(call, dtypes) if call is not None else lambda later: Function(later, dtypes)


def _by_keyword(signature: inspect.Signature, call: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call with every argument by its name, however it was given."""
    return call(**signature.bind(*args, **kwargs).arguments)


def _meant(call: Callable, annotation: Any) -> Any:
    """What an annotation says; under `from __future__ import annotations` Python keeps its source text instead."""
    code = getattr(call, "__code__", None)
    if code is None or not code.co_flags & __future__.annotations.compiler_flag or not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, call.__globals__)
    except (NameError, SyntaxError):  # `x: B`, which linters make of `x: "B"`; dimensions set without their quotes
        return annotation


def _annotations(call: Callable, about: str) -> dict[str, str]:
    found, faults = {}, []
    try:
        parameters = inspect.signature(call).parameters
    except ValueError as why:
        raise LayoutError(f"{about}: {why}; decorate a function of your own: def f(x: 'batch io')") from None
    for name, parameter in parameters.items():
        text = _meant(call, parameter.annotation)
        if parameter.default is not parameter.empty and not isinstance(text, str):
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or not isinstance(text, str):
            faults.append(f"argument {name} does not say its dimensions; write e.g. {name}: 'batch io'")
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            faults.append(f"argument {name} has no name to call it by, since it stands before '/'; leave the '/' out")
        found[name] = text
    refuse(faults, f"function {about}")
    return found


def record_outputs(graph: Graph, result: Any) -> None:
    """Note what the function returned: a tensor, a tuple, or a dictionary of them."""
    named: Iterable[tuple[str, Any]]
    if isinstance(result, Mapping):
        named, graph.returns = result.items(), "dict"
    elif isinstance(result, (tuple, list)):
        named, graph.returns = ((f"out{number}", value) for number, value in enumerate(result)), "tuple"
    else:
        named = [("out", result)]
    for name, value in named:
        if not isinstance(value, Tensor):
            what = f"{type(value).__name__} {value!r:.200}"
            raise LayoutError(f"{graph.name} returns {what}; expected tensors (is a return missing?)")
        graph.outputs[name] = graph.adopt(value)
