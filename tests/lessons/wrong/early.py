"""Wrong answers of lessons 00 to 06, each with words that its message must say. Read next: `late.py`."""

import math

import mtfcore as mtf


def _rows(n_rows, sizes, position):
    block, blocks = 0, 1
    for size, at in zip(sizes, position):
        block, blocks = block * size + at, blocks * size
    rows = n_rows // blocks
    return block * rows, (block + 1) * rows


def _sent(kind, n_bytes, parts, group):
    walks = {"all_gather": group, "all_reduce": 2}.get(kind, 1)
    return walks * n_bytes // parts * (group - 1) // group


def _doubled(work, budget):
    devices = 1
    while work / devices > budget:
        devices = 2 * devices
    return devices


@mtf.function
def product(x: "batch io", w: "io hidden", b: "hidden"):
    return mtf.einsum(x, w, out="batch hidden")


@mtf.function
def turned(x: "batch io", w: "io hidden", b: "hidden"):
    return mtf.einsum(x, w, out="hidden batch") + b


def _update(gradient_at, cast_first=False, gathered=True):
    """Exercise 03 update with its parts done wrongly."""

    @mtf.function
    def update(x: "batch io", d: "batch hidden", w: "io hidden"):
        x, d = (mtf.cast(x, "bf16"), mtf.cast(d, "bf16")) if cast_first else (x, d)
        gradient = mtf.cast(mtf.einsum(x, d, out=gradient_at), "f32")
        new = mtf.cast(w - 0.1 * gradient, "bf16")
        return mtf.reshard(new, "io hidden") if gathered else new

    return update


def _first(held, budget, *names):
    """Exercise 06 choice_within, each optimizer without and with recomputation before the next one."""
    pairs = ((name, recompute) for name in names for recompute in (False, True))
    return next((pair for pair in pairs if held(*pair) <= budget), ("none", False))


def _seconds(blocks, floor=True):
    """Exercise 03 seconds with a number of blocks in all, one after another."""
    return lambda n, g, way, rate, hop: blocks(g, way) * max(n / rate, hop * floor)


