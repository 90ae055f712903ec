"""Every operation at least once, as data: inputs with sizes that every mesh here divides, and the lines to run.

Dimensions of size 24 divide by 2, 3, 4, 6, 8 and 12; the sweep places the inputs in many ways. Next file to read:
tests/core/test_sweep.py.
"""

from __future__ import annotations

from typing import NamedTuple

from core.sweep.programs import Line
from core.sweep.reference_shapes import functions

ROWS = {"A": 24, "B": 8}


class Entry(NamedTuple):
    """Inputs (name → sizes; `ids…` are i32, `bits…` bool), lines, and the names of what is returned."""

    inputs: dict[str, dict[str, int]]
    lines: tuple[Line, ...]


def line(results: str, call: str, *operands: object, block: tuple[Line, ...] = (), arguments: str = "", **more: object):
    return Line(tuple(results.split()), call, operands, tuple(more.items()), block, tuple(arguments.split()))


def one(call: str, *operands: object, inputs: dict[str, dict[str, int]] | None = None, **more: object) -> Entry:
    """One operation on `t`, of dimensions A and B unless others are given."""
    results = "r s" if call == "top_k" else "r"
    return Entry(inputs or {"t": ROWS}, (line(results, call, *operands, **more),))


MATRICES = {"t": {"A": 24, "B": 8}, "w": {"B": 8, "C": 24}}
BATCHED = {"t": {"A": 4, "B": 24}, "w": {"A": 4, "B": 24, "C": 4}}
CHAIN = {"t": {"A": 24, "B": 8}, "w": {"B": 8, "C": 4}, "v": {"C": 4, "A": 24}}
PAIR = {"t": ROWS, "u": {"B": 8, "A": 24}}
ROW = {"t": ROWS, "u": {"A": 24}}
LOOP = {"t": ROWS, "w": {"N": 3, "B": 8, "C": 8}, "u": {"A": 24}}
BITS = {"bits": ROWS, "bits2": {"B": 8, "A": 24}}
CHOICE = {"bits": {"A": 24}, "t": ROWS, "u": {"B": 8}}
LOOKUP = {"t": {"V": 24, "D": 8}, "ids": {"B": 24}}
SHARED = {"t": {"B": 4, "V": 24, "D": 4}, "ids": {"B": 4, "L": 8}}
CACHE = {"t": {"A": 4, "V": 24, "D": 4}, "u": {"D": 4, "N": 8, "A": 4}, "ids": {"N": 8}}
CACHES = {"t": {"A": 2, "B": 4, "D": 4, "V": 24}, "u": {"A": 2, "N": 8, "B": 4, "D": 4}, "ids": {"N": 8, "B": 4}}
SLOTS = {"t": {"B": 24, "V": 4, "D": 4}, "u": {"N": 8, "D": 4, "V": 4}, "ids": {"V": 4, "N": 8}}
IMAGE = {"t": {"A": 12, "B": 8, "C": 4}, "w": {"P": 3, "Q": 2, "C": 4, "D": 4}}
SOUND = {"t": {"A": 24, "B": 4, "C": 4}, "w": {"P": 5, "C": 4, "D": 4}}
GROUPS = {"t": {"A": 4, "B": 12, "C": 4}, "w": {"C": 4, "D": 4, "P": 4}}
BLOCK = (
    line("t1", "einsum", "c", "p0", out="A C"), line("t2", "rename", "t1", "C", "B"), line("t3", "add", "t2", "u"),
    line("t4", "tanh", "t3"),
)  # fmt: skip
PLAIN_BLOCK = (line("t1", "multiply", "c", "u"), line("t2", "softmax", "t1", "B"))

