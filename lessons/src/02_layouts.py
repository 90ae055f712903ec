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
# # 02 · Layouts, and what an operation needs
#
# **Why:** one short line, the layout, decides for every tensor where it lies, and with that it decides which messages
# the devices must send each other.
#
# Read the line well and you can see the traffic before anything runs.
#
# **After this lesson you can**
#
# 1. say which einsums leave partial sums, and over which mesh axes (exercise 1);
# 2. ask for a result where it is cheapest to have (exercise 2);
# 3. compute the bytes that a layout makes each device send (exercise 3);
# 4. choose a layout that meets a memory budget with the least traffic (exercise 4).
#
# **Needs** [lesson 01](01_named_dimensions.ipynb) · **Minutes** 50–60 · **Hardware** any computer; 64 devices are
# simulated · **Papers** Mesh-TensorFlow (arXiv 1811.02084), sections 5, 6 and 8; Efficiently Scaling Transformer
# Inference (arXiv 2211.05102), section 3.1

# %% tags=["setup"]

# %% [markdown]
# ## 1 · One layout for all tensors
#
# In lesson 01 each tensor had a sharding of its own. Mesh-TensorFlow's main idea is simpler: **one layout for the whole
# computation**, a list of rules *dimension → mesh axis*. A tensor that has the dimension is cut, one that does not have
# it is left whole. Our example is the first paper's: two fully connected layers, y = relu(x·w)·v.

# %%
import numpy as np

mesh = mtf.Mesh("rows:4 cols:2")
layout = mtf.Layout("batch:rows hidden:cols")
TENSORS = {"x": "batch:64 io:32", "w": "io:32 hidden:128", "h": "batch:64 hidden:128", "v": "hidden:128 io:32"}
for name, dims in TENSORS.items():
    s = layout.sharding(dims, mesh, strict=True)
    print(f"{name}  {dims:20} lies as {s.text():24} each device holds {s.local_shape(mesh)}, {s.copies(mesh)} copies")

# %% [markdown]
# `strict=True` turns rules that fit nothing into errors; all lessons use it, so that a misspelt axis cannot hide.
#
# ## 2 · What an einsum needs
#
# An einsum multiplies and sums over the dimensions that its result does not have: it **contracts** them. For each mesh
# axis there are only a few cases:
#
# * the axis cuts a dimension that the result **keeps**: each device computes its own block. Nothing is sent.
# * the axis cuts a dimension that is [**contracted**](GLOSSARY.md#contracted): each device sums over its own part only. It holds an *addend* of
#   the result, a [**partial sum**](GLOSSARY.md#partial-sum), and somebody must add them up. In our notation: `partialsum:rows`.
# * the axis has two roles at once, say it cuts `batch` in one operand and `hidden` in the other: a [**conflict**](GLOSSARY.md#conflict).
#   Something must move before the product.

# %%
predict("02 cases", "x[batch io] · w[io hidden] → [batch hidden]: which rule makes partial sums?",
        choices=["batch:rows", "hidden:rows", "io:rows"])

# %% tags=["solution"]
predict.record("02 cases", "io:rows")

# %%
@mtf.function
def product(x: "batch io", w: "io hidden"):
    return mtf.einsum(x, w, out="batch hidden")


line = mtf.Mesh("rows:4")
needs = {}
for rule in ("batch:rows", "hidden:rows", "io:rows"):
    plan = mtf.plan(product, line, rule, sizes="batch:64 io:32 hidden:128", strict=True)
    needs[rule] = [step.label() for step in plan.collectives()]
    print(f"{rule:12} needs {needs[rule] or 'nothing'}")
predict.show("02 cases", next(rule for rule in needs if needs[rule]))

# %% [markdown]
# **Why:** `io` is summed over. With `io:rows` each of the four positions along `rows` sums a quarter of the products,
# and an all-reduce adds the four addends and gives every device the total. Let us look at the numbers, with a batch of
# one and values that tell the devices apart.

# %%
plan = mtf.plan(product, line, "io:rows", sizes="batch:1 io:4 hidden:2", strict=True)
run = mtf.simulate(plan)
total = run(x=np.array([[1, 10, 100, 1000]], np.float32), w=np.array([[1, 5], [2, 6], [3, 7], [4, 8]], np.float32))
for number, step in enumerate(plan.steps):
    print(step.label(), " ", step.arrow())
    for device in range(4):
        print("   device", device, "holds", np.asarray(run.values(number, device)).tolist())

# %% [markdown]
# ## 3 · Ask for the result where you need it
#
# `out="batch hidden"`, names only, says *where the layout puts it*, so the addends are summed at once and everywhere.
# That is not always what you want. An `out` that names an axis is taken exactly: with `hidden` placed on the axis, each
# device receives only its own block of the sum, a [**reduce-scatter**](GLOSSARY.md#reduce-scatter). With `partialsum` the addends stay as they are.

