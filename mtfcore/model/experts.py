"""A mixture of experts: a feedforward layer of which each token uses one or two of many, wherever they lie.

    mixed = mixture(x, gate, w_in, w_out, k=2)     # B L E · E experts_all · experts E F · experts F E
    loss = loss + 0.01 * mixed.balance             # mixed.result: B L E; mixed.dropped: choices without a place

With `B:rows experts:rows` both the tokens and the experts are split over one mesh axis. A tensor cannot have that axis
twice, so an expert's dimension has a second name where the tokens stay split (`experts_all`), and the tokens' where
the experts are (`B_all`). From one name to the other the tensor is resharded: that is the paper's all-to-all, once to
the experts and once back. Each expert takes at most `capacity` tokens of a sequence, first choices before second ones,
earlier tokens before later ones; what does not fit adds nothing to the result. Sources: arXiv 1701.06538 (gating),
arXiv 1811.02084, section 6.1 (reshape as all-to-all), arXiv 2006.16668, algorithm 1 (capacity, the balance loss).
Next file to read: `partitioning`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import mtfcore as mtf
from mtfcore.errors import LayoutError, refuse
from mtfcore.model.block import as_dtype
from mtfcore.notation import as_whole
from mtfcore.ops import expect_tensor, plain_number
from mtfcore.tensor import Tensor


class Mixture(NamedTuple):
    """What a mixture gives: the tokens' result, a loss that is 1 when balanced, and how many choices were dropped."""

    result: Tensor
    balance: Tensor
    dropped: Tensor


class Choice(NamedTuple):
    """One choice of every token: its expert as 0s and a 1 (i32), whether it fits, its place there, its weight."""

    expert: Tensor
    fits: Tensor
    place: Tensor
    weight: Tensor


def mixture(
    x: Tensor,
    gate: Tensor,
    w_in: Tensor,
    w_out: Tensor,
    *,
    k: int = 2,
    capacity_factor: float = 1.25,
    group: str = "B",
    tokens: str = "L",
    activation: Callable[[Tensor], Tensor] = mtf.relu,
) -> Mixture:
    """Each token of `x` through its `k` (1 or 2) likeliest experts, weighted by the gate.

    `gate` has the model's dimension and the experts' under another name; `w_in` and `w_out` have the experts', the
    model's and the hidden one. A group is one entry of `group`, with its own `capacity`: its tokens, times `k`, times
    `capacity_factor`, over the number of experts, rounded up.
    """
    names = _names(x, gate, w_in, w_out, group, tokens)
    _check_options(k, capacity_factor, activation)
    n_tokens, n_experts = x.size(tokens), gate.size(names.choice)
    capacity = min(n_tokens, math.ceil(n_tokens * k * capacity_factor / n_experts))
    likely = mtf.softmax(_f32(mtf.einsum(x, gate, out=f"{group} {tokens} {names.choice}")), names.choice)
    choices = chosen(likely, names.choice, tokens, k, capacity)
    slots = [_slots(choice, capacity, x.dtype) for choice in choices]
    sent = _sum(slots)
    weighted = _sum([slot * as_dtype(choice.weight, x.dtype) for slot, choice in zip(slots, choices, strict=True)])
    here, there = f"{group} {names.choice}", f"{group}_all {names.experts}"  # split: the groups; the experts
    inside = mtf.einsum(x, sent, out=f"{here} capacity {names.model}")
    outside = _renamed(inside, here, there)  # an all-to-all from B to experts
    hidden = activation(mtf.einsum(outside, w_in, out=f"{there} capacity {names.hidden}"))
    made = mtf.einsum(hidden, w_out, out=f"{there} capacity {names.model}")
    back = _renamed(made, there, here)  # and back
    result = mtf.einsum(weighted, back, out=" ".join(x.names))
    kept = _sum([mtf.sum(choice.fits) for choice in choices])
    total = k * n_tokens * x.size(group)
    return Mixture(result, balance_loss(likely, choices[0].expert, names.choice, tokens), total - kept)


