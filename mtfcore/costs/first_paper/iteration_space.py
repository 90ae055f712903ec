"""The iteration space of a u×u×u matrix product on p processors: slabs, pencils and cubes.

    C[i, j] = Σ_k A[i, k] B[k, j]

Every multiply-add is a point (i, j, k) of a cube. A layout cuts the cube into p equal blocks; the volume of a block is
one processor's work, and its faces are what the processor touches of A, B and C. Blocks of the same volume with less
face communicate less: cubes are best, then pencils (one edge uncut), then slabs (two edges uncut).

    >>> [str(Blocks(*cut).ratio(1)) for cut in ((64, 1, 1), (8, 8, 1), (4, 4, 4))]     # in units of u
    ['1/33', '2/17', '1/6']

The paper prints 0.12 u and 0.17 u for pencils and cubes on 64 processors, "about 40 %" better: 17/12.

**What the paper counts and what we send.** It counts the three tiles that a processor touches. Of each matrix a
processor can own 1/p beforehand, and keep 1/p of C, so that much need not travel:

    sent = touched - 3 u²/p

That is exactly what the collectives send where A, B and C lie cut over all axes: A is gathered along j, B along i, and
C's addends are reduce-scattered along k (`planned` below; a test holds them together). Where a layout keeps A and B
copied along the third axis, as Mesh-TensorFlow's do, the gathers have been paid for in memory, and only C's sum moves.

**Owner computes.** If the processor that owns a tile of C makes all of it, k is not cut: slabs and pencils only. A cube
needs several processors to sum one tile, and that is what a partial sum is. A layout with two axes cuts two
dimensions, so `batch:rows hidden:cols` makes pencils; only a layout on three axes makes cubes.

Source: "Mesh-TensorFlow" (arXiv 1811.02084), Appendix B. Lesson 05 uses it. Next file to read:
`two_layers_programs`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import mtfcore as mtf
from mtfcore.dims import divisors

KINDS = {0: "the whole cube", 1: "slabs", 2: "pencils", 3: "cubes"}
EDGES = ("i", "j", "k")
FACES = {"A": ("i", "k"), "B": ("k", "j"), "C": ("i", "j")}


@dataclass(frozen=True)
class Blocks:
    """Into how many parts each edge of the iteration space is cut."""

    i: int = 1
    j: int = 1
    k: int = 1

    @property
    def processors(self) -> int:
        """One block each."""
        return self.i * self.j * self.k

    @property
    def kind(self) -> str:
        """By how many edges are cut: slabs, pencils, or blocks cut three ways, which are cubes when all are alike."""
        cut = sum(getattr(self, edge) > 1 for edge in EDGES)
        return KINDS[cut] if cut < 3 or self.i == self.j == self.k else "boxes"

    @property
    def owner_computes(self) -> bool:
        """Whether each processor makes all of its tile of C: the sum over k is not cut."""
        return self.k == 1

    def computation(self, u: int) -> Fraction:
        """FLOPs of one processor: two for each point of its block."""
        return Fraction(2 * u**3, self.processors)

    def face(self, matrix: str, u: int) -> Fraction:
        """Values of A, B or C that one processor touches: one face of its block."""
        return Fraction(u * u, math.prod(getattr(self, edge) for edge in FACES[matrix]))

    def touched(self, u: int) -> Fraction:
        """The paper's communication: all three faces."""
        return sum((self.face(matrix, u) for matrix in FACES), Fraction(0))

    def sent(self, u: int) -> Fraction:
        """Values that one processor sends where each already owns 1/p of A and B and keeps 1/p of C."""
        return self.touched(u) - Fraction(3 * u * u, self.processors)

    def ratio(self, u: int) -> Fraction:
        """The paper's ratio: FLOPs for each value touched."""
        return self.computation(u) / self.touched(u)


def factorings(processors: int) -> Iterator[Blocks]:
    """Every way to cut the three edges into as many blocks as there are processors."""
    for i in divisors(processors):
        for j in divisors(processors // i):
            yield Blocks(i, j, processors // i // j)


@functools.cache
def best(processors: int, edges: int = 3, owner_computes: bool = False) -> Blocks:
    """The blocks with the least face among those that cut at most so many edges; the most even ones, i first."""
    legal = [
        blocks
        for blocks in factorings(processors)
        if sum(getattr(blocks, edge) > 1 for edge in EDGES) <= edges and (blocks.owner_computes or not owner_computes)
    ]
    return min(legal, key=lambda blocks: (blocks.touched(1), -blocks.i, -blocks.j))


# ---- the same as a program


def planned(blocks: Blocks, u: int, dtype: str = "f32") -> mtf.Program:
    """The product on a mesh `x y z` for i, j and k: each matrix cut over all axes before, gathered, and C after."""

    @mtf.function
    def product(a: "i k", b: "k j"):
        return mtf.einsum(a, b, out="i:(x z) j:y", at=["i:x k:z", "k:z j:y"])

    mesh = f"x:{blocks.i} y:{blocks.j} z:{blocks.k}"
    own = {"a": "i:x k:(z y)", "b": "k:z j:(y x)"}
    return mtf.plan(product, mesh, sizes=f"i:{u} j:{u} k:{u}", place=own, dtype=dtype)
