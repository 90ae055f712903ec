"""Read shapes, groups, constants and loop bounds off StableHLO operations.

Small questions to MLIR objects, for stablehlo.py. Attributes are read through the dialect's own bindings.
Next file to read: hlo_module.py.
"""

from typing import Any

from mtfcore.counting import facts, flops


def shape_and_dtype(value: Any) -> tuple[tuple[int, ...], str]:
    """Of an operand or a result; tensors of unknown size are refused."""
    from jaxlib.mlir import ir

    tensor = ir.RankedTensorType(value.type)
    if not tensor.has_static_shape:
        raise ValueError(f"StableHLO value of type {tensor}: expected a known size in every dimension")
    return tuple(tensor.shape), str(tensor.element_type)


def group_size(op: Any) -> int:
    """Devices in one group: the width of a dense table (unequal rows are padded with -1), or the sizes of mesh axes."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    groups = op.operation.attributes["replica_groups"]
    if isinstance(groups, ir.DenseElementsAttr):
        return ir.RankedTensorType(groups.type).shape[1]
    if stablehlo.ReplicaGroupMeshAxesAttr.isinstance(groups):  # what JAX 0.11 writes
        return _along_mesh(op, stablehlo.ReplicaGroupMeshAxesAttr(groups))
    raise ValueError(f"{op.operation.name}: replica_groups = {groups}: expected a dense table of devices or mesh axes")


def groups(op: Any) -> tuple[tuple[int, ...], ...]:
    """The groups of a collective, device by device; empty where they run along a part of a mesh axis."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    given: Any = op.operation.attributes["replica_groups"]
    if isinstance(given, ir.DenseElementsAttr):
        import numpy as np

        shape = ir.ShapedType(given.type).shape
        rows = np.asarray(ir.DenseIntElementsAttr(given)).reshape(shape).tolist()
        return tuple(tuple(device for device in row if device >= 0) for row in rows)
    given = stablehlo.ReplicaGroupMeshAxesAttr(given)
    axes = [stablehlo.AxisRefAttr(axis) for axis in given.axes]
    whole = all(axis.sub_axis_info is None for axis in axes)
    return facts.groups_along(_mesh_sizes(op, given.mesh), [axis.name for axis in axes]) if whole else ()


def _along_mesh(op: Any, groups: Any) -> int:
    from jaxlib.mlir.dialects import stablehlo

    sizes, group = _mesh_sizes(op, groups.mesh), 1
    for axis in map(stablehlo.AxisRefAttr, groups.axes):
        if axis.name not in sizes:
            raise ValueError(f"{op.operation.name}: groups along {axis.name!r}, expected one of {', '.join(sizes)}")
        part: Any = axis.sub_axis_info  # groups may run along a part of an axis
        group *= sizes[axis.name] if part is None else stablehlo.SubAxisInfoAttr(part).size
    return group


