"""A chip of your own, in one call: figures in SI units or as a data sheet prints them, checked all at once.

    >>> made = mtf.add_chip("v5x", like="v5p", source="data sheet", peak_bf16="600 TFLOP/s", hbm_bytes="128 GiB")
    >>> mtf.topology("v5x:4x4x4").peak_flops_per_device(), made.link_bytes_per_second
    (600000000000000, 90000000000)

Figures are of a whole chip, rates of links one way; what is not given is as `like` has it, and the chip's table says
so. Without `like`, `network` says how chips are joined ("torus", "mesh", "switch", or as of TPUs "full" or "cubes").
The chip is then known everywhere: `mtf.chip`, `mtf.topology`, `mtf.price`. Next file to read: `chip_figures`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from mtfcore.chip_figures import FIGURES, NETWORKS, as_whole_size, is_peak, read
from mtfcore.chips import _ADDED, Chip, Figure, chips, published
from mtfcore.errors import nearest, refuse

_NAME = re.compile(r"[a-z][a-z0-9_.-]*")


def add_chip(
    name: str,
    like: str | Chip | None = None,
    *,
    source: str = "",
    title: str = "",
    kind: str = "",
    devices: int | None = None,
    network: str = "",
    **figures: Any,
) -> Chip:
    """Register a chip under a free name and return it; the same name again replaces one that was added before.

    `source` says where the figures are from, `devices` how many JAX devices a chip makes. Figures are those of
    `mtf.chip("v4").figures`, e.g. `peak_bf16=459e12` or "459 TFLOP/s", `hbm_bytes="95 GiB"`.

    `name`: letters, digits, _ . and -; `like`: a chip whose figures it has where none are given; `title` and `kind`:
    its long name, and what JAX calls such a device; `network`: torus, mesh, full, cubes or switch.

    Raises `LayoutError` with every fault at once: a name that is taken, a figure that does not exist or has no such
    unit.
    """
    faults = [f"{word}={given!r:.100} is no text" for word, given in (("title", title), ("kind", kind))
              if not isinstance(given, str)]  # fmt: skip
    base = _like(like, faults)
    key = _name(name, faults)
    if not isinstance(source, str) or not source.strip():
        faults.append("source is empty; say where the figures are from, e.g. source='data sheet, 2026-11'")
    network = _network(network, base, faults)
    number = _devices(devices, base, faults)
    given = _given(figures, source, faults)
    found = _derived({**_copied(base), **given}, network)
    if network in NETWORKS and (base or like is None):
        faults += _missing(found, network, given)
    refuse(faults, f"chip {name!r:.100}")
    title = title or (f"{key}, as {base.title}" if base else key)
    kind = kind or (base.kind if base else "GPU" if network == "switch" else "TPU")
    return _register(Chip(key, title, kind, number, network, f"{date.today():%Y-%m}", found, {}))


def _like(like: str | Chip | None, faults: list[str]) -> Chip | None:
    if like is None or isinstance(like, Chip):
        return like
    known = chips()
    if not isinstance(like, str) or like.strip().casefold() not in known:
        faults.append(f"like={like!r:.100} is no chip; {nearest(like, known)}")
        return None
    return known[like.strip().casefold()]


def _name(name: object, faults: list[str]) -> str:
    key = name.strip().casefold() if isinstance(name, str) else ""
    if not _NAME.fullmatch(key):
        faults.append(f"{name!r:.100} is no name for a chip: letters, digits, _ . and - only, a letter first")
    elif key in published():
        faults.append(f"{key!r} is a published chip; use another name, e.g. 'my_{key}'")
    return key


def _network(network: object, base: Chip | None, faults: list[str]) -> str:
    if base and isinstance(network, str) and not network:
        return base.network
    if isinstance(network, str) and network in NETWORKS:
        return network
    words = "; ".join(f"{name!r}: {meaning}" for name, meaning in NETWORKS.items())
    missing = isinstance(network, str) and not network
    faults.append(f"network is missing: {words}" if missing else f"network {network!r:.100} is none of: {words}")
    return ""


def _devices(devices: object, base: Chip | None, faults: list[str]) -> int:
    number = as_whole_size(devices) if devices is not None else base.devices if base else 1
    if number is None:
        faults.append(f"devices={devices!r:.100}: a chip makes a whole number of devices, at least 1")
    return number or 1


def _given(figures: Mapping[str, Any], source: str, faults: list[str]) -> dict[str, tuple[Figure, ...]]:
    """The figures that were given, read and checked."""
    found: dict[str, tuple[Figure, ...]] = {}
    for key, value in figures.items():
        if key not in FIGURES and not is_peak(key):
            faults.append(f"no figure {key!r:.100}; {nearest(key, FIGURES)}")
            continue
        number, fault = read(key, value)
        faults += [f"{key}={value!r:.100}: {fault}"] if fault else []
        found[key] = (Figure(number, (source,), value if isinstance(value, str) else "", "given"),)
    return found


def _copied(base: Chip | None) -> dict[str, tuple[Figure, ...]]:
    """The chosen figures of the chip that this one is like, each saying so."""
    if base is None:
        return {}
    chosen = {key: of[0] for key, of in base.figures.items() if key != "wraps"}
    return {
        key: (
            Figure(of.value, of.sources, of.printed, of.sure, "; ".join(filter(None, (f"as {base.title}", of.note)))),
        )
        for key, of in chosen.items()
    }


def _derived(found: dict[str, tuple[Figure, ...]], network: str) -> dict[str, tuple[Figure, ...]]:
    """The figures with those that follow: two links for each axis of a grid; a switch only where there is one."""
    if network != "switch":
        found = {key: of for key, of in found.items() if key not in ("switch_bytes_per_second", "node_chips")}
    axes = 3 if network == "cubes" else len(found["pod"][0].value or ()) if "pod" in found else 0
    if "links" not in found and axes and network != "switch":
        found["links"] = (Figure(2 * axes, ("arithmetic",), "", "computed", "two for each axis of the grid"),)
    return found


def _missing(found: Mapping[str, tuple[Figure, ...]], network: str, given: Mapping[str, Any]) -> list[str]:
    """What a price needs and nobody said."""
    has = {key for key, of in found.items() if of[0].value is not None or key in given}
    needs = ["hbm_bytes", "hbm_bytes_per_second"]
    needs += {
        "switch": ["switch_bytes_per_second", "node_chips"],
        "cubes": ["link_bytes_per_second", "most_chips"],
    }.get(network, ["link_bytes_per_second", "pod"])
    lacks = [key for key in needs if key not in has]
    if not any(is_peak(key) for key in has):
        lacks.insert(0, "peak_bf16")
    return [f"{key} is missing: {FIGURES[key]}" for key in lacks]


def _register(made: Chip) -> Chip:
    """The chip under its name; one added before with just the same figures stays as it is."""
    old = _ADDED.get(made.name)
    if old is None or vars(old) != vars(made):
        _ADDED[made.name] = made
    return _ADDED[made.name]
