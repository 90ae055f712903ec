"""Cases as data: what `python -m tpu_runs run` knows, the class's server accepts, and explorers offer.

    >>> from tpu_runs.cases import CASES, case, check
    >>> list(CASES)
    ['collective', 'product', 'layer', 'phase', 'generate']
    >>> check(case("product"), {"m": 64})["n"]
    4096

A new case is a module with a `Case` and a line in `CASES`; CONTRIBUTING.md says how in four steps. Importing this
loads no JAX. First file to read: `schema`.
"""

from __future__ import annotations

from mtfcore.errors import LayoutError, nearest
from tpu_runs.cases import collective, generate, product, serving
from tpu_runs.cases.schema import SWEEPS, Case, Param, check

CASES: dict[str, Case] = {
    found.name: found for found in (collective.CASE, product.CASE, serving.LAYER, serving.PHASE, generate.CASE)
}

__all__ = ["CASES", "SWEEPS", "Case", "Param", "case", "check"]


def case(name: object) -> Case:
    """A case by name."""
    if not isinstance(name, str) or name not in CASES:
        raise LayoutError(f"no case {name!r:.60}; {nearest(str(name)[:60], CASES)}")
    return CASES[name]
