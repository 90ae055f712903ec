"""The Transformer: a decoder language model, or an encoder and a decoder, and its loss, from a configuration.

    loss = mtf.model.loss(mtf.model.config("mtf-lm-4.9b"))             # a named function: inputs, targets, parameters
    prog = mtf.plan(loss, "rows:16 cols:32", mtf.model.read_layout("mtf-2d"), sizes="B:256 L:256", dtype="bf16")

The vocabulary may be split: the embedding is looked up in parts, whose sum is one all-reduce, and the loss never
gathers the logits. Layers are stacked and run by `mtf.repeat`. Sources: Mesh-TensorFlow (arXiv 1811.02084), section 9;
norms stand before the sublayers, as in its authors' code. Lesson 06 uses this. Next file to read: `optimizers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mtfcore as mtf
from mtfcore.errors import LayoutError, nearest, refuse, sure
from mtfcore.functions import Function
from mtfcore.model.block import Drop, Weights, block, causal, full_precision, normalise, rotary
from mtfcore.model.configs import Config, config
from mtfcore.model.params import layer_names
from mtfcore.notation import as_size, as_whole
from mtfcore.ops import plain_number
from mtfcore.tensor import Tensor

SITES = 4  # random draws of one layer: at most three sublayers; the embedding counts as a layer of its own


# ---- from tokens to logits --------------------------------------------------------------------------------------


def logits(
    cfg: Config, params: Weights, inputs: Tensor, source: Tensor | None = None, *, pad: int | None = None,
    dropout: float = 0.0, seed: Tensor | None = None, recompute: bool = False,
) -> Tensor:  # fmt: skip
    """`B L V` from tokens `B L`, and of an encoder-decoder from `source` tokens `B S`, of which `pad` is unseen."""
    more: dict[str, Any] = {"dropout": (dropout, seed), "recompute": recompute}
    memory: dict[str, Any] = {}
    if cfg.encoder_layers:
        seen = None if pad is None else mtf.logical_not(mtf.equal(source, pad))
        memory = {"memory": encode(cfg, params, sure(source), seen, **more), "see_memory": seen}
    see = causal(inputs) if cfg.causal else None
    x = _stack(cfg, params, embed(cfg, params, inputs), "", see=see, **memory, **more)
    x = normalise(cfg, x, params, "final_norm")
    return mtf.einsum(x, params["embedding" if cfg.tied else "softmax"], out="B L V")


def encode(cfg: Config, params: Weights, source: Tensor, see: Tensor | None, **more: Any) -> Tensor:
    """The encoder's `B S E`; inside, the source's length is that of the queries, L."""
    x = embed(cfg, params, mtf.rename(source, "S", "L"), "encoder_")
    x = _stack(cfg, params, x, "encoder_", see=see, **more)
    return mtf.rename(normalise(cfg, x, params, "encoder_final_norm"), "L", "S")


def embed(cfg: Config, params: Weights, tokens: Tensor, prefix: str = "") -> Tensor:
    """Tokens `B L` → `B L E`. Where the vocabulary is split, each device looks up what it holds."""
    x = mtf.gather(params["embedding"], tokens, "V", out="B L E")  # B L E partialsum → B L E
    if cfg.positions != "learned":
        return x
    length = tokens.size("L")
    if length > cfg.max_length:
        what = f"{cfg.name} has {cfg.max_length} learned positions"
        raise LayoutError(f"{what}, fewer than the length {length}; use max_length={length}, or a shorter text")
    return x + mtf.gather(params[f"{prefix}positions"], mtf.index("L", tokens), "P", out="L E")


def _stack(
    cfg: Config, params: Weights, x: Tensor, prefix: str, *, dropout: tuple[float, Tensor | None], recompute: bool,
    **shared: Any,
) -> Tensor:  # fmt: skip
    """All layers of the encoder or of the decoder, as one loop."""
    n = cfg.encoder_layers if prefix else cfg.layers
    stacked = {inner: params[name] for inner, name in layer_names(cfg, prefix).items()}
    turns = rotary(cfg, mtf.index("L", x), x.dtype) if cfg.positions == "rotary" else None
    rate, seed = dropout
    draw = drawing(cfg, rate, sure(seed), prefix) if rate else None
    if draw:
        x = draw(n)(x, 0)
        stacked["turn"] = mtf.index(f"layers:{n}", x)

    def layer(x: Tensor, turn: Tensor | None = None, **w: Tensor) -> Tensor:
        return block(cfg, x, w, turns=turns, drop=draw(turn) if draw else None, **shared)

    layer.__name__ = f"{prefix}layer"
    return mtf.repeat(mtf.recompute(layer) if recompute else layer, n, stacked, x)


def drawing(cfg: Config, rate: float, seed: Tensor, prefix: str) -> Callable[[Any], Drop]:
    """For a layer's number, what drops elements of its sublayers' results: each place and seed draws by itself."""
    first = cfg.layers + 1 if prefix else 0  # the decoder's layers and its embedding
    places = (cfg.layers + cfg.encoder_layers + 2) * SITES

    def of_layer(number: Any) -> Drop:
        begin = seed * places + (number + first) * SITES
        return lambda t, site: mtf.dropout(t, rate, begin + site)

    return of_layer


# ---- the loss ---------------------------------------------------------------------------------------------------


def cross_entropy(
    logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, pad: int | None = None,
    real_vocab: int | None = None,
) -> Tensor:  # fmt: skip
    """Mean over the targets (but `pad`) of -log p(target). `label_smoothing` spreads that share over the vocabulary.

    Where V is split, three all-reduces of `B L`: the largest, the sum, the target's logit. The logits never move.
    Of a vocabulary padded to a size that divides only the first `real_vocab` entries count.
    """
    logits = full_precision(logits)
    seen = None if real_vocab is None else mtf.valid("V", real_vocab, logits)
    hot = mtf.one_hot(targets, str(logits.dim("V")), dtype=logits.dtype)
    picked = mtf.einsum(logits, hot, out="B L")  # B L partialsum → B L
    if label_smoothing:
        picked = picked * (1 - label_smoothing) + mtf.mean(logits, "V", "B L", seen) * label_smoothing
    lost = mtf.logsumexp(logits, "V", "B L", seen) - picked  # B L partialsum → B L
    if pad is None:
        return mtf.mean(lost, out="")
    counted = mtf.cast(mtf.logical_not(mtf.equal(targets, pad)), lost.dtype)
    return mtf.sum(lost * counted, out="") / mtf.maximum(mtf.sum(counted, out=""), 1)


def loss_of(
    cfg: Config | str, params: Weights, inputs: Tensor, targets: Tensor, source: Tensor | None = None, *,
    label_smoothing: float = 0.0, pad: int | None = None, real_vocab: int | None = None, **more: Any,
) -> Tensor:  # fmt: skip
    """The mean cross-entropy of a batch; `more` goes to `logits`.

    `cfg`: a configuration; `params`: its parameters as tensors; `inputs` and `targets`: i32[B, L]; `source`: i32[B,
    S] of an encoder-decoder; `label_smoothing`: 0 to 1; `pad`: a token that counts for nothing; `real_vocab`: how
    many of V are no padding.
    """
    found = logits(config(cfg), params, inputs, source, pad=pad, **more)
    return cross_entropy(found, targets, label_smoothing=label_smoothing, pad=pad, real_vocab=real_vocab)


# ---- as named functions -----------------------------------------------------------------------------------------


def arguments(cfg: Config | str, *tokens: str, dropout: float = 0.0) -> tuple[dict[str, str], dict[str, str]]:
    """(argument → dimensions, argument → dtype), for `Function.of`, of a function of tokens and parameters.

    `tokens` are `B L`; an encoder-decoder has `source` (`B S`) besides, and dropout a `seed`.

    `cfg`: a configuration; `dropout`: its rate.

        >>> mtf.model.arguments(cfg, "inputs")[0]["inputs"]
        'B L'
    """
    cfg, data = config(cfg), dict.fromkeys(tokens, "B L")
    if cfg.encoder_layers:
        data["source"] = "B S"
    if dropout:
        data["seed"] = ""
    return {**data, **{name: param.text for name, param in cfg.params.items()}}, dict.fromkeys(data, "i32")


def forward(cfg: Config | str, **options: Any) -> Function:
    """The named function inputs (, source), parameters → logits; options: pad, dropout, recompute.

    `cfg`: a configuration or its name. Inputs are i32[B, L], logits f32[B, L, V].

    Source: arXiv 1811.02084, section 9.

        >>> list(mtf.model.forward(cfg).arguments)[:2]
        ['inputs', 'embedding']
    """
    cfg = config(cfg)
    check_options(options, "pad", "dropout", "recompute")
    said, dtypes = arguments(cfg, "inputs", dropout=options.get("dropout", 0.0))

    def call(inputs: Tensor, source: Tensor | None = None, seed: Tensor | None = None, **params: Tensor) -> Tensor:
        return logits(cfg, params, inputs, source, seed=seed, **options)

    return Function.of("forward", said, call, dtypes)


def loss(cfg: Config | str, **options: Any) -> Function:
    """The named function inputs, targets (, source), parameters → mean loss.

    Options as above, and label_smoothing, real_vocab.

    `cfg`: a configuration or its name; `options` as in `forward`. The loss is f32, in nats a token.

    Source: arXiv 1811.02084, section 9.

        >>> list(mtf.model.loss(cfg).arguments)[:2]
        ['inputs', 'targets']
    """
    cfg = config(cfg)
    check_options(options, "pad", "dropout", "recompute", "label_smoothing", "real_vocab")
    said, dtypes = arguments(cfg, "inputs", "targets", dropout=options.get("dropout", 0.0))

    def call(
        inputs: Tensor, targets: Tensor, source: Tensor | None = None, seed: Tensor | None = None, **params: Tensor
    ) -> Tensor:
        return loss_of(cfg, params, inputs, targets, source, seed=seed, **options)

    return Function.of("loss", said, call, dtypes)


def check_options(options: Mapping[str, Any], *legal: str) -> None:
    """Refuse unknown options, shares that are none, and a padding that is no token."""
    faults = [f"no option {name!r}; {nearest(name, legal)}" for name in options if name not in legal]
    for name in ("dropout", "label_smoothing"):
        share = plain_number(options.get(name, 0))
        if share is None or isinstance(share, bool) or not 0 <= share < 1:
            faults.append(f"{name} is {options[name]!r:.100}; expected a share, from 0 to below 1")
    if options.get("pad") is not None and as_whole(options["pad"]) is None:
        faults.append(f"pad is {options['pad']!r:.100}; expected the number of a token, or None")
    real = options.get("real_vocab")
    if real is not None and as_size(real) is None:
        faults.append(f"real_vocab is {real!r:.100}; expected how many entries of the vocabulary count, or None")
    if not isinstance(options.get("recompute", False), bool):
        faults.append(f"recompute is {options['recompute']!r:.100}; expected True or False")
    refuse(faults, "options of a model")
