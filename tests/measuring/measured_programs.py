"""Programs that the tests of measuring share."""

import dataclasses
import time

import numpy as np

import mtfcore as mtf
from mtfcore.kernels.basic import KERNELS

NAP_SECONDS = 0.03


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


def layers(mesh="rows:4 cols:2", dtype="f32", sizes="batch:16 io:8 hidden:32"):
    return mtf.plan(two_layers, mesh, "batch:rows hidden:cols", sizes=sizes, dtype=dtype)


@mtf.function
def training(w: "io hidden", x: "batch io"):
    h = mtf.einsum(x, w, out="batch hidden")
    return {"w": w * 0.5, "total": mtf.sum(h, out="")}


def updating():
    return mtf.plan(training, "rows:2 cols:2", "batch:rows hidden:cols", sizes="batch:8 io:4 hidden:16")


@mtf.function
def scattered(a: "m k", b: "k n"):
    return mtf.einsum(a, b, out="m:x n")


def looped():
    """A product with its reduce-scatter as a ring beside it."""
    place = {"a": "m k:x", "b": "k:x n"}
    return mtf.looped(mtf.plan(scattered, "x:4", sizes="m:16 k:32 n:8", place=place, dtype="f32"))


def slow():
    """A product on one device behind which a step of `NAP_SECONDS` stands: a fake slow operation."""
    import jax

    @mtf.function
    def product(a: "m k", b: "k n"):
        return mtf.einsum(a, b, out="m n")

    def nap(call, array):
        def sleep(one):
            time.sleep(NAP_SECONDS)
            return np.asarray(one)

        one = jax.pure_callback(sleep, jax.ShapeDtypeStruct((), array.dtype), array[0, 0])
        return array + one - one

    KERNELS["nap"] = nap
    prog = mtf.plan(product, "x:1", sizes="m:4 k:4 n:4")
    step = prog.steps[-1]
    more = dataclasses.replace(step, kind="nap", inputs=(step.output,), before=(step.after,), flops=0)
    return dataclasses.replace(prog, steps=(*prog.steps, more))
