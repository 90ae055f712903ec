# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 04 · Sharded einsum: the cases, reshape, halo
#
# **Why:** whoever can say what each mesh axis does in an einsum, a reshape or a convolution can write programs in which
# almost nothing must be sent.
#
# Lesson 02 showed what a layout costs, lesson 03 what a collective costs. Between the two stands one question for each
# mesh axis: *what is this axis doing in this operation?*
#
# **After this lesson you can**
#
# 1. name the case that an einsum is in, axis by axis (exercise 1);
# 2. compute the cheapest way out of a conflict (exercise 2);
# 3. say what a reshape can carry and what it costs where it cannot (exercise 3);
# 4. compute the bytes of a halo (exercise 4);
# 5. cut an image so that a convolution keeps to a budget in bytes (exercise 5).
#
# **Needs** [lesson 02](02_layouts.ipynb) and [lesson 03](03_collectives.ipynb) · **Minutes** 50–60 · **Hardware** any
# computer; 64 devices are simulated · **Papers** Mesh-TensorFlow (arXiv 1811.02084), sections 6 and 11; Efficiently
# Scaling Transformer Inference (arXiv 2211.05102), sections 3.2 and 3.3

# %% tags=["setup"]

# %% [markdown]
# ## 1 · One question for each mesh axis
#
# In an einsum a mesh axis has one of four roles. It cuts a dimension that is [**kept**](GLOSSARY.md#kept), or one that is [**contracted**](GLOSSARY.md#contracted),
# or the operand is **still a partial sum** over it, or it is [**idle**](GLOSSARY.md#idle): the devices along it do the same work. If all
# operands agree on the role, nothing moves before the product. An operand that has the dimension whole agrees too: each
# device takes its slice of it, for nothing. Here are inputs that lie in different ways on a line of four devices, and
# what the planner does up to the product.

# %%
import numpy as np

line = mtf.Mesh("x:4")


@mtf.function
def product(x: "batch io", w: "io hidden"):
    return mtf.einsum(x, w, out="batch hidden")


CASES = {"kept": ("batch:x io", "io hidden"), "contracted": ("batch io:x", "io:x hidden"),
         "one is whole": ("batch io:x", "io hidden"), "still a sum": ("batch io partialsum:x", "io hidden"),
         "idle": ("batch io", "io hidden"), "two roles": ("batch:x io", "io hidden:x")}
before = {}
for name, (x_at, w_at) in CASES.items():
    plan = mtf.plan(product, line, sizes="batch:16 io:32 hidden:64", place={"x": x_at, "w": w_at})
    number = next(n for n, step in enumerate(plan.steps) if step.kind == "einsum")
    before[name] = [step.label() for step in plan.steps[:number]]
    print(f"{name:13} x {x_at:22} w {w_at:12} first: {', '.join(before[name]) or '-':27}"
          f" then it is {plan.steps[number].after.text()}")

# %% [markdown]
# Read the last column. *Kept*: the product is cut as the operand was. *Contracted*: addends. *Still a sum*: the addends
# of x become addends of the product, since (x₁ + x₂)·w = x₁·w + x₂·w; nobody has to sum before. Only the last line moves
# something: `x` cuts `batch` in one operand and `hidden` in the other, and no device holds both of the blocks that any
# block of the product needs. That is a [**conflict**](GLOSSARY.md#conflict).
#
# ## 2 · Three ways out of a conflict
#
# x lies as `batch:x io`, w as `io hidden:x`, and the product is wanted as `batch:x hidden`. Either operand can be
# gathered; after gathering x the product lies as `batch hidden:x`, and an all-to-all has to move its cut. Or both give up
# their cut and take one on `io`, by [**all-to-all**](GLOSSARY.md#all-to-all); then the product is a partial sum, and a reduce-scatter puts it where
# it is wanted. `at` fixes where the operands lie during the product, so we can try each.

# %%
predict("04 way", "batch:64 io:512 hidden:64 on four devices. Which way sends the fewest bytes?",
        choices=["gather w", "gather x", "both to io"])

# %% tags=["solution"]
predict.record("04 way", "both to io")

# %%
WAYS = {"gather w": {"x": "batch:x io", "w": "io hidden"}, "gather x": {"x": "batch io", "w": "io hidden:x"},
        "both to io": {"x": "batch io:x", "w": "io:x hidden"}, "planner's own": None}


def conflict(sizes, pins):
    @mtf.function
    def product(x: "batch io", w: "io hidden"):
        return mtf.einsum(x, w, out="batch:x hidden", at=pins)

    return mtf.plan(product, line, sizes=sizes, place={"x": "batch:x io", "w": "io hidden:x"})


