"""Templates from one plan: what two plans of the same function have taught about its dimensions is used again.

    >>> knowledge, tries = Knowledge(), ("batch:64 io:512 hidden:2048", "batch:192 io:2560 hidden:14336")
    >>> knowledge.template(lambda turn: (planned(tries[turn]), {}))  # two plans; every expression found is remembered
    <Template two_layers: 3 rows of batch, io, hidden>
    >>> knowledge.template(lambda turn: (planned(tries[1]), {}))     # now one plan says it all
    <Template two_layers: 3 rows of batch, io, hidden>

A dimension's name goes with few expressions: D is D, or D/2 where positions turn pairs. Which of them a number is, one
plan can tell, where only one of them has this value; else two plans are made after all. Next file to read:
`serving_memory/cuts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from mtfcore.costs.pricing.step_work import works
from mtfcore.costs.templates.rows import input_sizes, off_graph, rows_of
from mtfcore.costs.templates.sizes import AXIS, SIZE, Expression, Meanings, Numbers, Symbol
from mtfcore.costs.templates.template import Template
from mtfcore.errors import LayoutError
from mtfcore.steps import Program

Sizes = Mapping[str, int]


class Learned(Meanings):
    """The sizes of one plan, and expressions that are known for dimensions of these names."""

    def __init__(
        self, known: Mapping[Symbol, Numbers], varied: set[Symbol], expressions: Mapping[str, set[Expression]]
    ) -> None:
        super().__init__(known)
        self.varied = {symbol: numbers for symbol, numbers in known.items() if symbol in varied}
        self.expressions = expressions

    def _solve(self, numbers: Numbers, name: str) -> Expression:
        own = Symbol(SIZE, name)
        if self.known.get(own) == numbers and own in self.varied:
            return super()._solve(numbers, name)
        fits = [each for each in self.expressions.get(name, ()) if self._value(each) == numbers[0]]
        if len(fits) != 1:
            raise LayoutError(f"{name}:{numbers[0]} may be {len(fits)} of the expressions that are known for it")
        return fits[0]

    def _value(self, expression: Expression) -> Fraction:
        total = Fraction(0)
        for term in expression.terms:
            powers = (Fraction(self.known[symbol][0]) ** power for symbol, power in term.powers)
            total += term.factor * math.prod(powers, start=Fraction(1))
        return total


@dataclass(eq=False)
class Knowledge:
    """What is known of one function's dimensions: name → expressions, and which named sizes plans may vary."""

    expressions: dict[str, set[Expression]] = field(default_factory=dict)
    varied: set[Symbol] = field(default_factory=set)

    def template(self, plan: Callable[[int], tuple[Program, Sizes]]) -> Template:
        """From `plan(0)`, a program and its sizes that no input has, where that will do; else with `plan(1)` too."""
        first, sizes = plan(0)
        if self.varied:
            try:
                return self._again(first, sizes)
            except LayoutError:  # a name that is new, or two meanings of one number
                pass
        return self._from_two((first, sizes), plan)

    def _from_two(self, first: tuple[Program, Sizes], plan: Callable[[int], tuple[Program, Sizes]]) -> Template:
        faults = []
        for turn in (1, 2, 3):  # with unlucky sizes a second plan may have another structure
            try:
                program, sizes = plan(turn)
                made = Template.of(first[0], program, sizes=(first[1], sizes))
            except LayoutError as error:
                faults.append(str(error))
                continue
            for (_, name), expression in made.meanings.found.items():
                self.expressions.setdefault(name, set()).add(expression)
            self.varied |= {symbol for symbol in made.meanings.varied if symbol.kind == SIZE}
            return made
        raise LayoutError(f"no template of {first[0].name} on mesh {first[0].mesh}: {faults[0]}")

    def _again(self, program: Program, sizes: Sizes) -> Template:
        named = input_sizes([port.sharding for port in program.inputs]) | dict(sizes)
        known = {Symbol(SIZE, name): (size,) for name, size in named.items()}
        known |= {Symbol(AXIS, name): (size,) for name, size in program.mesh.axes}
        steps = works(program)
        meanings = Learned(known, self.varied, self.expressions)
        rows, row_of_step = rows_of([steps], meanings)
        return Template(program.name, rows, row_of_step, meanings, not off_graph(program, steps))
