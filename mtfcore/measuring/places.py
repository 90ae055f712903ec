"""Where a measurement ran: devices by name, the slice they form, versions, memory.

    where([jax.devices()[0]])      # {'platform': 'gpu', 'device_kind': 'NVIDIA H200', 'devices': 1, 'hosts': 1,
                                   #  'topology': 'h200:1'}

The chip is told from the name that JAX gives a device; one that is not known has no topology, and then no figures
either. Next file to read: `filling`.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence
from typing import Any

from mtfcore.chips import Chip, chip
from mtfcore.errors import LayoutError
from mtfcore.topologies import Topology, topology

PACKAGES = ("jax", "jaxlib", "libtpu", "numpy", "meshwork")
NAMES = {  # what stands in JAX's name of a device → chip; the longer names first, since "TPU v5" is in "TPU v5 lite"
    "tpu v2": "v2", "tpu v3": "v3", "tpu v4": "v4", "tpu v5 lite": "v5e", "tpu v5e": "v5e", "tpu v5p": "v5p",
    "tpu v5": "v5p", "tpu v6 lite": "v6e", "tpu v6e": "v6e", "tpu7x": "v7x", "tpu v7x": "v7x", "a100": "a100",
    "h100": "h100", "h200": "h200",
}  # fmt: skip
CPU_CAN_HOLD = 2**30  # where nothing tells how much memory is free


def where(devices: Sequence[Any]) -> dict[str, Any]:
    """The platform, name, number and slice of these devices, as records keep it."""
    first = devices[0]
    simulated = first.platform == "cpu"
    of = None if simulated else slice_of(devices)
    return {
        "platform": "simulated" if simulated else {"cuda": "gpu", "rocm": "gpu"}.get(first.platform, first.platform),
        "device_kind": first.device_kind, "devices": len(devices),
        "hosts": len({device.process_index for device in devices}), "topology": str(of) if of else "",
    }  # fmt: skip


def versions() -> dict[str, str]:
    """Python and the packages that decide what runs; one that is not installed is left out."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def chip_of(device_kind: str) -> Chip | None:
    """The record of the chip that JAX calls so; None where there is none."""
    low = device_kind.casefold()
    name = next((name for said, name in NAMES.items() if said in low), None)
    return chip(name) if name else None


def slice_of(devices: Sequence[Any]) -> Topology | None:
    """The slice that these devices form; None where its chip or its shape is not known."""
    of = chip_of(devices[0].device_kind)
    if of is None:
        return None
    grids = [_by_coords(devices, of)] if of.kind == "TPU" else _of_nodes(devices)
    for grid in grids:
        try:
            found = topology(f"{of.name}:{'x'.join(map(str, grid))}")
        except LayoutError:
            continue
        if found.devices == len(devices):
            return found
    return None


def _by_coords(devices: Sequence[Any], of: Chip) -> list[int]:
    """The grid that the chips' places span, without the axes that the chip has not."""
    columns = list(zip(*[device.coords for device in devices], strict=True))
    sizes = [max(column) - min(column) + 1 for column in columns]
    return sizes[: len(of.pod)] if of.pod and not any(size > 1 for size in sizes[len(of.pod) :]) else sizes


def _of_nodes(devices: Sequence[Any]) -> list[list[int]]:
    hosts = len({device.process_index for device in devices})
    return [[len(devices)]] if hosts == 1 else [[hosts, len(devices) // hosts]]


def near(devices: Sequence[Any]) -> Any:
    """The first of them that this host holds: of several hosts each asks, and checks on, a device of its own."""
    import jax

    return next((device for device in devices if device.process_index == jax.process_index()), devices[0])


def memory(device: Any) -> dict[str, int]:
    """Bytes of a device in use, at most in use so far, and in all; empty where it does not tell (a CPU)."""
    said = device.memory_stats() or {}
    names = {"in use": "bytes_in_use", "peak": "peak_bytes_in_use", "limit": "bytes_limit"}
    return {name: int(said[key]) for name, key in names.items() if key in said}


def free_bytes(device: Any) -> int:
    """Bytes that can still be used on a device; on the CPU what this computer has free."""
    said = memory(device)
    if "limit" in said:
        return said["limit"] - said.get("in use", 0)
    try:
        import psutil
    except ImportError:
        return CPU_CAN_HOLD
    return int(psutil.virtual_memory().available)
