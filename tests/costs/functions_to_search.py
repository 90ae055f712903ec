"""Functions for the search tests: random ones of a few operations, and a Transformer in the first paper's words."""

from __future__ import annotations

import random

import mtfcore as mtf
from mtfcore.functions import Function

NAMES = ("a", "b", "c", "d")


def random_function(seed: int) -> tuple[Function, str]:
    """Two to four operations on random dimensions, products among them, and their sizes."""
    rng = random.Random(seed)
    first = rng.sample(NAMES, 2)
    weights = [rng.sample(NAMES, rng.choice((2, 2, 3))) for _ in range(rng.choice((1, 2, 2)))]
    used = dict.fromkeys(name for dims in (first, *weights) for name in dims)
    sizes = " ".join(f"{name}:{rng.choice((2, 4, 6, 8))}" for name in used)
    inside = [rng.choice(("relu", "softmax", "add", "mean", "none")) for _ in weights]
    outs = [rng.random() for _ in weights]

    def call(x: mtf.Tensor, **ws: mtf.Tensor) -> mtf.Tensor:
        for w, what, out in zip(ws.values(), inside, outs, strict=True):
            x = _product(x, w, out)
            x = _after(x, what, w)
        return x

    arguments = {"x": " ".join(first)} | {f"w{k}": " ".join(dims) for k, dims in enumerate(weights)}
    return Function.of(f"random_{seed}", arguments, call), sizes


def _product(x: mtf.Tensor, w: mtf.Tensor, share: float) -> mtf.Tensor:
    """A product that keeps some of the dimensions."""
    names = list(dict.fromkeys((*x.names, *w.names)))
    shared = [name for name in x.names if name in w.names]
    gone = shared[: 1 + int(share * len(shared))] if shared and len(names) > 1 else []
    return mtf.einsum(x, w, out=" ".join(name for name in names if name not in gone) or names[0])


def _after(x: mtf.Tensor, what: str, w: mtf.Tensor) -> mtf.Tensor:
    if what == "relu":
        return mtf.relu(x)
    if what == "softmax":
        return mtf.softmax(x, x.names[-1])
    if what == "add":
        return x + mtf.mean(x, x.names[0])
    if what == "mean" and len(x.names) > 1:
        return mtf.mean(x, x.names[-1])
    return x


SMALL = "batch:8 length:4 memory:4 d_model:16 d_ff:64 heads:8 d_k:4 vocab:32 layers:2"
PAPER = "batch:256 length:256 memory:256 d_model:1024 d_ff:262144 heads:256 d_k:256 vocab:32768 layers:6"  # Table 2


def block(x, wq, wk, wv, wo, w1, w2):
    """Attention and feedforward, each with its residual."""
    q = mtf.einsum(x, wq, out="batch length heads d_k")
    k = mtf.rename(mtf.einsum(x, wk, out="batch length heads d_k"), "length", "memory")
    v = mtf.rename(mtf.einsum(x, wv, out="batch length heads d_k"), "length", "memory")
    weights = mtf.softmax(mtf.einsum(q, k, out="batch heads length memory"), "memory")
    attended = mtf.einsum(weights, v, out="batch length heads d_k")
    x = x + mtf.einsum(attended, wo, out="batch length d_model")
    return x + mtf.einsum(mtf.relu(mtf.einsum(x, w1, out="batch length d_ff")), w2, out="batch length d_model")


@mtf.function(dtypes={"tokens": "i32"})
def language_model(
    tokens: "batch length", table: "vocab d_model", wq: "layers d_model heads d_k", wk: "layers d_model heads d_k",
    wv: "layers d_model heads d_k", wo: "layers heads d_k d_model", w1: "layers d_model d_ff",
    w2: "layers d_ff d_model", out: "d_model vocab",
):  # fmt: skip
    """The decoder of the first paper's section 9 without norms: embedding, layers, logits and their normalizer."""
    x = mtf.reshard(mtf.gather(table, tokens, "vocab"), "batch length d_model")
    stacked = {"wq": wq, "wk": wk, "wv": wv, "wo": wo, "w1": w1, "w2": w2}
    n = table.graph.size(mtf.Dim("layers")).size
    x = mtf.repeat(block, n, stacked, x)
    return mtf.logsumexp(mtf.einsum(x, out, out="batch length vocab"), "vocab")


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    """The network of Table 1."""
    return mtf.einsum(mtf.relu(mtf.einsum(x, w, out="batch hidden")), v, out="batch io")


@mtf.function
def trained(x: "batch io", w: "io hidden", v: "hidden io", y: "batch io"):
    """Forward and backward of the network of Table 1."""
    loss = mtf.sum(mtf.square(two_layers(x, w, v) - y))
    return mtf.gradients(loss, {"w": w, "v": v})


def layers_trained() -> Function:
    """Gradients of a small Transformer's loss: loops forward and backward."""
    cfg = mtf.model.config("tiny-lm")
    loss = mtf.model.loss(cfg)
    arguments = {name: " ".join(map(str, dims)) for name, dims in loss.arguments.items()}

    def call(**tensors: mtf.Tensor) -> dict[str, mtf.Tensor]:
        return mtf.gradients(loss(**tensors), {name: tensors[name] for name in cfg.params})

    return Function.of("layers_trained", arguments, call, loss.dtypes)
