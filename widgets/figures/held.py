"""What devices hold before and after one step of a run, as small grids of numbers.

    >>> f = held_facts(run, (3,), device=0)
    >>> f["devices"][0]["before"][0]["part"], f["devices"][0]["before"][0]["rows"][0][:2]
    ('batch 0–15 of 64, io whole', ['3.1', '-0.42'])

For a collective the devices of its group stand side by side; for a local step, the one that was asked for. Numbers
come from the run alone, and only the first rows and columns are converted. Next file to read: `held_html`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import mtfcore as mtf
from mtfcore.steps import Step
from widgets.figures.program import Facts, Path, walk
from widgets.figures.words import device_words, label, part_words
from widgets.values import preview

MOST_DEVICES = 8
ALONE, SIDE_BY_SIDE = (5, 6), (3, 4)  # rows and columns of a grid


def held_facts(run: Any, path: Path, device: int) -> Facts:
    """Grids of one device, or of its group; `run` answers `values(path, device)` and `before(number, device)`."""
    program, mesh = run.program, run.program.mesh
    numbered = {each[0]: (n, *each[1:3]) for n, each in enumerate(walk(program))}
    number, step, names = numbered[path]
    group = group_of(mesh, device, step.axes) if step.is_collective else [device]
    shown = _window(group, device)
    devices = [_device(run, path, step, names, each) for each in shown]
    whole = all(each["after"]["whole"] for each in devices)
    deep = max(len(sharding.dims) for sharding in (*step.before, step.after)) > 2
    scale_together(devices)
    return {
        "step": number,
        "label": label(step),
        "collective": step.is_collective,
        "device": device,
        "group": group,
        "devices": devices,
        "note": _note(path, group, shown, whole, deep),
    }


def group_of(mesh: mtf.Mesh, device: int, axes: Sequence[str]) -> list[int]:
    """The devices that work together with this one in a collective over `axes`, outermost axis first."""
    here = mesh.coordinates(device)
    places = itertools.product(*(range(mesh[axis]) for axis in axes))
    return [mesh.device({**here, **dict(zip(axes, place, strict=True))}) for place in places]


def _window(group: list[int], device: int) -> list[int]:
    """As many devices of a group as fit, the chosen one among them."""
    start = min(max(group.index(device) - MOST_DEVICES + 1, 0), max(len(group) - MOST_DEVICES, 0))
    return group[start : start + MOST_DEVICES]


def _note(path: Path, group: list[int], shown: list[int], whole: bool, deep: bool) -> str:
    notes = (
        (f"The first rows and columns of each part{', at index 0 of leading dimensions' if deep else ''}.", not whole),
        (f"{len(shown)} of the {len(group)} devices that exchange here.", len(shown) < len(group)),
        ("Inside a loop: after the last turn.", len(path) > 1),
    )
    return " ".join(note for note, holds in notes if holds)


def _device(run: Any, path: Path, step: Step, names: Any, device: int) -> Facts:
    mesh = run.program.mesh
    operands = run.before(path, device)
    size = SIDE_BY_SIDE if step.is_collective else ALONE
    before = [
        grid(names[value], sharding, mesh, device, array, size)
        for value, sharding, array in zip(step.inputs, step.before, operands, strict=False)
    ]
    after = grid(names[step.output], step.after, mesh, device, run.values(path, device), size)
    return {"device": device, "title": device_words(mesh.coordinates(device), device), "before": before, "after": after}


def grid(name: str, sharding: mtf.Sharding, mesh: mtf.Mesh, device: int, array: Any, size: tuple[int, int]) -> Facts:
    """One array's first rows and columns, and which part of the whole tensor it is."""
    part = part_words(sharding.dims, sharding.slices(mesh, device))
    seen = preview(name, array, *size)
    rows = [[word for word in row if word != "…"] for row in seen["rows"] if row != ["…"]]
    whole = len(rows) * len(rows[0]) == array.size
    addend = f"one addend of the sum over {' '.join(sharding.partial)}" if sharding.partial else ""
    return {"name": name, "text": seen["text"], "rows": rows, "part": part, "sum": addend, "whole": whole}


def scale_together(devices: Sequence[Facts]) -> None:
    """Shade each tensor on one scale over all devices, so that equal shades are equal values."""
    for tensors in zip(*([*each["before"], each["after"]] for each in devices), strict=True):
        largest = max((abs(value) for each in tensors for value in numbers(each)), default=0.0)
        for each in tensors:
            each["largest"] = largest


def numbers(each: Facts) -> list[float]:
    """The finite numbers that a grid shows."""
    return [value for row in each["rows"] for value in map(float, row) if abs(value) < float("inf")]
