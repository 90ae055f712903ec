"""How operations on indices and shapes are drawn. Next file to read: making.py, which draws whole programs."""

from __future__ import annotations

import math

from core.sweep.drawing import LARGEST, Draft
from core.sweep.programs import Line
from core.sweep.reference import Ref
from hypothesis import strategies as st


def ranked(t: Ref) -> bool:
    return len(t.names) > 0


def few(d: Draft) -> dict[str, int]:
    """One or two dimensions of the pool."""
    return {name: d.pool[name] for name in sorted(d.some(d.pool, least=1)[:2])}


# ---- indices ------------------------------------------------------------------------------------------------------


def ids(d: Draft) -> str | None:
    return d.pick(dtypes=("i32",)) or d.add_input(few(d), "i32")


def one_hot(d: Draft) -> bool:
    name, size = ids(d), d.one_of([4, 8, 3])
    new = d.fresh(size)
    return shaped(d, "one_hot", name, {**d.env[name].sizes, new: size}, dim=f"{new}:{size}", dtype=d.dtype)


def gather(d: Draft) -> bool:
    which, table = ids(d), d.pick(ranked)
    if table is None or any(d.env[table].sizes.get(n, s) != s for n, s in d.env[which].sizes.items()):
        return False
    free = [n for n in d.env[table].names if n not in d.env[which].names]
    sizes = {**d.env[table].sizes, **d.env[which].sizes}
    small = free and math.prod(sizes.values()) <= LARGEST
    return bool(small) and d.add("gather", table, which, dim=d.one_of(free))


def write(d: Draft) -> bool:
    """Rows at different places, some before the beginning or behind the end: a run of them, from anywhere."""
    name = d.pick(ranked)
    if name is None:
        return False
    sizes, count = d.env[name].sizes, d.one_of([2, 4, 3, 1])
    dim, new = d.one_of(sizes), d.fresh(count)
    rows = dict([(new, count) if n == dim else (n, size) for n, size in sizes.items()])
    if not d.layout_fits(rows):
        return False
    where, put = d.new_names(1)[0], d.add_input({n: rows[n] for n in d.draw(st.permutations(list(rows)))})
    start = d.draw(st.integers(-2, sizes[dim]))
    return (
        d.add("index", f"{new}:{count}", put)
        and d.add("add", where, start, out=new)
        and (d.add("write", name, put, d.lines[-1].results[0], dim=dim))
    )


def index(d: Draft) -> bool:
    like = d.pick(ranked)
    return like is not None and d.add("index", d.one_of(d.env[like].names), like)


def noise(d: Draft) -> bool:
    like = d.pick(ranked)
    if like is None:
        return False
    names = d.some(d.env[like].names, least=1)
    text = " ".join(f"{n}:{d.env[like].sizes[n]}" for n in names)
    return d.add(d.one_of(["random_uniform", "random_uniform", "random_gumbel"]), text, like, seed_for(d))


def seed_for(d: Draft) -> str | int:
    return d.pick(lambda t: not t.names, ("i32",)) or d.draw(st.integers(-(2**31), 2**31 - 1))


def dropout(d: Draft) -> bool:
    return d.add("dropout", d.pick(), d.one_of([0.5, 0.25]), seed_for(d), mixed=True)


# ---- shapes -------------------------------------------------------------------------------------------------------


def shaped(d: Draft, call: str, name: str, sizes: dict[str, int], **more: object) -> bool:
    """These lie as the layout says unless told otherwise, so they always need a place that divides."""
    out = " ".join(sizes) if d.layout_fits(sizes) and d.chance(3) else d.wanted(sizes, d.chance(8))
    return out is not None and d.add(call, name, **more, out=out)


