"""One plan for many settings: phases that differ in sizes only share one template, planned at two sets of sizes.

    >>> found = structure(palm, "decode", (4, 4, 4), "ws2d", "batch", batch=512)
    >>> found.template                 # its seconds at any sizes are what pricing `plan_phase`'s program gives
    <Template decode: 37 rows of B, V, E, layers, H, D, F, S>

What a plan's steps are follows from where everything lies (`model.places`), which is text, `E:x F:zy`, from which axes
are longer than which, and from which divide which sizes, since moves may only go where they divide. Settings that agree
in these have one template, made from a plan of the first of them and, where that leaves doubts, from one whose sizes
each have a prime factor more. Next file to read: `timing`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

from mtfcore.costs.templates.learned import Knowledge
from mtfcore.costs.templates.template import Template
from mtfcore.errors import LayoutError
from mtfcore.mesh import Mesh
from mtfcore.model.configs import MADE_UP, Config
from mtfcore.model.phases import plan_placed
from mtfcore.model.places import QUERY_HEADS, Placement, letters, placement
from mtfcore.model.reasons import possible
from mtfcore.model.serving import SERVING
from mtfcore.steps import Program

Grid = tuple[int, int, int]  # sizes of the mesh axes x, y, z

PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83)
VARIED = ("batch", "new", "cached", "d_model", "d_ff", "kv_heads", "group", "head_size", "vocab", "layers")
KIND = ("attention", "block", "norm", "activation", "positions", "tied", "biases", "qkv_biases")
ROOMY = 10**9  # more positions than any setting has: whether learned ones suffice is asked of each setting
_KNOWLEDGE: dict[tuple, Knowledge] = {}  # of each kind of model and phase
_SAME: dict[tuple, Template] = {}  # by rows: what is worked out alike is worked out together
SUBSETS = [axes for n in (1, 2, 3) for axes in itertools.combinations(range(3), n)]


@dataclass(frozen=True)
class Structure:
    """A template; or the reasons why there is none."""

    template: Template | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Sizes:
    """What two plans of one structure vary."""

    cfg: Config
    batch: int
    new: int
    cached: int


@lru_cache(maxsize=65536)
def structure(
    cfg: Config, phase: str, grid: Grid, ffn: str, attention: str, batch: int, new_tokens: int = 1,
    has_cache: bool = True, weights: str = "bf16", cache: str = "bf16",
) -> Structure:  # fmt: skip
    """The template of a phase, of whose numbers only divisibility matters here; or why it cannot be."""
    mesh, roomy = Mesh(dict(zip("xyz", grid, strict=True))), cfg.but(max_length=ROOMY)
    if reasons := possible(roomy, ffn, attention, mesh, batch, new_tokens, 0, phase):
        return Structure(reasons=tuple(reasons))
    where = placement(cfg, phase, mesh, SERVING[f"{ffn}-{attention}"], batch=batch, new_tokens=new_tokens)
    cached = 2 * math.prod(grid) if has_cache else 0
    try:
        return Structure(_template(_Key(_Sizes(roomy, batch, new_tokens, cached), phase, where, grid, weights, cache)))
    except LayoutError as error:
        return Structure(reasons=(str(error),))


class _Key:
    """What decides the steps: the kind of model, the phase, dtypes, the mesh, the placement, and what divides."""

    def __init__(self, at: _Sizes, phase: str, where: Placement, grid: Grid, weights: str, cache: str) -> None:
        self.at, self.phase, self.where, self.grid, self.weights, self.cache = at, phase, where, grid, weights, cache
        kind = tuple(getattr(at.cfg, name) for name in KIND)
        self.kind = (kind, phase, at.new > 1, at.cached > 0, weights, cache)
        places = tuple(sorted(where.place.items())), tuple(sorted(where.pins.items())), where.layout
        sizes = {**letters(at.cfg), "B": at.batch, "L": at.new}
        names = "BLEFDV" + "".join(QUERY_HEADS[at.cfg.attention])
        codes = tuple(divides(sizes[name], grid) for name in names)
        self.text = (self.kind, lengths(grid), places, codes)

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.text == other.text


def lengths(grid: Grid) -> tuple:
    """Which axes cut anything, and which of two is the longer: what a planner asks of a mesh besides."""
    pairs = itertools.combinations(grid, 2)
    return tuple(size == 1 for size in grid), tuple((a > b) - (a < b) for a, b in pairs)


def divides(size: int, grid: Grid) -> int:
    """Which products of mesh axes divide a size, as bits."""
    return sum((size % math.prod(grid[axis] for axis in axes) == 0) << bit for bit, axes in enumerate(SUBSETS))


@lru_cache(maxsize=65536)
def _template(key: _Key) -> Template:
    mesh = Mesh(dict(zip("xyz", key.grid, strict=True)))

    def plan(turn: int) -> tuple[Program, dict[str, int]]:
        at = key.at if turn == 0 else _other(key.at, key.grid, turn - 1)
        made = plan_placed(at.cfg, key.phase, mesh, key.where, at.batch, at.new, at.cached, key.weights, key.cache)
        return made, _names(at.cfg)

    made = _KNOWLEDGE.setdefault(key.kind, Knowledge()).template(plan)
    names = tuple(symbol.name for symbol in made.meanings.known)
    return _SAME.setdefault((made.rows, tuple(row.count for row in made.rows), names), made)


def _names(cfg: Config) -> dict[str, int]:
    """Sizes that no input may have: those of grouped heads."""
    return {"K": cfg.kv_heads, "G": cfg.heads // cfg.kv_heads} if cfg.attention == "grouped" else {}


def _other(at: _Sizes, grid: Grid, turn: int) -> _Sizes:
    """Sizes that each have a prime factor more, one that no axis has: what divided still does, and nothing else."""
    cfg, primes = at.cfg, [prime for prime in PRIMES if math.prod(grid) % prime]
    factor = {name: primes[(place + 3 * turn) % len(primes)] for place, name in enumerate(VARIED)}
    kv = {"multiquery": 1, "multihead": cfg.kv_heads * factor["kv_heads"], "grouped": cfg.kv_heads * factor["kv_heads"]}
    group = cfg.heads // cfg.kv_heads * (1 if cfg.attention == "multihead" else factor["group"])
    kv_heads = kv[cfg.attention]
    larger = {name: getattr(cfg, name) * factor[name] for name in ("d_model", "d_ff", "head_size", "vocab", "layers")}
    other = cfg.but(name=MADE_UP, heads=kv_heads * group, kv_heads=kv_heads, max_length=ROOMY * 89, **larger)
    new = at.new if at.new == 1 else at.new * factor["new"]
    return _Sizes(other, at.batch * factor["batch"], new, at.cached * factor["cached"])
