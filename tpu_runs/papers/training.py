"""The first paper's programs: whole training steps of its Transformers, and the small ones that it reasons with.

    >>> one = step("mtf-lm-4.9b", "v2:16x16", "rows:16 cols:32")
    >>> one.name, one.program()           # forward, gradients and Adafactor's update, as one planned program
    ('mtf-lm-4.9b/step/16x32/v2:16x16', <Program training_step …>)

As the authors trained: weights and Adafactor's state in f32; activations, and what travels of gradients, in bf16; 256
sequences of 256 tokens for language models, 128 for translation (their dropout is left out). On a v2 each core is a
device. Source: Mesh-TensorFlow (arXiv 1811.02084), sections 8 and 9, Table 1, Appendix B; types and meshes from the
authors' tensor2tensor code, models/mtf_transformer.py. Next file to read: `training_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mtfcore as mtf
from mtfcore.costs.first_paper import iteration_space, two_layers_programs
from mtfcore.costs.first_paper.two_layers import ROWS, Sizes
from mtfcore.model.optimizers import Adafactor
from mtfcore.model.step_function import training_step
from mtfcore.steps import Program
from tpu_runs.papers.machine import Machine

LENGTH = 256  # tokens of a sequence, for all models
PARTITIONS = {1: "mtf-data", 2: "mtf-2d", 3: "mtf-3d"}  # by the number of mesh axes


def step(model: str, topology: str, mesh: str, *, recompute: bool = False, batch: int = 0, **changes: int) -> Machine:
    """A training step; `batch` 0 is the paper's, `changes` are of the model's configuration."""
    usual = 128 if model.startswith("mtf-translate") else 256
    batch = batch or usual
    params = {
        "what": "step", "model": model, "changes": changes, "mesh": mesh, "partition": PARTITIONS[len(mesh.split())],
        "batch": batch, "length": LENGTH, "recompute": recompute,
    }  # fmt: skip
    ends = [f"batch={batch}"] if batch != usual else []
    ends += [f"{name}={value}" for name, value in changes.items()] + (["recompute"] if recompute else [])
    cut = "x".join(part.partition(":")[2] for part in mesh.split())
    return Machine("/".join([model, "step", cut, topology, *ends]), "training", topology, params)


def two_layers(layout: str, topology: str, parts: tuple[int, int, int], sizes: str) -> Machine:
    """Table 1's two layers under one of its five layouts, forward and backward, on rows·cols·planes devices."""
    params = {"what": "two-layers", "layout": layout, "parts": list(parts), "sizes": sizes}
    named = layout.replace(":", "-").replace(" ", ",") or "no-layout"
    return Machine(f"two-layers/{named}/{topology}", "training", topology, params)


def product(topology: str, blocks: tuple[int, int, int], edge: int) -> Machine:
    """Appendix B's product of two matrices, its iteration space cut into so many blocks along each edge."""
    params = {"what": "product", "blocks": list(blocks), "edge": edge}
    return Machine(f"product/{'x'.join(map(str, blocks))}/{topology}", "training", topology, params)


def program(params: Mapping[str, Any]) -> Program:
    """The planned program of a machine's parameters."""
    if params["what"] == "product":
        return iteration_space.planned(iteration_space.Blocks(*params["blocks"]), params["edge"], "bf16")
    if params["what"] == "two-layers":
        return two_layers_programs.planned(ROWS[params["layout"]], sizes_of(params), *params["parts"])
    return _step(params)


def sizes_of(params: Mapping[str, Any]) -> Sizes:
    """Those of the two layers: "batch:8 io:4 hidden:16"."""
    return Sizes(**{name: int(size) for name, _, size in (part.partition(":") for part in params["sizes"].split())})


def _step(params: Mapping[str, Any]) -> Program:
    cfg = mtf.model.config(params["model"], **params["changes"])
    smoothing = {"label_smoothing": 0.1} if cfg.encoder_layers else {}
    loss = mtf.model.loss(cfg, recompute=params["recompute"], **smoothing)
    made = training_step(loss, cfg.params, Adafactor(), kept="f32")
    lengths = " ".join(f"{letter}:{params['length']}" for letter in ("LS" if cfg.encoder_layers else "L"))
    layout = mtf.model.read_layout(params["partition"])
    return mtf.plan(made, params["mesh"], layout, sizes=f"B:{params['batch']} {lengths}", dtype="bf16")
