"""Rows written into a tensor where it lies, such as the keys and values of new tokens into a cache.

    k = mtf.write(cache_k, new_k, at, "S")      # cache_k: layers B S K D, new_k: layers B N K D, at: i32[B, N]

Row n of sequence b goes to position at[b, n] along S; all else stays as it is. The result lies exactly where the tensor
lies, which never moves: the few rows are brought to it, and where S is split each device writes what it holds. So a
compiled step whose cache is donated changes it in place. Next file to read: `reshapes`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mtfcore.errors import nearest, refuse
from mtfcore.ops import apply, expect_tensor, same_dtype, same_sizes
from mtfcore.tensor import Tensor

INTEGERS = ("i32", "i64", "i16", "i8", "u8")


def write(t: Tensor, rows: Tensor, at: Tensor, dim: str) -> Tensor:
    """The tensor with some of its rows along `dim` replaced: `result[…, at[b, n], …] = rows[…, n, …]`.

    `rows` has the dimensions of `t`, in any order, but for another one, N, instead of `dim`. `at` has N and any that
    `t` and `rows` share. Rows whose place is not 0 … size-1 are left out: so padding is never written. Of two rows
    with one place one stays; which is not said.

    Raises `LayoutError` for rows that do not fit, or a cache of another dtype.
    """
    expect_tensor(t).dim(dim)
    about = f"write into {t!r} along {dim}"
    refuse(_faults(t, expect_tensor(rows), expect_tensor(at), dim), about)
    same_sizes([t, rows, at], about)
    dtype = same_dtype([t, rows], about)
    return apply("write", [t, rows, at], t.dims, dtype, None, dim=dim)


def _faults(t: Tensor, rows: Tensor, at: Tensor, dim: str) -> list[str]:
    own = [name for name in rows.names if name not in t.names]
    lost = [name for name in t.names if name not in (*rows.names, dim)]
    faults = [f"rows {rows!r} lack {name!r}" for name in lost]
    if dim in rows.names:
        faults.append(f"rows {rows!r} have {dim!r} itself; rename it, e.g. mtf.rename(rows, '{dim}', 'N')")
    elif len(own) != 1:
        found = ", ".join(map(repr, own)) or "none"
        faults.append(f"rows {rows!r} need exactly one dimension of their own instead of {dim!r}, found {found}")
    elif own[0] not in at.names:
        faults.append(f"at {at!r} lacks {own[0]!r}: it says where each row along it goes")
    if at.dtype not in INTEGERS:
        faults.append(f"at {at!r} is {at.dtype}, expected integers; use mtf.cast(at, 'i32')")
    shared = [name for name in rows.names if name != dim]
    return faults + [
        f"at has {name!r}, which t and rows do not share; {nearest(name, shared)}"
        for name in at.names if name not in shared
    ]  # fmt: skip


def picked(names: Sequence[str], at: Sequence[str], dim: str) -> list[str]:
    """The dimensions, in order, of what `t[…]` picks with an index array for `dim` and each that `at` shares.

    As in numpy: those of the index arrays stand where the arrays do, or in front if something is between them.
    """
    places = [place for place, name in enumerate(names) if name == dim or name in at]
    rest = [name for name in names if name != dim and name not in at]
    first = places[0] if places == [*range(places[0], places[-1] + 1)] else 0
    return [*rest[:first], *at, *rest[first:]]
