"""Indices, and tables that are looked up by them: what an embedding is made of.

    >>> x = mtf.gather(table, ids, "vocab")               # table: vocab d_model, ids: batch length

Source: arXiv 1811.02084, section 9 (embedding). Next file to read: `reductions`.
"""

from __future__ import annotations

from mtfcore.dims import Dim, parse_dims
from mtfcore.dtypes import cannot_hold, canonical
from mtfcore.elementwise import (
    broadcast_equal,
    cast,
)  # fmt: skip
from mtfcore.errors import LayoutError, refuse, sure
from mtfcore.ops import (
    apply_out,
    expect_tensor,
    same_sizes,
)  # fmt: skip
from mtfcore.tensor import LAYOUT, Op, Tensor


def index(dim: str | Dim, like: Tensor, dtype: object = "i32") -> Tensor:
    """0, 1, 2, … along one dimension: each device makes its own part. `like` is any tensor of the function.

    `dim`: one of its dimensions, or a new one with a size, "vocab:512"; `dtype`: that of the result, which has this
    one dimension.

    Raises `LayoutError` where the dtype cannot count so far.

        >>> mtf.index("io", x)
        index()[io:4]
    """
    found, dtype = _sized(dim, like), canonical(dtype)
    last = sure(found.size) - 1
    if dtype == "bool" or cannot_hold(dtype, last):
        raise LayoutError(f"index: {dtype} cannot count to {last} along {found}; use 'i32'")
    return like.graph.add(Op("index", (), (found,), dtype))


def _sized(dim: str | Dim, like: Tensor) -> Dim:
    """One dimension with its size, from the text, from `like` or from `sizes=`."""
    (found,) = parse_dims([dim])
    own = next((d for d in expect_tensor(like).dims if d.name == found.name and found.size is None), None)
    found = own or like.graph.size(found)
    if found.size is None:
        raise LayoutError(f"index: the size of {found.name!r} is not known; write e.g. index('{found.name}:512', like)")
    return found


def one_hot(ids: Tensor, dim: str, dtype: object | None = None, out: str | None = None) -> Tensor:
    """1 where the index along a new last dimension equals `ids`, else 0. `dim` is e.g. "vocab:512".

    `ids`: whole numbers[...]; the result dtype[..., vocab], f32 unless `dtype` says otherwise. `out`: its dimensions,
    and where it lies if that is said exactly ("batch:rows io"); otherwise the layout decides.

        >>> mtf.one_hot(ids, "vocab:16")
        cast(…)[batch:8, length:3, vocab:16]

    Raises `LayoutError` for ids that are not whole numbers.
    """
    size = sure(_sized(dim, _integers(ids, "one_hot", "ids")).size)
    if cannot_hold(ids.dtype, size - 1):  # narrow ids could not be compared with the last indices
        ids = cast(ids, "i32")
    new = index(dim, ids, ids.dtype)
    refuse([f"{name!r} is a dimension of the ids already; give the new one another name" for name in new.names
            if name in ids.names], f"one_hot of {ids!r}")  # fmt: skip
    hot = broadcast_equal(ids, new, LAYOUT if out is None else None)  # at once where it goes, not whole first
    names = [dim_.name for dim_ in hot.dims]
    return cast(hot, ids.graph.dtype if dtype is None else dtype, out=out if out is not None else " ".join(names))


def _integers(ids: Tensor, about: str, what: str) -> Tensor:
    if expect_tensor(ids).dtype not in ("i32", "i64", "i16", "i8", "u8"):
        raise LayoutError(f"{about}: {what} {ids!r} are {ids.dtype}, expected integers; use mtf.cast({what}, 'i32')")
    return ids


def gather(table: Tensor, ids: Tensor, dim: str, out: str | None = None) -> Tensor:
    """Rows of `table` along `dim` picked by `ids` (out of range gives zeros); dimensions of ids, then the rest.

    Where `dim` is split, each device looks up what it holds and the result is a partial sum.

    Raises `LayoutError` for ids that are not whole numbers, or a `dim` that the table lacks.

    Source: arXiv 1811.02084, section 9 (embedding).

        >>> mtf.gather(table, ids, "vocab")
        gather(ids, table)[batch:8, length:3, io:4]
    """
    expect_tensor(table).dim(dim)
    _integers(ids, "gather", "ids")
    if dim in ids.names:
        raise LayoutError(f"gather: ids {ids!r} have the dimension {dim!r} that is looked up; rename it in ids")
    same_sizes([ids, table], "gather")
    dims = ids.dims + tuple(d for d in table.dims if d.name != dim and d.name not in ids.names)
    return apply_out("gather", [ids, table], dims, table.dtype, out, "gather", dim=dim)
