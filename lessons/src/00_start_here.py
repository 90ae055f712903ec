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
# # 00 · Start here
#
# **Why:** everything in this course runs on your own computer, which plays the part of up to 64 devices, and this
# lesson makes sure that it can.
#
# You also get the words, and the four ways to run a function, that all other lessons use.
#
# **After this lesson you can**
#
# 1. check your installation and make a mesh of devices (exercise 1);
# 2. write a function of named tensors, run it in four ways and say what each is good for (exercise 2);
# 3. find how many devices a budget of work asks for (exercise 3).
#
# **Needs** a little Python and NumPy · **Minutes** 40–50 · **Hardware** any computer; 64 devices are simulated ·
# **Papers** Mesh-TensorFlow (arXiv 1811.02084), sections 1–3
#
# **How to work:** click a cell and press Shift+Enter to run it and go on. Run the cells from top to bottom. The message
# *name 'check' is not defined*, or another name, means that a cell above has not run since the kernel started. If
# something goes wrong, *Kernel → Restart Kernel* and start at the top again; nothing that you typed is lost. The
# [map of the course](MAP.md) shows which lesson needs which.
#
# ## 1 · Setting up
#
# The next cell is the first of every lesson. It asks for 64 simulated devices, which has to happen before JAX, the
# library that computes, starts.

# %% tags=["setup"]

# %% [markdown]
# Now let the doctor look at your computer. A row marked *fix* says in one sentence what to do; a row marked *note* is
# good to know. If all is well, go on.

# %%
mtf.doctor()

# %% [markdown]
# ## 2 · Predict, run, explain
#
# Lessons ask you to guess before you see. Type a number, press the button, and watch the line below change: that also
# shows that page and kernel talk to each other. Nobody grades your guesses. They are kept, with your solved exercises,
# in the small file `.meshwork-progress.json` beside this notebook, and nowhere else.

# %%
predict("00 devices", "A mesh has 4 rows and 2 columns of devices. How many devices is that?", unit="devices")

# %% tags=["solution"]
predict.record("00 devices", 8)

# %%
mesh = mtf.Mesh("rows:4 cols:2")
predict.show("00 devices", mesh.size)

# %% [markdown]
# **Why:** a [**mesh**](GLOSSARY.md#mesh) is a grid with named **axes**, here `rows` and `cols`, and the sizes multiply. It gives every
# device a name, such as *row 2, column 1*. It does not say how the devices are wired.
#
# Every section goes the same way: *predict*, *run*, *explain*. When your guess is wrong, stop for a moment and find out
# what you counted differently, before you read on. That moment is where most of the learning happens.
#
# ## 3 · The words
#
# | word | meaning |
# |---|---|
# | dimension | a name and a size, `batch:64` |
# | mesh | devices along named axes, `rows:4 cols:2` |
# | layout | which dimension is cut along which mesh axis, `batch:rows` |
# | slice | the part of a tensor that one device holds |
# | step | one local computation, or one exchange among devices |
# | plan | all the steps of a function, in order |
#
# All words are in the [glossary](GLOSSARY.md); who comes from Mesh-TensorFlow, from the second paper or from JAX finds
# theirs beside ours on the [cheat sheet](CHEATSHEET.md). Here are the first four at work: a tensor of 8 × 6 numbers, its batch
# cut along `rows`. In each number the digits tell the row and the column.

# %%
import numpy as np

table = 10 * np.arange(8)[:, None] + np.arange(6)
layout = mtf.Layout("batch:rows hidden:cols")
sharding = layout.sharding("batch:8 io:6", mesh)
for device in (0, 1, 6):
    print(f"device {device} {mesh.coordinates(device)} holds\n{table[sharding.slices(mesh, device)]}")

# %% [markdown]
# Devices 0 and 1 hold the same slice, since they stand in the same row and no rule cuts `io`. Lesson 01 is about
# slices.
#
# Why cut a tensor at all? In plain data-parallel training every device holds all weights of the model and a part of the
# batch. That stops working when the weights no longer fit into one device's memory, or when the batch becomes too small
# to share. Mesh-TensorFlow's answer is to let *any* dimension be cut along *any* mesh axis, and to write that down in
# one line instead of rewriting the model. The line is the layout.
#
# ## 4 · A function of named tensors
#
# A **named function** says the dimensions of its arguments, as texts. Inside, `mtf.einsum` multiplies two tensors and
# sums over the dimensions that `out` leaves out. Nothing in it says how many devices there are, or where anything lies.

# %%
@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


SIZES = "batch:8 io:6 hidden:10"
rng = np.random.default_rng(0)
x, w, v = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((8, 6), (6, 10), (10, 6)))

# %% [markdown]
# ## 5 · Four ways to run it
#
# **Abstract.** Plan it: shapes, steps, bytes and FLOPs, without devices and without values. So the mesh may be as large
# as you like. A FLOP is one floating-point addition or multiplication; it is how we count work.

# %%
predict("00 work", "A batch of 4,096 is cut over rows, hidden over cols. One of the 4 × 2 devices does how many times "
        "the work of one of the 1024 × 2?", unit="times")

# %% tags=["solution"]
predict.record("00 work", 256)

# %%
large = "batch:4096 io:6 hidden:10"
few = mtf.plan(two_layers, "rows:4 cols:2", layout, sizes=large, strict=True)
many = mtf.plan(two_layers, "rows:1024 cols:2", layout, sizes=large, strict=True)
print(f"one device of 8 does {few.flops():,} FLOPs, one of 2048 does {many.flops():,} (modelled)")
predict.show("00 work", few.flops() / many.flops())

