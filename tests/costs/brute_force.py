"""The slow way to find the best layout: plan every assignment of axes to dimensions, on every mesh, in every order."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator

import mtfcore as mtf
from mtfcore.costs.pricing.liveness import peak_memory

Places = dict[str, tuple[str, ...]]


def meshes(devices: int) -> list[mtf.Mesh]:
    """Meshes of one to three axes, all orders of sizes."""
    sizes = range(2, devices + 1)
    found = [combo for n in (1, 2, 3) for combo in itertools.product(sizes, repeat=n) if math.prod(combo) == devices]
    return [mtf.Mesh([(f"axis{k}", size) for k, size in enumerate(combo)]) for combo in found]


def every_layout(mesh: mtf.Mesh, dims: list[str]) -> Iterator[mtf.Layout]:
    """Each way to put some of the axes, in some order, on each dimension; legal or not."""
    orders = [order for n in range(len(mesh.names) + 1) for order in itertools.permutations(mesh.names, n)]
    for chosen in itertools.product(orders, repeat=len(dims)):
        yield mtf.Layout([(dim, axes) for dim, axes in zip(dims, chosen, strict=True) if axes])


def plans(fn, devices: int, **how) -> Iterator[mtf.Program]:
    """Every legal plan of a function on so many devices."""
    dims = fn.trace(how.get("sizes", ""), how.get("dtype", "bf16")).dim_names()
    for mesh in meshes(devices):
        for layout in every_layout(mesh, dims):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", mtf.LayoutWarning)
                try:
                    yield mtf.plan(fn, mesh, layout, **how)
                except mtf.LayoutError:
                    continue


def seconds(program: mtf.Program, where) -> float:
    """The first paper's time of a plan on a slice, all products in one dtype."""
    peak = where.peak_flops_per_device("bf16")
    return program.flops() / peak + float(program.link_bytes()) / where.link_bytes_per_second


def best(fn, where, memory: float = math.inf, **how) -> tuple[float, mtf.Program | None]:
    """Least time over all plans that fit, and one that takes it."""
    least, found = math.inf, None
    for program in plans(fn, where.devices, **how):
        if (time := seconds(program, where)) < least and peak_memory(program).total <= memory:
            least, found = time, program
    return least, found
