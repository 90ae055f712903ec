"""Serving a model: one layer under a partition, and whole prefill and decode steps, as the planner has them.

    >>> from tpu_runs.cases import CASES, check
    >>> asked = {"model": "palm-62b", "mesh": "x:4 y:4", "ffn": "ws2d", "attention": "batch", "batch": 256}
    >>> case = CASES["layer"]
    >>> program = case.program(check(case, asked))
    >>> case.bytes(check(case, asked)) < 2**30            # of one device, before anything is made
    True

A layer is the block alone, without the tables: x comes in, and y goes out, where they lie between layers. The
parameters are those of `mtf.model.plan_phase`, and `layers` and `heads` to make a model smaller, or its heads divide.
`looped` writes collectives beside products as rings (`mtf.looped`). Next file to read: `generate`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import mtfcore as mtf
from mtfcore.errors import LayoutError
from mtfcore.functions import Function
from mtfcore.mesh import Mesh
from mtfcore.model.configs import Config
from mtfcore.model.phases import activations, cache_arguments, layers, plan_phase
from mtfcore.model.places import placement
from mtfcore.model.published import CONFIGS
from mtfcore.model.reasons import possible
from mtfcore.model.serving import ATTENTION, FEEDFORWARD, PHASES, SERVING
from mtfcore.model.storing import stored_arguments, stored_dtype
from tpu_runs.cases.schema import Case, Param, Params, choice, mesh, whole

MODELS = tuple(name for name, cfg in CONFIGS.items() if not cfg.encoder_layers and cfg.causal)
DTYPES = ("bf16", "f32", "int8")
FORMS = ("", "throughput", "latency")
RING = 256  # turns, since planning one of thousands takes a quarter of a minute

PARAMS: dict[str, Param] = {
    "model": choice("palm-8b", MODELS, "a configuration by name"),
    "phase": choice("decode", PHASES, "prefill reads many new tokens, decode one"),
    "ffn": choice("ws2d", tuple(FEEDFORWARD), "the feedforward partition"),
    "attention": choice("heads", tuple(ATTENTION), "the attention partition"),
    "mesh": mesh("x:1", "axes x, y and z"),
    "batch": whole(1, 1, 2**20, "sequences"),
    "new_tokens": whole(1, 1, 2**20, "new tokens of each; decode has 1"),
    "cached_tokens": whole(0, 0, 2**24, "tokens of each that are kept"),
    "weights": choice("bf16", DTYPES, "how weights are stored"),
    "cache": choice("bf16", DTYPES, "how keys and values are kept"),
    "heads": whole(0, 0, 2**14, "query heads, to pad them; 0: the model's"),
    "layers": whole(0, 0, 2**12, "layers; 0: all of the model's"),
    "looped": choice("", FORMS, "collectives beside products as rings; empty: as they are"),
}
LAYER_PARAMS = PARAMS | {"layers": whole(1, 1, 2**12, "layers, one behind the other")}


def config_of(params: Params) -> Config:
    """The model, made smaller or padded as asked."""
    changes = {name: params[name] for name in ("layers", "heads") if params.get(name)}
    return mtf.model.config(params["model"], **changes)


def faults(params: Params) -> list[str]:
    """Why the model cannot lie so, each reason with the nearest choice that could."""
    try:
        cfg = config_of(params)
    except LayoutError as fault:
        return [str(fault)]
    asked = [params[name] for name in ("ffn", "attention", "mesh", "batch", "new_tokens", "cached_tokens", "phase")]
    return possible(cfg, *asked)


def phase_program(params: Params) -> mtf.Program:
    """The whole step, from tokens to logits."""
    names = ("ffn", "attention", "batch", "new_tokens", "cached_tokens", "weights", "cache")
    named = {name: params[name] for name in names}
    return _looped(plan_phase(config_of(params), params["phase"], params["mesh"], **named), params["looped"])


def layer_program(params: Params) -> mtf.Program:
    """So many layers alone: x `B L E`, their weights (and cache) → y, and the new keys and values."""
    cfg, named = config_of(params), Mesh(params["mesh"])
    partition = SERVING[f"{params['ffn']}-{params['attention']}"]
    where = placement(cfg, params["phase"], named, partition, batch=params["batch"], new_tokens=params["new_tokens"])
    weights, cache = stored_dtype(params["weights"], "weights"), stored_dtype(params["cache"], "cache")
    texts, dtypes = _layer_arguments(cfg, params["cached_tokens"], weights, cache)

    def call(x: mtf.Tensor, **given: mtf.Tensor) -> dict[str, mtf.Tensor]:
        x, *new = layers(cfg, given, x, where.pins, params["cached_tokens"], cache)
        made = ("k", "v", "k_scale", "v_scale")
        return {"y": mtf.reshard(x, rest), **dict(zip(made, new, strict=False))}

    sizes = f"B:{params['batch']} L:{params['new_tokens']}"
    sizes += f" S:{params['cached_tokens']}" if params["cached_tokens"] else ""
    rest = where.layout.sharding(f"B:{params['batch']} L:{params['new_tokens']} E:{cfg.d_model}", named)
    place = {name: where.place[name] for name in texts} | {"x": rest.text()}
    fn = Function.of("layer", {"x": f"B L E:{cfg.d_model}", **texts}, call, dtypes)
    made = mtf.plan(fn, named, where.layout, sizes=sizes, place=place, dtype=activations(weights))
    return _looped(made, params["looped"])


def _layer_arguments(cfg: Config, cached: int, weights: str, cache: str) -> tuple[dict[str, str], dict[str, str]]:
    """(name → dimensions, name → dtype) of what the layers themselves need: no tables, no last norm."""
    texts, dtypes = stored_arguments(cfg, weights, activations(weights))
    texts = {name: text for name, text in texts.items() if text.startswith("layers:")}
    if cached:
        kept, kept_dtypes = cache_arguments(cfg, cache, activations(weights))
        texts, dtypes = texts | kept, dtypes | kept_dtypes
    return texts, {name: dtype for name, dtype in dtypes.items() if name in texts}


def _looped(program: mtf.Program, form: str) -> mtf.Program:
    return mtf.looped(program, form=form) if form else program


def _loop_faults(make: Callable[[Params], mtf.Program], params: Params) -> list[str]:
    """As `faults`; and rings only where there is a collective to make one of."""
    if (found := faults(params)) or not params["looped"]:
        return found
    if (turns := max(size for _, size in Mesh(params["mesh"]).axes)) > RING:
        return [
            f"looped writes rings out, of {turns:,} turns here and at most {RING}; looped='' leaves them as they are"
        ]
    try:
        make(params)
    except LayoutError as fault:
        return [f"{fault}; looped='' leaves the collectives as they are"]
    return []


def _partitions(**more: object) -> tuple[Params, ...]:
    """One layer in each partition."""
    return tuple({"ffn": ffn, "attention": attention, **more} for ffn in FEEDFORWARD for attention in ATTENTION)


def _steps(model: str, batches: tuple[int, ...], **more: object) -> tuple[Params, ...]:
    return tuple({"model": model, "batch": batch, **more} for batch in batches)


TINY = {"model": "tiny-palm", "mesh": "x:2 y:2", "weights": "f32", "cache": "f32"}
PREFILL = {"phase": "prefill", "cached_tokens": 0}

LAYER = Case(
    "layer", "one layer under each partition, prefill or decode", LAYER_PARAMS, layer_program,
    partial(_loop_faults, layer_program),
    sweeps={
        "simulated": _partitions(**TINY, batch=8, cached_tokens=8),
        # One chip's share of a layer of 540B on 64 (its collectives left out and modelled), and a whole small one.
        "chip": (*_partitions(model="palm-540b", heads=64, mesh="x:4 y:4 z:4", batch=256, cached_tokens=2048),
                 *_partitions(model="palm-540b", heads=64, mesh="x:4 y:4 z:4", batch=64, new_tokens=512, **PREFILL),
                 *_steps("palm-8b", (1, 64), cached_tokens=2048)),
        "slice": _partitions(model="palm-8b", mesh="x:all", batch=256, cached_tokens=1024),
    },
)  # fmt: skip
PHASE = Case(
    "phase", "a whole prefill or decode step, tokens to logits", PARAMS, phase_program,
    partial(_loop_faults, phase_program),
    sweeps={
        "simulated": (*_steps("tiny-palm", (8,), mesh="x:2 y:2", weights="f32", cache="f32", cached_tokens=8),
                      *_steps("tiny-grouped", (4,), mesh="x:2", weights="f32", cache="f32", new_tokens=8, **PREFILL)),
        "chip": (*_steps("palm-8b", (1, 16, 64), weights="int8", cached_tokens=1024),
                 *_steps("palm-8b", (1, 4), weights="int8", new_tokens=1024, **PREFILL),
                 *_steps("smollm2-135m", (1, 32), cached_tokens=512)),
        "slice": (*_steps("palm-8b", (64, 256), mesh="x:all", cached_tokens=1024),
                  *_steps("palm-8b", (8,), mesh="x:all", new_tokens=1024, **PREFILL)),
    },
)  # fmt: skip
