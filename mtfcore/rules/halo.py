"""Rows that travel between neighbours, so that each device can work on its part of a split dimension alone.

    edge           the rows at the border of one's part: a tensor of its own, cut over the same axes
    halo_exchange  each device hands its edge to the neighbour that needs it; no partner, no rows: zeros
    extend         received rows and one's own, joined: parts that overlap
    trim           where the result is shorter or longer than the operand: the rows that this device's part needs
    fold           the way back: rows computed for the neighbours are handed to them, and added

A halo wider than the neighbour's whole part takes a second exchange, from two devices away, and so on. In two
dimensions the second one's edges are taken from parts that are extended already, so corners arrive too. What has been
exchanged once is a free source for whoever needs the same rows again. Source: the first paper's outlook (arXiv
1811.02084, section 11). Next file to read: `spatial`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mtfcore.dims import Dim
from mtfcore.errors import sure
from mtfcore.sharding import Axes, Sharding
from mtfcore.spatial import Reach, reached
from mtfcore.steps import held_bytes

if TYPE_CHECKING:
    from mtfcore.planner import Planner


class Site(NamedTuple):
    """One dimension of the tensor at work: its name, the mesh axes that split it, and how many parts they make."""

    planner: Planner
    tensor: int
    dim: str
    on: Axes

    @property
    def parts(self) -> int:
        return self.planner.mesh.group_size(self.on)

    def rows(self, value: int) -> int:
        """How many rows one device holds."""
        here = self.planner.sharding_of(value)
        return self.planner.local_shape(here)[here.names.index(self.dim)]

    def resized(self, s: Sharding, rows: int, on: Axes | None = None) -> Sharding:
        """The same tensor with so many rows on each device."""
        on = s.on[self.dim] if on is None else on
        size = rows * self.planner.mesh.group_size(on)
        dims = tuple(Dim(self.dim, size) if dim.name == self.dim else dim for dim in s.dims)
        return Sharding.of(dims, tuple(on if d.name == self.dim else a for d, a in zip(s.dims, s.axes)), s.partial)

    def emit(
        self, kind: str, values: Sequence[int], after: Sharding, params: dict[str, Any], why: str, **more: Any
    ) -> int:
        """Append a step, unless the very same one has been made."""
        key, made = (kind, tuple(values), after, tuple(params.items())), self.planner.exchanged
        if key not in made:
            more |= {"params": params, "why": why, "tensor": self.tensor}
            made[key] = self.planner.emit(kind, values, after, self.planner.dtype_of(values[0]), **more)
        return made[key]


class Piece(NamedTuple):
    """Rows start … stop - 1 of the part of the device `distance` places before (behind, if negative)."""

    distance: int
    start: int
    stop: int


def extended(site: Site, value: int, reach: Reach) -> tuple[int, Reach]:
    """The operand with all rows that each device needs along one dimension, and the reach that is left to pad."""
    if site.parts == 1:
        return value, reach
    here = site.planner.sharding_of(value)
    size = sure(here.dims[here.names.index(site.dim)].size)
    made = reached(reach, size) // site.parts
    if not here.on[site.dim]:  # whole everywhere already: nothing has to be sent
        value = joined(site, [value], (reach.before, reach.after))
        start, step = 0, made
    else:
        rows = size // site.parts
        less = rows - made  # by so many rows the parts of the result drift away from the operand's, device by device
        before = [max(0, reach.before + block * less) for block in range(site.parts)]
        after = [max(0, reach.size - 1 - reach.before - (block + 1) * less) for block in range(site.parts)]
        value = _with_neighbours(site, value, before, after)
        start, step = max(before) - reach.before, -less
    if step:
        value = _trimmed(site, value, made + reach.size - 1, start, step)
    return value, reach._replace(before=0, after=0)


def _with_neighbours(site: Site, value: int, before: list[int], after: list[int]) -> int:
    """One's own rows with those of the devices around, as many as any device needs that there are."""
    rows, last = site.rows(value), site.parts - 1
    sent = max(min(n, block * rows) for block, n in enumerate(before))
    back = max(min(n, (last - block) * rows) for block, n in enumerate(after))
    pieces = [Piece(k, max(0, k * rows - sent), rows) for k in range(math.ceil(sent / rows), 0, -1)]
    pieces += [Piece(0, 0, rows)]
    pieces += [Piece(-k, 0, min(rows, back - (k - 1) * rows)) for k in range(1, math.ceil(back / rows) + 1)]
    found = [fetched(site, value, piece) for piece in pieces]
    return joined(site, found, (max(before) - sent, max(after) - back))


