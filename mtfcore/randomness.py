"""Random numbers that do not depend on the layout, and dropout.

    noise = mtf.random_uniform("batch:64 io:512", x, seed)    # = jax.random.uniform(jax.random.key(seed), (64, 512))
    h = mtf.dropout(h, 0.1, mtf.fold_in(seed, step))          # another seed for every step (or layer)

An element is a function of the seed and of its index in the whole tensor, so each device makes its own part and
nothing is sent; run again, on any mesh, the numbers are the same (needed where a block is computed again in the
backward). The function is Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
2011), as JAX uses it. The seed is an i32 without dimensions: a number, or a tensor such as an argument of the
function. Next file to read: `kernels/threefry`, which computes them.
"""

from __future__ import annotations

from typing import Any

from mtfcore.dims import Dim, DimsLike, parse_dims
from mtfcore.dtypes import canonical, is_float
from mtfcore.elementwise import constant, elementwise
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.notation import PARTIAL, parse
from mtfcore.ops import apply, apply_out, expect_tensor, plain_number, wanted
from mtfcore.tensor import Graph, Tensor

Seed = int | Tensor


def random_uniform(
    dims: DimsLike, like: Tensor, seed: Seed, dtype: object | None = None, out: str | None = None
) -> Tensor:
    """Numbers in [0, 1). `like` is any tensor of the function; sizes not given are those of its dimensions.

    `dims`: those of the result; `seed`: a whole number, or an i32 tensor without dimensions; `dtype`: f32 if not
    given. The numbers do not depend on the layout, and each device makes its own. `out`: its dimensions, and where it
    lies if that is said exactly ("batch:rows io"); otherwise the layout decides.

        >>> mtf.random_uniform("batch noise:3", x, seed)
        random_uniform(seed)[batch:8, noise:3]
    """
    return _random("random_uniform", dims, like, seed, dtype, out)


def random_normal(
    dims: DimsLike, like: Tensor, seed: Seed, dtype: object | None = None, out: str | None = None
) -> Tensor:
    """Numbers from the normal distribution, mean 0 and variance 1.

    The arguments as in `random_uniform`: `dims`, `like`, `seed`, `dtype`, `out`.

        >>> mtf.random_normal("batch io", x, seed)
        random_normal(seed)[batch:8, io:4]
    """
    return _random("random_normal", dims, like, seed, dtype, out)


def random_gumbel(
    dims: DimsLike, like: Tensor, seed: Seed, dtype: object | None = None, out: str | None = None
) -> Tensor:
    """Gumbel noise: `mtf.argmax(logits + noise, "vocab")` draws from softmax(logits), even over a split vocabulary.

    The other arguments as in `random_uniform`: `dims`, `like`, `seed`, `dtype`, `out`.

        >>> mtf.random_gumbel("batch io", x, seed)
        random_gumbel(seed)[batch:8, io:4]
    """
    return _random("random_gumbel", dims, like, seed, dtype, out)


def dropout(t: Tensor, rate: float, seed: Seed, out: str | None = None) -> Tensor:
    """Each element is 0 with probability `rate`, else divided by 1 - rate; linear in t (arXiv 1207.0580).

    `t`: a tensor; `seed`: a whole number, or an i32 tensor without dimensions. Which elements are 0 does not depend
    on the layout. `out`: its dimensions, and where it lies if that is said exactly ("batch:rows io"); otherwise the
    layout decides.

    Raises `LayoutError` for a `rate` that is not 0 to 1.

        >>> mtf.dropout(x, 0.1, seed)
        dropout(x, seed)[batch:8, io:4]
    """
    if not is_float(expect_tensor(t).dtype):
        raise LayoutError(f"dropout of {t!r}: dtype is {t.dtype}, expected a float; use mtf.cast(t, 'f32')")
    number = plain_number(rate)
    if number is None or not 0 <= number < 1:
        raise LayoutError(f"dropout of {t!r}: rate is {rate!r:.200}; expected a number from 0 to below 1, e.g. 0.1")
    if number == 0:
        return apply_out("pointwise", [t], t.dims, t.dtype, out, "dropout", fn="identity")
    inputs = [t, seed_tensor(t.graph, seed, "dropout")]
    return apply_out("dropout", inputs, t.dims, t.dtype, out, "dropout", rate=float(number))


def fold_in(seed: Seed, number: Seed) -> Tensor:
    """A new seed from a seed and a number, such as a step's or a layer's; one of the two is a tensor.

    Raises `LayoutError` where neither of the two is a tensor.
    """
    tensors = [t for t in (seed, number) if isinstance(t, Tensor)]
    if not tensors:
        raise LayoutError(f"fold_in({seed!r:.80}, {number!r:.80}): one of the two must be a tensor of the function, "
                          "e.g. an argument seed: '' with dtypes={'seed': 'i32'}")  # fmt: skip
    graph = tensors[0].graph
    return elementwise("fold_in", *[seed_tensor(graph, value, "fold_in") for value in (seed, number)])


def seed_tensor(graph: Graph, seed: Seed, about: str) -> Tensor:
    """A seed as an i32 tensor without dimensions; refuses all else."""
    if not isinstance(seed, Tensor):
        if not isinstance(plain_number(seed), int) or isinstance(seed, bool):
            what = f"{type(seed).__name__}: {seed!r:.200}"
            raise LayoutError(f"{about}: the seed is a whole number or an i32 tensor without dimensions, got {what}")
        return constant(graph, seed, "i32")
    if seed.dims or seed.dtype != "i32":
        raise LayoutError(f"{about}: seed {seed!r} is {seed.dtype}; expected one i32 without dimensions, e.g. an "
                          "argument seed: '' with dtypes={'seed': 'i32'}")  # fmt: skip
    return seed


def _random(fn: str, dims: DimsLike, like: Tensor, seed: Seed, dtype: Any, out: str | None) -> Tensor:
    graph = expect_tensor(like).graph
    found = _sized(fn, dims, like)
    dtype = graph.dtype if dtype is None else canonical(dtype)
    if not is_float(dtype):
        raise LayoutError(f"{fn}: dtype is {dtype}, expected a float such as 'f32'")
    if dtype == "f64":  # one draw has 32 random bits
        raise LayoutError(f"{fn}: dtype is f64, drawn are f32, bf16 and f16; use mtf.cast(t, 'f64') on an f32 one")
    made = apply("random", [seed_tensor(graph, seed, fn)], found, dtype, wanted(out, found, fn), fn=fn)
    names = [item.name for item in parse(out) if item.name != PARTIAL] if out is not None else list(made.names)
    return made if names == list(made.names) else elementwise("identity", made, out=out)


def _sized(fn: str, dims: DimsLike, like: Tensor) -> tuple[Dim, ...]:
    """Dimensions with sizes from the text, from `like` or from `sizes=`."""
    own = {dim.name: dim for dim in like.dims}
    found = [dim if dim.size else own.get(dim.name) or like.graph.size(dim) for dim in parse_dims(dims)]
    lacking = [dim.name for dim in found if dim.size is None]
    refuse([f"the size of {name!r} is not known; write e.g. '{name}:512' ({nearest(name, own)})" for name in lacking],
           f"{fn} of '{' '.join(map(str, found))}'")  # fmt: skip
    return tuple(found)
