"""Where each tensor of a model lies under one of the second paper's partitions: from data and sizes to pins.

    >>> where = placement(palm, "decode", mtf.Mesh("x:4 y:4 z:4"), SERVING["ws2d-batch"], batch=512)
    >>> where.place["w_in_gate"], where.pins["w_in_gate"]
    ('E:x F:zy', Pin(at=('B L E:x', 'E:x pair F:zy'), out='B L pair F:zyx'))

Axes are handed out in order, each to the first dimension that it divides. Query heads take z, then y, then x; of a
matrix, what heads cannot take goes to D, so that no device holds or multiplies what another has. In attention itself
an axis that divides neither sequences nor heads goes to the queries' length in prefill: keys and values lie whole there
anyway, and the sums over x are scattered as they would be into heads. In decode, where that length is 1, the devices
along such an axis repeat each other's work. Grouped heads have two dimensions here, K and G, so that K may lie over z
and G over y. Sources: arXiv 2211.05102, sections 3.2 and 3.3. Next file to read: `reasons`, which
says why a placement cannot be.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mtfcore.layout import Layout
from mtfcore.mesh import Mesh
from mtfcore.model.configs import Config, sizes_of
from mtfcore.model.pins import Pin
from mtfcore.model.serving import ServingPartition, text
from mtfcore.model.storing import OUTPUTS, stored_texts

QUERY_HEADS = {"multihead": ("H",), "grouped": ("K", "G"), "multiquery": ("H",)}
KEY_HEADS = {"multihead": ("H",), "grouped": ("K",), "multiquery": ()}
On = Mapping[str, str]  # dimension → its axes, a run such as "zy"


@dataclass(frozen=True)
class Placement:
    """Layout, places of the inputs by name, pins by site; `core` says how attention itself is cut."""

    partition: ServingPartition
    layout: Layout
    place: Mapping[str, str]
    pins: Mapping[str, Pin]
    core: Core = field(repr=False)

    def free(self) -> Placement:
        """The same without fixed operands: results lie where they did, and the planner chooses what moves."""
        pins = {site: pin._replace(at=()) for site, pin in self.pins.items()}
        return Placement(self.partition, self.layout, self.place, pins, self.core)


@dataclass(frozen=True)
class Core:
    """How attention itself is cut: axes of B, of queries' heads, of keys' heads, of L, and those that repeat work."""

    batch: str
    heads: On
    keys: On
    length: str
    idle: str


def placement(
    cfg: Config, phase: str, mesh: Mesh, partition: ServingPartition, *, batch: int, new_tokens: int = 1
) -> Placement:
    """Where everything lies; what cannot be has been refused before (`possible`)."""
    cut = _Cut(cfg, mesh, partition, batch, new_tokens if phase == "prefill" else 1)
    rules = {"B": cut.batch, "E": cut.e + cut.f}
    layout = Layout([(letter, tuple(axes)) for letter, axes in rules.items() if axes])
    return Placement(partition, layout, cut.places(), cut.pins(), cut.core)


def spread(order: Iterable[str], dims: Mapping[str, int], sizes: Mapping[str, int]) -> tuple[dict[str, str], str]:
    """Hand out axes in order, each to the first dimension that it divides; and those that none could take."""
    left, on, over = dict(dims), dict.fromkeys(dims, ""), ""
    for axis in order:
        name = next((name for name, size in left.items() if size % sizes[axis] == 0), None)
        if name is None:
            over += axis
        else:
            left[name] //= sizes[axis]
            on[name] += axis
    return on, over


def letters(cfg: Config) -> dict[str, int]:
    """Letter → size, with G, the query heads that share one key head."""
    return {**sizes_of(cfg), "G": cfg.heads // cfg.kv_heads}


def present(mesh: Mesh) -> dict[str, int]:
    """The axes of a mesh that cut anything."""
    return {axis: size for axis, size in mesh.axes if size > 1}


class _Cut:
    """One model, mesh, partition and batch: the axes of everything, without those that the mesh lacks."""

    def __init__(self, cfg: Config, mesh: Mesh, partition: ServingPartition, batch: int, length: int) -> None:
        self.cfg, self.sizes, self.dims = cfg, present(mesh), letters(cfg)
        ffn = partition.ffn
        runs = (ffn.batch, ffn.e, ffn.f, ffn.stored_e, ffn.stored_f)
        self.batch, self.e, self.f, self.stored_e, self.stored_f = map(self.here, runs)
        self.order = [axis for axis in "zyx" if axis in self.stored_f]  # in which heads take them
        self.queries = self.at_rest(QUERY_HEADS[cfg.attention])
        self.keys = self.at_rest(KEY_HEADS[cfg.attention])
        by_batch = partition.attention == "batch"
        self.core = core_of(cfg, self.sizes, self.batch, batch, length, by_batch, "x" in ffn.stored_f)
        share = cfg.d_model // self.parts(self.stored_e)
        on, _ = spread(self.stored_f, {"V": cfg.vocab, "E": share}, self.sizes)
        self.table = [("V", on["V"]), ("E", self.stored_e + on["E"])]
        self.n_sequences = batch

    def here(self, axes: str) -> str:
        return "".join(axis for axis in axes if axis in self.sizes)

    def parts(self, axes: str) -> int:
        return math.prod(self.sizes[axis] for axis in axes)

    def at_rest(self, heads: tuple[str, ...]) -> dict[str, str]:
        """The axes of a projection's outputs at rest: heads first, then D."""
        return spread(self.order, {name: self.dims[name] for name in (*heads, "D")}, self.sizes)[0]

    def used(self, on: On) -> list[tuple[str, str]]:
        """The same while they are multiplied: innermost axes are gathered."""
        return [(name, "".join(axis for axis in axes if axis in self.f)) for name, axes in on.items()]

    def places(self) -> dict[str, str]:
        """Where each input lies at rest: matrices cut over everything, vectors whole."""
        e, f = ("E", self.stored_e), ("F", self.stored_f)
        q, k = list(self.queries.items()), list(self.keys.items())
        matrices = {
            "wq": [e, *q], "wkv": [e, *k], "wo": [*q, e], "w_in": [e, f], "w_in_gate": [e, f], "w_out": [f, e],
        }  # fmt: skip
        found = dict.fromkeys(stored_texts(self.cfg), "")
        for name in matrices.keys() & found.keys():
            found[name] = text(*matrices[name])
            found[f"{name}_scale"] = text(*([e] if OUTPUTS[name] else matrices[name][1:]))
        found |= {name: text(*self.table) for name in ("embedding", "softmax") if name in found}
        if "positions" in found:
            found["positions"] = text(("P", ""), *self.turned(self.stored_e + self.stored_f)[1:])
        kept = text(("B", self.core.batch), *self.core.keys.items())
        return found | {"tokens": ""} | dict.fromkeys(("cache_k", "cache_v", "cache_k_scale", "cache_v_scale"), kept)

    def pins(self) -> dict[str, Pin]:
        """Site → where the operands of its product lie, and its result."""
        batch, length, e, pair = ("B", self.batch), ("L", ""), ("E", self.e), ("pair", "")
        x, h = text(batch, length, e), text(batch, length, ("F", self.f))
        q, k = self.used(self.queries), self.used(self.keys)
        hidden = ("F", self.f + self.e)
        core, heads = ("B", self.core.batch), self.core.heads.items()
        keys = text(core, length, pair, *self.core.keys.items(), ("D", ""))
        found = {
            "norm": Pin(out=x),
            "wq": Pin((x, text(e, *q)), text(core, ("L", self.core.length), *heads, ("D", ""))),
            "wkv": Pin((x, text(e, pair, *k)), keys),
            "mixed": Pin(out=text(batch, length, *q)),
            "wo": Pin((text(batch, length, *q), text(*q, e)), self.summed(q)),
            "w_in": Pin((x, text(e, ("F", self.f))), text(batch, length, hidden)),
            "w_in_gate": Pin((x, text(e, pair, ("F", self.f))), text(batch, length, pair, hidden)),
            "w_out": Pin((h, text(("F", self.f), e)), self.summed([("F", self.f)])),
            "logits": self.logits(),
        }  # fmt: skip
        if self.batch:  # the table turns, so that what is looked up needs no summing: it goes from E to B at once
            found["embedding"] = Pin(out=text(*self.turned(self.e + self.f + self.batch)))
        return found

    def turned(self, axes: str) -> list[tuple[str, str]]:
        """A table cut along E, by all axes that divide it."""
        on, _ = spread(axes, {"E": self.cfg.d_model, "V": self.cfg.vocab}, self.sizes)
        return [("V", on["V"]), ("E", on["E"])]

    def summed(self, over: list[tuple[str, str]]) -> str:
        """Where a product lies that sums over these: in `B L E`, not yet added up over their axes."""
        axes = "".join(axes for _, axes in over)
        made = text(("B", self.batch), ("L", ""), ("E", self.e))
        return f"{made} partialsum:{axes}" if axes else made

    def logits(self) -> Pin:
        """The last position's: the table stays, as the matrices do in ws2d, and the vocabulary ends up cut by all."""
        (_, v), (_, e) = self.table
        more, _ = spread(e, {"V": self.cfg.vocab // self.parts(v), "B": self.n_sequences}, self.sizes)
        at = text(("B", ""), ("L", ""), ("E", e)), text(*self.table)
        return Pin(at, text(("B", more["B"]), ("V", v + more["V"])))


def core_of(
    cfg: Config, sizes: Mapping[str, int], cut: str, batch: int, length: int, by_batch: bool, x_last: bool = False
) -> Core:
    """How attention is cut, where `cut` are the axes of B in the feedforward layer already."""
    on_batch = cut + _more_batch(sizes, cut, batch, x_last) if by_batch else cut
    order = [axis for axis in "zyx" if axis in sizes and axis not in on_batch]
    dims = letters(cfg)
    heads, left = spread(order, {name: dims[name] for name in QUERY_HEADS[cfg.attention]}, sizes)
    on_length, idle = spread(left, {"L": length}, sizes)
    keys = {name: heads[name] for name in KEY_HEADS[cfg.attention]}
    return Core(on_batch, heads, keys, on_length["L"], idle)


def _more_batch(sizes: Mapping[str, int], cut: str, batch: int, x_last: bool) -> str:
    """The further axes that cut B into most parts, in the order in which an all-to-all brings them from the heads."""
    order = [axis for axis in ("zyx" if x_last else "xzy") if axis in sizes and axis not in cut]
    parts = batch // math.prod(sizes[axis] for axis in cut)
    ways = [way for n in range(len(order) + 1) for way in itertools.combinations(order, n)]
    legal = [way for way in ways if parts % math.prod(sizes[axis] for axis in way) == 0]
    return "".join(max(legal, key=lambda way: (math.prod(sizes[a] for a in way), "x" in way, "y" in way)))
