"""Small programs whose prices are known."""

import mtfcore as mtf

SIZES = "batch:512 io:4096 hidden:16384"


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


def planned(mesh="x:4 y:4 z:4", layout="batch:x hidden:y io:z", sizes=SIZES, dtype="bf16"):
    return mtf.plan(two_layers, mesh, layout, sizes=sizes, dtype=dtype)


def one_collective(mesh, before, after, sizes="A:4096 B:4096", dtype="bf16"):
    @mtf.function
    def moved(a: "A B"):
        return mtf.reshard(a, after)

    return mtf.plan(moved, mesh, sizes=sizes, place={"a": before}, dtype=dtype)
