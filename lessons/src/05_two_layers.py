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
# # 05 · Two layers, five layouts
#
# **Why:** the same small network on the same devices spends its time computing or waiting, fits or does not fit, and
# only one short line decides.
#
# The first paper's Table 1 puts the five lines side by side. Here you rebuild the table, check it against what really
# runs, and learn which of its entries survive when a network grows.
#
# **After this lesson you can**
#
# 1. give the ratio of communication to computation, and find the mistake in a version that circulates (exercise 1);
# 2. say how many values a training step all-reduces under any layout (exercise 2);
# 3. grow a network with its mesh so that the ratio stays (exercise 3);
# 4. cut a matrix product so that each processor touches as little as possible (exercise 4);
# 5. meet a budget of bytes held with the fewest bytes sent (exercise 5).
#
# **Needs** [lesson 02](02_layouts.ipynb) · **Minutes** 50–60 · **Hardware** any computer; 64 devices are simulated ·
# **Papers** Mesh-TensorFlow (arXiv 1811.02084), section 8, Table 1 and Appendix B

# %% tags=["setup"]

# %% [markdown]
# ## 1 · One step, six einsums
#
# The network is y = relu(x·w)·v. It stands inside a larger one, so a training step also takes dy, what the rest sends
# back, and gives dx, what goes on to the layers before. Here is the whole step as the library has it.

# %%
import inspect

from mtfcore.costs.first_paper.two_layers_programs import planned, training

print(inspect.getsource(training.call))

# %% [markdown]
# Count the einsums: two forward, four backward. All six run over the same three dimensions, batch, io and hidden. Each
# keeps two of them and sums over the third; two sum over io, two over hidden, two over batch. relu and its slope work
# element by element and send nothing.
#
# The layouts of this lesson cut one, two or three of these dimensions: over the only axis of a mesh, called `all`, over
# `rows` and `cols`, or over `rows`, `cols` and `planes`. So lesson 02's rule tells everything: *kept and cut* sends
# nothing, *contracted and cut* leaves partial sums, which an all-reduce adds up.

# %%
predict("05 all-reduces", "Pure data parallelism, batch:all: how many of the six einsums need an all-reduce?",
        choices=["none", "1", "2", "4", "6"])

# %% tags=["solution"]
predict.record("05 all-reduces", "2")

# %%
from mtfcore.costs.first_paper.two_layers import ROWS, Sizes

sizes = Sizes(batch=64, io=32, hidden=128)
for layout, row in ROWS.items():
    steps = planned(row, sizes, rows=2, cols=2, planes=2).collectives()
    print(f"{layout or 'none':33} {len(steps)} all-reduces:", ", ".join(step.after.text() for step in steps) or "-")
predict.show("05 all-reduces", str(len(planned(ROWS["batch:all"], sizes, 8).collectives())))

# %% [markdown]
# **Why:** under `batch:all` only the two gradients of the weights sum over batch. Under `hidden:all` it is y and dx that
# sum over hidden. Each layout that cuts one more dimension adds its two all-reduces, of smaller tiles (a [**tile**](GLOSSARY.md#tile) is the
# part of a matrix that one device holds). All five rows of the table follow from that one sentence.
#
# ## 2 · The table
#
# The paper writes b for the batch, d_io and d_h for the widths, and r, c, p for the sizes of rows, cols and planes. It
# drops constant factors: it counts one einsum's multiply-adds, and each kind of tile once. Rows two to four below are
# printed in texts about the paper; the first and the last are computed from them, and our tests say so.

# %%
for layout, row in ROWS.items():
    entry, origin = row.printed, "published" if row.published else "modelled"
    print(f"{layout or 'none':33} work {entry.computation:16} all-reduced {entry.communication:36} ({origin})")
    print(f"{'':33} ratio {entry.ratio:22} holds {entry.memory}")

# %% [markdown]
# What the table drops, we keep: two forward einsums and four backward, two FLOPs a multiply-add, two all-reduces of each
# kind of tile, and 2(g − 1)/g bytes sent for each byte all-reduced in a group of g. Then the closed form must be exactly
# what the plan says, and exactly what is counted in the program that runs.

# %%
from mtfcore.costs.first_paper.two_layers import cost