CATALOG: dict[str, Entry] = {
    # products
    "einsum of one, kept": one("einsum", "t", out="B A"),
    "einsum of one, summed": one("einsum", "t", out="B"),
    "einsum to a number": one("einsum", "t", out=""),
    "einsum of two": one("einsum", "t", "w", inputs=MATRICES, out="A C"),
    "einsum with a batch dimension": one("einsum", "t", "w", inputs=BATCHED, out="A C"),
    "einsum that keeps all": one("einsum", "t", "w", inputs=MATRICES, out="C A B"),
    "einsum of a tensor with itself": one("einsum", "t", "t", out="A"),
    "einsum of three": one("einsum", "t", "w", "v", inputs=CHAIN, out="A"),
    "einsum with a new dimension": one("einsum", "t", "w", inputs=MATRICES, out="C A N:2"),
    "einsum, all axes searched": one("einsum", "t", "w", inputs=MATRICES, out="A C", search=True),
    "einsum that follows": one("einsum", "t", "w", inputs=MATRICES, out="A C", follow=True),
    # elementwise
    **{fn: one(fn, "t") for fn in functions("any")},
    "stop_gradient": one("stop_gradient", "t"),
    **{fn: one(fn, "u", inputs={"u": {"A": 4, "B": 12}}) for fn in functions("small")},
    **{fn: Entry({"t": ROWS}, (line("p", "square", "t"), line("q", "add", "p", 1), line("r", fn, "q")))
       for fn in functions("above 0")},
    "add, equal dimensions": one("add", "t", "u", inputs=PAIR),
    "add, one broadcast": one("add", "t", "u", inputs=ROW),
    "add, both broadcast": one("add", "u", "w", inputs={"u": {"A": 24}, "w": {"B": 8}}, out="B A"),
    "subtract": one("subtract", "u", "t", inputs=ROW),
    "multiply": one("multiply", "t", "u", inputs=ROW),
    "multiply by a number": one("multiply", "t", 3),
    "divide by a number": one("divide", "t", 4),
    "divide": Entry(ROW, (line("p", "square", "u"), line("q", "add", "p", 1), line("r", "divide", "t", "q"))),
    "power": one("power", "t", 3),
    "maximum": one("maximum", "t", "u", inputs=PAIR),
    "minimum": one("minimum", "t", 0),
    "equal": one("equal", "t", "u", inputs=PAIR),
    "less": one("less", "t", "u", inputs=ROW),
    "greater": one("greater", "t", 1),
    "logical": Entry(BITS, (line("p", "logical_and", "bits", "bits2"), line("q", "logical_or", "p", "bits2"),
                            line("r", "logical_not", "q"))),
    "where": one("where", "bits", "t", "u", inputs=CHOICE),
    "where, a number": one("where", "bits", "t", 0, inputs=CHOICE | {"t": ROWS}),
    "cast to whole numbers": one("cast", "t", dtype="i32"),
    "cast of truth values": one("cast", "bits", dtype="f32", inputs=BITS),
    "sort_key": one("sort_key", "t"),
    # reductions
    **{f"{fn} of one dimension": one(fn, "t", "A") for fn in ("sum", "mean", "max", "min", "logsumexp")},
    **{f"{fn} of the other": one(fn, "t", dims="B") for fn in ("sum", "max", "logsumexp")},
    **{f"{fn} of all": one(fn, "t") for fn in ("sum", "mean", "max", "min", "logsumexp")},
    "sum of whole numbers": one("sum", "ids", inputs=LOOKUP),
    "any": one("any", "bits", "A", inputs=BITS), "all": one("all", "bits", dims="B", inputs=BITS),
    "softmax of the first": one("softmax", "t", "A"), "softmax of the last": one("softmax", "t", "B"),
    "cumsum of the first": one("cumsum", "t", "A"), "cumsum of the last": one("cumsum", "t", "B"),
    "argmax of the first": one("argmax", "t", "A"), "argmax of the last": one("argmax", "t", "B"),
    "top_k of the first": one("top_k", "t", "A", 5), "top_k of the last": one("top_k", "t", "B", 8),
    # indices
    "index": Entry({"t": ROWS}, (line("p", "index", "A", "t"), line("q", "cast", "p", dtype="f32"),
                                 line("r", "add", "t", "q"))),
    "one_hot": one("one_hot", "ids", "V:24", dtype="f32", inputs={"ids": {"B": 24}}),
    "gather": one("gather", "t", "ids", "V", inputs=LOOKUP),
    "gather with a shared dimension": one("gather", "t", "ids", "V", inputs=SHARED),
    "write": one("write", "t", "u", "ids", "V", inputs=CACHE),
    "write, row by row": one("write", "t", "u", "ids", "V", inputs=CACHES),
    "write, behind what is shared": one("write", "t", "u", "ids", "B", inputs=SLOTS),
    # random numbers
    "random_uniform": one("random_uniform", "A:24 B:8", "t", 7),
    "random_uniform that is used": Entry({"t": ROWS, "ids": {}}, (
        line("p", "random_uniform", "B:8 A:24", "t", "ids"), line("r", "multiply", "t", "p"))),
    "random_gumbel": one("random_gumbel", "B A:24", "t", -3),
    "dropout": Entry({"t": ROWS, "ids": {}}, (
        line("p", "fold_in", 5, "ids"), line("r", "dropout", "t", 0.25, "p"))),
    # shapes
    "reshape": one("reshape", "t", "P:4 Q:6 R:8"),
    "reshape across": one("reshape", "t", "P:8 Q:24"),
    "rename": one("rename", "t", "A", "C"),
    "split": one("split", "t", "A", "P:4 Q:6"),
    "merge": one("merge", "t", "A B", "Q"),
    "merge, turned": one("merge", "t", "B A", "Q"),
    "transpose": one("transpose", "t", "B A"),
    "slice": one("slice", "t", "A", 3, 19),
    "pad": one("pad", "t", "B", 12), "pad with ones": one("pad", "t", "A", 32, 1),
    "concat": one("concat", ("t", "u"), "A", inputs=PAIR),
    "concat of three": one("concat", ("t", "u", "t"), "B", inputs=PAIR),
    "settle": one("settle", "t"),
    # space
    "shift": one("shift", "t", "A", 1), "shift back": one("shift", "t", "A", -7),
    "shift round": one("shift", "t", "B", 3, wrap=True),
    "windows": one("windows", "t", "A", 3, "N"),
    "windows, wide": one("windows", "t", "B", 5, "N", padding="causal"),
    "windows without zeros": one("windows", "t", "A", 13, "N", padding="valid"),
    "overlap_add": one("overlap_add", "t", "A", "B"),
    "overlap_add of shorter windows": one("overlap_add", "t", "A", "B", padding=(7, 6)),
    "conv": one("conv", "t", "w", inputs=IMAGE, spatial={"A": "P", "B": "Q"}, out="A B D"),
    "conv without zeros": one("conv", "t", "w", inputs=SOUND, spatial={"A": "P"}, padding="valid", out="A B D"),
    "conv by group": one("conv", "t", "w", inputs=GROUPS, spatial={"B": "P"}, out="D B A C"),
    # loops
    "repeat": Entry(LOOP, (line("r", "repeat", "t", 3, "w", block=BLOCK, arguments="c p0"),)),
    "repeat without weights": Entry(ROW, (line("r", "repeat", "t", 2, block=PLAIN_BLOCK, arguments="c"),)),
}  # fmt: skip
