"""Operations along space: shift, windows, convolution. On a split dimension neighbours send each other border rows.

    y = mtf.shift(t, "length", 1)                                   # y[i] = t[i - 1], zero at the border
    p = mtf.windows(t, "length", 3, into="tap")                     # p[i, j] = t[i + j - 1], zeros outside
    y = mtf.conv(x, w, spatial={"height": "kh", "width": "kw"}, out="batch height width channels_out")

An element of the result *reaches* some rows to each side along a spatial dimension. Where that dimension is split,
what a device lacks lies with its neighbours: a halo exchange, not a gather. The first paper names it as an open end
(arXiv 1811.02084, section 11). Next file to read: `rules.halo`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mtfcore.dims import Dim
from mtfcore.errors import LayoutError, nearest, refuse, sure
from mtfcore.notation import PARTIAL, as_whole, is_name, parse
from mtfcore.ops import apply, apply_out, common_graph, expect_tensor, flag, out_dims, same_dtype, wanted, whole_number
from mtfcore.tensor import Tensor

Padding = str | Sequence[int]


class Reach(NamedTuple):
    """Along `dim`, element i of a result reads elements i - before … i - before + size - 1 of the operand.

    `by` is the dimension that counts the elements read: a new one (windows) or the kernel's (convolution). Zeros stand
    `before` the first element and `after` the last, so a size n becomes n + before + after - size + 1.
    """

    dim: str
    by: str
    size: int
    before: int
    after: int

    @property
    def backwards(self) -> Reach:
        """How far the elements of the operand reach among those of the result."""
        return self._replace(before=self.size - 1 - self.before, after=self.size - 1 - self.after)


def shift(t: Tensor, dim: str, by: int, wrap: bool = False, out: str | None = None) -> Tensor:
    """y[i] = t[i - by] along one dimension; at the border zeros, or what left at the other end (`wrap`).

    `t`: a tensor; `dim`: one of its dimensions; over a split one only the border rows travel (a halo exchange).
    `out`: its dimensions, and where it lies if that is said exactly ("batch:rows io"); otherwise the layout decides.

        >>> mtf.shift(x, "batch", 1)
        shift(x)[batch:8, io:4]
    """
    size, by = expect_tensor(t).size(dim), whole_number(by, "shift: by")
    wrap = flag(wrap, "shift: wrap")
    by = by % size if wrap else max(-size, min(by, size))
    return apply_out("shift", [t], t.dims, t.dtype, out, "shift", dim=dim, by=by, wrap=wrap)


def windows(t: Tensor, dim: str, size: int, into: str, padding: Padding = "same", out: str | None = None) -> Tensor:
    """Every run of `size` neighbours along `dim`, in a new last dimension `into`; zeros outside.

    `padding`: "same" keeps the size, "valid" has no zeros, "causal" looks back only, (before, after) says how many.

    `t`: dtype[..., dim, ...]. `out`: its dimensions, and where it lies if that is said exactly ("batch:rows io");
    otherwise the layout decides.

    Raises `LayoutError` for a window that does not fit, or a name that is taken.

        >>> mtf.windows(x, "io", 3, "tap")
        windows(x)[batch:8, io:4, tap:3]
    """
    length, about = expect_tensor(t).dim(dim), f"windows of {t!r}"
    faults = [f"into is {into!r:.200}; expected one new name, such as 'tap'"] if not is_name(into) else []
    refuse(faults, about)
    refuse([f"{into!r} is a dimension of it already; give the new one another name"] if into in t.names else [], about)
    size = whole_number(size, "windows: size")
    before, after = _pads(padding, size, length, about)
    reach = Reach(dim, into, size, before, after)
    dims = (*[Dim(dim, reached(reach, t.size(dim))) if d.name == dim else d for d in t.dims], Dim(into, size))
    return apply_out("windows", [t], dims, t.dtype, out, "windows", reaches=(reach,))


def overlap_add(t: Tensor, dim: str, into: str, padding: Padding = "same", out: str | None = None) -> Tensor:
    """The transpose of `windows`: y[i] is the sum of t[i - j + before, j] over j; `into` is summed away.

    `t`: dtype[..., positions, window]; `dim`: the positions; `padding` as in `windows`. `out`: its dimensions, and
    where it lies if that is said exactly ("batch:rows io"); otherwise the layout decides.

    Raises `LayoutError` where nothing would be left.

        >>> mtf.overlap_add(mtf.windows(x, "io", 3, "tap"), "io", "tap")
        overlap(…)[batch:8, io:4]
    """
    length, size, about = expect_tensor(t).dim(dim), t.size(into), f"overlap_add of {t!r}"
    refuse([f"dim and into are both {dim!r}; into is the dimension that counts the window's elements"] * (dim == into))
    if t.dtype == "bool":
        raise LayoutError(f"{about}: dtype is bool, which has no sums; use mtf.cast(t, 'f32')")
    before, after = _pads(padding, size, None, about)
    longer = t.size(dim) - before - after + size - 1
    if longer < 1:
        raise LayoutError(f"{about}: {length} with {before} zeros before and {after} after leaves nothing")
    dims = tuple(Dim(dim, longer) if d.name == dim else d for d in t.dims if d.name != into)
    reach = Reach(dim, into, size, before, after)
    return apply_out("overlap", [t], dims, t.dtype, out, "overlap_add", reaches=(reach,))


def reached(reach: Reach, size: int) -> int:
    """How many elements a result has along the dimension."""
    return size + reach.before + reach.after - reach.size + 1


def _pads(padding: Padding, size: int, dim: Dim | None, about: str) -> tuple[int, int]:
    """(zeros before, zeros after); refuses what would leave nothing, or windows of zeros alone."""
    if size < 1:
        raise LayoutError(f"{about}: the window's size is {size}; expected at least 1")
    left = (size - 1) // 2
    named = {"same": (left, size - 1 - left), "valid": (0, 0), "causal": (size - 1, 0)}
    pair = named.get(padding) if isinstance(padding, str) else _pair(padding)
    if pair is None:
        legal = nearest(padding, named) if isinstance(padding, str) else "legal here: 'same', 'valid', 'causal'"
        raise LayoutError(f"{about}: padding is {padding!r:.200}; {legal}, or (before, after) in whole numbers")
    if not all(0 <= zeros < size for zeros in pair):
        raise LayoutError(f"{about}: padding is {padding!r}; each side takes 0 to {size - 1} zeros (the window's "
                          "size less one)")  # fmt: skip
    if dim is not None and (most := sure(dim.size) + sum(pair)) < size:
        raise LayoutError(f"{about}: a window of {size} does not fit into {dim} with {sum(pair)} zeros; the size is "
                          f"at most {most}, or use padding='same'")  # fmt: skip
    return pair


def _pair(padding: object) -> tuple[int, int] | None:
    if not isinstance(padding, (tuple, list)) or len(padding) != 2:
        return None
    before, after = map(as_whole, padding)
    return None if before is None or after is None else (before, after)


# ---- convolution ------------------------------------------------------------------------------------------------


def conv(x: Tensor, w: Tensor, spatial: Mapping[str, str], out: str, padding: Padding = "same") -> Tensor:
    """Convolution with stride 1: `spatial` says which dimension of `w` slides along which of `x`.

    The other dimensions mean what they mean in einsum: in both and not in `out` they are summed (input channels), in
    both and in `out` they are kept (one kernel for each group). As everywhere in deep learning the kernel is not
    turned round: y[i] is the sum of x[i + k - before] · w[k].

    `x`: dtype[..., positions, channels in]; `w`: dtype[kernel, channels in, channels out]; `padding` as in `windows`.
    `out` names all dimensions of the result.

    Raises `LayoutError` for a kernel that does not fit, or names that clash.

        >>> mtf.conv(x, taps, {"io": "tap"}, out="batch io")
        conv(x, taps)[batch:8, io:4]
    """
    reaches = _reaches(x, w, spatial, padding)
    return _conv("conv", x, w, reaches, out, flip=False)


def _reaches(x: Tensor, w: Tensor, spatial: Mapping[str, str], padding: Padding) -> tuple[Reach, ...]:
    expect_tensor(x), expect_tensor(w)
    about = f"conv of {x!r} and {w!r}"
    if not isinstance(spatial, Mapping) or not spatial:
        raise LayoutError(f"{about}: spatial is {spatial!r:.200}; expected e.g. {{'height': 'kh', 'width': 'kw'}}")
    kernels = list(spatial.values())
    faults = [f"spatial: x has no dimension {d!r}; {nearest(d, x.names)}" for d in spatial if d not in x.names]
    faults += [f"spatial: w has no dimension {k!r}; {nearest(k, w.names)}" for k in kernels if k not in w.names]
    faults += [f"{d!r} is in w too; rename it there, e.g. to 'k{d}'" for d in spatial if d in w.names]
    faults += [f"{k!r} slides along two dimensions" for k in dict.fromkeys(kernels) if kernels.count(k) > 1]
    faults += [f"{k!r} is in x too; rename it in one of them" for k in kernels if k in x.names]
    refuse(faults, about)
    pairs = [(x.dim(d), w.dim(k)) for d, k in spatial.items()]
    pads = [_pads(padding, sure(k.size), d, f"{about}, {d.name}") for d, k in pairs]
    return tuple(Reach(d.name, k.name, sure(k.size), *pad) for (d, k), pad in zip(pairs, pads, strict=True))


def _conv(kind: str, x: Tensor, w: Tensor, reaches: tuple[Reach, ...], out: str, flip: bool) -> Tensor:
    """Append a convolution; `out` must name every dimension that is not summed."""
    graph, about = common_graph([x, w]), f"conv of {x!r} and {w!r}"
    dtype = same_dtype([x, w], "conv")
    if dtype == "bool":
        raise LayoutError(f"{about}: dtype is bool, which has no sums; use mtf.cast(t, 'f32')")
    slid = {reach.by: reach for reach in reaches}
    there = {dim.name: dim for dim in (*x.dims, *w.dims) if dim.name not in slid}
    clash = [d.name for d in w.dims if d.name in x.names and x.dim(d.name) != d]
    refuse([f"{n} has sizes {x.size(n)} and {w.size(n)}; one name has one size" for n in clash], about)
    there |= {r.dim: Dim(r.dim, reached(r, x.size(r.dim))) for r in reaches}
    dims = out_dims(graph, out, there, about)
    named = [item.name for item in parse(out) if item.name != PARTIAL]
    faults = [f"out leaves out {r.dim!r}, along which the kernel slides" for r in reaches if r.dim not in named]
    faults += [f"out names {n!r}, {'which the kernel uses up' if n in slid else 'which no operand has'}; "
               f"{nearest(n, there)}" for n in named if n not in there]  # fmt: skip
    lost = [n for n in there if n not in named and not (n in x.names and n in w.names) and n not in spatial_of(reaches)]
    faults += [f"out leaves out {n!r}, which one operand alone has; name it in out, or use mtf.sum first" for n in lost]
    refuse(faults, f"{about}, out='{out}'")
    goal = wanted(out, dims, "conv")
    return apply(kind, [x, w], dims, dtype, goal, reaches=reaches, flip=flip)


def spatial_of(reaches: Sequence[Reach]) -> list[str]:
    """The dimensions along which the reaches go."""
    return [reach.dim for reach in reaches]


class Roles(NamedTuple):
    """What each dimension does in a convolution of `x` with `w`, besides the spatial ones."""

    batch: list[str]  # in x and the result
    group: list[str]  # in all three
    summed: list[str]  # in x and w
    features: list[str]  # in w and the result


def roles(x: Sequence[str], w: Sequence[str], out: Sequence[str], spatial: Sequence[str]) -> Roles:
    """Sort the dimensions by where they stand."""
    x, w = ([name for name in names if name not in spatial] for names in (x, w))
    return Roles(
        [name for name in x if name not in w],
        [name for name in x if name in w and name in out],
        [name for name in x if name in w and name not in out],
        [name for name in w if name not in x],
    )