def reshape(d: Draft) -> bool:
    name = d.pick(ranked, (d.dtype, "i32"))
    if name is None:
        return False
    left, sizes = d.env[name].value.size, {}
    for _ in range(d.one_of([0, 1, 2])):
        size = d.one_of([k for k in (2, 4, 3, 8, 1) if left % k == 0])
        sizes[d.fresh(size)] = size
        left //= size
    sizes[d.fresh(left)] = left
    text = " ".join(f"{n}:{size}" for n, size in sizes.items())
    return shaped(d, "reshape", name, sizes, dims=text)


def split(d: Draft) -> bool:
    name = d.pick(ranked)
    if name is None:
        return False
    dim = d.one_of(d.env[name].names)
    size = d.env[name].sizes[dim]
    outer = d.one_of([k for k in (2, 4, 3, 1) if size % k == 0])
    parts = {d.fresh(outer): outer, d.fresh(size // outer): size // outer}
    sizes = {k: v for n, s in d.env[name].sizes.items() for k, v in (parts.items() if n == dim else [(n, s)])}
    return shaped(d, "split", name, sizes, dim=dim, into=" ".join(f"{n}:{s}" for n, s in parts.items()))


def merge(d: Draft) -> bool:
    name = d.pick(lambda t: len(t.names) > 1)
    if name is None:
        return False
    gone = d.some(d.env[name].names, least=2)
    new = d.fresh(math.prod(d.env[name].sizes[n] for n in gone))
    line = Line(("t",), "merge", (name,), (("dims", " ".join(gone)), ("into", new)))
    return shaped(d, "merge", name, line.evaluate(d.env)["t"].sizes, dims=" ".join(gone), into=new)


def rename(d: Draft) -> bool:
    name = d.pick(ranked)
    if name is None:
        return False
    old = d.one_of(d.env[name].names)
    unused = [n for n, size in d.pool.items() if n not in d.env[name].names and size == d.env[name].sizes[old]]
    new = d.one_of([d.fresh(d.env[name].sizes[old]), *unused])
    sizes = {new if n == old else n: size for n, size in d.env[name].sizes.items()}
    return shaped(d, "rename", name, sizes, old=old, new=new)


def transpose(d: Draft) -> bool:
    name = d.pick(ranked, (d.dtype, "i32", "bool"))
    return name is not None and d.add("transpose", name, dims=" ".join(d.draw(st.permutations(d.env[name].names))))


def cut(d: Draft) -> bool:
    name = d.pick(ranked, (d.dtype, "i32"))
    if name is None:
        return False
    dim = d.one_of(d.env[name].names)
    start = d.draw(st.integers(0, d.env[name].sizes[dim] - 1))
    return d.add("slice", name, dim=dim, start=start, stop=d.draw(st.integers(start + 1, d.env[name].sizes[dim])))


def pad(d: Draft) -> bool:
    name = d.pick(ranked)
    if name is None:
        return False
    dim = d.one_of(d.env[name].names)
    more = {"value": d.one_of([1, -2])} if d.chance(3) else {}
    return d.add("pad", name, dim=dim, size=d.env[name].sizes[dim] + d.one_of([2, 1, 4, 0]), **more)


def concat(d: Draft) -> bool:
    name = d.pick(ranked)
    if name is None:
        return False
    dim = d.one_of(d.env[name].names)

    def shape(t: Ref) -> dict[str, int]:
        return {n: 0 if n == dim else size for n, size in t.sizes.items()}

    alike = [k for k, t in d.env.items() if t.dtype == d.dtype and shape(t) == shape(d.env[name])]
    others = tuple(d.one_of(alike) for _ in range(d.one_of([1, 2])))
    return d.add("concat", (name, *others), dim=dim)


def reshard(d: Draft) -> bool:
    name = d.pick(ranked, (d.dtype, d.dtype, "i32"))
    if name is None:
        return False
    sizes = d.env[name].sizes
    where = " ".join(sizes) if d.layout_fits(sizes) and d.chance(5) else d.wanted(sizes, d.chance(3))
    return d.add("reshard", name, where)


def settle(d: Draft) -> bool:
    return d.add("settle", d.pick())
