"""Which records tell something of a chip, and of those that do not, why.

    usable(records, None)      # ([(record, 'product (m 4096, k 4096, n 4096)'), …], [(name, why it is left out), …])

Records are objects or mappings, as `tpu_runs` keeps them. Next file to read: `fitting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mtfcore.errors import LayoutError, sure
from mtfcore.measuring import places

ENOUGH = 3  # records that spend much of their time on a constant, or it is not fitted
NEEDED = {
    "compute_share": "large products, such as 4096 x 4096 x 4096 and larger",
    "hbm_share": "products of few rows by a large matrix, such as 8 x 16384 x 16384, which wait for memory",
    "link_share": "collectives of 16 MiB a device and more, over at least 2 devices",
    "launch_seconds": "collectives of 64 KiB a device and less, over at least 2 devices",
}


def usable(records: Iterable[Any], chip: str | None) -> tuple[list[tuple[Any, str]], list[tuple[str, str]]]:
    """Measured records of one chip with their names, and those left out with the reason."""
    found: list[tuple[Any, str, str]] = []
    left_out: list[tuple[str, str]] = []
    for record in records:
        name, why = name_of(record), _unusable(record)
        if why:
            left_out.append((name, why))
        else:
            found.append((record, name, sure(places.chip_of(get(record, "where")["device_kind"])).name))
    chips = list(dict.fromkeys(of for _, _, of in found))
    if chip is None and len(chips) > 1:
        raise LayoutError(f"calibrate: records of {', '.join(chips)}; say which, e.g. chip={chips[0]!r}")
    wanted = chips[0] if chip is None and chips else chip
    if wanted not in chips:
        raise LayoutError(nothing(wanted, chips, left_out))
    left_out += [(name, f"of {of}") for _, name, of in found if of != wanted]
    return [(record, name) for record, name, of in found if of == wanted], left_out


def _unusable(record: Any) -> str:
    """Why a record tells nothing of a chip; "" where it does."""
    where = get(record, "where") or {}
    if where.get("platform") == "simulated":
        return "simulated devices: this computer's time, no chip's"
    if get(record, "status") not in (None, "ok") or not get(record, "seconds"):
        return f"no time was measured ({get(record, 'status')})"
    if get(record, "origin") not in (None, "measured"):
        return f"{get(record, 'origin')}, not measured"
    if not all(seconds > 0 for seconds in get(record, "seconds")):
        return "a repetition took no time"
    if places.chip_of(where.get("device_kind") or "") is None:
        return f"no chip is known as {where.get('device_kind')!r}"
    return ""


def nothing(chip: str | None, chips: Sequence[str], left_out: Sequence[tuple[str, str]]) -> str:
    """The refusal where no record is left: of which chips there are some, why others do not count, what to measure."""
    whose = f"of {chip} " if chip else ""
    there = f"; there are some of {', '.join(chips)}" if chips else ""
    whys = list(dict.fromkeys(why for _, why in left_out))
    out = f"; {len(left_out)} left out: {'; '.join(whys)}" if whys else ""
    return f"calibrate: no measured record {whose}to fit constants to{there}{out}; measure {needs(NEEDED)}"


def needs(names: Iterable[str]) -> str:
    """Which measurements would tell these constants, and how many."""
    return "; ".join(f"for {name} at least {ENOUGH} {NEEDED[name]}" for name in names)


def get(record: Any, name: str) -> Any:
    """A field of a record, which may be an object or a mapping; None where it has none."""
    return record.get(name) if isinstance(record, Mapping) else getattr(record, name, None)


def name_of(record: Any) -> str:
    """A record's case and parameters in one line."""
    params = ", ".join(f"{name} {value}" for name, value in (get(record, "params") or {}).items())
    return f"{get(record, 'case') or 'program'} ({params})"