# %%
predict("02 scatter", "An all-reduce of an f32 result batch:16 hidden:128 over rows:4 makes each device "
        "send 12,288 bytes. How many does a reduce-scatter make it send?", unit="bytes")

# %% tags=["solution"]
predict.record("02 scatter", 6144)

# %%
def product_to(out):
    @mtf.function
    def product(x: "batch io", w: "io hidden"):
        return mtf.einsum(x, w, out=out)

    return product


sent = {}
for out in ("batch hidden", "batch hidden:rows", "batch hidden partialsum:rows"):
    plan = mtf.plan(product_to(out), line, "io:rows", sizes="batch:16 io:32 hidden:128", strict=True)
    sent[out] = plan.link_bytes().total
    labels = ", ".join(step.label() for step in plan.collectives()) or "nothing"
    print(f"{out:28} {labels:36} sends {sent[out]:6,} bytes a device (modelled)")
predict.show("02 scatter", sent["batch hidden:rows"])

# %% [markdown]
# **Why:** an all-reduce is a reduce-scatter followed by an all-gather of the summed blocks. If the next operation is
# content with blocks, the second half need not happen. The second paper's layouts are built on this.
#
# Why is half the right number? In a ring of *g* devices, each passes on *g* − 1 blocks while the sum is formed, and in
# an all-reduce another *g* − 1 blocks while the finished sum goes round. A block is 1/*g* of what a device holds. So
# with `n_bytes` held before, a reduce-scatter sends n_bytes·(g − 1)/g and an all-reduce twice that. An all-gather
# starts from one block each and sends n_bytes·(g − 1). A group of one sends nothing.
#
# ## 4 · Two layers, run on simulated devices
#
# Now the whole network under the mixed layout. Before you run it: only one of the two einsums contracts a dimension
# that the layout cuts. Which one?

# %%
@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


SIZES = "batch:64 io:32 hidden:128"
plan = mtf.plan(two_layers, mesh, layout, sizes=SIZES, strict=True)
plan.table()

# %%
rng = np.random.default_rng(2)
x, w, v = (rng.normal(size=shape).astype(np.float32) for shape in ((64, 32), (32, 128), (128, 32)))
y = mtf.simulate(plan)(x=x, w=w, v=v)
by_hand = np.maximum(x @ w, 0) @ v
print("8 devices and NumPy agree:", np.allclose(np.asarray(y), by_hand, rtol=1e-4, atol=1e-3))

# %% [markdown]
# **Why:** x·w contracts `io`, which no rule cuts, so it needs nothing. h·v contracts `hidden`, which lies on `cols`, so
# each device has an addend of its rows of y, and an all-reduce over `cols` adds them. `rows` needs nothing in the
# forward pass.
#
# That is the first paper's point: data parallelism and model parallelism are not two kinds of program but two rules of
# one layout, and they may be used together. The model's code did not change; nothing in `two_layers` says where
# anything lies.
#
# Section 8 of the first paper compares layouts of this network in its Table 1. Here are the first four, forward pass
# only. The last column is the bytes that a device must hold.

# %%
for name, text in {"empty": "", "data-parallel": "batch:(rows cols)", "model-parallel": "hidden:(rows cols)",
                   "mixed": "batch:rows hidden:cols"}.items():
    p = mtf.plan(two_layers, mesh, mtf.Layout(text), sizes=SIZES, strict=True)
    print(f"{name:15} {p.flops():9,} FLOPs, {p.link_bytes().total:6,} bytes sent, {p.memory():7,} held (modelled)")

# %% [markdown]
# The empty layout does all the work on every device. The other three divide the work evenly and differ in what they
# send and hold. Data-parallel sends nothing *forward*; its traffic comes with the gradients, in a later lesson.
#
# ## 5 · A layout that is refused
#
# Both rules below are legal alone. But h has both dimensions, and one mesh axis cannot cut two dimensions of the same
# tensor: device 1 would have to hold block 1 of both, and nobody would hold the off-diagonal blocks.

# %%
try:
    mtf.plan(two_layers, mesh, mtf.Layout("batch:rows hidden:rows"), sizes=SIZES, strict=True)
except mtf.LayoutError as refusal:
    print(refusal)

# %% [markdown]
# The message names the tensor, both dimensions and the axis, and says what would work. Take its advice: `hidden` goes
# on the other axis.

# %%
repaired = mtf.plan(two_layers, mesh, mtf.Layout("batch:rows hidden:cols"), sizes=SIZES, strict=True)
print(f"{repaired!r} sends {repaired.link_bytes().total:,} bytes a device (modelled)")

# %% [markdown]
# ## 6 · When operands disagree: the default and free search
#
# Suppose x does not come as the layout says but cut along `io`, because whatever made it left it so. `place` states
# that. The planner's **default** is that an axis without a conflict keeps its role and nothing moves on it: `rows` cuts
# `io`, w has `io` whole and takes its slice for nothing, so x·w becomes a partial sum. **Free search** may move
# everything and takes the plan that sends the fewest bytes.

