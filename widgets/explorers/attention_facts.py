"""Who holds what of the cache, what it takes and what is sent: the attention explorer's facts, all of them modelled.

    >>> facts = attention_facts(START, cfg, mtf.Mesh("x:4 y:4 z:4"))
    >>> facts["ways"]["heads"]["copies"], facts["ways"]["batch"]["copies"]
    (64, 1)

What lies where is `mtf.model.places`', bytes are those of `mtf.costs`, and steps those of the planned program. Next
file to read: `../figures/attention_words`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import mtfcore as mtf
from mtfcore.costs.serving_memory.cache_bytes import cache
from mtfcore.costs.serving_memory.inference_memory import device_bytes
from mtfcore.costs.serving_memory.memory_limits import largest_batch, longest_context
from mtfcore.model.configs import Config
from mtfcore.model.places import Core, core_of, present
from mtfcore.model.reasons import possible
from widgets.explorers import plan_inputs
from widgets.explorers.attention_inputs import BY, padded_to
from widgets.explorers.attention_program import FFN, attention_program
from widgets.explorers.mesh_controls import grid_of
from widgets.figures.slices import facts as slices_facts
from widgets.figures.slices import mesh_facts
from widgets.numbers import origin, quantity
from widgets.state import State

Facts = dict[str, Any]
BATCHES = tuple(1 << power for power in range(13))
OF_A_WAY = ("batch", "context", "cache", "weights", "room", "chip")  # of the state: what memory depends on
RESERVE, SHARE = 0.1, 0.3  # of memory: kept free; for the cache in Table 1


def attention_facts(state: State, cfg: Config, mesh: mtf.Mesh) -> Facts:
    """Everything that the pictures show."""
    chip, by = mtf.chip(state["chip"]), state["by"]
    core = cut(cfg, mesh, state["batch"], by)
    return {
        **{name: state[name] for name in ("model", "batch", "context", "by", "cache", "weights", "room", "chip")},
        "mesh": [list(axis) for axis in mesh.axes], "devices": mesh.size, "kind": cfg.attention,
        "n_heads": cfg.heads, "kv_heads": cfg.kv_heads, "head_size": cfg.head_size, "layers": cfg.layers,
        "core": {"batch": core.batch, "keys": "".join(core.keys.values()), "idle": core.idle,
                 "heads": "".join(core.heads.values())},
        "title": chip.title, "capacity": chip.hbm_bytes_per_device,
        "ways": {name: one_way(state, cfg, mesh, name) for name in BY},
        "holds": holds(cfg, mesh, core, state), "steps": steps(cfg, str(mesh), state),
        "padding": padding(state, cfg, mesh, core),
    }  # fmt: skip


def cut(cfg: Config, mesh: mtf.Mesh, batch: int, by: str) -> Core:
    """How attention is cut in decode."""
    return core_of(cfg, present(mesh), "", batch, 1, by == "batch")


def one_way(state: State, cfg: Config, mesh: mtf.Mesh, by: str) -> Facts:
    """Memory, and how far it goes, with attention by heads or by batch; or why that cannot be."""
    return dict(_one_way(tuple((name, state[name]) for name in OF_A_WAY), cfg, mesh, by))


@functools.lru_cache(maxsize=512)  # a hand goes back and forth
def _one_way(settings: tuple[tuple[str, Any], ...], cfg: Config, mesh: mtf.Mesh, by: str) -> Facts:
    state = dict(settings)
    if reasons := possible(cfg, FFN, by, mesh, state["batch"], 1, state["context"]):
        return {"reason": reasons[0]}
    given = {"batch": state["batch"], "context": state["context"]}
    kept = cache(cfg, grid_of(mesh), **given, dtype=state["cache"], ffn=FFN, attention=by)
    held = device_bytes(cfg, grid_of(mesh), **given, capacity=mtf.chip(state["chip"]).hbm_bytes_per_device,
                        reserve=RESERVE, **_how(state, by))  # fmt: skip
    n_bytes, copies = float(kept.bytes), int(kept.copies)
    return {
        "reason": "", "copies": copies, "cache": n_bytes, "once": n_bytes / copies,
        "terms": {name: float(value) for name, value in held.terms.items()}, "reserve": float(held.reserve),
        "total": float(held.total), "fits": bool(held.fits), **limits(state, cfg, mesh, by),
    }  # fmt: skip


def _how(state: State, by: str) -> Facts:
    return {"weights": state["weights"], "cache_dtype": state["cache"], "ffn": FFN, "attention": by}


def limits(state: State, cfg: Config, mesh: mtf.Mesh, by: str) -> Facts:
    """The longest context of this batch and of others, and the largest batch of this context."""
    capacity, grid = mtf.chip(state["chip"]).hbm_bytes_per_device, grid_of(mesh)
    batches = np.array(sorted({*BATCHES, state["batch"]}))
    if state["room"] == "table":
        how = {"cache_dtype": state["cache"], "ffn": FFN, "attention": by}
        lengths = longest_context(cfg, grid, capacity=capacity, cache_share=SHARE, batch=batches, **how)
        most = _most_within(cfg, grid, state, by, SHARE * capacity)
    else:
        how = {"capacity": capacity, "reserve": RESERVE, **_how(state, by)}
        lengths = longest_context(cfg, grid, batch=batches, **how)
        most = largest_batch(cfg, grid, context=state["context"], **how)
    pairs = [(int(b), int(n)) for b, n in zip(batches, lengths, strict=True)]
    return {"longest": dict(pairs)[state["batch"]], "curve": pairs, "most": int(most)}


def _most_within(cfg: Config, grid: tuple[int, int, int], state: State, by: str, budget: float) -> int:
    """The largest batch whose cache is within a budget: by batch a multiple of the devices, or a divisor."""
    tried = np.arange(1, 4 * 4096 + 1)
    held = cache(cfg, grid, batch=tried, context=state["context"], dtype=state["cache"], attention=by).bytes
    inside = tried[held <= budget]
    return int(inside.max()) if inside.size else 0


# ---- who holds what


def holds(cfg: Config, mesh: mtf.Mesh, core: Core, state: State) -> Facts:
    """The mesh, the kept keys of a layer and the queries of a step, as pieces on devices."""
    letter = "H" if cfg.attention == "multihead" else "K"
    sequences = ("B", state["batch"], core.batch)
    keys = [sequences, (letter, cfg.kv_heads, core.keys.get(letter, ""))]
    queries = [sequences, *((name, size, core.heads[name]) for name, size in _heads(cfg).items())]
    inside = {"S": state["context"], "D": cfg.head_size}
    size = {"f32": 4, "bf16": 2, "int8": 1}[state["cache"]]
    tensors = [
        _blocks("kept keys", keys, inside, mesh, size),
        _blocks("queries", queries, {"D": cfg.head_size}, mesh, 2),
    ]
    return {"mesh": mesh_facts(mesh), "tensors": tensors}


def _heads(cfg: Config) -> dict[str, int]:
    if cfg.attention == "grouped":
        return {"K": cfg.kv_heads, "G": cfg.heads // cfg.kv_heads}
    return {"H": cfg.heads}


def _blocks(name: str, dims: list[tuple[str, int, str]], inside: Mapping[str, int], mesh: mtf.Mesh, size: int) -> Facts:
    """Facts for a picture of what is cut, two dimensions at least; what is whole anyway stands inside its elements."""
    while len(dims) > 2 and (whole := next((dim for dim in dims if not dim[2]), None)):
        dims = [dim for dim in dims if dim != whole]
        inside = {whole[0]: whole[1], **inside}
    where = _sharding(" ".join(f"{name}:{n}" for name, n, _ in dims),
                      " ".join(f"{name}:{on}" if on else name for name, _, on in dims))  # fmt: skip
    found = slices_facts(where, mesh, "i8", name)  # a byte an element
    each = size * math.prod(inside.values())
    n_bytes = {key: found[key] * each for key in ("bytes", "whole_bytes")}
    shown = origin(quantity(n_bytes["bytes"], "iB"), "modelled")
    return {**found, **n_bytes, "dtype": f"{'·'.join(inside)} × ", "each": shown}


@functools.lru_cache(maxsize=256)
def _sharding(sizes: str, where: str) -> mtf.Sharding:
    return mtf.Sharding(sizes, where)


# ---- what is sent


def steps(cfg: Config, mesh: str, state: State) -> list[Facts]:
    """The collectives of one layer's attention, in order, each with what it moves."""
    dtype = "f32" if state["weights"] == "f32" else "bf16"
    program = attention_program(cfg, mesh, state["batch"], state["context"], state["by"], dtype)
    scores = next(n for n, step in enumerate(program.steps) if "S" in step.after.names)
    return [
        {"moves": moved(step, n < scores), "kind": step.kind, "axes": list(step.axes), "bytes": float(step.link_bytes),
         "before": " ".join(map(str, step.before)), "after": str(step.after), "label": step.label()}
        for n, step in enumerate(program.steps) if step.is_collective
    ]  # fmt: skip


def moved(step: mtf.Step, first: bool) -> str:
    """What a collective moves, as the paper calls it."""
    names = step.before[0].names
    if "S" in names:
        return "cache"
    if "pair" in names:
        return "k, v"
    return "x" if "E" in names else "q" if first else "result"


# ---- padding


def padding(state: State, cfg: Config, mesh: mtf.Mesh, core: Core) -> Facts | None:
    """Where axes are idle since heads do not divide: the padded model and what it costs; nothing else."""
    text = padded_to(state["model"], mesh) if core.idle and state["by"] == "heads" else ""
    if not text:
        return None
    other = plan_inputs.read_model(text)
    if possible(other, FFN, "heads", mesh, state["batch"], 1, state["context"]) or cut(
        other, mesh, state["batch"], "heads").idle:  # fmt: skip
        return None
    return {"model": text, "heads": other.heads, "more_heads": other.heads / cfg.heads - 1,
            "more_params": other.n_params / cfg.n_params - 1}  # fmt: skip
