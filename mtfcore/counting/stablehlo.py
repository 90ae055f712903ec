"""Count what a lowered program does, by walking its StableHLO operations.

The idea: StableHLO is what JAX hands to a compiler. Operations are objects with operands, attributes and regions, so
nothing is matched as text: the size of a group is the width of `replica_groups` (or that of the mesh axes they name),
a scan is a `while` whose bounds are constants, a function called twice counts twice. `axes` stays empty: permutes, and
with JAX 0.10 all collectives, have lost the names of theirs.
Shapes inside `sdy.manual_computation` (what shard_map becomes) are local: per device. Elementwise work is not counted
in this language, since lowering rewrites it freely.

    count_stablehlo(jax.jit(f).lower(*args))        # or its text, or the MLIR module

Next file to read: hlo_module.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from mtfcore.counting import facts
from mtfcore.counting.facts import Collective, Counts
from mtfcore.counting.stablehlo_values import (
    convolution_flops,
    dot_flops,
    group_size,
    groups,
    pairs,
    shape_and_dtype,
    while_runs,
)

COLLECTIVES = {
    "stablehlo.all_gather": "all_gather", "stablehlo.reduce_scatter": "reduce_scatter",
    "stablehlo.all_reduce": "all_reduce", "stablehlo.all_to_all": "all_to_all",
    "stablehlo.collective_permute": "permute", "stablehlo.collective_broadcast": "broadcast",
}  # fmt: skip
FLOPS = {"stablehlo.dot_general": dot_flops, "stablehlo.dot": dot_flops, "stablehlo.convolution": convolution_flops}
# Their regions combine two elements: no program of their own.
COMBINERS = {"stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.scatter", "stablehlo.select_and_scatter",
             "stablehlo.sort", "stablehlo.map"}  # fmt: skip
TRANSPARENT = {"builtin.module", "sdy.named_computation", "stablehlo.optimization_barrier"}
UNCOUNTED = ("stablehlo.send", "stablehlo.recv", "sdy.all_", "sdy.reduce_scatter", "sdy.collective_permute")


def count_stablehlo(program: Any) -> Counts:
    """Count a `jax.stages.Lowered`, a StableHLO module, or its text."""
    module = _module(program)
    functions = {_text(op, "sym_name"): op for op in module.body.operations if _name(op) == "func.func"}
    entry = functions.get("main") or next((f for f in functions.values() if not _is_private(f)), None)
    if entry is None:
        raise ValueError("StableHLO without a public function: expected 'func.func public @main'")
    counts = _Walk(functions).function(_text(entry, "sym_name"), inside=False)
    return replace(facts.settled(counts, "stablehlo"), elementwise_flops=None)


def _module(program: Any) -> Any:
    if hasattr(program, "compiler_ir"):
        return program.compiler_ir("stablehlo")
    if hasattr(program, "body") and hasattr(program, "operation"):
        return program
    if isinstance(program, str):
        return _parse(program)
    raise TypeError(
        f"count_stablehlo expected a jax.stages.Lowered, an MLIR module or its text, got {type(program).__name__}"
    )


def _parse(text: str) -> Any:
    from jax.interpreters import mlir
    from jaxlib.mlir import ir

    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    try:
        return ir.Module.parse(text, mlir.make_ir_context())
    except ir.MLIRError as error:
        what = str(error).strip().splitlines()
        raise ValueError(
            f"not StableHLO that can be read. It starts {first[:60]!r}; expected MLIR text such as "
            f"lowered.as_text() prints ('module @name ...'). The parser says: {' '.join(what[1:2] or what)}"
        ) from error


def _name(op: Any) -> str:
    return op.operation.name


def _text(op: Any, attribute: str) -> str:
    return op.operation.attributes[attribute].value


def _is_private(function: Any) -> bool:
    attributes = function.operation.attributes
    return "sym_visibility" in attributes and attributes["sym_visibility"].value == "private"


@dataclass
class _Walk:
    """One pass over a module; a function's counts are kept, since it may be called often."""

    functions: dict[str, Any]
    known: dict[tuple[str, bool], Counts] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def function(self, name: str, inside: bool) -> Counts:
        if name not in self.functions:
            raise ValueError(f"func.call @{name}: expected one of the module's functions: {', '.join(self.functions)}")
        if name in self.open:
            raise ValueError(f"func.call @{name}: a function that calls itself has no count")
        if (name, inside) not in self.known:
            self.open.append(name)
            self.known[name, inside] = self.regions(self.functions[name], f"@{name}", inside)
            self.open.pop()
        return self.known[name, inside]

    def regions(self, op: Any, where: str, inside: bool) -> Counts:
        return facts.together(self.region(r, where, inside) for r in op.operation.regions)

    def region(self, region: Any, where: str, inside: bool) -> Counts:
        return facts.together(self.op(op, where, inside) for block in region.blocks for op in block.operations)

    def op(self, op: Any, where: str, inside: bool) -> Counts:
        name = _name(op)
        if name in COLLECTIVES:
            return _collective(op, COLLECTIVES[name], where)
        if name in FLOPS:
            return facts.work(FLOPS[name](op), 0, inside)
        special = getattr(self, "_" + name.replace(".", "_"), None)
        if special:
            return special(op, where, inside)
        if name.startswith(UNCOUNTED):
            return Counts(notes=(f"{where}: {name} is not counted",))
        if name in COMBINERS or not any(True for r in op.operation.regions for _ in r.blocks):
            return Counts()
        counts = self.regions(op, where, inside)
        note = () if name in TRANSPARENT else (f"{where}: {name}: inner program counted once",)
        return replace(counts, notes=(*counts.notes, *note))

    def _func_call(self, op: Any, where: str, inside: bool) -> Counts:
        return self.function(_text(op, "callee"), inside)

    def _stablehlo_composite(self, op: Any, where: str, inside: bool) -> Counts:
        return self.function(_text(op, "decomposition"), inside)

    def _stablehlo_while(self, op: Any, where: str, inside: bool) -> Counts:
        runs = while_runs(op)
        label = f"{where}/while" if runs is None else f"{where}/while x{runs}"
        test, body = (self.region(r, label, inside) for r in op.operation.regions)
        if runs is None:
            body = replace(body, notes=(*body.notes, f"{label}: number of runs unknown; body counted once"))
            return facts.together([body, test])
        return facts.together([body.repeated(runs), test.repeated(runs + 1)])

    def _stablehlo_case(self, op: Any, where: str, inside: bool) -> Counts:
        label = f"{where}/{_name(op).split('.')[1]}"
        branches = [self.region(r, f"{label}[{i}]", inside) for i, r in enumerate(op.operation.regions)]
        return facts.dearest(branches, label)

    _stablehlo_if = _stablehlo_case

    def _sdy_manual_computation(self, op: Any, where: str, inside: bool) -> Counts:
        return replace(self.regions(op, f"{where}/manual_computation", True), scope="per device")

    def _stablehlo_custom_call(self, op: Any, where: str, inside: bool) -> Counts:
        target, called = _text(op, "call_target_name"), op.operation.attributes.get("called_computations")
        if target == "SPMDFullToShardShape":  # lowered without Shardy: what follows has local shapes
            return Counts(notes=(f"{where}: per-device and whole-problem shapes mixed; FLOPs not told apart",))
        if called is not None and len(called):
            return Counts(notes=(f"{where}: custom call {target!r} calls functions that are not counted",))
        return Counts()


def _collective(op: Any, kind: str, where: str) -> Counts:
    size = group_size(op) if kind != "permute" else 0
    members = groups(op) if size else tuple(pairs(op))
    group = size or facts.linked_devices(members)
    label = f"{where}/{_name(op).split('.')[1]}"
    like = Collective(kind, (), group, where=label, groups=members)
    return facts.together(_each(op.operation.operands, like))


def _each(operands: Iterable[Any], like: Collective) -> Iterable[Counts]:
    for operand in operands:
        shape, dtype = shape_and_dtype(operand)
        yield facts.one(replace(like, n_bytes=facts.array_bytes(shape, dtype), dtype=dtype))