# %% [markdown]
# **Why:** the same work is shared among more devices. Whether they can exchange their parts as fast is another
# question, and most of this course.
#
# **Single.** Call the function on arrays: one device, whole arrays, no mesh. This is the answer that all other ways are
# compared with.
#
# **Explicit.** Simulate a plan: each device computes on its slices, and the plan's steps say what is exchanged.
#
# **Compiler.** Hand whole arrays to JAX's compiler with hints where they lie, and let it choose what to exchange. Both
# papers compare with it.

# %%
plan = mtf.plan(two_layers, mesh, layout, sizes=SIZES, strict=True)
answers = {
    "single": two_layers(x, w, v),
    "explicit": mtf.simulate(plan)(x, w, v),
    "compiler": mtf.partitioned(plan)(x, w, v),
}
for way, y in answers.items():
    y = np.asarray(y)
    print(f"{way:9} first row {y[0].astype(int)}, agrees with NumPy: {np.allclose(y, np.maximum(x @ w, 0) @ v)}")

# %% [markdown]
# Three ways, one answer. They do not have to agree to the last bit in general: sums in another order round differently.
# With the whole numbers that we chose, every order gives the same result.
#
# The plan that you read is the plan that ran. Here it is, one row for each step. Arrows show where tensors lie before
# and after. Only the last step sends anything: there, devices that hold parts of one sum add them up. Lesson 02 shows why.

# %%
plan.table()

# %% [markdown]
# ## 6 · When the mesh is too large
#
# Planning works on any mesh, but running needs devices. This computer plays 64. Ask for 128 and you are told so at
# once, before anything runs.

# %%
too_large = mtf.plan(two_layers, "rows:64 cols:2", layout, sizes="batch:64 io:6 hidden:10", strict=True)
try:
    mtf.simulate(too_large)
except mtf.DeviceError as refusal:
    print(refusal)

# %%
repaired = mtf.plan(two_layers, "rows:32 cols:2", layout, sizes="batch:64 io:6 hidden:10", strict=True)
print(mtf.simulate(repaired), "runs on", repaired.mesh.size, "devices")

# %% [markdown]
# **Why:** one device cannot stand at two positions of a mesh, so running asks for as many devices as the mesh has. If
# the mesh is smaller than what is there, the rest stays idle and Meshwork says so. On a real machine the same rule
# holds for the chips in it: lessons run there unchanged.
#
# ## 7 · Where numbers come from
#
# Every number in this course carries one of five words: **modelled** (from a formula or a plan), **counted** (in the
# program that really runs), **compiled** (a compiler's report), **measured** (a clock, on a named device),
# **published** (a paper's table). They are never mixed.
#
# In particular, time on simulated devices says nothing about hardware: 64 devices share the few cores of your computer.
# So lessons show you steps, bytes and FLOPs, which are the same everywhere, and leave seconds to real devices.
#
# ## 8 · A picture to play with
#
# Explorers show the same things with sliders. **Try:** drag `rows`, and watch the slices; click a device; then choose a
# size that does not divide, and read the sentence below the picture. An explorer never breaks; it says what would work.

# %%
slices(dims="batch:8 io:6", mesh="rows:4 cols:2", layout="batch:rows", tensors="table: batch io")

# %% [markdown]
# ## 9 · Exercises
#
# Replace the dots, run the cell, and read the report. *Hint* helps in three steps; the last one is the solution.
#
# **Exercise 1 (fill a line).** Return a mesh with the axes `rows` and `cols` of the given sizes.

# %% tags=["stub"]
def make_mesh(rows, cols):
    return ...  # a mtf.Mesh


check("00 mesh", make_mesh)

# %% tags=["solution"]
def make_mesh(rows, cols):
    return mtf.Mesh(f"rows:{rows} cols:{cols}")


check("00 mesh", make_mesh)

# %% [markdown]
# **Exercise 2 (write a function).** Complete the named function: multiply `x` by `w` and add `b`. (`b` has no batch; a
# missing dimension is simply repeated.)

# %% tags=["stub"]
@mtf.function
def linear(x: "batch io", w: "io hidden", b: "hidden"):
    return ...


check("00 linear", linear)

# %% tags=["solution"]
@mtf.function
def linear(x: "batch io", w: "io hidden", b: "hidden"):
    return mtf.einsum(x, w, out="batch hidden") + b


check("00 linear", linear)

# %% [markdown]
# **Exercise 3 (meet a budget in FLOPs).** One device may do at most `budget` FLOPs of `two_layers`. Return the smallest number
# of devices, a power of two, that meets the budget when the work is shared evenly. One multiply-add is two FLOPs, and
# relu is not counted.

# %% tags=["stub"]
def devices_for(batch, io, hidden, budget):
    ...  # return 1, 2, 4, … or 64


check("00 devices_for", devices_for)

# %% tags=["solution"]
def devices_for(batch, io, hidden, budget):
    devices = 1
    while 2 * 2 * batch * io * hidden / devices > budget:
        devices = 2 * devices
    return devices


check("00 devices_for", devices_for)

# %% [markdown]
# > **Takeaways**
# >
# > * A named function says dimensions; a mesh names devices; a layout says which dimension is cut along which axis.
# > * Abstract, single, explicit, compiler: four ways to run one function. They must agree, and tests see to it.
# > * What you plan is what runs, step by step.
# > * Every number says where it comes from. Simulated time is not speed.
#
# **Next:** [lesson 01](01_named_dimensions.ipynb) looks closely at slices. Words are in the [glossary](GLOSSARY.md).
