"""What may be asked for: the cases of `tpu_runs`, as the owner and its worker see them.

    check("product", {"m": 64})            # the parameters in full, or a ValueError that names every fault
    size("product", params)                # bytes that one device would hold (modelled), before anything is made

The owner checks, sizes and describes, which is pure; the worker looks at the place and runs. Tests and your own
classes may name another module with these five functions (`--menu`). Next file to read: `tpu_runs.cases.schema`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from tpu_runs import cases


def check(case: str, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters in full and in their one form."""
    return cases.check(cases.case(case), params)


def size(case: str, params: dict[str, Any]) -> int | None:
    """Bytes of one device, by the memory model; None where it is not known."""
    return cases.case(case).bytes(params)


def describe() -> dict[str, Any]:
    """Every case as plain JSON, for forms."""
    return {name: {"about": case.about, "params": case.schema()} for name, case in cases.CASES.items()}


def rows(case: str, params: dict[str, Any], on: str) -> Generator[Any, None, Any]:
    """Run it, here, on what this process holds: steps with done, total and text, and a Record at the end."""
    from tpu_runs import run  # here, since it starts JAX

    return run.rows(cases.case(case), params, on=on)
