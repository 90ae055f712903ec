"""Generating with the engine: prompts in, tokens out, every launch timed.

    >>> from tpu_runs.cases import CASES, check
    >>> sorted(check(CASES["generate"], {"model": "tiny-palm"}))[:3]
    ['batch', 'cache', 'decode']

A repetition is a whole turn: all prompts read, all new tokens made, greedy. The model's weights are random, so its
words mean nothing and its time is the real one's. Each token is checked against plain `jax.numpy` reading the same
text: it must be the likeliest, or as likely up to rounding. Next file to read: `tpu_runs/run`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Generator
from typing import Any

import mtfcore as mtf
from mtfcore.costs.serving_memory.inference_memory import device_bytes
from mtfcore.errors import LayoutError
from mtfcore.measuring import Progress, WrongAnswer, places
from mtfcore.mesh import Mesh
from mtfcore.model.configs import Config
from mtfcore.model.engine.asking import check_engine
from mtfcore.model.published import CONFIGS
from mtfcore.model.serving import SERVING
from tpu_runs.cases.schema import Case, Params, choice, mesh, whole

MOST_PARAMETERS = 3e9  # random weights are made on this computer first
MODELS = tuple(name for name, cfg in CONFIGS.items()
               if not cfg.encoder_layers and cfg.causal and cfg.n_params < MOST_PARAMETERS)  # fmt: skip
PARTITIONS = ("auto", *SERVING)
CHUNK = 64
TOLERANCE = {"f32": 1e-2, "bf16": 0.2, "int8": 0.3}  # how far below the likeliest, in standard deviations of the logits
NOT_ASKED = {"against": "not asked", "error": None, "tolerance": None}
CHECKED = 4  # prompts that are read again by the oracle

PARAMS = {
    "model": choice("smollm2-135m", MODELS, "a configuration by name; its weights are random"),
    "mesh": mesh("x:1", "axes x, y and z"),
    "prefill": choice("auto", PARTITIONS, "the partition that reads prompts"),
    "decode": choice("auto", PARTITIONS, "the partition that writes"),
    "batch": whole(8, 1, 4096, "prompts, each in a slot of its own"),
    "prompt_tokens": whole(32, 1, 2**16, "tokens of each prompt"),
    "new_tokens": whole(32, 1, 2**16, "tokens written behind each"),
    "tokens_per_launch": whole(1, 1, 256, "turns of decode in one launch"),
    "weights": choice("bf16", ("bf16", "f32", "int8"), "how weights are stored"),
    "cache": choice("bf16", ("bf16", "f32", "int8"), "how keys and values are kept"),
    "heads": whole(0, 0, 2**14, "query heads, to pad them; 0: the model's"),
}


def config_of(params: Params) -> Config:
    """The model, padded as asked."""
    return mtf.model.config(params["model"], **({"heads": params["heads"]} if params["heads"] else {}))


def length_of(params: Params) -> int:
    """Tokens that each slot holds."""
    return params["prompt_tokens"] + params["new_tokens"]


def faults(params: Params) -> list[str]:
    """Why no engine can be made so."""
    named = Mesh(params["mesh"])
    found = [f"mesh '{named}': an engine's axes are called x, y and z"] if set(named.names) - set("xyz") else []
    try:
        cfg = config_of(params)
        check_engine(cfg, params["batch"], length_of(params), CHUNK, None, None, False, None)
    except LayoutError as fault:
        return [*found, str(fault)]
    return found


def size(case: Case, params: Params) -> int:
    """Weights and caches of decode on one device, or of reading a chunk, whichever is more (modelled)."""
    shape, cfg = Mesh(params["mesh"]).shape, config_of(params)
    grid = shape.get("x", 1), shape.get("y", 1), shape.get("z", 1)
    partition = SERVING["ws2d-heads" if params["decode"] == "auto" else params["decode"]]
    how = {"batch": params["batch"], "context": length_of(params), "weights": params["weights"],
           "cache_dtype": params["cache"], "ffn": partition.ffn.name, "attention": partition.attention}  # fmt: skip
    most = max(
        float(device_bytes(cfg, grid, new_tokens=new, **how).total) for new in (1, min(CHUNK, length_of(params)))
    )
    return int(most)


def prompts_of(params: Params, cfg: Config) -> list[list[int]]:
    """Prompts that differ from each other: no two slots hold the same."""
    n, length = params["batch"], params["prompt_tokens"]
    return [[(7 + 31 * row + 13 * place * (row + 1)) % cfg.vocab for place in range(length)] for row in range(n)]


def run(
    params: Params, on: str, repeats: int = 3, warm_up: int = 1, check: bool = True
) -> Generator[Progress, None, dict[str, Any]]:
    """Generate again and again; returns what a record needs. The first turn compiles, and is timed apart."""
    cfg, total = config_of(params), (1 + warm_up + repeats) * params["new_tokens"] + 1
    prompts = prompts_of(params, cfg)
    yield Progress(0, total, "making weights and an engine")
    start = time.perf_counter()
    weights = mtf.model.initial(cfg)
    engine = mtf.model.Engine(
        cfg, weights, params["mesh"], params["prefill"], params["decode"], slots=params["batch"],
        length=length_of(params), chunk=CHUNK, weights=params["weights"], cache=params["cache"],
        attached=on == "attached",
    )  # fmt: skip
    texts, _ = yield from _turn(engine, params, prompts, "first turn, which compiles", 0, total)
    compile_seconds = time.perf_counter() - start
    checked = _checked(cfg, weights, prompts, texts, params["weights"]) if check else NOT_ASKED
    turns = []
    for number in range(warm_up + repeats):
        what = "warming up" if number < warm_up else f"repetition {number - warm_up + 1} of {repeats}"
        again, launches = yield from _turn(engine, params, prompts, what, number + 1, total)
        if again != texts:
            raise WrongAnswer("the same prompts gave other tokens the second time, so no time is shown")
        turns += [launches] if number >= warm_up else []
    return {
        "seconds": [sum(seconds for _, seconds in launches) for launches in turns],
        "compile_seconds": compile_seconds, "warm_up": warm_up + 1, "check": checked,
        "where": _where(engine), "versions": places.versions(), "facts": _facts(engine, turns, params),
    }  # fmt: skip


def _turn(
    engine: Any, params: Params, prompts: list[list[int]], what: str, turn: int, total: int
) -> Generator[Progress, None, tuple[list[list[int]], list[tuple[str, float]]]]:
    """One turn: what was written behind each prompt, and each launch's phase and seconds."""
    texts: list[list[int]] = [[] for _ in prompts]
    launches = []
    for now in engine.generate(prompts, params["new_tokens"], tokens_per_launch=params["tokens_per_launch"]):
        launches.append((now.phase, now.seconds))
        for number, tokens in now.tokens.items():
            texts[number] += tokens
        done = turn * params["new_tokens"] + max(map(len, texts))
        yield Progress(min(done, total), total, f"{what}: {now.phase}")
    return texts, launches


