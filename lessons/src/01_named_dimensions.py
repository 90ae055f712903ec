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
# # 01 · Named dimensions, meshes and slices
#
# **Why:** a model that is too large for one device is cut into pieces, and every later question (how much memory, how
# much traffic, how fast) starts with one plain question: *which piece lies where?*
#
# **After this lesson you can**
#
# 1. write where a tensor lies, as a short text (exercise 1);
# 2. compute which rows any device holds, also when several mesh axes cut one dimension (exercise 2);
# 3. count how many devices hold the same slice (exercise 3);
# 4. choose a placement that meets a memory budget (exercise 4).
#
# **Needs** [lesson 00](00_start_here.ipynb) · **Minutes** 45–60 · **Hardware** any computer; 64 devices are simulated ·
# **Papers** Mesh-TensorFlow (arXiv 1811.02084), sections 2–5; Efficiently Scaling Transformer Inference (arXiv
# 2211.05102), section 3.1

# %% tags=["setup"]

# %% [markdown]
# ## 1 · Dimensions have names
#
# NumPy knows the axes of an array by position: axis 0, axis 1. Nothing stops you from mixing them up. In
# Mesh-TensorFlow each dimension has a **name and a size**, written `batch:16 hidden:12`. Names are what we cut by.
#
# We fill an array so that each value tells where it stands: row 7, column 3 holds 703. When a piece of it turns up on
# some device, you can read off where it came from.

# %%
import numpy as np

dims = "batch:16 hidden:12"
table = 100 * np.arange(16)[:, None] + np.arange(12)
print(table[:4])
print("row 7, column 3:", table[7, 3])

# %% [markdown]
# ## 2 · Devices stand on a mesh
#
# A [**mesh**](GLOSSARY.md#mesh) is an arrangement of devices along named axes. `rows:4 cols:2` is a grid of eight. It is a way to *name*
# devices and says nothing about cables. Devices are numbered row by row, so the last axis counts fastest.

# %%
mesh = mtf.Mesh("rows:4 cols:2")
print(mesh, "=", mesh.size, "devices")
for device in range(mesh.size):
    print("device", device, "stands at", mesh.coordinates(device))

# %% [markdown]
# ## 3 · A sharding says where one tensor lies
#
# A [**sharding**](GLOSSARY.md#sharding) places dimensions on mesh axes. `batch:rows` cuts the batch into four blocks, one for each position
# along `rows`; a dimension without an axis stays whole. The part that a device holds is its [**slice**](GLOSSARY.md#slice).
#
# *Predict first, then run.* Your answer is kept beside this notebook and shown next to the result.

# %%
predict("01 rows", "batch:16 hidden:12 lies as batch:rows on the mesh rows:4 cols:2. "
        "How many of the 16 rows does each device hold?", unit="rows")

# %% tags=["solution"]
predict.record("01 rows", 4)

# %%
s = mtf.Sharding(dims, "batch:rows")
for device in range(mesh.size):
    rows, columns = s.slices(mesh, device)
    print(f"device {device}: rows {rows.start:2}–{rows.stop - 1:2}, first value {table[rows, columns][0, 0]:4}")
predict.show("01 rows", s.local_shape(mesh)[0])

# %% [markdown]
# **Why:** sixteen rows over the four positions of `rows` leave four each. `cols` plays no part, so devices 0 and 1,
# which differ only along `cols`, hold the same values. We call them [**copies**](GLOSSARY.md#copies). Copies cost memory, but a device that
# has a copy need not ask anybody for it.
#
# Now use the second axis too.

# %%
predict("01 bytes", "The same tensor as batch:rows hidden:cols, in float32 (4 bytes an element). "
        "How many bytes does each device hold?", unit="bytes")

# %% tags=["solution"]
predict.record("01 bytes", 96)

# %%
both = mtf.Sharding(dims, "batch:rows hidden:cols")
for name, sharding in {"whole": mtf.Sharding(dims), "batch:rows": s, "batch:rows hidden:cols": both}.items():
    shape, n_bytes = sharding.local_shape(mesh), sharding.bytes_per_device(mesh, "f32")
    print(f"{name:24} {shape!s:8} {n_bytes:4} bytes a device, {sharding.copies(mesh)} copies (modelled)")
print(f"device 5 holds\n{table[both.slices(mesh, 5)]}")
predict.show("01 bytes", both.bytes_per_device(mesh, "f32"))