for layout, row in ROWS.items():
    form = cost(row, sizes, row.parts(2, 2, 2), dtype="f32")
    plan = planned(row, sizes, 2, 2, 2, dtype="f32")
    run = mtf.simulate(plan)
    counts = mtf.count(run.fn, *run.shapes)
    sent = (int(form.sent_bytes), plan.link_bytes().total, counts.link_bytes)
    print(f"{layout or 'none':33} sends", *(f"{n:6,}" for n in sent), "bytes (formula and plan modelled, then counted)")
    assert len(set(sent)) == 1 and form.flops == plan.flops() == counts.flops

# %% [markdown]
# **Why:** there is one description of the network, and three ways to read it. Had the table a mistake, or the planner,
# this cell would stop.
#
# ## 3 · Time and memory on a chip
#
# To compare layouts in seconds we need a model of time. The paper's is the simplest: compute at the chip's peak, *then*
# send over one link, and add. Nothing overlaps and nothing is slower than its peak, so it is no forecast. It is good for
# one question: which layout spends the smaller share of its time on the network?
#
# Memory has four parts. **Parameters** are w and v. Training adds their **gradients**, the **optimizer's state** (two
# 32-bit numbers a parameter for Adam), and the [**activations**](GLOSSARY.md#activations) that the backward pass still needs.

# %%
from mtfcore.costs.first_paper.memory import largest, memory
from mtfcore.costs.first_paper.paper_time import step_seconds
from mtfcore.numbers import format_bytes, format_seconds

v2 = mtf.chip("v2")
print(f"one core of a TPU v2 has {format_bytes(v2.hbm_bytes_per_device)} (published)")
big = Sizes(batch=8192, io=4096, hidden=131072)
for layout, row in ROWS.items():
    parts = row.parts(rows=16, cols=8, planes=4)
    seconds, held = step_seconds(cost(row, big, parts), v2), memory(row, big, parts)
    fits = "fits" if held.fits(v2.hbm_bytes_per_device) else "too large"
    print(f"{layout or 'none':33} {format_seconds(seconds.total):>7}, {seconds.efficiency:4.0%} computing, "
          f"{format_bytes(held.total):>8} held: {fits} (modelled)")

# %% [markdown]
# On 512 cores of a TPU v2, *none* and *batch:all* do not fit: cutting the batch does not make the weights smaller. Where
# exactly does memory run out?

# %%
for layout, row in ROWS.items():
    widest = largest(row, big, row.parts(16, 8, 4), "hidden", v2.hbm_bytes_per_device, optimizer="adam")
    print(f"{layout or 'none':33} up to hidden {widest:11,} (modelled)")

# %% [markdown]
# **Why:** with `batch:all` each of 512 devices keeps both matrices, their gradients and their state, as one device alone
# does; only the activations shrink, so the limit grows by a third, with 512 times the devices. Where hidden is cut, weights
# and state are cut with it.
#
# ## 4 · A layout that is refused
#
# The last row cuts all three dimensions, on three axes. Could two of them share one axis, to save a mesh dimension?

# %%
try:
    mtf.plan(training, "rows:4 cols:2", "batch:rows hidden:cols io:cols", sizes=str(sizes), strict=True)
except mtf.LayoutError as refusal:
    print(refusal)

# %% [markdown]
# w has both io and hidden, and one axis cannot cut both. Each dimension needs an axis of its own, and that is why the
# fifth row needs a mesh of three dimensions.

# %%
cubic = "batch:rows hidden:cols io:planes"
repaired = mtf.plan(training, "rows:2 cols:2 planes:2", cubic, sizes=str(sizes), strict=True)
print(f"{repaired!r} sends {format_bytes(repaired.link_bytes().total)} a device (modelled)")

# %% [markdown]
# ## 5 · Growing at constant efficiency
#
# Now let the mesh grow, and the network with it. Under `batch:rows hidden:cols` let rows and the batch become k times as
# large, and cols and the hidden layer too: k² times the devices. Pure data parallelism gets the same networks on the
# same devices.

# %%
predict("05 growth", "From k = 1 to k = 16, that is 256 devices: by how much is the ratio n/b of pure data "
        "parallelism multiplied?", unit="times")

# %% tags=["solution"]
predict.record("05 growth", 16)

# %%
from mtfcore.costs.first_paper.scaling import data_parallel, grow
from mtfcore.costs.first_paper.two_layers_printed import printed_ratio

