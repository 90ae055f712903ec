"""Which of the first paper's programs are compiled, as data: models, meshes, sizes that grow, the largest that fit.

    >>> [one.name for one in own_meshes(TABLE_2)][-1]
    'mtf-lm-4.9b/step/16x32/v2:16x16'

Source: Mesh-TensorFlow (arXiv 1811.02084): each model's mesh is that of the authors' tensor2tensor code. Next file to
read: `training_tables`.
"""

from __future__ import annotations

from tpu_runs.papers.machine import Machine
from tpu_runs.papers.training import product, step, two_layers

TABLE_2 = {  # the language models, each on its own slice and mesh
    "mtf-lm-0.14b": ("v2:4x4", "all:32"), "mtf-lm-0.22b": ("v2:4x4", "all:32"),
    "mtf-lm-0.37b": ("v2:4x4", "rows:8 cols:4"), "mtf-lm-0.67b": ("v2:4x4", "rows:8 cols:4"),
    "mtf-lm-1.28b": ("v2:8x8", "rows:16 cols:8"), "mtf-lm-2.48b": ("v2:16x16", "rows:16 cols:32"),
    "mtf-lm-4.9b": ("v2:16x16", "rows:16 cols:32"),
}  # fmt: skip
TABLE_3 = {  # the translation models
    "mtf-translate-0.15b": ("v2:4x4", "all:32"), "mtf-translate-0.24b": ("v2:4x4", "all:32"),
    "mtf-translate-0.42b": ("v2:4x4", "rows:8 cols:4"), "mtf-translate-0.77b": ("v2:4x4", "rows:8 cols:4"),
    "mtf-translate-1.48b": ("v2:8x8", "rows:16 cols:8"), "mtf-translate-2.89b": ("v2:8x8", "rows:16 cols:8"),
}  # fmt: skip
MESHES = ("rows:8 cols:64", "rows:16 cols:32", "rows:32 cols:16", "rows:16 cols:16 planes:2", "rows:8 cols:8 planes:8")
# Section 8's growth. In two dimensions: batch with rows, d_ff and heads with cols; these are Table 2's own models.
GROWING_2D = (
    ("mtf-lm-0.67b", "v2:2x2", 2, 4), ("mtf-lm-1.28b", "v2:4x4", 4, 8), ("mtf-lm-2.48b", "v2:8x8", 8, 16),
    ("mtf-lm-4.9b", "v2:16x16", 16, 32),
)  # fmt: skip
GROWING_3D = (("v2:2x2", 2), ("v2:4x8", 4), ("v2:16x16", 8))  # and the width of the residual stream with planes
TWO_LAYERS = "batch:16384 io:2048 hidden:8192"  # Table 1's layers, on 4 rows, 4 columns and 2 planes
LAYOUTS = ("", "batch:all", "hidden:all", "batch:rows hidden:cols", "batch:rows hidden:cols io:planes")
LARGEST = {False: 28, True: 46}  # layers computed again → heads: found by halving, held by the records of both sides
CUTS = ((64, 1, 1), (8, 8, 1), (4, 4, 4))  # Appendix B on 64 processors: slabs, pencils, cubes


def own_meshes(table: dict[str, tuple[str, str]]) -> tuple[Machine, ...]:
    """The models of a table, each as it was trained."""
    return tuple(step(model, *where) for model, where in table.items())


def meshes() -> tuple[Machine, ...]:
    """The largest language model on meshes of the same 512 cores."""
    return tuple(step("mtf-lm-4.9b", "v2:16x16", mesh) for mesh in MESHES)


def recomputed() -> tuple[Machine, ...]:
    """Layers computed again in the backward pass: on the paper's own mesh, and in the cube that else does not fit."""
    return tuple(step("mtf-lm-4.9b", "v2:16x16", mesh, recompute=True) for mesh in (MESHES[1], MESHES[-1]))


def growing_2d() -> tuple[Machine, ...]:
    """Batch and layers grow with the mesh, so that cores grow with their square: efficiency should stay."""
    return tuple(step(model, where, f"rows:{r} cols:{c}", batch=16 * r) for model, where, r, c in GROWING_2D)


def growing_3d() -> tuple[Machine, ...]:
    """Batch, layers and residual stream grow, so that cores grow with the cube of each."""
    return tuple(
        step("mtf-lm-4.9b", where, f"rows:{n} cols:{n} planes:{n}", batch=16 * n, recompute=True,
             d_model=1024 * n, d_ff=4096 * n, heads=4 * n)
        for where, n in GROWING_3D
    )  # fmt: skip


def layouts() -> tuple[Machine, ...]:
    """Table 1."""
    return tuple(two_layers(layout, "v2:4x4", (4, 4, 2), TWO_LAYERS) for layout in LAYOUTS)


def products() -> tuple[Machine, ...]:
    """Appendix B."""
    return tuple(product("v2:4x8", blocks, 4096) for blocks in CUTS)


def data_parallel(heads: int, recompute: bool = False) -> Machine:
    """Table 2's kind of model, d_ff 1,024 a head, whole on each of 32 cores."""
    return step("mtf-lm-0.14b", "v2:4x4", "all:32", recompute=recompute, d_ff=1024 * heads, heads=heads)


def largest() -> tuple[Machine, ...]:
    """Up to the largest that the compiler finds room for, and one head more; the same with layers computed again."""
    ends = [data_parallel(heads + more, again) for again, heads in LARGEST.items() for more in (0, 1)]
    return (*own_meshes(dict(list(TABLE_2.items())[:2])), data_parallel(24), *ends)


def machines() -> tuple[Machine, ...]:
    """All of them, each once."""
    every = (*own_meshes(TABLE_2), *own_meshes(TABLE_3), *meshes(), *recomputed(), *growing_2d(), *growing_3d(),
             *largest(), *layouts(), *products())  # fmt: skip
    return tuple({one.name: one for one in every}.values())
