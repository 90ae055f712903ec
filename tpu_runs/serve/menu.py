"""What may be asked for: the cases of `tpu_runs`, as the owner and its worker see them.

    check("product", {"m": 64})            # the parameters in full, or a ValueError that names every fault
    size("product", params, "attached")    # bytes that one device would hold (modelled), before anything is made

The owner checks, sizes and describes, which is pure; the worker looks at the place and runs. Tests and your own
classes may name another module with these five functions (`--menu`). Next file to read: `tpu_runs.cases.schema`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from tpu_runs import cases
from tpu_runs.commits import commit


def check(case: str, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters in full and in their one form."""
    return cases.check(cases.case(case), params)


def size(case: str, params: dict[str, Any], on: str) -> int:
    """Bytes of one device, by the memory model; of simulated ones together, since they share this computer's."""
    of = cases.case(case)
    return of.bytes(params) * (of.devices(params) if on == "simulated" else 1)


def describe() -> dict[str, Any]:
    """Every case as plain JSON, for forms."""
    return {name: {"about": case.about, "params": case.schema()} for name, case in cases.CASES.items()}


def place(on: str) -> dict[str, Any]:
    """What is attached here, once JAX has started; a DeviceError says why nothing is."""
    from mtfcore import device_pool  # here, since what follows starts JAX: the worker's affair
    from mtfcore.measuring import places
    from mtfcore.measuring.chip_state import chip_state

    if on == "simulated":
        device_pool.devices()
        import jax

        devices = jax.devices("cpu")
    else:
        chip_state().expect_ready()
        devices = device_pool.attached_devices()
        chip_state(found=devices).expect_ready()  # JAX has started, and may have found less than the files promised
    return {"where": places.where(devices), "versions": places.versions(), "commit": commit(),
            "device_bytes": places.free_bytes(devices[0])}  # fmt: skip


def rows(case: str, params: dict[str, Any], on: str) -> Generator[Any, None, Any]:
    """Run it, here, on what this process holds: steps with done, total and text, and a Record at the end."""
    from tpu_runs import run

    return run.rows(case, params, on=on)