WRONG = {
    "00 mesh": [
        (lambda rows, cols: mtf.Mesh(f"rows:{cols} cols:{rows}"), "axes: expected"),  # sizes swapped
        (lambda rows, cols: mtf.Mesh(f"cols:{cols} rows:{rows}"), "axes: expected"),  # axes in another order
        (lambda rows, cols: f"rows:{rows} cols:{cols}", "expected a Mesh"),  # the text alone
    ],
    "00 linear": [
        (product, "values: expected"),  # b forgotten
        (turned, "shape: expected"),  # dimensions in another order
        (product.call, "made with @mtf.function"),
    ],
    "00 devices_for": [
        (lambda b, i, h, budget: _doubled(2 * b * i * h, budget), "work of one device"),  # a multiply-add as one FLOP
        (lambda b, i, h, budget: 2 * _doubled(4 * b * i * h, budget), "fewest devices"),
        (lambda b, i, h, budget: 4 * b * i * h / budget + 0.1, "a whole number"),
        (lambda b, i, h, budget: 3, "a power of two"),
    ],
    "01 place": [
        ("batch:cols hidden:rows", "elements"),  # the axes swapped
        ("batch:rows", "elements"),  # one dimension forgotten
        ("batch:row hidden:cols", "did you mean 'rows'"),  # a misspelt axis
    ],
    "01 row_range": [
        (lambda n, sizes, at: _rows(n, sizes[::-1], at[::-1]), "device"),  # innermost taken for outermost
        (lambda n, sizes, at: (sum(at) * n // math.prod(sizes), (sum(at) + 1) * n // math.prod(sizes)), "rows"),
    ],
    "01 copies": [
        (lambda mesh, used: math.prod(mesh[axis] for axis in used), "devices"),  # the used axes instead of the others
        (lambda mesh, used: mesh.size // (len(used) or 1), "devices"),
    ],
    "01 place_within": [
        (lambda mesh, budget: "d_ff:(rows cols)", "copies: expected"),  # always the smallest
        (lambda mesh, budget: "", "bytes a device: expected at most"),  # never cut
    ],
    "02 partial_axes": [
        (lambda layout, left, right, out: {layout[n] for n in left + right if n in layout}, "mesh axes"),
        (lambda layout, left, right, out: {layout[n] for n in out if n in layout}, "mesh axes"),  # the kept ones
    ],
    "02 out": [
        ("batch io", "bytes sent by a device: expected at most"),  # the layout's place, all-reduced
        ("batch:rows io partialsum:cols", "axes still to be summed over"),  # nothing sent, nothing summed
        ("batch:rows io:colls", "did you mean 'cols'"),
        ("batch:rows hidden:cols", "dimensions of the result: expected 'batch io'"),
    ],
    "02 sent": [
        (lambda b, i, rows, cols, size: b // rows * i * size * (cols - 1) // cols, "bytes"),  # a reduce-scatter's
        (lambda b, i, rows, cols, size: 2 * b * i * size * (cols - 1) // cols, "bytes"),  # the whole of y
    ],
    "02 layout_within": [
        (lambda mesh, sizes, budget: "", "memory: expected at most"),  # never cut
        (lambda mesh, sizes, budget: "rows:batch", "expected one of LAYOUTS"),
        (lambda mesh, sizes, budget: "batch:(rows cols)", "expected at most"),  # always data-parallel
        (lambda mesh, sizes, budget: "hidden:(rows cols)", "expected at most"),
    ],
    "03 mistakes": [
        ({1, 3, 4, 5, 6}, "claim 5"),  # lines taken for rings
        ({3, 4, 6}, "claim 1"),
        ({1, 2, 3, 4, 6}, "claim 2"),
        ({7}, "a set of numbers from 1 to 6"),
    ],
    "03 hops": [
        (lambda g: [(t, d, (d + 1) % g, (d - t + 1) % g) for t in range(1, g) for d in range(g)], "replay"),  # gathers
        (lambda g: [(1, d, e, e) for d in range(g) for e in range(g) if d != e], "each device sends to the next"),
        (lambda g: [(t, d, (d + 1) % g, b) for t in range(1, g) for d in range(g) for b in range(g)], "at most"),
        (lambda g: [(2 * t, d, (d + 1) % g, (d - t) % g) for t in range(1, g) for d in range(g)], "steps: expected"),
        (lambda g: [(t, d, (d + 1) % g, (d - t) % g) for t in range(g - 1) for d in range(g)], "steps from 1"),
        (lambda g: [(t, d, (d + 1) % g, t % g) for t in range(1, g) for d in range(g)], "has no addend of block 1"),
    ],
    "03 sent": [
        (lambda kind, n, size, parts, g: _sent(kind, n, parts, g), "bytes"),  # elements taken for bytes
        (lambda kind, n, size, parts, g: _sent(kind, n * size, 1, g), "bytes"),  # the whole array
        (lambda kind, n, size, parts, g: n * size // parts * (g - 1) // g, "bytes"),  # one formula for all
    ],
    "03 seconds": [
        (_seconds(lambda g, way: (g - 1) / 2), "seconds: expected"),  # the ring's bytes on a line too
        (_seconds(lambda g, way: g - 1 if way == "line" else g // 2), "seconds: expected"),  # a whole block at the end
        (_seconds(lambda g, way: g - 1 if way == "line" else (g - 1) / 2, floor=False), "seconds: expected"),
    ],
    "03 update": [
        (_update("io hidden"), "sent by a device: expected at most"),  # as it stands
        (_update("io hidden:data", cast_first=True), "of the new w: expected"),  # sums in bf16
        (_update("io hidden:data", gathered=False), "where it lies: expected 'io hidden'"),
        (_update("io hidden").call, "made with @mtf.function"),
    ],
    "04 case": [
        (lambda left, right, out, a, b: "kept" if a in out or b in out else "contracted", "case: expected"),
        (lambda left, right, out, a, b: "conflict" if a != b else "kept", "case: expected"),  # whole is no conflict
    ],
    "04 cheapest": [
        (lambda b, i, h, g, size: min(b * i, i * h) // g * size * (g - 1), "bytes"),  # the product stays where it is
        (lambda b, i, h, g, size: i * h // g * size * (g - 1), "bytes"),  # always gather w
        (lambda b, i, h, g, size: min(i * h, b * i + b * h // g) // g * size * (g - 1), "bytes"),  # two ways only
    ],
    "04 merge_bytes": [
        (lambda n, g, before, after: n * (g - 1) if before and (before, after) != ("heads", True) else 0, "bytes"),
        (lambda n, g, before, after: 0 if after else n * (g - 1), "bytes"),  # kv taken for carried
        (lambda n, g, before, after: 0 if before == "heads" and after else n * (g - 1) // g, "bytes"),
    ],
    "04 halo_bytes": [
        (lambda height, row, k, parts, size: (k - 1) * row * size, "bytes"),  # one part has no neighbour
        (lambda height, row, k, parts, size: (k - 1) // 2 * row * size * (parts > 1), "bytes"),  # one side
        (lambda height, row, k, parts, size: height // parts * row * size * (parts - 1), "bytes"),  # gathered
    ],
    "04 mesh_within": [
        (lambda height, width, devices, budget: (devices, 1), "sent: expected at most"),  # always strips
        (lambda height, width, devices, budget: (4, devices // 4), "sent: expected at most"),  # always near a square
        (lambda height, width, devices, budget: (devices, devices), "devices: expected"),
        (lambda height, width, devices, budget: devices, "two whole numbers"),
    ],
    "05 allreduced": [
        (lambda b, i, h, r, c, p: i * h // (c * p) + b * i // (r * p) + b * h // (r * c), "values"),  # once, not twice
        (lambda b, i, h, r, c, p: 2 * (i * h // (c * p) + b * i // (r * p) + b * h // (r * c)), "values"),  # uncut too
        (lambda b, i, h, r, c, p: 2 * ((r > 1) * i * h + (c > 1) * b * i + (p > 1) * b * h), "values"),  # whole tensors
    ],
    "05 ratio": [
        (lambda batch, n: n / (batch / n), "values a multiply-add"),  # b as the batch of one processor
        (lambda batch, n: batch / n, "values a multiply-add"),  # computation over communication
    ],
    "05 grown": [
        (lambda b, h, r, c, k: (b * k * k, h, r * k * k, c), "growth of one size"),  # by data parallelism alone
        (lambda b, h, r, c, k: (b, h, r * k, c * k), "ratio: expected"),  # the mesh alone
        (lambda b, h, r, c, k: (b * k, h * k, r, c), "devices: expected"),  # the network alone
        (lambda b, h, r, c, k: b * k, "four whole numbers"),
    ],
    "05 cut": [
        (lambda p: (p, 1, 1), "touched: expected at most"),  # slabs
        (
            lambda p: max(((n, p // n, 1) for n in range(1, p + 1) if p % n == 0), key=lambda c: -c[0] - c[1]),
            "touched: expected at most",
        ),  # pencils: what a two-dimensional layout gives
        (lambda p: (round(p ** (1 / 3)),) * 3, "blocks: expected"),
    ],
    "05 mesh_within": [
        (lambda sizes, devices, budget: (devices, 1), "expected at most"),  # data parallelism
        (lambda sizes, devices, budget: (1, devices), "expected at most"),  # the smallest weights
        (lambda sizes, devices, budget: (devices, devices), "devices: expected"),
    ],
    "06 backward": [
        (lambda x, w, d: (mtf.einsum(x, d, out="io hidden"), mtf.einsum(d, w, out="batch io")), "shape"),  # swapped
        (lambda x, w, d: (mtf.einsum(d, w, out="batch io") * 2.0, mtf.einsum(x, d, out="io hidden")), "that differ"),
        (lambda x, w, d: mtf.einsum(x, d, out="io hidden"), "two tensors"),  # one of the two
        (lambda x, w, d: (mtf.einsum(x, w, out="batch io"), mtf.einsum(x, d, out="io hidden")), "that differ"),
    ],
    "06 state": [
        (lambda rows, cols, r, c, o: 4 * (rows // r) * (cols // c) * {"sgd": 1, "adam": 3}.get(o, 1), "adafactor"),
        (lambda rows, cols, r, c, o: 4 * rows * cols * {"sgd": 1, "adam": 3}.get(o, 2), "sgd"),  # not cut
        (lambda rows, cols, r, c, o: (rows // r) * (cols // c), "bytes"),  # elements
    ],
    "06 padded": [
        (lambda size, parts: (size // parts * parts + parts, 0.5), "expected"),  # one more, always
        (lambda size, parts: (-(-size // parts) * parts, (-(-size // parts) * parts - size) / size), "share wasted"),
        (lambda size, parts: -(-size // parts) * parts, "(size, share)"),
    ],
    "06 layout_within": [
        (lambda mesh, sizes, budget: "batch:(rows cols)", "expected at most"),  # always data-parallel
        (lambda mesh, sizes, budget: "", "expected at most"),  # sends nothing and works eight times as much
        (lambda mesh, sizes, budget: "rows:batch", "expected one of LAYOUTS"),
    ],
    "06 choice_within": [
        (lambda held, budget: ("adam", False), "budget"),  # never asks
        (lambda held, budget: ("adafactor", True), "budget"),  # always the smallest
        (lambda held, budget: ("adam", held("adam", False) > budget), "budget"),  # never Adafactor
        (lambda held, budget: _first(held, budget, "adam", "adafactor"), "the pair: expected"),  # recomputing first
    ],
}
