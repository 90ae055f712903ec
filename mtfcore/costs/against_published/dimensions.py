"""Dimensions, parameters and chips: what the papers print of their models and machines, from our configurations.

    >>> row, = rows(table="Table D.1", quantity="parameters")[:1]
    >>> row.printed, dimension(row).value
    ('540', 540.358834176)

Parameters count norms, biases and positions; "parameters from dimensions" leave them out, as the printed derivations
do. Source: arXiv 2211.05102, Table D.1 and section 4; PaLM, arXiv 2204.02311, Table 1; arXiv 1811.02084, Tables 2 and
3. Next file to read: `closed_forms`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from mtfcore.chips import Chip, chip
from mtfcore.costs.against_published.prediction import Prediction, said
from mtfcore.costs.second_paper import cache_bytes, longest_context
from mtfcore.model.configs import Config, config
from mtfcore.reference import Published
from mtfcore.topologies import Topology, topology


def model_of(setup: Mapping[str, Any]) -> Config:
    """The configuration that a setup names, with its changes."""
    return config(setup["model"], **setup.get("changes", {}))


def matrices(cfg: Config) -> int:
    """Parameters without norms, biases and positions."""
    kept = (param for param in cfg.params.values() if param.init == "normal" and "positions" not in param.name)
    return sum(param.n_elements for param in kept)


def token_bytes(cfg: Config) -> int:
    """Bytes of one cached token in bf16, everywhere together."""
    return cache_bytes(cfg.layers, cfg.kv_heads, cfg.head_size, batch=1, context=1)


def _added(cfg: Config, count: Callable[[Config], int]) -> int:
    """What padding the heads adds to the model as it is named."""
    return count(cfg) - count(config(cfg.name))


DIMENSIONS: Mapping[str, Callable[[Config], float | str]] = {
    "layers": lambda cfg: cfg.layers,
    "encoder layers": lambda cfg: cfg.encoder_layers,
    "d_model": lambda cfg: cfg.d_model,
    "d_ff": lambda cfg: cfg.d_ff,
    "heads": lambda cfg: cfg.heads,
    "head size": lambda cfg: cfg.head_size,
    "vocabulary": lambda cfg: cfg.vocab,
    "attention": lambda cfg: cfg.attention,
    "block": lambda cfg: cfg.block,
    "feedforward matrices": lambda cfg: 3 if cfg.gated else 2,
    "embeddings": lambda cfg: "tied" if cfg.tied else "two tables",
    "biases": lambda cfg: "some" if cfg.biases else "none",
    "parameters": lambda cfg: cfg.n_params,
    "parameters from dimensions": matrices,
    "weights in bf16": lambda cfg: 2 * matrices(cfg),
    "cache a token": token_bytes,
    "added parameters": lambda cfg: _added(cfg, lambda each: each.n_params),
    "added parameters from dimensions": lambda cfg: _added(cfg, matrices),
}


def dimension(row: Published) -> Prediction:
    """A model's dimension, its parameters, or bytes that follow from them."""
    return said(row, DIMENSIONS[row.quantity](model_of(row.setup)))


QUOTIENT = "context from the budget"


def context(row: Published) -> Prediction:
    """The longest context whose cache fits the share of memory: whole tokens, but where the quotient itself is printed.

    Source: arXiv 2211.05102, Table 1.
    """
    setup, cfg = row.setup, model_of(row.setup)
    slice_ = topology(setup["topology"])
    tokens = longest_context(
        cfg.layers, cfg.kv_heads, cfg.head_size, setup["batch"], slice_.chip.hbm_bytes_per_device, slice_.devices,
        _by(setup["attention"]), fraction=setup["cache_share"],
    )  # fmt: skip
    return said(row, float(tokens) if row.quantity == QUOTIENT else math.floor(tokens), "memory")


def _by(attention: str) -> str:
    return "heads" if attention == "heads" else "batch"


def kept(row: Published) -> Prediction:
    """Bytes of all keys and values, or how many times the parameters they are. Section 2.1."""
    setup, cfg = row.setup, model_of(row.setup)
    n_bytes = cache_bytes(cfg.layers, cfg.kv_heads, cfg.head_size, setup["batch"], setup["context"])
    return said(row, n_bytes / (2 * setup["counted_params"] if "counted_params" in setup else 1))


HARDWARE: Mapping[str, Callable[[Chip], float | str]] = {
    "peak, bf16": lambda each: each.value("peak_bf16"),
    "HBM": lambda each: each.value("hbm_bytes"),
    "HBM rate": lambda each: each.value("hbm_bytes_per_second"),
    "interconnect": lambda each: each.link_bytes_per_second * each.value("links"),
    "topology": lambda each: f"{len(each.pod)}D torus",
    "ratio": lambda each: each.value("hbm_bytes_per_second") / each.value("peak_bf16"),
    "chips": lambda each: next(size for size in (2, 4, 8) if _wraps(each, size)),
}


def _wraps(each: Chip, size: int) -> bool:
    return topology(f"{each.name}:" + "x".join([str(size)] * len(each.pod))).wraps[0]


def hardware(row: Published) -> Prediction:
    """A figure of a chip, from its record."""
    return said(row, HARDWARE[row.quantity](chip(row.setup["chip"])))


CLUSTER: Mapping[str, Callable[[Topology], float | str]] = {
    "cores": lambda each: each.devices,
    "peak": lambda each: each.devices * each.chip.peak_flops_per_device("bf16"),
    "peak a core": lambda each: each.chip.peak_flops_per_device("bf16"),
    "peak a chip": lambda each: each.chip.value("peak_bf16"),
    "memory a core": lambda each: each.chip.hbm_bytes_per_device * 1e9 / 2**30,  # printed GB are GiB here
    "grid of cores": lambda each: "x".join(map(str, each.device_grid)),
}


def cluster(row: Published) -> Prediction:
    """A figure of a slice, from its topology."""
    return said(row, CLUSTER[row.quantity](topology(row.setup["topology"])))