def pieced(site: Site, value: int, pieces: list[Piece], wrap: bool) -> int:
    """Fetch each piece and join them in order; pieces from beyond the last device are zeros."""
    there = [piece for piece in pieces if wrap or abs(piece.distance) < site.parts]
    zeros = [0, 0]
    for piece in pieces:
        if piece not in there:
            zeros[piece.distance < 0] += piece.stop - piece.start
    return joined(site, [fetched(site, value, piece, wrap) for piece in there], (zeros[0], zeros[1]))


def fetched(site: Site, value: int, piece: Piece, wrap: bool = False) -> int:
    """The rows of a piece, on the device that needs them."""
    here, rows = site.planner.sharding_of(value), piece.stop - piece.start
    if rows < site.rows(value):
        after = site.resized(here, rows)
        last = f" to {piece.stop - 1}" if rows > 1 else ""
        why = f"{site.dim} {piece.start}{last} of each part"
        value = site.emit("edge", [value], after, {"dim": site.dim, "start": piece.start}, why)
    if piece.distance % site.parts == 0:
        return value
    here = site.planner.sharding_of(value)
    held = held_bytes(here, site.planner.mesh, site.planner.dtype_of(value))
    places = "" if abs(piece.distance) == 1 else f"{abs(piece.distance)} places "
    why = f"each device takes them from the one {places}{'before' if piece.distance > 0 else 'behind'} it"
    params = {"dims": (site.dim,), "distance": piece.distance, "wrap": wrap}
    return site.emit("halo_exchange", [value], here, params, why, axes=site.on, group=site.parts, n_bytes=held)


def joined(site: Site, values: list[int], zeros: tuple[int, int]) -> int:
    """Parts one behind the other, with zeros on both sides."""
    if len(values) == 1 and not any(zeros):
        return values[0]
    here = site.planner.sharding_of(values[0])
    rows = sum(site.rows(value) for value in values) + sum(zeros)
    why = f"joined along {site.dim}" if len(values) > 1 else f"zeros around {site.dim}"
    return site.emit("extend", values, site.resized(here, rows), {"dim": site.dim, "zeros": zeros}, why)


def _trimmed(site: Site, value: int, rows: int, start: int, step: int) -> int:
    here = site.planner.sharding_of(value)
    after = site.resized(here, rows, site.on)
    if here.on[site.dim]:
        why = f"{rows} of {site.dim} from another start on each device, since operand and result differ in size"
    else:
        why = f"each device's own {rows} of {site.dim}, border included, from what it holds whole"
    return site.emit("trim", [value], after, {"dim": site.dim, "start": start, "step": step}, why)


def handed_back(site: Site, value: int, reach: Reach, rows: int) -> int:
    """What a device's own `rows` of the operand give, those around its result too: each to the device whose it is.

    `value` has rows + size - 1 of them. The transpose of `extended`.
    """
    own = site.rows(value) - reach.size + 1
    less, last = own - rows, site.parts - 1
    before = [reach.size - 1 - reach.before - block * less for block in range(site.parts)]
    after = [reach.before + (block + 1) * less for block in range(site.parts)]
    sent = max(0, *(min(n, block * rows) for block, n in enumerate(before)))
    back = max(0, *(min(n, (last - block) * rows) for block, n in enumerate(after)))
    zeros = max(0, sent - min(before)), max(0, back - min(after))
    value = joined(site, [value], zeros)
    start, length = zeros[0] + before[0] - sent, sent + rows + back
    if less:
        value = _trimmed(site, value, length, start, -less)
    else:
        value = fetched(site, value, Piece(0, start, start + length))
    return _folded(site, value, sent, back)


def _folded(site: Site, value: int, before: int, after: int) -> int:
    """The first `before` and the last `after` rows go to the devices whose they are, which add them to their own."""
    rows, found, sides = site.rows(value) - before - after, [], []
    for k in range(1, min(site.parts - 1, math.ceil(before / rows)) + 1):
        found.append(fetched(site, value, Piece(-k, max(0, before - k * rows), before - (k - 1) * rows)))
        sides.append("last")
    for k in range(1, min(site.parts - 1, math.ceil(after / rows)) + 1):
        start = before + k * rows
        found.append(fetched(site, value, Piece(k, start, min(start + rows, before + rows + after))))
        sides.append("first")
    result = site.resized(site.planner.sharding_of(value), rows)
    params = {"dim": site.dim, "start": before, "sides": tuple(sides)}
    return site.emit("fold", [value, *found], result, params, "each device adds what its neighbours have for its rows")