for sizes in ("batch:64 io:64 hidden:512", "batch:512 io:64 hidden:64", "batch:64 io:512 hidden:64"):
    sent = {way: conflict(sizes, pins).link_bytes().total for way, pins in WAYS.items()}
    print(f"{sizes:27}", ", ".join(f"{way} {n_bytes:,}" for way, n_bytes in sent.items()), "bytes (modelled)")
predict.show("04 way", min(list(WAYS)[:3], key=lambda way: sent[way]))

# %% [markdown]
# **Why:** gathering costs (g − 1) times a block; an all-to-all only (g − 1)/g of one, since each device keeps as much as
# it had and only swaps *which* part. So when the operands are large and the product is small, it is cheaper to cut the
# long contracted dimension. The planner tried the same three and took the smallest each time. It searches only where
# there is a conflict; an axis without one keeps its role.
#
# ## 3 · The cut that moves
#
# The same all-to-all stands in attention. After a product by heads, each device has all of the batch for its own heads;
# the next step wants all heads for its own part of the batch. Look at four devices and sixteen numbers: 4·batch + head.

# %%
@mtf.function
def moved(t: "batch heads"):
    return mtf.reshard(t, "batch:x heads")


plan = mtf.plan(moved, line, sizes="batch:4 heads:4", place={"t": "batch heads:x"})
(step,) = plan.collectives()
print(step.label(), step.arrow(), f"sends {step.link_bytes} of the {step.n_bytes} bytes held (modelled)")
run = mtf.simulate(plan)
run(t=np.arange(16, dtype=np.float32).reshape(4, 4))
for device in range(4):
    was, now = (t.ravel().astype(int).tolist() for t in (*run.before(0, device), run.values(0, device)))
    print("device", device, "had", was, "and has", now)

# %% [markdown]
# ## 4 · What a reshape can carry
#
# A reshape keeps the elements in their order and gives them other dimensions. Each device reshapes the part that it
# holds, and that is right whenever the parts of the old shape are the parts of the new one. Take `[batch heads kv]`
# with four heads of 16, merged into `[batch hk]`. The blocks of `hk` over four devices are elements 0–15, 16–31, …: one
# head each.

# %%
predict("04 merge", "The merged hk shall be cut over x. Which cut before it needs no message?",
        choices=["heads:x", "kv:x"])

# %% tags=["solution"]
predict.record("04 merge", "heads:x")

# %%
@mtf.function
def merged(t: "batch:8 heads:4 kv:16"):
    return mtf.merge(t, "heads kv", "hk")


needs = {}
for start in ("batch heads:x kv", "batch heads kv:x", "batch heads kv"):
    for layout in ("hk:x", ""):
        plan = mtf.plan(merged, line, layout, place={"t": start})
        needs[start, layout] = [step.label() for step in plan.collectives()]
        print(f"{start:17} → batch {layout or 'hk':5} {', '.join(needs[start, layout]) or 'nothing':34} "
              f"sends {plan.link_bytes().total:5} bytes (modelled)")
predict.show("04 merge", next(start.split()[1] for start, layout in needs if not needs[start, layout]))

# %% [markdown]
# **Why:** the outer factor counts slowest, so a block of heads is one run of `hk`. A block of `kv` is a bit of every
# head: it **straddles** the boundary, no reshape can carry it, and the planner first moves the cut from `kv` to `heads`.
# With several axes the rule is the same. A split hands axes outward, a merge joins the outer's axes and then the
# inner's, and an inner factor keeps its axes only if the outer is cut down to single rows. Partial sums pass through.
#
# ## 5 · Neighbours: the halo
#
# So far a device needed whole blocks of others, or none. An operation along *space* needs only their border. Simplest
# is a shift: y[i] = t[i − 1]. Every element moves, but only one of each part changes its device.

# %%
@mtf.function
def late(t: "length"):
    return mtf.shift(t, "length", 1)


plan = mtf.plan(late, line, sizes="length:8", place={"t": "length:x"})
run = mtf.simulate(plan)
run(t=np.array([10, 11, 20, 21, 30, 31, 40, 41], np.float32))
for number, step in enumerate(plan.steps):
    values = [run.values(number, device).astype(int).tolist() for device in range(4)]
    print(f"{step.label():31} {values}")

