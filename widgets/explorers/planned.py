"""From an explorer's texts to a plan: read `place`, plan both ways, and know what a run would hold.

    >>> program, notes = planned(two_layers, "rows:4 cols:2", "batch:rows", "batch:64 io:512 hidden:2048")
    >>> run_bytes(program)              # every value on every device, as a recorded run keeps them

Plans are kept, so that stepping and the comparison of both choices cost nothing. Next file to read: `program`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping

import mtfcore as mtf
from mtfcore.dims import parse_dims
from mtfcore.errors import LayoutError, refuse, sure
from mtfcore.functions import Function
from widgets.explorers.tensors import read_entries, ways_out
from widgets.numbers import count, origin, quantity
from widgets.shown import Offer, Refused

MOST_RUN_BYTES = 64 << 20
_MORE_ROOM = "but watching its traffic keeps no values of steps and has more room"


@functools.lru_cache(maxsize=256)
def planned(
    fn: Function, mesh: str, layout: str, sizes: str, place: str = "", dtype: str = "f32", search: bool = False
) -> tuple[mtf.Program, tuple[str, ...]]:
    """The program and the warnings of planning it; a refusal comes with ways out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", mtf.LayoutWarning)
        try:
            program = mtf.plan(fn, mesh, layout, sizes=sizes, place=read_place(place), dtype=dtype, search=search)
        except LayoutError as fault:
            raise Refused(str(fault), _offers(fn, mesh, layout, sizes)) from None
    return program, tuple(str(each.message) for each in caught if issubclass(each.category, mtf.LayoutWarning))


def read_place(text: str) -> dict[str, str]:
    """`x: B L E:xzy; w: E:x F` → where each input lies; all faults at once."""
    faults: list[str] = []
    wrong = "{!r} does not place an input; write e.g. 'x: batch:rows io; w: io hidden:cols'"
    found = read_entries(text, faults, wrong, "input {!r} is placed twice")
    refuse(faults, "place")
    return found


def write_place(place: Mapping[str, object] | str | None) -> str:
    """The text form of `place`, which `read_place` reads back."""
    if place is None or isinstance(place, str):
        return place or ""
    texts = {name: where.text() if isinstance(where, mtf.Sharding) else where for name, where in place.items()}
    return "; ".join(f"{name}: {where}" for name, where in texts.items())


def write_text(value: object) -> str:
    """Sizes, mesh or layout as the text that they print; a mapping or a sequence item by item."""
    if isinstance(value, Mapping):
        return " ".join(f"{name}:{each}" for name, each in value.items())
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _offers(fn: Function, mesh: str, layout: str, sizes: str) -> list[Offer]:
    """Ways out for the inputs, where mesh, layout and sizes can be read at all."""
    try:
        grid, rules, dims = mtf.Mesh(mesh), mtf.Layout(layout), parse_dims(sizes)
    except LayoutError:  # its words say what is wrong; there is nothing to press
        return []
    known = {dim.name: dim for dim in dims}
    tensors = {name: tuple(known.get(dim.name, dim) for dim in own) for name, own in fn.arguments.items()}
    if any(dim.size is None for own in tensors.values() for dim in own):
        return []
    found = ways_out(tensors, rules, grid, dims)
    return [Offer(each.label, {_NAMES.get(key, key): value for key, value in each.settings.items()}) for each in found]


_NAMES = {"dims": "sizes"}


# ---- what a run holds


def run_bytes(program: mtf.Program) -> int:
    """Bytes of all values of all steps on all devices: what a recorded run keeps in this computer's memory."""
    inside = sum(step.body.memory() * step.times * program.mesh.size for step in program.steps if step.body is not None)
    return program.memory() * program.mesh.size + inside


def guard(program: mtf.Program, settings: Mapping[str, str], fn: Function) -> None:
    """Refuse a run that would fill this computer's memory, and offer sizes that would not."""
    if (held := run_bytes(program)) <= MOST_RUN_BYTES:
        return
    smaller = _smaller(settings, fn)
    way_out = "to see values, use smaller sizes" if smaller else f"halving sizes is not enough here, {_MORE_ROOM}"
    words = (
        f"This run would keep {origin(quantity(held, 'iB'), 'modelled')} of values of "
        f"{count(program.mesh.size, 'simulated device')} in this computer's memory; the limit here is "
        f"{quantity(MOST_RUN_BYTES, 'iB')}. Planning needs none of it; {way_out}."
    )
    raise Refused(words, [Offer(f"use {smaller}", {"sizes": smaller})] if smaller else [])


def _smaller(settings: Mapping[str, str], fn: Function) -> str:
    """Halve the largest size until a run fits; nothing where the sizes do not allow it."""
    dims = {dim.name: sure(dim.size) for dim in parse_dims(settings["sizes"])}
    halved: set[str] = set()
    while candidates := [name for name in dims if name not in halved and dims[name] % 2 == 0]:
        name = max(candidates, key=dims.__getitem__)
        sizes = _text({**dims, name: dims[name] // 2})
        try:
            program, _ = planned(fn, **{**settings, "sizes": sizes})
        except LayoutError:
            halved.add(name)  # this one cannot be halved again here
            continue
        dims[name] //= 2
        if run_bytes(program) <= MOST_RUN_BYTES:
            return sizes
    return ""


def _text(dims: Mapping[str, int]) -> str:
    return " ".join(f"{name}:{size}" for name, size in dims.items())
