"""The Transformer of both papers: one configuration, one block, one declaration of its parameters.

    cfg = mtf.model.config("mtf-lm-4.9b")                                  # numbers and choices, with their source
    cfg.n_params, cfg.params["wq"]                                         # the declaration
    loss = mtf.model.loss(cfg)                                             # a named function: inputs, targets, params
    layout = mtf.model.partitions["mtf-2d"].layout                         # data: B:rows V:cols F:cols H:cols
    prog = mtf.plan(loss, "rows:16 cols:32", layout, sizes="B:256 L:256", dtype="bf16")

    step = mtf.model.plan_phase("palm-540b", "decode", "x:4 y:4 z:4", attention="batch", batch=64, cached_tokens=2048)

Importing this loads no JAX. First file to read: `configs`, then `params`, `block`, `transformer`; `partitioning`. How a
model is served: `pins`, `serving`, `places`, `reasons`, `head_padding`, `storing`, `quantising`, `past`, `phases`.
"""

import importlib
from typing import Any

from mtfcore.model.configs import Config, config

_LATER = {  # name → the module that has it, imported when the name is first used
    "CONFIGS": "published", "config_file": "config_files", "save_config": "config_files",
    "LoadedModel": "files", "load": "files",
    "Param": "params", "initial": "params",
    "Partition": "partitioning", "partitions": "partitioning", "read_layout": "partitioning",
    "phase": "phases", "plan_phase": "phases", "possible": "reasons", "stored": "storing",
    "least_padding": "head_padding", "padded": "head_padding", "padding_words": "head_padding",
    "quantisation_error": "quantising", "stored_one_by_one": "storing",
    "Engine": "engine.engine", "Trainer": "training", "Writer": "writing", "training_step": "step_function",
    "arguments": "transformer", "forward": "transformer", "loss": "transformer", "loss_of": "transformer",
}  # fmt: skip

__all__ = [
    "CONFIGS", "Config", "LoadedModel", "Param", "Partition", "Trainer", "Writer", "arguments", "config", "config_file",
    "forward", "initial", "least_padding", "load", "loss", "loss_of", "padded", "padding_words", "partitions", "phase",
    "plan_phase", "possible", "quantisation_error", "read_layout", "save_config", "stored", "stored_one_by_one",
    "training_step",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'mtfcore.model' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"mtfcore.model.{_LATER[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
