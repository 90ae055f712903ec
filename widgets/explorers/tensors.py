"""A list of tensors as a reader types it, and the ways out of a layout that cannot be.

    >>> read_tensors("x: batch io; w: io hidden", parse_dims("batch:64 io:512 hidden:2048"))
    {'x': (Dim('batch', 64), Dim('io', 512)), 'w': (Dim('io', 512), Dim('hidden', 2048))}

Next file to read: `slices`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import mtfcore as mtf
from mtfcore.dims import parse_dims
from mtfcore.errors import LayoutError, nearest, refuse, sure
from mtfcore.notation import is_name
from widgets.shown import Offer

Tensors = dict[str, tuple[mtf.Dim, ...]]
EXAMPLE = "x: batch io; w: io hidden"


def read_entries(text: str, faults: list[str], wrong: str, twice: str) -> dict[str, str]:
    """`x: …; y: …` → what stands behind each name's colon; `wrong` and `twice` word the faults that are added."""
    found: dict[str, str] = {}
    for entry in filter(None, (entry.strip() for entry in text.replace("\n", ";").split(";"))):
        name, colon, body = (part.strip() for part in entry.partition(":"))
        if not colon or not is_name(name):
            faults.append(wrong.format(entry))
        elif name in found:
            faults.append(twice.format(name))
        else:
            found[name] = body
    return found


def read_tensors(text: str, dims: Sequence[mtf.Dim]) -> Tensors:
    """Name → dimensions, with the sizes of `dims`; all faults at once."""
    known = {dim.name: dim for dim in dims}
    faults: list[str] = []
    wrong = f"{{!r}} is not a tensor; write a name, a colon and its dimensions, e.g. {EXAMPLE!r}"
    entries = read_entries(text, faults, wrong, "tensor {!r} stands twice; give the second another name")
    found: Tensors = {name: _dims(name, body, known, faults) for name, body in entries.items()}
    if not found and not faults:
        faults = [f"no tensor is given; write e.g. {EXAMPLE!r}"]
    refuse(faults)
    return found


def _dims(name: str, body: str, known: Mapping[str, mtf.Dim], faults: list[str]) -> tuple[mtf.Dim, ...]:
    try:
        dims = parse_dims(body)
    except LayoutError as fault:
        faults.append(f"tensor {name}: {fault}")
        return ()
    unknown = [dim.name for dim in dims if dim.name not in known]
    faults += [f"tensor {name}: no dimension {dim!r}; {nearest(dim, known)}" for dim in unknown]
    faults += [
        f"tensor {name}: {dim.name} has sizes {known[dim.name].size} and {dim.size}; leave the second out"
        for dim in dims
        if dim.name in known and dim.size not in (None, known[dim.name].size)
    ]
    return tuple(known.get(dim.name, dim) for dim in dims)


def without(layout: mtf.Layout, name: str, instead: str = "") -> str:
    """The layout's text without the rule of one dimension, or with another dimension in its place."""
    rules = [(instead or other if other == name else other, axes) for other, axes in layout.rules]
    kept = [(other, axes) for other, axes in rules if other != name]
    return str(mtf.Layout(kept))


def ways_out(tensors: Tensors, layout: mtf.Layout, mesh: mtf.Mesh, dims: Sequence[mtf.Dim]) -> list[Offer]:
    """What would work, for the first thing that does not: another size, another dimension, or copies."""
    for own in tensors.values():
        for dim in own:
            parts = mesh.group_size(axis for axis in layout.axes(dim.name) if axis in mesh)
            if sure(dim.size) % parts:
                return list(_uneven(dim, parts, own, layout, dims))
        if twice := _clash(own, layout):
            return [Offer(f"leave {name} whole", {"layout": without(layout, name)}) for name in twice]
    return []


def _uneven(
    dim: mtf.Dim, parts: int, own: Sequence[mtf.Dim], layout: mtf.Layout, dims: Sequence[mtf.Dim]
) -> Iterator[Offer]:
    over, whole = " ".join(layout.axes(dim.name)), sure(dim.size)
    if whole < parts:
        yield Offer(f"copy {dim.name} ({parts}x the work)", {"layout": without(layout, dim.name)})
        for other in own:
            if not layout.axes(other.name) and sure(other.size) % parts == 0:
                yield Offer(f"shard {other.name} over {over}", {"layout": without(layout, dim.name, other.name)})
        return
    for size in (whole // parts * parts, -(-whole // parts) * parts):
        sized = " ".join(f"{each.name}:{size if each.name == dim.name else each.size}" for each in dims)
        yield Offer(f"make {dim.name} {size}", {"dims": sized})
    yield Offer(f"leave {dim.name} whole", {"layout": without(layout, dim.name)})


def _clash(own: Sequence[mtf.Dim], layout: mtf.Layout) -> list[str]:
    """Dimensions of one tensor that want the same axis."""
    for axis in {axis for dim in own for axis in layout.axes(dim.name)}:
        wanting = [dim.name for dim in own if axis in layout.axes(dim.name)]
        if len(wanting) > 1:
            return wanting
    return []
