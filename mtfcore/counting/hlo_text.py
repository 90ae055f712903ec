"""Count what a compiler made of a program, from the HLO text that it prints.

The idea: walk from ENTRY through the computations that are called (fusions, calls, branches, loops, asynchronous
wrappers), multiply loops, and count every collective once: at its `-start`, or where it stands if it has none.
Shapes here are those of one device. TPU schedules read as well as CPU texts.

    counts = count_hlo_text(jax.jit(f).lower(*args).compile().as_text())
    counts.origin                                          # 'compiled'

Beware: XLA's CPU compiler turns bf16 collectives into f32 ones, so bytes in a text compiled for CPU may be twice
those of the program. Trust `count` and `count_stablehlo` for bytes; read this for what a compiler chose.
Custom calls hide their FLOPs; a note names those that look like matrix products.
Next file to read: hlo_values.py.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mtfcore.counting import facts
from mtfcore.counting.facts import Collective, Counts
from mtfcore.counting.hlo_module import DAMAGED, Computation, Instruction, Module, Unreadable, split
from mtfcore.counting.hlo_parse import parse
from mtfcore.counting.hlo_values import convolution_flops, dot_flops, group_sizes, groups, pairs, while_runs

COLLECTIVES = {
    "all-gather": "all_gather", "reduce-scatter": "reduce_scatter", "all-reduce": "all_reduce",
    "all-to-all": "all_to_all", "collective-permute": "permute", "collective-broadcast": "broadcast",
}  # fmt: skip
FLOPS: dict[str, Callable] = {"dot": dot_flops, "convolution": convolution_flops}
CHAIN = re.compile(r'chain_id="?(\d+)')
ASYNC_START, ASYNC_DONE = "AsyncCollectiveStart", "AsyncCollectiveDone"  # of a TPU: what fusions at both ends call
CALLERS = ("fusion", "call", "async", "custom-call")
UNCOUNTED = ("ragged-all-to-all", "send", "recv")
DEEPEST = 50  # calls in calls, each some of Python's own; printed modules have a dozen
HIDDEN_FLOPS = ("matmul", "gemm", "dot", "conv", "tpu_custom_call")


def count_hlo_text(text: str) -> Counts:
    """Count the text of one HLO module; a text that is not HLO, or is cut off, is a ValueError."""
    if not isinstance(text, str):
        raise TypeError(f"count_hlo_text expected the text that compiled.as_text() prints, got {type(text).__name__}")
    module = parse(text)
    counts = _Walk(module).computation(module.start)
    if "is_scheduled=true" not in module.header and "SPMDFullToShardShape" in text:
        counts = replace(counts, notes=(*counts.notes, "not compiled yet: shapes may be those of the whole problem"))
    counts = facts.settled(replace(counts, scope="per device"), "hlo text")
    return replace(counts, origin="compiled", elementwise_flops=None)


@dataclass
class _Walk:
    module: Module
    known: dict[str, Counts] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def computation(self, computation: Computation) -> Counts:
        name = computation.name
        if name in self.open:
            raise Unreadable(f"HLO line {computation.line}: computation %{name} calls itself")
        if len(self.open) > DEEPEST:
            raise Unreadable(f"HLO line {computation.line}: %{name} is called through over {DEEPEST} others")
        if name not in self.known:
            self.open.append(name)
            found = [self.instruction(i, computation) for i in computation.instructions.values()]
            self.known[name] = facts.together(f for f in found if f is not None)
            self.open.pop()
        return self.known[name]

    def call(self, name: str, by: Instruction) -> Counts:
        return self.computation(self.module.called(name, by))

    def instruction(self, i: Instruction, home: Computation) -> Counts | None:
        try:
            return self._counted(i, home)
        except Unreadable:
            raise
        except DAMAGED as fault:
            raise i.refuse(f"a size, operand or attribute is missing or none ({type(fault).__name__})") from fault

    def _counted(self, i: Instruction, home: Computation) -> Counts | None:
        if i.opcode.endswith(("-done", "-update")):  # counted at its start
            return None
        opcode = i.opcode.removesuffix("-start")
        if opcode in COLLECTIVES and goes_on(i, home):
            return None
        if opcode in COLLECTIVES:
            return collective(i, COLLECTIVES[opcode], home, self.module)
        if opcode in FLOPS:
            return facts.work(FLOPS[opcode](i, home), 0, inside=True)
        if opcode == "while":
            return self.loop(i, home)
        if opcode == "conditional":
            return facts.dearest([self.call(b, i) for b in _branches(i)], f"%{i.name}")
        if opcode in CALLERS:
            return self.caller(i)
        if opcode in UNCOUNTED:
            return Counts(notes=(f"%{i.name}: {opcode} is not counted",))
        return None

    def caller(self, i: Instruction) -> Counts:
        """A call runs its computation once; a TPU names the fusion that is a reduce-scatter `all-reduce-scatter`."""
        names = [i.attributes[key] for key in ("calls", "to_apply", "called_computation") if key in i.attributes]
        names += split(i.attributes.get("called_computations", "").strip("{}")) if i.opcode == "custom-call" else []
        counts = facts.together(self.call(name, i) for name in names if name)
        if any(name.lstrip("%").startswith("all-reduce-scatter") for name in names):
            return _as_reduce_scatter(counts)
        target = i.attributes.get("custom_call_target", "").strip('"')
        if any(word in target.lower() for word in HIDDEN_FLOPS):
            return replace(counts, notes=(*counts.notes, f"custom call {target}: its FLOPs are hidden and not counted"))
        return counts

    def loop(self, i: Instruction, home: Computation) -> Counts:
        test, body = (self.module.called(i.attributes.get(key, "?"), i) for key in ("condition", "body"))
        runs = while_runs(i, home, test, body, self.module)
        counts = self.computation(body)
        if runs is None:
            note = f"%{i.name}: number of runs unknown; body counted once"
            return facts.together([counts, self.computation(test), Counts(notes=(note,))])
        return facts.together([counts.repeated(runs), self.computation(test).repeated(runs + 1)])


def goes_on(i: Instruction, home: Computation) -> bool:
    """Whether a fusion only carries on, or ends, a collective that another started: a TPU writes it in each of them."""
    starts = home.result.attributes.get("custom_call_target", "").strip('"') == ASYNC_START
    return chain(i) is not None and not starts


def chain(i: Instruction) -> str | None:
    """The number that the fusions of one collective share, where it runs beside the products of several."""
    found = CHAIN.search(i.attributes.get("frontend_attributes", ""))
    return found and found[1]


def _branches(i: Instruction) -> list[str]:
    a = i.attributes
    if "branch_computations" in a:
        return split(a["branch_computations"].strip("{}"))
    if "true_computation" not in a or "false_computation" not in a:
        raise i.refuse("expected branch_computations={...}, or true_computation= and false_computation=")
    return [a["true_computation"], a["false_computation"]]


def collective(i: Instruction, kind: str, home: Computation, module: Module) -> Counts:
    """One collective instruction: an entry for each array that it sends."""
    notes: tuple[str, ...] = ()
    members: tuple[tuple[int, ...], ...]
    if kind == "permute":
        members = tuple(pairs(i))
        group = facts.linked_devices(members)
    else:
        members = groups(i, module.devices())
        sizes = group_sizes(i, module.devices())
        group = max(sizes)
        if len(sizes) > 1:
            notes = (f"%{i.name}: groups of {sorted(sizes)} devices; the largest is counted",)
    arrays = [a for n in range(_moved(i, kind)) for a in home.operand(i, n).arrays]
    blocks = [(a.n_bytes, a.dtype) for a in arrays]
    if kind == "all_to_all" and len(blocks) > 1:  # printed as one operand for each receiver: one exchange
        blocks = [(sum(n for n, _ in blocks), blocks[0][1])]
    found = [facts.one(Collective(kind, (), group, n, 1, dtype, f"%{i.name}", members)) for n, dtype in blocks]
    return facts.together([*found, Counts(notes=notes)])


def _moved(i: Instruction, kind: str) -> int:
    """How many operands travel: a permute into a given buffer names the buffer and offsets behind its input."""
    if not i.operands:
        raise i.refuse("expected at least one operand")
    return 1 if kind == "permute" and len(i.operands) == 4 else len(i.operands)


def _as_reduce_scatter(counts: Counts) -> Counts:
    renamed = tuple(replace(c, kind="reduce_scatter") if c.kind == "all_reduce" else c for c in counts.collectives)
    return replace(counts, collectives=renamed)