# %% [markdown]
# **Why:** memory and copies trade against each other. Bytes a device × number of devices = bytes of the tensor ×
# copies. Cutting along one more axis of size 2 halves both.
#
# ## 4 · Two axes on one dimension: the order counts
#
# Several axes may cut one dimension together. Written `batch:(rows cols)`, the outer axis `rows` makes four large
# blocks and `cols` cuts each of them in two. Axes with one-letter names out of w, x, y, z may be written as one word,
# as in the second paper: `E:xy` means `E:(x y)`.

# %%
predict("01 order", "batch:16 on the mesh x:4 y:2. Which rows does the device at x=1, y=0 hold "
        "when batch lies on (y x), y outermost?", choices=["2–3", "4–5", "8–9", "10–11"])

# %% tags=["solution"]
predict.record("01 order", "2–3")

# %%
torus = mtf.Mesh("x:4 y:2")
held = {}
for order in ("xy", "yx"):
    (held[order],) = mtf.Sharding("batch:16", f"batch:{order}").slices(torus, {"x": 1, "y": 0})
    print(f"batch:{order} gives the device at x=1, y=0 rows {held[order].start}–{held[order].stop - 1}")
predict.show("01 order", f"{held['yx'].start}–{held['yx'].stop - 1}")

# %% [markdown]
# **Why:** think of the digits of a number. The outermost axis is the first digit and counts slowest. On `xy` the device
# is block 1·2 + 0 = 2; on `yx` it is block 0·4 + 1 = 1. Both cut the batch into eight blocks of two rows, but they deal
# them out differently, so the two shardings are **not** equal. That matters when devices along one axis put their
# blocks together: along `y` they hold neighbouring blocks on `xy`, where `y` is innermost, but not on `yx`.
#
# ## 5 · A tensor of a real model
#
# The second paper names dimensions by single capitals (B batch, L sequence length, E the model's width `d_model`) and
# mesh axes by x, y, z, and writes the axes as a subscript. Here are the activations of one decode step of the largest
# model that it studies, with 540 billion parameters and E = 18,432 (published, its Table D.1), for a batch of our
# choice cut over 64 devices. Nothing is allocated: a sharding is only names and numbers, so a tensor of any size costs
# the same to reason about.

# %%
step = mtf.Sharding("B:512 L:1 E:18432", "E:xyz")
cube = mtf.Mesh("x:4 y:4 z:4")
print(f"in the paper's form {step}; in the form that reads back {step.text()!r}")
print("shape on each of the", cube.size, "devices:", step.local_shape(cube))
print(f"bytes on each in bf16 (modelled): {step.bytes_per_device(cube, 'bf16'):,}")
corner = {"x": 1, "y": 2, "z": 3}
columns = step.slices(cube, corner)[2]
print(f"device {corner} is block {cube.block(corner, 'xyz')} and holds columns {columns.start}–{columns.stop - 1}")

# %% [markdown]
# Check the last line by hand with the digits of block numbers: the block is (1·4 + 2)·4 + 3, and its first column is
# that number times the columns of one device.
#
# ## 6 · What is refused
#
# Suppose the batch is 10 and the mesh has `rows:4`. Ten rows do not make four equal blocks. Meshwork never pads in
# silence: it refuses before anything runs, and names the dimension, the size, the axis and the nearest sizes that work.

# %%
try:
    mtf.Sharding("batch:10 hidden:12", "batch:rows").local_shape(mesh)
except mtf.LayoutError as refusal:
    print(refusal)

# %% [markdown]
# Two repairs are offered: another size, or leaving the dimension whole. Take the larger neighbour. (A third way,
# padding on request, waits until we have tensors to pad.)

# %%
repaired = mtf.Sharding("batch:12 hidden:12", "batch:rows")
print("batch:12 gives each device", repaired.local_shape(mesh))

# %% [markdown]
# ## 7 · The same on live devices
#
# So far nothing was stored anywhere: slices follow from names and sizes alone. Now put the table onto eight of the
# simulated devices. JAX calls the same placement a `PartitionSpec`; ours converts to it. Then compare, device by
# device, what JAX stored with what our sharding says.

# %%
import jax
import treescope

jax_mesh = jax.sharding.Mesh(np.array(jax.devices()[:8]).reshape(4, 2), mesh.names)
placed = jax.device_put(table, jax.sharding.NamedSharding(jax_mesh, both.partition_spec()))
for shard in placed.addressable_shards:
    assert (np.asarray(shard.data) == table[both.slices(mesh, shard.device.id)]).all()
