"""Where a model's chat template is run: Jinja's sandbox, with less in it, and every operation metered.

    >>> render = compiled("{% for m in messages %}{{ m.content | trim }}{% endfor %}", Limits())
    >>> render({"messages": [{"role": "user", "content": " Hello "}]})
    'Hello'

Jinja's `ImmutableSandboxedEnvironment` keeps a template from the machine's files and from Python's inner parts; it does
not keep it from taking all memory or for ever. So the template's tree is rewritten before it is compiled: whatever
makes, loops over or prints a value passes through the meter (`metering`), a few methods and filters are left, and
tags that bring other templates are refused. Next file to read: `sandbox_contents`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from jinja2 import TemplateError, nodes
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from mtfcore.errors import LayoutError
from mtfcore.model.files.metering import Limits, Meter
from mtfcore.model.files.sandbox_contents import FILTERS_HERE, FUNCTIONS, METER, looked_at

TAGS = (
    "Template Output For If Macro CallBlock With Assign AssignBlock Name NSRef Const TemplateData Tuple List Dict Pair "
    "Keyword CondExpr Filter Test Call Getitem Getattr Slice Concat Compare Operand Mul Div FloorDiv Add Sub Mod Pow "
    "And Or Not Neg Pos Continue Break"
).split()
MAKING = (
    nodes.BinExpr, nodes.Tuple, nodes.List, nodes.Dict, nodes.Filter, nodes.Call, nodes.Getitem,
)  # fmt: skip
ONE_BY_ONE = "map reject rejectattr select selectattr".split()  # do something with each item; most items may be dropped
METHODS: tuple[tuple[Any, frozenset[str]], ...] = (
    (str, frozenset(
        "capitalize casefold count endswith find index isalnum isalpha isdecimal isdigit islower isnumeric isspace "
        "istitle isupper join lower lstrip partition removeprefix removesuffix replace rfind rindex rpartition rsplit "
        "rstrip split splitlines startswith strip swapcase title upper".split())),
    (dict, frozenset("get items keys values".split())),
    ((list, tuple), frozenset("count index".split())),
    (LoopContext, frozenset(
        "index index0 revindex revindex0 first last length previtem nextitem depth depth0 cycle changed".split())),
)  # fmt: skip
WRONG = (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, NameError)


def compiled(source: str, limits: Limits) -> Callable[[Mapping[str, Any]], str]:
    """The template as a function of its variables; refuses one that is too long or says what it may not."""
    if len(source) > limits.source:
        raise LayoutError(f"the chat template has {len(source):,} characters, over {limits.source:,}")
    environment = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    try:
        tree = _Metered().visit(environment.parse(source))
        tree.set_environment(environment)
        template = environment.template_class.from_code(environment, environment.compile(tree), {**environment.globals})
    except LayoutError:
        raise
    except (*WRONG, SyntaxError, MemoryError) as fault:
        words = str(fault) or "it is nested too deeply"  # Python's own compiler then says nothing
        raise LayoutError(f"the chat template cannot be read: {words:.300}") from None

    def render(variables: Mapping[str, Any]) -> str:
        meter = Meter(limits)
        meter.value(dict(variables))
        try:
            return template.render({**variables, METER: meter})
        except LayoutError:
            raise
        except WRONG as fault:
            raise LayoutError(f"the chat template refuses this conversation: {fault!s:.300}") from None

    return render


class _Metered(NodeTransformer):
    """Rewrites a template's tree so that values pass through the meter."""

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        kind = type(node).__name__
        if kind not in TAGS:
            raise LayoutError(f"the chat template uses {kind}, which no template of a chat needs")
        if getattr(node, "recursive", False) or (kind == "AssignBlock" and node.filter):
            raise LayoutError(f"the chat template has a {kind} of a kind that is not run here")
        if isinstance(node, nodes.CallBlock):
            node.call = cast(
                nodes.Call, self.generic_visit(node.call)
            )  # the call itself stays one, as the compiler expects
            node.args = [self.visit(arg) for arg in node.args]
            node.defaults = [self.visit(default) for default in node.defaults]
            node.body = self._all(node.body)
            return node
        node = self.generic_visit(node)
        if isinstance(node, nodes.For):
            node.iter = _through("looped", cast(nodes.Expr, node.iter))
        elif isinstance(node, nodes.Output):
            node.nodes = [_through("printed", _plain(part)) for part in node.nodes]
        elif isinstance(node, nodes.Concat):
            return _through("joined", nodes.List(node.nodes, lineno=node.lineno))
        elif isinstance(node, MAKING) and getattr(node, "ctx", "load") == "load":
            if isinstance(node, nodes.Filter) and node.name in ONE_BY_ONE:
                node.node = _through("looped", cast(nodes.Expr, node.node))
            return _through("metered", node)
        return node

    def _all(self, body: list[nodes.Node]) -> list[nodes.Node]:
        return [self.visit(part) for part in body]


def _through(name: str, node: nodes.Expr) -> nodes.Expr:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


def _plain(node: nodes.Expr) -> nodes.Expr:
    return nodes.Const(node.data, lineno=node.lineno) if isinstance(node, nodes.TemplateData) else node


class _Sandbox(ImmutableSandboxedEnvironment):
    """Plain data, a few methods and filters, no format strings."""

    intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)

    def __init__(self, **options: Any) -> None:
        # Nothing is worked out while compiling: Jinja would look at a chain of sums anew from each of its links.
        super().__init__(optimized=False, **options)
        self.filters, self.globals = dict(FILTERS_HERE), dict(FUNCTIONS)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """The methods above, and what a template has put into a namespace itself."""
        if isinstance(obj, Namespace):
            return not attr.startswith("_")
        return any(isinstance(obj, kind) and attr in names for kind, names in METHODS)

    def wrap_str_format(self, value: Any) -> None:
        """No format strings, not even safe ones: '{:1000000000}' is short and its text is not."""

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Any call; those that can make much of little are looked at first."""
        meter: Meter = __context.parent[METER]
        meter.step()
        text = getattr(__obj, "__self__", None)
        if isinstance(text, str):
            looked_at(meter, __obj.__name__, text, args)
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Any operation of two values."""
        meter: Meter = context.parent[METER]
        if operator == "%" and isinstance(left, str):
            raise LayoutError("the chat template formats texts by %; ~ joins texts")
        if operator == "**" and not (abs(left) <= 1 << 32 and abs(right) <= 64):
            meter.over("a power of numbers that large")
        if operator == "*":
            for items, times in ((left, right), (right, left)):
                if isinstance(items, (str, list, tuple)) and isinstance(times, int):
                    meter.sized(len(items) * max(times, 0))
        return super().call_binop(context, operator, left, right)