# %% [markdown]
# An *edge* is a piece of one's own part: first the row that leaves, then the row that stays; *extend* joins what came and
# what stayed. The border rows that a device receives are its [**halo**](GLOSSARY.md#halo), and the step that brings them is a **halo
# exchange**. The first device has no neighbour before it and
# receives zeros, which is what stands outside. A convolution looks both ways: with a kernel of size k, y[i] is a sum
# over x[i − (k − 1)/2] … x[i + (k − 1)/2], so the halo is k − 1 rows in all.

# %%
predict("04 halo", "An f32 image height:64 width:64, cut into 16 strips by height:x. A 5 × 5 kernel, one channel: "
        "how many bytes does each inner device send?", unit="bytes")

# %% tags=["solution"]
predict.record("04 halo", 1024)

# %%
@mtf.function
def smooth(image: "height width", kernel: "kh:5 kw:5"):
    return mtf.conv(image, kernel, spatial={"height": "kh", "width": "kw"}, out="height width")


def smoothed(mesh, layout):
    return mtf.plan(smooth, mesh, layout, sizes="height:64 width:64", strict=True)


for mesh, layout in (("x:4", "height:x"), ("x:16", "height:x"), ("x:16", "width:x"), ("x:4 y:4", "height:x width:y")):
    sent = smoothed(mesh, layout).link_bytes().total
    gathered = 64 * 64 * 4 * (mtf.Mesh(mesh).size - 1) // mtf.Mesh(mesh).size
    print(f"{mesh:8} {layout:17} halo {sent:5,} bytes; gathering the image would be {gathered:6,} (modelled)")
predict.show("04 halo", smoothed("x:16", "height:x").link_bytes().total)

# %%
plan = smoothed("x:4 y:4", "height:x width:y")
for step in plan.steps:
    shapes = (s.local_shape(plan.mesh) for s in (step.before[0], step.after))
    print(f"{step.label():33} {' → '.join(map(str, shapes)):21} {step.why}")
rng = np.random.default_rng(4)
image, kernel = rng.normal(size=(64, 64)).astype(np.float32), rng.normal(size=(5, 5)).astype(np.float32)
padded = np.pad(image, 2)
by_hand = sum(kernel[a, b] * padded[a : a + 64, b : b + 64] for a in range(5) for b in range(5))
print("16 devices and NumPy agree:", np.allclose(mtf.simulate(plan)(image, kernel), by_hand, atol=1e-3))

# %% [markdown]
# **Why:** strips send (k − 1) rows of the whole width, however many devices there are (the first and the last, with one
# neighbour, send half of it): a halo grows with the *surface* of a part, work with its *volume*. Squares have less
# surface than strips. The corners come along: the halo along `width` is taken from parts that have their halo along
# `height` already. In the backward pass the same rows travel the other way.
#
# ## 6 · A size that stops dividing
#
# `padding="same"`, which we have used, puts zeros round the image and keeps its size. `"valid"` has no zeros, so the
# result is k − 1 smaller, and that may not divide any more.

# %%
def edged(padding):
    @mtf.function
    def smooth(image: "height:64 width:64", kernel: "kh:5 kw:5"):
        return mtf.conv(image, kernel, {"height": "kh", "width": "kw"}, out="height width", padding=padding)

    return mtf.plan(smooth, "x:8", "height:x", strict=True)


try:
    edged("valid")
except mtf.LayoutError as refusal:
    print(refusal)

# %%
repaired = edged("same")
print(f"{repaired!r} sends {repaired.link_bytes().total:,} bytes a device (modelled)")

# %% [markdown]
# Nothing is padded behind your back. Where a size must divide and does not, `mtf.pad_to` makes it longer and `mtf.valid`
# says which elements are real, so that sums and softmax leave the rest out; the program's table then shows what the
# padding costs.
#
# ## 7 · Step through it
#
# Press *Run* in the explorer and step through the convolution. **Try:**
#
# * the step `extend of height`: which rows of a device's part came from where, and where are zeros?
# * the layout `width:(rows cols)`, then `height:cols width:rows`: which send less, and why?
# * the layout `height:(rows cols)` with `height:16` in *sizes*: parts of two rows, exactly as wide as the halo.

# %%
program(smooth, mesh="rows:4 cols:2", layout="height:rows width:cols", sizes="height:64 width:32")

# %% [markdown]
# ## 8 · Exercises
#
# **Exercise 1 (fill a line).** One mesh axis, one einsum. `left`, `right` and `out` are lists of dimension names; the
# axis cuts `on_left` in the left operand and `on_right` in the right one (a name or None). Return `"kept"`,
# `"contracted"`, `"idle"` or `"conflict"`.

# %% tags=["stub"]
def case(left, right, out, on_left, on_right):
    ...  # return one of the four words