print(both.partition_spec(), "– all 8 devices hold exactly what our sharding says")
treescope.render_array_sharding(placed)

# %% [markdown]
# The picture above is drawn by [treescope](https://treescope.readthedocs.io) from the live array. Below is Meshwork's
# own view of the same sharding. It needs no array and no devices, so it also shows tensors far too large for this
# computer.
#
# **Try, and watch the slices:**
#
# * drag `cols` from 2 to 4: what happens to the columns a device holds, and to the bytes?
# * set `rows` to 1: an axis of size 1 is legal and cuts nothing;
# * put both dimensions on `rows`: read the sentence below the picture;
# * click a device to see its ranges.

# %%
slices(dims="batch:16 hidden:12", mesh="rows:4 cols:2", layout="batch:rows hidden:cols", dtype="f32",
       tensors="table: batch hidden")

# %% [markdown]
# ## 8 · Exercises
#
# Each check tries your answer on random sizes and meshes. If you are stuck, press *Hint*; there are three steps, and
# the last one is the solution.
#
# **Exercise 1 (fill a line).** Write the placement that cuts `batch` over `rows` and `hidden` over `cols`.

# %% tags=["stub"]
placement = ...  # a text

check("01 place", placement)

# %% tags=["solution"]
placement = "batch:rows hidden:cols"

check("01 place", placement)

# %% [markdown]
# **Exercise 2 (write a function).** `batch` has `n_rows` rows and lies on several axes, outermost first. `sizes` are
# the axes' sizes and `position` is where one device stands on them, in the same order. Return the first row that it
# holds, and the row after its last: for 16 rows, sizes (4, 2) and position (1, 0) that is (4, 6).

# %% tags=["stub"]
def row_range(n_rows, sizes, position):
    ...  # return first, after_last


check("01 row_range", row_range)

# %% tags=["solution"]
def row_range(n_rows, sizes, position):
    block, blocks = 0, 1
    for size, at in zip(sizes, position):
        block, blocks = block * size + at, blocks * size
    rows = n_rows // blocks
    return block * rows, (block + 1) * rows


check("01 row_range", row_range)

# %% [markdown]
# **Exercise 3 (write a function).** A tensor is cut along the mesh axes in `used` and along no others. How many devices
# hold the same slice? `mesh.shape` is a dictionary from axis name to size.

# %% tags=["stub"]
def copies(mesh, used):
    ...  # return a whole number


check("01 copies", copies)

# %% tags=["solution"]
def copies(mesh, used):
    count = 1
    for axis, size in mesh.shape.items():
        if axis not in used:
            count = count * size
    return count


check("01 copies", copies)

# %% [markdown]
# **Exercise 4 (meet a budget in bytes).** A weight `d_model:512 d_ff:1536` in bf16 must fit into `budget` bytes on each
# device. Return the placement of `d_ff` (on `rows`, on `cols`, on both, or on none) that meets the budget and keeps as
# many copies as it can. More copies will mean less traffic later.

# %% tags=["stub"]
WEIGHT = "d_model:512 d_ff:1536"


def place_within(mesh, budget):
    ...  # return a text such as "d_ff:rows", or "" for none


check("01 place_within", place_within)

# %% tags=["solution"]
WEIGHT = "d_model:512 d_ff:1536"


def place_within(mesh, budget):
    options = ["", "d_ff:rows", "d_ff:cols", "d_ff:(rows cols)"]
    shardings = {placed: mtf.Sharding(WEIGHT, placed) for placed in options}
    fitting = [p for p in options if shardings[p].bytes_per_device(mesh, "bf16") <= budget]
    return max(fitting, key=lambda p: shardings[p].copies(mesh))


check("01 place_within", place_within)

# %% [markdown]
# > **Takeaways**
# >
# > * A dimension has a name and a size; a mesh has named axes; a sharding maps the one to the other.
# > * Each device's slice follows from its coordinates alone, without any array.
# > * Axes that a tensor does not use hold copies. Bytes a device × devices = bytes of the tensor × copies.
# > * Several axes on one dimension are ordered, the outermost first, and the order is part of the sharding.
# > * What does not divide is refused before anything runs, with the sizes that would work.
#
# **Next:** [lesson 02](02_layouts.ipynb) gives *all* tensors one common layout and finds the traffic that follows from
# it. The words are collected in the [glossary](GLOSSARY.md). In the library, read `mtfcore/sharding.py`, or run `import
# inspect; print(inspect.getsource(mtf.Sharding.slices))`: it is your `row_range`, for every dimension at once.
