"""What a function asks for before any layout: its products, the stacks of its loops, what must be alive at once.

    work = Work.of(graph, place)
    sum(product.flops for product in work.products)

Read from the function's plan on a single device, so there is no second description of what is computed; each entry
carries the scope of the layout on which its share of one device depends. Next file to read: `bounds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mtfcore.costs.search.scopes import Dims, Scopes
from mtfcore.costs.search.space import Space, by_layout, graphs
from mtfcore.dims import volume
from mtfcore.dtypes import itemsize
from mtfcore.layout import Layout
from mtfcore.mesh import Mesh
from mtfcore.planner import Planner
from mtfcore.steps import Program
from mtfcore.tensor import Graph, Like, Op


@dataclass(frozen=True)
class Product:
    """One product of a function, as if a single device did it all: FLOPs, and the bytes of its result.

    A loop's stack stands here too, without FLOPs: the dimension of its turns is `contracted`.
    """

    scope: Dims
    dtype: str
    flops: int
    contracted: Dims  # that its two operands share and its result lacks
    result: Dims
    n_bytes: int  # 0 where the result may stay a sum of addends
    reach: Dims = frozenset()


@dataclass(frozen=True)
class Work:
    """What a function asks of one device, as far as bounds need it: products, and the reach of every operation."""

    products: tuple[Product, ...]
    reaches: Mapping[tuple[int, int], Dims]  # (graph, number of the operation) → reach
    inputs: tuple[tuple[Dims, int], ...]  # dimensions and bytes of the inputs that a layout places
    alive: Mapping[Dims, int]  # scope → most bytes that an operation of it makes and reads besides inputs

    @classmethod
    def of(cls, graph: Graph, place: Mapping[str, object]) -> Work:
        """Read from the plan on one device, loops multiplied."""
        alone = Mesh([(axis, 1) for axis in sorted(Space.of(graph, place).named)] or "all:1")
        planner, scopes = Planner(graph, alone, Layout()), Scopes(graph, place)
        program = planner.program([[s] for s in planner.input_places({})])
        reaches = {
            (id(part), number): scopes.reach(part, number)
            for part in graphs(graph)
            for number, op in enumerate(part.ops)
            if op.kind != "input"
        }
        ops = [graph.ops[number] for name, number in graph.inputs.items() if name not in place]
        inputs = tuple((frozenset(op.names), bytes_of(op)) for op in ops)
        alive: dict[Dims, int] = {}
        for scope, n_bytes in _alive(scopes, program):
            alive[scope] = max(n_bytes, alive.get(scope, 0))
        return cls(tuple(_products(scopes, program, 1)), reaches, inputs, alive)


def _products(scopes: Scopes, program: Program, times: int) -> list[Product]:
    found = []
    for step in program.steps:
        if step.body is not None:
            found += _products(scopes, step.body, times * step.times)
            found += _stacks(scopes, program.graph, step.tensor)
        if step.flops:
            op = program.graph.ops[step.tensor]
            is_whole = by_layout(op) or (isinstance(op.out, Like) and op.out.whole and op.out.later is None)
            shared = frozenset.intersection(*(frozenset(s.names) for s in step.before)) - {*op.names}
            n_bytes = bytes_of(op) * times if is_whole else 0
            scope = scopes.of_work(program.graph, step.tensor)
            reach = scopes.reach(program.graph, step.tensor)
            found.append(Product(scope, step.dtype, step.flops * times, shared, frozenset(op.names), n_bytes, reach))
    return found


def _stacks(scopes: Scopes, graph: Graph, number: int) -> list[Product]:
    """The stacks of a loop that the layout places, each to be brought together along its turns."""
    loop, reach = graph.ops[number], scopes.reach(graph, number)
    first = loop.params["n_carry"]
    stacked = [graph.ops[i] for i in dict.fromkeys(loop.inputs[first : first + loop.params["n_stacked"]])]
    return [
        Product(frozenset(), op.dtype, 0, frozenset(op.names[:1]), frozenset(op.names), bytes_of(op), reach)
        for op in stacked
        if by_layout(op) or (id(graph) not in scopes.around and op.params.get("name", "") not in ("", *scopes.place))
    ]


def _alive(scopes: Scopes, program: Program) -> Iterator[tuple[Dims, int]]:
    """Of every operation that the plan needs: its scope, and the bytes of its result and of the operands made here.

    Outputs of the function are left out: one may take over the memory of an input.
    """
    graph = program.graph
    outputs = set() if id(graph) in scopes.around else set(graph.outputs.values())
    for step in program.steps:
        if step.body is not None:
            yield from _alive(scopes, step.body)
        elif step.tensor >= 0:
            numbers = dict.fromkeys((step.tensor, *graph.ops[step.tensor].inputs))
            made = [graph.ops[i] for i in numbers if graph.ops[i].kind != "input" and i not in outputs]
            yield scopes.of_work(graph, step.tensor), sum(map(bytes_of, made))


def bytes_of(op: Op) -> int:
    """Bytes of a whole tensor."""
    return volume(op.dims) * itemsize(op.dtype)
