"""What the numbers of a plan mean: each size as an expression of named sizes, found by comparing plans.

    >>> sizes = Meanings.of([{"H": 24, "K": 8, "S": 13}, {"H": 80, "K": 16, "S": 31}], [{"x": 2}, {"x": 4}])
    >>> [str(sizes.solve(numbers, name)) for name, numbers in (("K", (8, 16)), ("G", (3, 5)), ("S", (14, 32)))]
    ['K', 'H/K', 'S + 1']

A plan only holds numbers: a group of 3 heads, 14 positions. In one plan 14 may be anything; in two plans of different
sizes, which go up by different factors, few expressions give both numbers. The simplest is taken, a tie is refused
rather than guessed, and no expression at all is refused too. Next file to read: `rows`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from mtfcore.errors import LayoutError

Numbers = tuple[int, ...]  # one in each plan
SIZE, AXIS = "size", "axis"
PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59)


class Symbol(NamedTuple):
    """A named size, or a mesh axis."""

    kind: str
    name: str


class Term(NamedTuple):
    """A product of powers of symbols and a factor: `1/2 · D`, `H/K`."""

    factor: Fraction
    powers: tuple[tuple[Symbol, int], ...] = ()

    def __str__(self) -> str:
        over = [symbol.name for symbol, power in self.powers for _ in range(power)]
        under = [symbol.name for symbol, power in self.powers for _ in range(-power)]
        factor = [] if self.factor == 1 and over else [str(self.factor)]
        return "/".join([" ".join(factor + over), *under])


@dataclass(frozen=True)
class Expression:
    """A sum of terms. Most have one: a name."""

    terms: tuple[Term, ...]

    @property
    def constant(self) -> Fraction | None:
        """Its value if no symbol stands in it."""
        return self.terms[0].factor if len(self.terms) == 1 and not self.terms[0].powers else None

    def __str__(self) -> str:
        return " + ".join(map(str, self.terms)).replace("+ -", "- ")


ONE = Expression((Term(Fraction(1)),))


class Meanings:
    """The named sizes and axes of several plans, and what other numbers of these plans are in terms of them."""

    def __init__(self, known: Mapping[Symbol, Numbers]) -> None:
        self.known = dict(known)
        self.varied = {symbol: numbers for symbol, numbers in known.items() if len(set(numbers)) > 1}
        self.found: dict[tuple[Numbers, str], Expression] = {}

    @classmethod
    def of(cls, sizes: Sequence[Mapping[str, int]], meshes: Sequence[Mapping[str, int]]) -> Meanings:
        """From the sizes and the mesh of each plan."""
        known = {Symbol(SIZE, name): tuple(each[name] for each in sizes) for name in sizes[0]}
        return cls(known | {Symbol(AXIS, name): tuple(each[name] for each in meshes) for name in meshes[0]})

    def solve(self, numbers: Numbers, name: str) -> Expression:
        """The expression of a dimension of this name that has these sizes in the plans."""
        key = (tuple(numbers), name)
        if key not in self.found:
            self.found[key] = self._solve(*key)
        return self.found[key]

    def _solve(self, numbers: Numbers, name: str) -> Expression:
        own = Symbol(SIZE, name)
        if self.known.get(own) == numbers:
            return Expression((Term(Fraction(1), ((own, 1),)),))
        if len(numbers) == 1 and numbers != (1,):
            raise LayoutError(f"{name}:{numbers[0]} is no named size, and one plan cannot say what it is made of; "
                              "give a second plan with other sizes")  # fmt: skip
        constant = [Expression((Term(Fraction(numbers[0])),))] if len(set(numbers)) == 1 else []
        for level in LEVELS:
            found = list(dict.fromkeys([*constant, *(each for tried in level for each in tried(self.varied, numbers))]))
            named = [expression for expression in found if own in dict(expression.terms[0].powers)]
            if len(found) == 1 or len(named) == 1:
                return (named or found)[0]
            if found:
                raise LayoutError(f"{name} has sizes {_listed(numbers)}, which may be {' or '.join(map(str, found))}; "
                                  "let the named sizes of the plans differ by different factors")  # fmt: skip
        raise LayoutError(f"{name} has sizes {_listed(numbers)}, which no short expression of the named sizes gives: "
                          + ", ".join(f"{s.name} {_listed(sizes)}" for s, sizes in self.varied.items()))  # fmt: skip


def apart(sizes: Mapping[str, int], fixed: Iterable[str] = ()) -> dict[str, int]:
    """Other sizes to plan at: each times an odd prime of its own, so what divides by powers of 2 goes on dividing."""
    odd = iter(PRIMES)
    return {name: size if name in fixed else size * next(odd) for name, size in sizes.items()}


def _listed(numbers: Numbers) -> str:
    return ", ".join(map(str, numbers))


# ---- the expressions that are tried, from simple to less simple -------------------------------------------------

Known = Mapping[Symbol, Numbers]


def _shifted(known: Known, numbers: Numbers) -> Iterator[Expression]:
    """S + 1."""
    for symbol, sizes in _sizes(known).items():
        more = {number - size for number, size in zip(numbers, sizes, strict=True)}
        if len(more) == 1:
            yield Expression((Term(Fraction(1), ((symbol, 1),)), Term(Fraction(more.pop()))))


def _sums(known: Known, numbers: Numbers) -> Iterator[Expression]:
    """S + L."""
    for one, other in itertools.combinations(_sizes(known), 2):
        if all(a + b == number for a, b, number in zip(known[one], known[other], numbers, strict=True)):
            yield Expression((Term(Fraction(1), ((one, 1),)), Term(Fraction(1), ((other, 1),))))


def _sizes(known: Known) -> Known:
    """Nothing is ever added to the size of a mesh axis."""
    return {symbol: numbers for symbol, numbers in known.items() if symbol.kind == SIZE}


def _products(n_symbols: int, factor: int | None = None) -> Callable[[Known, Numbers], Iterator[Expression]]:
    """D/2, H/K, K G/x: this many symbols, each over or under, and any factor (or just this one)."""

    def level(known: Known, numbers: Numbers) -> Iterator[Expression]:
        for symbols in itertools.combinations(known, n_symbols):
            for signs in itertools.product((1, -1), repeat=n_symbols):
                factors = {Fraction(number) / _power(known, symbols, signs, n) for n, number in enumerate(numbers)}
                if len(factors) == 1 and (factor is None or factors == {factor}):
                    yield Expression((Term(factors.pop(), tuple(zip(symbols, signs, strict=True))),))

    return level


def _power(known: Known, symbols: Sequence[Symbol], signs: Sequence[int], plan: int) -> Fraction:
    value = Fraction(1)
    for symbol, sign in zip(symbols, signs, strict=True):
        value = value * known[symbol][plan] if sign > 0 else value / known[symbol][plan]
    return value


LEVELS = ((_products(1, 1), _products(2, 1)), (_products(1), _shifted, _sums), (_products(2),), (_products(3),))
