"""The collectives of a lowered function, in order, with everything that matters and without what is only numbering."""

from __future__ import annotations

from typing import Any

COLLECTIVES = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "collective_permute"}
NUMBERING = {"channel_handle"}  # counts calls of the tracer, means nothing


def lowered_collectives(lowered: Any) -> list[tuple[str, ...]]:
    """(kind, groups and dimensions, operand types, result types) of each collective in the StableHLO."""
    from jaxlib.mlir import ir

    found: list[tuple[str, ...]] = []

    def visit(op: Any) -> Any:
        kind = op.name.removeprefix("stablehlo.")
        if kind in COLLECTIVES:
            facts = [f"{name}={op.attributes[name]}" for name in sorted(op.attributes) if name not in NUMBERING]
            reducer = [inner.name for region in op.regions for block in region for inner in block][:1]
            types = [str([str(value.type) for value in values]) for values in (op.operands, op.results)]
            found.append((kind, *facts, *reducer, *types))
        return ir.WalkResult.ADVANCE

    lowered.compiler_ir("stablehlo").operation.walk(visit)
    return found
