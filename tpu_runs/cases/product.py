"""One product `m k, k n → m n` on one device: what `calibrate` fits the share of the peak to.

    >>> from tpu_runs.cases import CASES, check
    >>> CASES["product"].program(check(CASES["product"], {"m": 4096, "k": 512, "n": 1024})).flops()
    4294967296

Few rows are bound by memory, many by arithmetic: the list has both. On a mesh of more devices each has its own `b`.
Next file to read: `serving`.
"""

from __future__ import annotations

import mtfcore as mtf
from mtfcore.mesh import Mesh
from mtfcore.notation import format_axes
from tpu_runs.cases.schema import Case, Params, choice, mesh, whole

PARAMS = {
    "m": whole(4096, 1, 2**20, "rows of the first operand"),
    "k": whole(4096, 1, 2**20, "what is summed over"),
    "n": whole(4096, 1, 2**20, "columns of the second operand"),
    "dtype": choice("bf16", ("bf16", "f32"), "of both operands and of the result"),
    "mesh": mesh("x:1", "every device multiplies matrices of its own"),
}


@mtf.function
def product(x: "b m k", w: "b k n"):
    """A product for every `b`, one a device."""
    return mtf.einsum(x, w, out="b m n")


def program(params: Params) -> mtf.Program:
    """The product, as many times as there are devices."""
    named = Mesh(params["mesh"])
    cut = tuple(axis for axis in named.names if named[axis] > 1)
    sizes = f"b:{named.size} m:{params['m']} k:{params['k']} n:{params['n']}"
    return mtf.plan(product, named, f"b:{format_axes(cut)}" if cut else "", sizes=sizes, dtype=params["dtype"])


def _square(*sizes: int, dtype: str = "bf16") -> tuple[Params, ...]:
    return tuple({"m": size, "k": size, "n": size, "dtype": dtype} for size in sizes)


def _rows(*rows: int, k: int, n: int) -> tuple[Params, ...]:
    """A weight matrix and few to many rows: from bound by memory to bound by arithmetic."""
    return tuple({"m": m, "k": k, "n": n, "dtype": "bf16"} for m in rows)


CASE = Case(
    "product", "one product of matrices by shape and dtype", PARAMS, program,
    sweeps={
        "simulated": (*_square(64, dtype="f32"), *_square(64), *_rows(1, k=256, n=64)),
        "chip": (*_square(1024, 2048, 4096, 8192), *_square(4096, dtype="f32"),
                 *_rows(1, 8, 64, 256, 1024, k=8192, n=8192), *_rows(64, 512, k=4096, n=16384),
                 *_rows(8, k=12288, n=12288), *_rows(8, k=16384, n=16384)),  # bound by memory: its rate, and the start
        "slice": _square(4096, 8192),
    },
)  # fmt: skip