def _mesh_sizes(op: Any, mesh: Any) -> dict[str, int]:
    """Axis sizes of a mesh that is written in place, or that the module names."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import sdy, stablehlo

    if stablehlo.MeshAttr.isinstance(mesh):
        axes: Any = stablehlo.MeshAttr(mesh).axes
        return {a.name: a.size for a in map(stablehlo.MeshAxisAttr, axes)}
    symbol = ir.SymbolTable(_outermost(op))[ir.FlatSymbolRefAttr(mesh).value]
    named = sdy.MeshAttr(symbol.operation.attributes["mesh"])
    return {a.name: a.size for a in map(sdy.MeshAxisAttr, named.axes)}


def _outermost(op: Any) -> Any:
    operation = op.operation
    while operation.parent is not None:
        operation = operation.parent.operation
    return operation


def pairs(op: Any) -> list[tuple[int, int]]:
    """(source, target) of a collective_permute."""
    import numpy as np
    from jaxlib.mlir import ir

    table = np.asarray(ir.DenseIntElementsAttr(op.operation.attributes["source_target_pairs"])).reshape(-1, 2)
    return [(int(a), int(b)) for a, b in table]


def dot_flops(op: Any) -> int:
    """Of dot_general, and of the older dot (contracts lhs's last dimension with rhs's first)."""
    from jaxlib.mlir.dialects import stablehlo

    (lhs, _), (rhs, _) = (shape_and_dtype(v) for v in op.operation.operands)
    if op.operation.name == "stablehlo.dot":
        return flops.matmul_flops(lhs, rhs, (0,))
    numbers = stablehlo.DotDimensionNumbers(op.operation.attributes["dot_dimension_numbers"])
    return flops.matmul_flops(lhs, rhs, (*numbers.rhs_contracting_dimensions, *numbers.rhs_batching_dimensions))


def convolution_flops(op: Any) -> int:
    from jaxlib.mlir.dialects import stablehlo

    (lhs, _), (rhs, _) = (shape_and_dtype(v) for v in op.operation.operands)
    out, _ = shape_and_dtype(op.operation.results[0])
    n = stablehlo.ConvDimensionNumbers(op.operation.attributes["dimension_numbers"])
    spatial = list(zip(n.input_spatial_dimensions, n.kernel_spatial_dimensions, n.output_spatial_dimensions))
    stride, dilate, kernel_dilate = (
        _numbers(op, name, [1] * len(spatial)) for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    pad = _numbers(op, "padding", [0, 0] * len(spatial))[::2]
    windows = [
        flops.Window(lhs[i], rhs[k], out[o], stride[d], pad[d], dilate[d], kernel_dilate[d])
        for d, (i, k, o) in enumerate(spatial)
    ]
    batch, features = out[n.output_batch_dimension], out[n.output_feature_dimension]
    return flops.convolution_flops(batch, features, rhs[n.kernel_input_feature_dimension], windows)


def _numbers(op: Any, attribute: str, default: list[int]) -> list[int]:
    import numpy as np
    from jaxlib.mlir import ir

    if attribute not in op.operation.attributes:
        return default
    value = op.operation.attributes[attribute]
    if isinstance(value, ir.DenseElementsAttr):
        return [int(n) for n in np.asarray(value).reshape(-1)]
    return [int(n) for n in value]


def while_runs(op: Any) -> int | None:
    """Runs of a loop that counts from a constant to a constant, as JAX's scans do; None if it is not such a loop."""
    test, body = (region.blocks[0] for region in op.operation.regions)
    compare = _maker(_returned(test, 0), "stablehlo.compare")
    if compare is None:
        return None
    counter, bound = compare.operands
    i = _argument(counter, test)
    if i is None:
        return None
    start, bound = _constant(op.operation.operands[i]), _bound(bound, op, test, body)
    step = _step(_returned(body, i), body, i)
    if start is None or bound is None or step is None:
        return None
    return flops.trip_count(start, bound, step, _direction(compare))


def _bound(value: Any, op: Any, test: Any, body: Any) -> int | None:
    """A constant, or a loop value that the body returns unchanged and that starts as a constant."""
    j = _argument(value, test)
    if j is None:
        return _constant(value)
    return _constant(op.operation.operands[j]) if _argument(_returned(body, j), body) == j else None


def _step(value: Any, body: Any, i: int) -> int | None:
    for name, sign in (("stablehlo.add", 1), ("stablehlo.subtract", -1)):
        made = _maker(value, name)
        if made is not None and _argument(made.operands[0], body) == i:
            step = _constant(made.operands[1])
            return None if step is None else sign * step
    return None


def _direction(compare: Any) -> str:
    from jaxlib.mlir.dialects import stablehlo

    return stablehlo.ComparisonDirectionAttr(compare.attributes["comparison_direction"]).value


def _returned(block: Any, i: int) -> Any:
    return list(block.operations)[-1].operation.operands[i]


def _argument(value: Any, block: Any) -> int | None:
    """Which of the block's own arguments a value is."""
    return next((i for i, a in enumerate(block.arguments) if a == value), None)


def _maker(value: Any, name: str) -> Any:
    """The operation that makes a value, if it is of this name."""
    operation = getattr(value.owner, "operation", None)  # the owner of an argument is a block
    return operation if operation is not None and operation.name == name else None


def _constant(value: Any) -> int | None:
    from jaxlib.mlir import ir

    made = _maker(value, "stablehlo.constant")
    if made is None or not isinstance(ir.RankedTensorType(value.type).element_type, ir.IntegerType):
        return None
    return int(ir.DenseIntElementsAttr(made.attributes["value"])[0])
