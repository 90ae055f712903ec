"""Count what a JAX function does, from its jaxpr: collectives, bytes, FLOPs, loops multiplied.

The idea: a jaxpr is a list of equations; some hold inner jaxprs (jit, scan, cond, shard_map, ...). Walk them all,
carrying the sizes of the mesh axes that the surrounding shard_map binds. Inside a shard_map every shape is local, so
bytes and FLOPs are those of one device; outside, arrays are global and FLOPs are the whole problem's.

    counts = count(jax.shard_map(lambda a: jax.lax.psum(a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()), a)
    counts.link_bytes, counts.flops, print(counts)

Dead code is left out exactly as JAX leaves it out on lowering (the loss itself, when only its gradient is asked for);
what a compiler drops or merges later is counted. Collectives that automatic partitioning will add are in no jaxpr;
compile, and read them with `count_hlo_text`.
Next file to read: stablehlo.py.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from mtfcore.counting import facts
from mtfcore.counting.arithmetic import FLOPS, elementwise_flops
from mtfcore.counting.facts import Collective, Counts
from mtfcore.counting.jaxpr_loops import live_jaxpr, open_jaxpr, while_runs

# Names of JAX 0.10 and 0.11, with and without check_vma; "..._start" is the same begun early, "..._done" its wait.
COLLECTIVES = {
    "psum": "all_reduce", "psum_invariant": "all_reduce", "psum2": "all_reduce", "unreduced_psum": "all_reduce",
    "pmax": "all_reduce", "pmin": "all_reduce",
    "all_gather": "all_gather", "all_gather_invariant": "all_gather", "all_gather_reduced": "all_gather",
    "reduce_scatter": "reduce_scatter", "unreduced_reduce_scatter": "reduce_scatter", "psum_scatter": "reduce_scatter",
    "all_to_all": "all_to_all", "ppermute": "permute", "psend": "permute", "pbroadcast": "broadcast",
}  # fmt: skip
# They name axes but send nothing: types and positions. `precv` is the other end of a `psend`.
SILENT = {"axis_index", "pvary", "pcast", "preduced", "reduced_vary_cast", "vary_unreduced_cast", "precv"}
# Wrappers that run their inner jaxpr exactly once.
CALLS = ("jit", "pjit", "closed_call", "core_call", "core_closed_call", "call", "named_call", "remat", "checkpoint",
         "custom_jvp_call", "custom_vjp_call", "custom_lin", "composite", "custom_transpose_call")  # fmt: skip
# Their inner jaxpr combines two elements; the work is counted as elementwise.
COMBINERS = ("reduce", "scatter", "select_and_", "argmin", "argmax", "sort")
# Their algorithms differ between platforms, and so do their FLOPs.
UNKNOWN_FLOPS = frozenset("lu cholesky qr geqrf householder_product eigh eig svd triangular_solve fft".split())


@dataclass(frozen=True)
class Place:
    """Where in the program we are."""

    path: tuple[str, ...] = ()
    axis_sizes: Mapping[Any, int] = field(default_factory=dict)
    inside: bool = False  # a shard_map

    def at(self, step: str) -> "Place":
        return replace(self, path=(*self.path, step))

    def __str__(self) -> str:
        return "/".join(self.path) or "top"


def count(fn: Callable, *args: Any, **kwargs: Any) -> Counts:
    """Trace `fn` with arrays or `jax.ShapeDtypeStruct`s and count what its jaxpr does. Nothing is run.

    `args` and `kwargs` are those of `fn`. Bytes (of one device, counted) are exact: whole numbers or fractions; loops
    are multiplied, and FLOPs are 2 a multiply-add.

    Raises `TypeError` if `fn` is no function.
    """
    import jax

    if not callable(fn):
        raise TypeError(f"count(fn, *args) expected a function and its arguments, got {type(fn).__name__}")
    # A jitted function knows its own static arguments; `trace` respects them, make_jaxpr cannot.
    jitted: Any = fn
    traced = jitted.trace(*args, **kwargs).jaxpr if _is_jitted(fn) else jax.make_jaxpr(fn)(*args, **kwargs)
    return count_jaxpr(traced)


def count_jaxpr(jaxpr: Any, axis_sizes: Mapping[Any, int] | None = None) -> Counts:
    """The same for a jaxpr (closed or not). With `axis_sizes` it is taken as the inside of a shard_map."""
    place = Place(axis_sizes=dict(axis_sizes or {}), inside=axis_sizes is not None)
    counts = _count(live_jaxpr(jaxpr), place)
    return facts.settled(replace(counts, scope="per device") if place.inside else counts, "jaxpr")


def _is_jitted(fn: Callable) -> bool:
    return callable(getattr(fn, "trace", None)) and callable(getattr(fn, "lower", None))


def _count(jaxpr: Any, place: Place) -> Counts:
    return facts.together(_equation(eqn, place) for eqn in open_jaxpr(jaxpr).eqns)


def _equation(eqn: Any, place: Place) -> Counts:
    name = eqn.primitive.name
    kind = COLLECTIVES.get(name.removesuffix("_start"))
    if kind and _axes(eqn):
        return _collective(eqn, kind, place)
    if name in _SPECIAL:
        return _SPECIAL[name](eqn, place)
    if name in FLOPS:
        return facts.work(FLOPS[name](eqn), 0, place.inside)
    if name.startswith(COMBINERS):
        return facts.work(0, elementwise_flops(eqn), place.inside)
    inner = list(_inner_jaxprs(eqn.params))
    if inner:
        return _call(eqn, inner, place)
    return _leaf(eqn, name, place)


def _leaf(eqn: Any, name: str, place: Place) -> Counts:
    """Arithmetic, data movement, or something that only a note can tell about."""
    counts = facts.work(0, elementwise_flops(eqn), place.inside)
    quiet = name.endswith("_done") or name.removesuffix("_p") in SILENT
    if name == "sharding_constraint" or (name == "reshard" and _moves(eqn)):
        note = f"{place}: {name}; collectives that the compiler adds here are in no jaxpr"
    elif name in UNKNOWN_FLOPS:
        note = f"{place}: the FLOPs of {name} are not counted"
    elif "axis_name" in eqn.params and not quiet:
        note = f"{place}: {name} over {_axes(eqn)} is not counted: its bytes are unknown or depend on the data"
    else:
        return counts
    return replace(counts, notes=(note,))


def _moves(eqn: Any) -> bool:
    before, after = (getattr(v.aval, "sharding", None) for v in (eqn.invars[0], eqn.outvars[0]))
    return before is None or after is None or before.spec != after.spec


def _inner_jaxprs(params: Mapping[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if hasattr(item, "eqns") or hasattr(getattr(item, "jaxpr", None), "eqns"):
                yield item


def _call(eqn: Any, inner: list, place: Place) -> Counts:
    name = eqn.primitive.name
    label = f"{name}({eqn.params['name']})" if isinstance(eqn.params.get("name"), str) else name
    counts = facts.together(_count(j, place.at(label)) for j in inner)
    if name.startswith(CALLS):
        return counts
    return replace(counts, notes=(*counts.notes, f"{place.at(label)}: inner program counted once"))


# Collectives


def _axes(eqn: Any) -> tuple:
    axes = eqn.params.get("axes", eqn.params.get("axis_name", ()))
    axes = axes if isinstance(axes, (tuple, list)) else (axes,)
    return tuple(a for a in axes if not isinstance(a, int))  # numbers are array dimensions, left by vmap


def _collective(eqn: Any, kind: str, place: Place) -> Counts:
    axes, name = _axes(eqn), eqn.primitive.name
    group, notes = _group(eqn, axes, place)
    if kind == "permute":
        group = facts.linked_devices(eqn.params["perm"])
    found = [
        facts.one(Collective(kind, axes, group, _n_bytes(v.aval), 1, str(v.aval.dtype), str(place.at(name))))
        for v in eqn.invars
        if hasattr(v.aval, "shape")
    ]
    return facts.together([*found, Counts(notes=notes)])


def _group(eqn: Any, axes: tuple, place: Place) -> tuple[int, tuple[str, ...]]:
    groups = eqn.params.get("axis_index_groups")
    if groups is not None:
        sizes = {len(g) for g in groups}
        uneven = f"{place.at(eqn.primitive.name)}: groups of {sorted(sizes)} devices; the largest is counted"
        return max(sizes), (uneven,) if len(sizes) > 1 else ()
    unknown = [a for a in axes if a not in place.axis_sizes]
    if unknown:
        known = ", ".join(f"{a}:{n}" for a, n in place.axis_sizes.items()) or "none"
        raise ValueError(
            f"{eqn.primitive.name} over {unknown[0]!r}: nothing here gives that axis a size (known: {known}). "
            "Count the function with its shard_map around it."
        )
    return prod(place.axis_sizes[a] for a in axes), ()


def _n_bytes(aval: Any) -> int:
    try:
        return facts.array_bytes(aval.shape, str(aval.dtype))
    except ValueError:  # an extended type, such as a random key, knows its own size
        return prod(aval.shape) * aval.dtype.itemsize


# Programs inside programs


def _shard_map(eqn: Any, place: Place) -> Counts:
    sizes = dict(eqn.params["mesh"].shape)
    manual = eqn.params.get("newly_manual_axes", eqn.params.get("manual_axes", sizes))
    label = place.at("shard_map")
    inner = replace(label, axis_sizes={**place.axis_sizes, **sizes}, inside=True)
    counts = replace(_count(eqn.params["jaxpr"], inner), scope="per device")
    shared = [a for a, n in sizes.items() if n > 1 and a not in manual and (a not in place.axis_sizes)]
    if not shared:
        return counts
    note = f"{label}: automatic over {' '.join(map(str, shared))}: those devices share the bytes and FLOPs counted here"
    return replace(counts, notes=(*counts.notes, note))


def _scan(eqn: Any, place: Place) -> Counts:
    length = eqn.params["length"]
    return _count(eqn.params["jaxpr"], place.at(f"scan x{length}")).repeated(length)


def _while(eqn: Any, place: Place) -> Counts:
    runs = while_runs(eqn)
    label = place.at("while" if runs is None else f"while x{runs}")
    body, test = (_count(eqn.params[p], label) for p in ("body_jaxpr", "cond_jaxpr"))
    if runs is None:
        body = replace(body, notes=(*body.notes, f"{label}: number of runs unknown; body counted once"))
    return facts.together([body.repeated(1 if runs is None else runs), test.repeated(1 if runs is None else runs + 1)])


def _cond(eqn: Any, place: Place) -> Counts:
    branches = [_count(b, place.at(f"cond[{i}]")) for i, b in enumerate(eqn.params["branches"])]
    return facts.dearest(branches, str(place.at("cond")))


def _solve(eqn: Any, place: Place) -> Counts:
    return _count(eqn.params["jaxprs"].solve, place.at("custom_linear_solve"))  # its transpose runs in gradients only


def _pallas(eqn: Any, place: Place) -> Counts:
    grid = [n for n in getattr(eqn.params.get("grid_mapping"), "grid", ()) if isinstance(n, int)]
    label = place.at(f"pallas_call x{prod(grid)}")
    counts = facts.together(_count(j, label) for j in _inner_jaxprs(eqn.params)).repeated(prod(grid))
    return replace(counts, notes=(*counts.notes, f"{label}: a kernel's own copies between devices are not counted"))


_SPECIAL = {"shard_map": _shard_map, "scan": _scan, "while": _while, "cond": _cond,
            "custom_linear_solve": _solve, "pallas_call": _pallas}  # fmt: skip
