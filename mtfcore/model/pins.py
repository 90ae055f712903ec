"""Pins: where the operands of one product lie, and its result, said from outside the block by the product's name.

    pins = {"w_in": Pin(at=("B L E:x", "E:x F:zy"), out="B L F:zyx")}          # arXiv 2211.05102, section 3.2.2
    y = block(cfg, x, w, pins=pins)

A block without pins is planned freely. With them the planner moves each operand where the pin has it, multiplies there,
and moves the result: a partition is a table of such pins, and the block never asks for its name. Whole-number weights
are moved as they are stored, one byte a number, and become floats where they are multiplied; their scales, one for each
output, multiply the partial sums before these are added up, which is right because all devices have the same scales.
Next file to read: `serving`, the second paper's partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import mtfcore as mtf
from mtfcore.notation import format_items, parse
from mtfcore.tensor import Tensor

Weights = Mapping[str, Tensor]


class Pin(NamedTuple):
    """Of one product: where its operands lie while they are multiplied, and where its result goes."""

    at: tuple[str, ...] = ()
    out: str = ""


Pins = Mapping[str, Pin]
FREE: Pins = MappingProxyType({})


def product(x: Tensor, w: Weights, name: str, dims: str, pins: Pins = FREE, *, follow: bool = False) -> Tensor:
    """x times the weight `name`, of dimensions `dims`; with `follow`, the sums may still be partial."""
    pin, weight, scale = pins.get(name, Pin()), w[name], w.get(f"{name}_scale")
    at = pin.at or None
    summed = pin.out if follow and not at else ""  # without fixed operands, what says where the partial sums lie
    if scale is None:
        out = summed or (dims if follow else pin.out or dims)
        return mtf.einsum(x, weight, out=out, at=at, follow=follow and not summed)
    if at:  # moved as they are stored, the scale along with its matrix
        weight, scale = exactly(weight, pin.at[1]), exactly(scale, _part(pin.at[1], scale))
    found = mtf.einsum(x, mtf.cast(weight, x.dtype), out=summed or dims, at=at, follow=not summed) * scale
    return found if follow else mtf.reshard(found, pin.out or dims)


def _part(where: str, t: Tensor) -> str:
    """Of a text, what it says of the dimensions of t."""
    axes = {item.name: item.axes or () for item in parse(where)}
    return format_items(t.names, tuple(axes[name] for name in t.names))


def brought(t: Tensor, site: str, pins: Pins) -> Tensor:
    """t where the pin of a place in the block has it."""
    return exactly(t, pins[site].out) if site in pins else t


def exactly(t: Tensor, where: str) -> Tensor:
    """t where a text has it, also where that names no axis: then it is whole, whatever the layout says."""
    return mtf.reshard(t, mtf.Sharding(t.dims, where or " ".join(t.names)))