# %%
for search in (False, True):
    p = mtf.plan(two_layers, mesh, layout, sizes=SIZES, place={"x": "batch io:rows"}, search=search, strict=True)
    print("free search" if search else "default", f"sends {p.link_bytes().total:,} bytes a device (modelled):")
    for step in p.collectives():
        print("   ", step.label())

# %% [markdown]
# **Why:** by default the addends of h are exchanged; free search moves x before the product, and x is the smaller
# tensor. The default is what both papers' layouts mean, and work stays shared as the layout says. Free search is a tool
# for finding better ones.
#
# ## 7 · Step through it
#
# The explorer shows the plan of section 4: each step with shapes before and after. Press *Run* to execute it on
# simulated devices, then go forward and back and look at any device's values. **Try:**
#
# * the layout `hidden:(rows cols)`: the all-reduce now covers the whole of y and all eight devices;
# * write `x: batch io:rows` into *inputs at*, as in section 6, and switch *steps* to free search and back;
# * go to the last step and compare devices 0 and 1: `h3` before it, `out` after it. (`out` is y.)

# %%
program(two_layers, mesh="rows:4 cols:2", layout="batch:rows hidden:cols", sizes=SIZES)

# %% [markdown]
# ## 8 · Exercises
#
# **Exercise 1 (fill a line).** `layout` is a dictionary from dimension to mesh axis, for example `{"io": "rows"}`.
# `left`, `right` and `out` are lists of dimension names. Return the set of axes over which the einsum's result is a
# partial sum.

# %% tags=["stub"]
def partial_axes(layout, left, right, out):
    ...  # return a set of axis names


check("02 partial_axes", partial_axes)

# %% tags=["solution"]
def partial_axes(layout, left, right, out):
    return {layout[name] for name in left + right if name not in out and name in layout}


check("02 partial_axes", partial_axes)

# %% [markdown]
# **Exercise 2 (fill a line).** For h·v under `batch:rows hidden:cols`, write an `out` that sends half the bytes of
# `"batch io"` and leaves nothing to be summed.

# %% tags=["stub"]
wanted = ...  # a text

check("02 out", wanted)

# %% tags=["solution"]
wanted = "batch:rows io:cols"

check("02 out", wanted)

# %% [markdown]
# **Exercise 3 (write a function).** Return the bytes that one device sends in the forward pass of `two_layers` under
# `batch:rows hidden:cols`. Try your function on the sizes of section 4 first.

# %% tags=["stub"]
def sent_bytes(batch, io, rows, cols, itemsize):
    ...  # return a number of bytes


check("02 sent", sent_bytes)

# %% tags=["solution"]
def sent_bytes(batch, io, rows, cols, itemsize):
    n_bytes = batch // rows * io * itemsize
    return 2 * n_bytes * (cols - 1) // cols


check("02 sent", sent_bytes)

# %% [markdown]
# **Exercise 4 (meet a budget in bytes).** Return the layout from `LAYOUTS` whose plan of `two_layers` holds at most
# `budget` bytes on a device and sends the fewest. This is a layout search, by trying; a later lesson does it for whole
# models.

# %% tags=["stub"]
LAYOUTS = ["", "batch:rows", "hidden:cols", "batch:(rows cols)", "hidden:(rows cols)", "batch:rows hidden:cols"]


def layout_within(mesh, sizes, budget):
    ...  # return one of LAYOUTS


check("02 layout_within", layout_within)

# %% tags=["solution"]
LAYOUTS = ["", "batch:rows", "hidden:cols", "batch:(rows cols)", "hidden:(rows cols)", "batch:rows hidden:cols"]


def layout_within(mesh, sizes, budget):
    plans = {text: mtf.plan(two_layers, mesh, mtf.Layout(text), sizes=sizes) for text in LAYOUTS}
    fitting = [text for text in LAYOUTS if plans[text].memory() <= budget]
    return min(fitting, key=lambda text: plans[text].link_bytes())


check("02 layout_within", layout_within)

# %% [markdown]
# > **Takeaways**
# >
# > * One layout places every tensor; traffic follows from it and from which dimensions an operation contracts.
# > * Kept and cut: nothing to send. Contracted and cut: partial sums. Two roles for one axis: a conflict, something
# >   moves first.
# > * An all-reduce is a reduce-scatter and an all-gather; ask for the result in blocks and you pay half.
# > * The plan that you read is the plan that runs, on simulated and on real devices.
# > * A wrong layout is refused before anything runs, with the tensor, both dimensions and the axis in the message.
#
# **Next:** [lesson 03](03_collectives.ipynb) takes collectives apart, hop by hop. Look at `plan.source()` on the way: the
# same program as plain JAX that you could have written by hand. In the library, read `mtfcore/rules/`. The words are in
# the [glossary](GLOSSARY.md).