def _checked(cfg: Config, weights: Any, prompts: list[list[int]], texts: list[list[int]], stored: str) -> Params:
    """How far the tokens lie below the likeliest, where plain `jax.numpy` reads the same texts at once."""
    import numpy as np

    read = [[*prompt, *text][:-1] for prompt, text in zip(prompts[:CHECKED], texts, strict=False)]
    sizes = f"B:{len(read)} L:{len(read[0])}"
    forward = mtf.plan(mtf.model.forward(cfg), "x:1", sizes=sizes, dtype="f32")
    logits = np.asarray(mtf.single(forward)(inputs=np.asarray(read, np.int32), **weights))  # f32[B, L, V]
    error = behind_the_likeliest(logits[:, len(prompts[0]) - 1 :], texts[:CHECKED])
    if not error <= TOLERANCE[stored]:
        raise WrongAnswer(f"a token lies {error:.2g} deviations below the likeliest of mtf.single, "
                          f"allowed {TOLERANCE[stored]:g}; no time is shown")  # fmt: skip
    return {"against": f"mtf.single, {len(read)} prompts", "error": error, "tolerance": TOLERANCE[stored]}


def behind_the_likeliest(logits: Any, texts: list[list[int]]) -> float:
    """How far the worst chosen token lies below the likeliest, in deviations: logits f32[B, L, V], tokens [B][L]."""
    import numpy as np

    chosen = np.take_along_axis(logits, np.asarray(texts)[..., None], axis=-1)[..., 0]
    return float(((logits.max(-1) - chosen) / logits.std(-1)).max())


def _where(engine: Any) -> dict[str, Any]:
    """The devices that hold the weights."""
    array = next(iter(engine.launches.weights.values()))
    return places.where(sorted(array.sharding.device_set, key=lambda device: device.id))


def _facts(engine: Any, turns: list[list[tuple[str, float]]], params: Params) -> dict[str, Any]:
    """The partitions that were chosen, and of each phase its launches and the median of a turn's seconds in it."""
    phases = sorted({phase for launches in turns for phase, _ in launches})
    spent = {phase: [sum(s for name, s in launches if name == phase) for launches in turns] for phase in phases}
    return {
        "prefill": engine.prefill, "decode": engine.decode,
        "launches": {phase: sum(name == phase for name, _ in turns[-1]) for phase in phases},
        "median_seconds": {phase: statistics.median(seconds) for phase, seconds in spent.items()},
        "tokens": params["batch"] * params["new_tokens"], "compile_seconds": "the engine, its weights and a first turn",
    }  # fmt: skip


CASE = Case(
    "generate", "prompts in, tokens out: the engine, launch by launch", PARAMS, None, faults, size, run,
    sweeps={
        "simulated": ({"model": "tiny-palm", "mesh": "x:2 y:2", "batch": 4, "prompt_tokens": 8, "new_tokens": 4,
                       "weights": "f32", "cache": "f32"},),
        "chip": tuple({"batch": batch, "prompt_tokens": 128, "new_tokens": 64, "tokens_per_launch": turns}
                      for batch, turns in ((1, 1), (32, 1), (32, 16))),
        "slice": ({"model": "tiny-palm", "mesh": "x:all", "batch": 32, "prompt_tokens": 128, "new_tokens": 64},),
    },
)  # fmt: skip