one = Sizes(batch=256, io=4096, hidden=2048)  # what one device has
mixed = grow(ROWS["batch:rows hidden:cols"], one, (1, 4, 16))
for point, data in zip(mixed, data_parallel(mixed)):
    ratios = [float(printed_ratio(each.row, each.sizes, each.parts)) for each in (point, data)]
    shares = [step_seconds(cost(each.row, each.sizes, each.parts), v2).efficiency for each in (point, data)]
    print(f"devices {point.devices:3}, {point.sizes}: ratio {ratios[0]:.5f}, {shares[0]:.0%} computing; "
          f"by data parallelism {ratios[1]:.5f}, {shares[1]:.0%} (modelled)")
first, *_, last = (float(printed_ratio(data.row, data.sizes, data.parts)) for data in data_parallel(mixed))
predict.show("05 growth", last / first)

# %% [markdown]
# **Why:** every term of c/d_h + r/b is one over *the part of a dimension that one device has*. Growth keeps the parts, so
# it keeps the ratio. For data parallelism the only part is b/n, and k times the batch on k² times the devices is a k-th
# of it. (The shares also count the factor (g − 1)/g, which the table drops: 0 on one device, ¾ for k = 4, 15/16 for
# k = 16. So they start at 100 % and then settle.)
#
# ## 6 · Find the mistake
#
# This circulates about pure data parallelism: *its ratio is n/b, with b the batch on one processor*. Take 64 processors
# and 1,024 examples, 16 on each. By that rule the ratio is 64/16 = 4; in exercise 1 you find what it is.
#
# Another one: *batch over rows and hidden over cols is the cubic partition of the work*. For that we must look at the
# shape of the work.
#
# ## 7 · The shape of the work
#
# A product C = A·B of u × u matrices is u³ multiply-adds, one for each point (i, j, k) of a cube, the [**iteration space**](GLOSSARY.md#iteration-space).
# A layout cuts the cube into blocks, one a processor: [**slabs**](GLOSSARY.md#slabs) if one edge is cut, [**pencils**](GLOSSARY.md#pencils) if two are, [**cubes**](GLOSSARY.md#cubes) if
# all three are. A block's volume is its work; its three faces are the values of A, B and C that it
# touches. Of all blocks of one volume, cubes have the smallest faces.

# %%
from mtfcore.costs.first_paper.iteration_space import Blocks
from mtfcore.costs.first_paper.iteration_space import planned as product

for cut in ((64, 1, 1), (8, 8, 1), (4, 4, 4)):
    blocks = Blocks(*cut)
    sent = product(blocks, 64).link_bytes().total // 4
    print(f"{blocks.kind:8} {float(blocks.ratio(1)):.3f} u FLOPs a value touched; u = 64: touches "
          f"{float(blocks.touched(64)):5,.0f} values, sends {sent:5,} (modelled)")

# %% [markdown]
# The paper's Appendix B prints 0.12 u for pencils and 0.17 u for cubes, about 40 % better (published). It counts the
# tiles that a processor touches. Our collectives send a little less: a processor owns a 64th of each matrix from the
# start, and that much need not travel. The difference is 3·u²/64 exactly.
#
# With two axes a layout cuts two of the three edges: `batch:rows hidden:cols` leaves io whole and makes pencils. A cube
# cuts the summed dimension too, so that several processors sum one tile, which the rule [**owner computes**](GLOSSARY.md#owner-computes), one tile and
# one processor that makes it, does not allow. Only a layout on three axes does.

# %%
from widgets import iteration_space, layouts

iteration_space(processors=64, u=1024)

# %% [markdown]
# **Try:** 512 processors, then 32, which has no cube. Which block comes closest?
#
# ## 8 · All five at once
#
# The explorer prices the five layouts on a chip. **Try:**
#
# * drag `batch` down: whose *sending / computing* grows, and which layout drops out below 512?
# * optimizer `adafactor`: what fits now?
# * planes 1, cols 1, rows 512, then rows 1, cols 512: which extreme is worse, and does a larger `io` change that?
# * chip `v4`, which computes faster but whose links do not send faster: what becomes of *sending / computing*?

# %%
layouts(batch=8192, io=4096, hidden=131072, rows=16, cols=8, planes=4, chip="v2")