check("04 case", case)

# %% tags=["solution"]
def case(left, right, out, on_left, on_right):
    cut = {on_left, on_right} - {None}
    if len(cut) != 1:
        return "conflict" if cut else "idle"
    return "kept" if cut <= set(out) else "contracted"


check("04 case", case)

# %% [markdown]
# **Exercise 2 (write a function).** Return the bytes that a device sends in the cheapest of the three ways of section
# 2, on `g` devices: x lies as `batch:x io`, w as `io hidden:x`, the product is wanted as `batch:x hidden`.

# %% tags=["stub"]
def cheapest(batch, io, hidden, g, itemsize):
    ...  # return a number of bytes


check("04 cheapest", cheapest)

# %% tags=["solution"]
def cheapest(batch, io, hidden, g, itemsize):
    x, w, product = (elements // g * itemsize for elements in (batch * io, io * hidden, batch * hidden))
    gather_w = w * (g - 1)
    gather_x = x * (g - 1) + product * (g - 1) // g
    both = (x + w) * (g - 1) // g + product * (g - 1)
    return min(gather_w, gather_x, both)


check("04 cheapest", cheapest)

# %% [markdown]
# **Exercise 3 (write a function).** `[batch heads kv]` is merged into `[batch hk]`. One axis of `g` devices lies on
# `before` (`"heads"`, `"kv"` or None); afterwards it shall cut `hk`, or nothing (`after` is True or False). A device
# holds `n_bytes` before. Return the bytes that it sends.

# %% tags=["stub"]
def merge_bytes(n_bytes, g, before, after):
    ...  # return a number of bytes


check("04 merge_bytes", merge_bytes)

# %% tags=["solution"]
def merge_bytes(n_bytes, g, before, after):
    if before is None or (before == "heads" and after):
        return 0
    return n_bytes * (g - 1) // g if after else n_bytes * (g - 1)


check("04 merge_bytes", merge_bytes)

# %% [markdown]
# **Exercise 4 (write a function).** Return the bytes that a device with neighbours on both sides sends for a convolution
# along `height`, with zeros round the border (0 bytes if there is one part, so no neighbour): `height` is cut into
# `parts`, each row has `row` elements, the kernel has size `kernel`.

# %% tags=["stub"]
def halo_bytes(height, row, kernel, parts, itemsize):
    ...  # return a number of bytes


check("04 halo_bytes", halo_bytes)

# %% tags=["solution"]
def halo_bytes(height, row, kernel, parts, itemsize):
    return (kernel - 1) * row * itemsize if parts > 1 else 0


check("04 halo_bytes", halo_bytes)

# %% [markdown]
# **Exercise 5 (meet a budget in bytes).** Choose the mesh for an image of `height` × `width` on a number of `devices`:
# return `(rows, cols)`, two whole numbers whose product is `devices`, such that under `height:rows width:cols` the
# convolution of section 5 sends at most `budget` bytes a device. Both must divide their dimension.

# %% tags=["stub"]
def mesh_within(height, width, devices, budget):
    ...  # return (rows, cols)


check("04 mesh_within", mesh_within)

# %% tags=["solution"]
def mesh_within(height, width, devices, budget):
    sizes, layout = f"height:{height} width:{width}", "height:rows width:cols"
    for rows in range(1, devices + 1):
        cols = devices // rows
        if rows * cols == devices and height % rows == 0 and width % cols == 0:
            plan = mtf.plan(smooth, f"rows:{rows} cols:{cols}", layout, sizes=sizes)
            if plan.link_bytes() <= budget:
                return rows, cols


check("04 mesh_within", mesh_within)

# %% [markdown]
# > **Takeaways**
# >
# > * Ask each mesh axis for its role: kept, contracted, still a sum, idle. Two roles at once are a conflict, and only
# >   then something moves before the product.
# > * An all-to-all moves a cut and sends 1/g of what a gather sends. It pays when operands are large and the product is
# >   small.
# > * A reshape carries a cut of the outer factor. A cut that straddles a boundary must move first.
# > * Along space only borders travel: k − 1 rows, whatever the number of devices. Squares beat strips.
# > * Sizes that do not divide are refused, with what would work. Padding happens on request and shows its price.
#
# **Next:** [lesson 05](05_two_layers.ipynb) compares whole layouts. In the library, read `mtfcore/rules/choosing.py` for
# the einsum, `mtfcore/rules/reshaping.py`, and `mtfcore/rules/halo.py`. The words are in the [glossary](GLOSSARY.md).