def chosen(likely: Tensor, choice: str, tokens: str, k: int, capacity: int) -> list[Choice]:
    """The `k` likeliest experts of every token, and which find a place: those of all first choices go first."""
    found: list[Choice] = []
    left, before = likely, None
    for _ in range(k):
        expert = mtf.one_hot(mtf.argmax(left, choice), f"{choice}:{likely.dim(choice).size}", "i32")
        queue = mtf.cumsum(expert, tokens) - expert  # how many tokens before this one chose the expert
        queue = queue if before is None else queue + before
        fits = expert * mtf.cast(mtf.less(queue, capacity), "i32")
        weight = mtf.sum(likely * mtf.cast(expert, "f32"), choice)
        found.append(Choice(expert, fits, mtf.sum(queue * expert, choice), weight))
        before = mtf.sum(fits, tokens)
        left = mtf.where(mtf.equal(expert, 1), -1.0, left)  # below every probability
    if k == 1:
        return found
    whole = _sum([choice.weight for choice in found])
    return [choice._replace(weight=choice.weight / whole) for choice in found]


def balance_loss(likely: Tensor, first: Tensor, choice: str, tokens: str) -> Tensor:
    """Experts · Σ (share of first choices · mean probability), averaged over groups: 1 when balanced, more if not."""
    shares = mtf.mean(mtf.cast(first, "f32"), tokens) * mtf.mean(likely, tokens)
    return mtf.mean(shares) * likely.size(choice) ** 2


def _slots(choice: Choice, capacity: int, dtype: str) -> Tensor:
    """1 where a token stands in its expert's row: group, token, expert, place."""
    places = mtf.one_hot(choice.place, f"capacity:{capacity}", dtype)
    names = [*choice.fits.names, "capacity"]
    return mtf.multiply(as_dtype(choice.fits, dtype), places, out=" ".join(names))


def _renamed(t: Tensor, old: str, new: str) -> Tensor:
    """The first two dimensions under other names, lying where the layout places those."""
    names = [*new.split(), *t.names[2:]]
    assert t.names[:2] == tuple(old.split())
    sizes = " ".join(f"{name}:{dim.size}" for name, dim in zip(names, t.dims, strict=True))
    return mtf.reshape(t, sizes, out=" ".join(names))


# ---- what fits together -------------------------------------------------------------------------------------------


class _Names(NamedTuple):
    model: str
    choice: str
    experts: str
    hidden: str


def _names(x: Tensor, gate: Tensor, w_in: Tensor, w_out: Tensor, group: str, tokens: str) -> _Names:
    """The names that the tensors give; refuses tensors that do not fit together, all faults at once."""
    for t in (x, gate, w_in, w_out):
        expect_tensor(t)
    x.dim(group), x.dim(tokens)
    model, *more = [name for name in x.names if name not in (group, tokens)] or ["the model"]
    choice = [name for name in gate.names if name != model]
    inner = [name for name in w_in.names if name != model]
    faults = [f"x is {x!r}; expected {group}, {tokens} and the model's dimension"] if more or len(x.dims) < 3 else []
    if len(gate.dims) != 2 or len(choice) != 1:
        faults.append(f"gate is {gate!r}; expected {model} and one dimension for the experts")
    if len(w_in.dims) != 3 or len(inner) != 2 or set(w_in.names) != set(w_out.names):
        faults.append(f"w_in is {w_in!r}, w_out {w_out!r}; expected experts, {model} and hidden in both")
    elif choice and choice[0] in inner:
        faults.append(f"gate is {gate!r}, w_in {w_in!r}: tokens and experts in one tensor cannot both be split over "
                      f"one axis, so gate calls its experts otherwise, e.g. '{choice[0]}_all'")  # fmt: skip
    elif choice and w_in.dim(inner[0]).size != gate.dim(choice[0]).size:
        sizes = f"{gate.dim(choice[0]).size} and {w_in.dim(inner[0]).size} experts"
        faults.append(f"gate is {gate!r}, w_in {w_in!r}: {sizes} ({inner[0]} comes first, so it is theirs)")
    refuse(faults, "mixture")
    return _Names(model, choice[0], *inner)


def _check_options(k: int, capacity_factor: float, activation: Callable) -> None:
    if as_whole(k) not in (1, 2):
        raise LayoutError(f"mixture: k is {k!r:.200}; expected 1 or 2 experts a token")
    number = plain_number(capacity_factor)
    if number is None or not 0 < number < math.inf:
        raise LayoutError(f"mixture: capacity_factor is {capacity_factor!r:.200}; expected a number above 0, e.g. 1.25")
    if not callable(activation):
        raise LayoutError(f"mixture: activation is {activation!r:.200}; expected a function of a tensor, e.g. mtf.relu")


def _sum(tensors: list[Tensor]) -> Tensor:
    total = tensors[0]
    for t in tensors[1:]:
        total = total + t
    return total


def _f32(t: Tensor) -> Tensor:
    return as_dtype(t, "f32")