# %% [markdown]
# ## 9 · Exercises
#
# **Exercise 1 (fill a line).** Section 6 quotes a wrong ratio for pure data parallelism. Return the right one, with
# `batch` examples on all `n` processors together: the values all-reduced for one weight matrix, divided by the
# multiply-adds that one processor does of one einsum.


# %% tags=["stub"]
def ratio(batch, n):
    return ...  # values a multiply-add


check("05 ratio", ratio)

# %% tags=["solution"]
def ratio(batch, n):
    return n / batch


check("05 ratio", ratio)

# %% [markdown]
# **Exercise 2 (write a function).** Return how many values one device all-reduces in a training step of the two layers,
# if the layout cuts batch into r parts, hidden into c and io into p. A dimension that is not cut (1 part) needs no
# all-reduce.


# %% tags=["stub"]
def allreduced(batch, io, hidden, r, c, p):
    ...  # return a number of values


check("05 allreduced", allreduced)

# %% tags=["solution"]
def allreduced(batch, io, hidden, r, c, p):
    over_batch = io * hidden // (c * p) if r > 1 else 0
    over_hidden = batch * io // (r * p) if c > 1 else 0
    over_io = batch * hidden // (r * c) if p > 1 else 0
    return 2 * (over_batch + over_hidden + over_io)


check("05 allreduced", allreduced)

# %% [markdown]
# **Exercise 3 (write a function).** A network runs under `batch:rows hidden:cols`. Return batch, hidden, rows and cols
# for k² times as many devices, with the same ratio and nothing more than k times as large.


# %% tags=["stub"]
def grown(batch, hidden, rows, cols, k):
    ...  # return four numbers


check("05 grown", grown)

# %% tags=["solution"]
def grown(batch, hidden, rows, cols, k):
    return batch * k, hidden * k, rows * k, cols * k


check("05 grown", grown)

# %% [markdown]
# **Exercise 4 (write a function).** Return (i, j, k), the numbers of parts whose product is `processors`, so that each
# processor touches the fewest values of A, B and C. Trying all cuts is fast enough.


# %% tags=["stub"]
def cut(processors):
    ...  # return three numbers


check("05 cut", cut)

# %% tags=["solution"]
def cut(processors):
    sizes = range(1, processors + 1)
    cuts = [(i, j, processors // (i * j)) for i in sizes for j in sizes if processors % (i * j) == 0]
    return min(cuts, key=lambda parts: sum(1 / (a * b) for a, b in zip(parts, parts[1:] + parts[:1])))


check("05 cut", cut)

# %% [markdown]
# **Exercise 5 (meet a budget in bytes).** Return (rows, cols) with rows·cols = `devices` for which training under
# `batch:rows hidden:cols`, bf16 with Adam, holds at most `budget` bytes on a device and sends the fewest. `cost` and
# `memory` of this lesson are yours to use, and `row.parts(rows, cols)`.


# %% tags=["stub"]
def mesh_within(sizes, devices, budget):
    ...  # row = ROWS["batch:rows hidden:cols"]; return (rows, cols)


check("05 mesh_within", mesh_within)

# %% tags=["solution"]
def mesh_within(sizes, devices, budget):
    row = ROWS["batch:rows hidden:cols"]
    meshes = [(rows, devices // rows) for rows in range(1, devices + 1) if devices % rows == 0]
    fitting = [mesh for mesh in meshes if memory(row, sizes, row.parts(*mesh)).total <= budget]
    return min(fitting, key=lambda mesh: cost(row, sizes, row.parts(*mesh)).sent_bytes)


check("05 mesh_within", mesh_within)

# %% [markdown]
# > **Takeaways**
# >
# > * A step is six einsums over three dimensions. Each cut dimension costs two all-reduces, of tiles of the other two.
# > * Each term of the ratio is one over the part of a dimension that one device has. b is the global batch.
# > * Grow rows with the batch and cols with the hidden layer, and the ratio stays while devices grow with k².
# > * Data parallelism never makes weights, gradients or optimizer state smaller: that is where its memory runs out.
# > * Blocks of work should be as even as possible. Two axes make pencils, three make cubes.
#
# **Next:** [lesson 06](06_training.ipynb) trains a whole Transformer under such layouts. In the library, read
# `mtfcore/costs/first_paper/two_layers.py`. The words are in the [glossary](GLOSSARY.md).
