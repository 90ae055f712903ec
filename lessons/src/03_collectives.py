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
# # 03 · Collectives and their cost
#
# **Why:** a layout decides which collectives a program needs; what they cost is decided by bytes, links and hops.
#
# Whoever can count these three sees before anything runs which of two layouts is the cheaper one, and catches the wrong
# factors of 2, 4 and 16 that stand in many texts.
#
# **After this lesson you can**
#
# 1. tell which devices form a group, and find the mistakes in common claims about collectives (exercise 1);
# 2. write a collective as hops between neighbours (exercise 2);
# 3. compute the bytes that a collective makes one device send (exercise 3);
# 4. compute its time on a ring and on a line, and say when bytes do not matter (exercise 4);
# 5. write a training step that keeps to a budget in bytes (exercise 5).
#
# **Needs** [lesson 02](02_layouts.ipynb) · **Minutes** 50–60 · **Hardware** any computer; 64 devices are simulated ·
# **Papers** Efficiently Scaling Transformer Inference (arXiv 2211.05102), appendix A.1; Mesh-TensorFlow
# (arXiv 1811.02084), sections 2 and 6

# %% tags=["setup"]

# %% [markdown]
# ## 1 · A collective is hops between neighbours
#
# Until now a collective was one line in a plan. On real chips nothing jumps from anywhere to everywhere: chips are
# joined by **links** to their neighbours, and a collective is a series of [**steps**](GLOSSARY.md#steps) in which each device sends a message
# over a link. One message over one link in one step is a [**hop**](GLOSSARY.md#hop). `schedules` lists the hops. Take the simplest wiring,
# a [**one-way ring**](GLOSSARY.md#one-way-ring): each device sends only to the next one, and the last one to the first.

# %%
import numpy as np

from mtfcore import schedules

gather = schedules.schedule("all_gather", 4, "ring", n_bytes=1000)
print(f"{gather!r}, each of 1,000 bytes (modelled)")
for hop in gather.hops[:8]:
    print(" ", hop)

# %% [markdown]
# In step 1 each device sends the block that it has. From then on it passes on **what it has just received**. So every
# block travels round the ring, and all links work in every step. Let us carry the hops out, with a different number on
# each device, and look at who holds which blocks.

# %%
held = schedules.start(gather, [np.array([10 * device]) for device in range(4)])
for step in range(1, gather.steps + 1):
    schedules.advance(gather, held, gather.at(step))
    print("after step", step, "devices hold blocks", [sorted(piece.block for piece in pieces) for pieces in held])
print("device 2 holds", [int(value[0]) for _, value in sorted(held[2].items())])
print("and has sent", gather.sent_bytes[2], "bytes (modelled)")

# %% [markdown]
# **Why:** with *g* devices a block has to reach *g* − 1 others, one a step. Each device sends one block in each of
# *g* − 1 steps, so it sends n_bytes·(g − 1). That is the formula of lesson 02; now you have seen where it comes from.
# The replay is strict: a device that is told to send what it does not hold, or two messages on one link in one step, is
# an error. So a schedule that runs through is a proof that the formula can be met.
#
# ## 2 · Run it backwards and add
#
# Take the walk of a ring that runs the other way, let time run backwards, turn the arrows round, and **add** what
# arrives instead of storing it. What spread one block to all devices now collects addends from all devices into one
# block: a reduce-scatter. The addends below are powers of ten, so that each sum shows who has added.

# %%
scatter = schedules.schedule("reduce_scatter", 4, "ring", n_bytes=4000)
for hop in scatter.hops[:5]:
    print(hop)
arrays = [np.array([1, 2, 3, 4]) * 10**device for device in range(4)]
print("before", [array.tolist() for array in arrays])
print("after ", [array.tolist() for array in schedules.replay(scatter, arrays)])

# %% [markdown]
# A reduce-scatter and then an all-gather is an all-reduce, with two walks round the ring. The bytes that each device
# sends, `n_bytes` being what it holds before: n_bytes·(g − 1)/g for the reduce-scatter, twice that for the all-reduce.

# %%
predict("03 ring", "Each device holds 64 MiB of addends. In an all-reduce of 2 devices each sends 64 MiB. "
        "How many MiB does each send when there are 64 devices?", unit="MiB")

# %% tags=["solution"]
predict.record("03 ring", 126)

# %%
MIB = 2**20
sent = {}
for group in (1, 2, 4, 8, 16, 64):
    plan = schedules.schedule("all_reduce", group, "ring", n_bytes=64 * MIB)
    sent[group] = plan.max_sent_bytes / MIB
    print(f"{group:3} devices: {plan.steps:4} steps, each device sends {sent[group]:5.1f} MiB (modelled)")
print(f"  8 devices, all of it directly to everybody: {(8 - 1) * 64} MiB (modelled)")
predict.show("03 ring", sent[64])

# %% [markdown]
# **Why:** (g − 1)/g is ½, ¾, ⅞, …: it approaches 1. So the bytes of an all-reduce hardly depend on the number of
# devices, never more than twice what a device holds. What does grow is the number of steps. A group of one sends nothing
# and has no steps. (Sending everything directly to everybody would be (g − 1)·n_bytes, the last line. That is another
# algorithm, and its figures need another label.)
#
# ## 3 · What is `n_bytes`?
#
# Most wrong figures have a right formula and a wrong `n_bytes`. It is what **one device holds** before the collective:
#
# > elements of the array × bytes an element / parts into which the array lies cut
#
# Elements are not bytes: bf16 has two, f32 four. And axes that take no part in the collective still cut the array.

# %%
predict("03 held", "bf16 rows:1024 columns:4096 on x:4 y:4 z:4, rows cut over x, columns over y, partial sums over z."
        " An all-reduce over z: how many bytes does each device send?", unit="bytes")

# %% tags=["solution"]
predict.record("03 held", 786432)

# %%
@mtf.function
def summed(t: "rows columns"):
    return mtf.reshard(t, "rows:x columns:y")


cube = mtf.Mesh("x:4 y:4 z:4")
plan = mtf.plan(summed, cube, sizes="rows:1024 columns:4096", dtype="bf16", strict=True,
                place={"t": "rows:x columns:y partialsum:z"})
(step,) = plan.collectives()
print(f"{1024 * 4096:,} elements x 2 bytes / 16 parts = {step.n_bytes:,} bytes held by a device")
print(f"{step.label()}: a device sends {step.link_bytes:,} bytes (modelled)")
groups = schedules.every_group(step, cube)
print(len(groups), "groups at the same time:", *(group.devices for group in groups[:3]), "…")
predict.show("03 held", step.link_bytes)

# %% [markdown]
# **Why:** a device holds a sixteenth, 524,288 bytes, and sends 2·¾ of that. Taking the whole array would be 16 times too
# much, a mistake that a well-known online book once made. A [**group**](GLOSSARY.md#group) is the devices that differ only along the axes of
# the collective, here z. The sixteen groups work at the same time, on links of their own.
#
# A layout is read in the same way: with `hidden:cols` the devices that sum over hidden differ only along `cols`. So they
# stand *within one row* of the mesh, not within a column.
#
# ## 4 · Rings, lines and the time of a hop
#
# Links usually work both ways at once. A [**two-way ring**](GLOSSARY.md#two-way-ring) sends each block up and down, so it needs half the steps, and
# each link carries half the bytes. If the group is even, the device opposite gets half of a block from each side. A
# [**line**](GLOSSARY.md#line) is a ring without the link that joins the ends. Chips have both: the axes of a v5e slice, say, are rings only
# if they have the full 16 chips.

# %%
predict("03 line", "All-gather on 4 devices, each holding 8 MiB. On a two-way ring the busiest link carries 12 MiB. "
        "How many MiB does the busiest link of a line carry?", unit="MiB")

# %% tags=["solution"]
predict.record("03 line", 24)

# %%
rate = mtf.chip("v5e").link_bytes_per_second  # published: one link, one way
HOP_SECONDS = 1e-6  # assumed: no hop is faster, however small the message
busiest = {}
for way in ("two_way", "line"):
    plan = schedules.schedule("all_gather", 4, way, n_bytes=8 * MIB)
    busiest[way] = plan.busiest_link_bytes / MIB
    blocks = [int(sent // (8 * MIB)) for sent in plan.sent_bytes.values()]
    print(f"{way:8} {plan.steps} steps, devices send {blocks} blocks, busiest link {busiest[way]} MiB,",
          f"{1e6 * plan.seconds(rate):.0f} µs (modelled)")
    for n_bytes in (64, 4096, 45_000, 90_000):
        small = schedules.schedule("all_gather", 4, way, n_bytes).seconds(rate, HOP_SECONDS)
        print(f"           with {n_bytes:6,} bytes a device: {small * 1e6:.2f} µs (modelled)")
print(f"rate × time of a hop: {rate * HOP_SECONDS:,.0f} bytes")
predict.show("03 line", busiest["line"])

# %% [markdown]
# **Why:** on a line the device at one end must receive all other blocks over its only link: three blocks of 8 MiB. On the
# ring they come from two sides. The time follows the [**busiest link**](GLOSSARY.md#busiest-link), not the mean: on a line the devices do not even
# send the same, the inner ones g + 1 = 5 blocks and those at the ends only one.
#
# The small messages show the other limit. Below rate × time of a hop, the last line, the bytes no longer matter and
# only the number of hops does. Decoding a few tokens at a time lives down there.
#
# ## 5 · All-to-all passes through others
#
# In an all-to-all each device has a block for each other one. The bytes that leave it as its own are n_bytes·(g − 1)/g,
# since it keeps one block of *g*. But on a ring they travel through the devices between, so what a device *sends*,
# passing on included, is more, and it grows with the group.

# %%
for sizes in ((4,), (8,), (16,), (64,), (4, 4, 4)):
    plan = schedules.schedule("all_to_all", sizes, "two_way", n_bytes=64 * 1024)
    own, all_sent = plan.payload_bytes[0], plan.sent_bytes[0]
    print(f"{sizes!s:10} {plan.steps:3} steps, own {own:7,} bytes, all sent {all_sent:9,}, "
          f"busiest link {plan.busiest_link_bytes:7,} (modelled)")

# %% [markdown]
# **Why:** half of the blocks go up and half go down, on average over g/4 links, so each link carries n_bytes·g/8. On 64
# devices in one ring that is 8 times what a device holds. As a [**torus**](GLOSSARY.md#torus) of 4 × 4 × 4, with rings along three axes, the
# same 64 devices need 6 steps instead of 32 and a sixteenth of the time: each block is cut into shares, and each share
# starts along another axis, so all links work at once.
#
# ## 6 · Blocks must exist
#
# A reduce-scatter leaves each device one block. A dimension that does not divide has no such blocks, and the plan is
# refused before anything is sent.

# %%
@mtf.function
def scattered(t: "rows columns"):
    return mtf.reshard(t, "rows columns:z")


addends = {"t": "rows columns partialsum:z"}
try:
    mtf.plan(scattered, "z:4", sizes="rows:2 columns:30", place=addends, strict=True)
except mtf.LayoutError as refusal:
    print(refusal)

# %%
repaired = mtf.plan(scattered, "z:4", sizes="rows:2 columns:32", place=addends, strict=True)
print(f"{repaired!r} sends {repaired.link_bytes().total:,} bytes a device (modelled)")

# %% [markdown]
# ## 7 · The same for real
#
# A schedule is a description. Does JAX's own collective leave the same numbers on the devices? On simulated devices we
# can look. What we can *not* see there is time or paths: simulated devices share this computer's memory, and no link is
# involved. The hops are drawn from the schedule, not measured.

# %%
from mtfcore.one_collective import perform

for kind in ("all_gather", "reduce_scatter", "all_reduce", "all_to_all"):
    real = perform(kind, "z:4", arrays)
    by_hops = schedules.replay(schedules.schedule(kind, 4, "two_way"), arrays)
    print(f"{kind:15} device 1 holds {real[1].tolist()}")
    print("                all devices as the hops say:", all(np.array_equal(a, b) for a, b in zip(real, by_hops)))

# %% [markdown]
# ## 8 · Watch the hops
#
# Play the hops, or step through them. A link grows thicker with the bytes that it has carried. **Try:**
#
# * *kind* all-gather, then *wires* from two-way ring to line: which links carry the most, and which fall idle first?
# * *kind* all-to-all, and follow one block on its way through others;
# * two axes, `x:4 y:4`: at the first step all links are busy, since each share starts along another axis;
# * press *Run*: the real collective, device by device, beside what the hops leave.

# %%
from widgets import traffic

traffic("all_reduce", mesh="x:8", way="two_way", n_bytes=1 << 20)

# %% [markdown]
# ## 9 · Exercises
#
# **Exercise 1 (fill a line).** Some of these claims are wrong, though one hears and reads them. Give the set of
# their numbers.
#
# 1. With the layout `batch:rows hidden:cols`, the sum over hidden runs within each column of the mesh.
# 2. A reduce-scatter sends half the bytes of an all-reduce of the same array.
# 3. An all-reduce over z sends the same bytes, whether or not the array is also cut over x and y.
# 4. A bf16 array of 1024 × 4096 has 4 MiB.
# 5. An all-gather of large blocks takes twice as long on a line as on a two-way ring of as many devices.
# 6. With twice as many devices, an all-reduce makes each of them send about twice as many bytes.

# %% tags=["stub"]
wrong_claims = ...  # a set of numbers, for example {3, 5}

check("03 mistakes", wrong_claims)

# %% tags=["solution"]
wrong_claims = {1, 3, 4, 6}

check("03 mistakes", wrong_claims)

# %% [markdown]
# **Exercise 2 (write a function).** Write a reduce-scatter on a one-way ring of `group` devices as a list of hops
# (step, source, target, block). Steps count from 1. The receiver adds, and in the end block *b* of the sum is on device
# *b*. Keep to the fewest steps and one message on a link in a step.

# %% tags=["stub"]
def scatter_hops(group):
    ...  # return a list such as [(1, 0, 1, 3), …]


check("03 hops", scatter_hops)

# %% tags=["solution"]
def scatter_hops(group):
    return [(step, device, (device + 1) % group, (device - step) % group)
            for step in range(1, group) for device in range(group)]


check("03 hops", scatter_hops)

# %% [markdown]
# **Exercise 3 (write a function).** Return the bytes that one device sends (in an all-to-all, of its own: without what it
# passes on). `kind` is "all_gather", "reduce_scatter", "all_reduce" or "all_to_all"; the whole array has `elements`, and
# lies cut into `parts` parts before the collective.

# %% tags=["stub"]
def sent_bytes(kind, elements, itemsize, parts, group):
    ...  # return a number of bytes


check("03 sent", sent_bytes)

# %% tags=["solution"]
def sent_bytes(kind, elements, itemsize, parts, group):
    n_bytes = elements * itemsize // parts
    if kind == "all_gather":
        return n_bytes * (group - 1)
    walks = 2 if kind == "all_reduce" else 1
    return walks * n_bytes * (group - 1) // group


check("03 sent", sent_bytes)

# %% [markdown]
# **Exercise 4 (write a function).** Return the seconds of an all-gather in a `group` of devices that hold `n_bytes` each.
# `way` is "line" or "two_way"; `rate` is the bytes a second of one link, one way; no hop takes less than `hop_seconds`.
# Mind the last step of an even two-way ring.

# %% tags=["stub"]
def gather_seconds(n_bytes, group, way, rate, hop_seconds):
    ...  # return seconds


check("03 seconds", gather_seconds)

# %% tags=["solution"]
def gather_seconds(n_bytes, group, way, rate, hop_seconds):
    hop = max(n_bytes / rate, hop_seconds)
    if way == "line":
        return (group - 1) * hop
    last = max(n_bytes / 2 / rate, hop_seconds) if group % 2 == 0 else 0
    return (group - 1) // 2 * hop + last


check("03 seconds", gather_seconds)

# %% [markdown]
# **Exercise 5 (meet a budget in bytes).** One step of training, batch cut over `data`. The gradient of w is an einsum
# over the batch, so it is a partial sum; every device needs all of the new w in bf16. As it stands the gradient is
# all-reduced in f32, N elements: 8·N·(g − 1)/g bytes a device. Send at most 6·N·(g − 1)/g, and lose no precision: all
# sums and the subtraction stay in f32.

# %% tags=["stub"]
@mtf.function
def update(x: "batch io", d: "batch hidden", w: "io hidden"):
    # as it stands: return mtf.cast(w - 0.1 * mtf.einsum(x, d, out="io hidden"), "bf16")
    return ...


check("03 update", update)

# %% tags=["solution"]
@mtf.function
def update(x: "batch io", d: "batch hidden", w: "io hidden"):
    gradient = mtf.einsum(x, d, out="io hidden:data")
    new = mtf.cast(w - 0.1 * gradient, "bf16")
    return mtf.reshard(new, "io hidden")


check("03 update", update)

# %% [markdown]
# > **Takeaways**
# >
# > * A collective is hops between neighbours. Gathering passes on what just arrived; summing is the same walk backwards.
# > * Bytes sent: n_bytes·(g − 1) to gather, n_bytes·(g − 1)/g to reduce-scatter, twice that to all-reduce. In an
# >   all-to-all (g − 1)/g is a device's own; what it passes on comes on top.
# > * n_bytes is what one device holds: elements × bytes an element / parts.
# > * Time follows the busiest link: a line takes twice as long as a two-way ring. Small messages cost hops, not bytes.
# > * A torus keeps the ways of an all-to-all short.
#
# **Next:** [lesson 04](04_sharded_einsum.ipynb): which einsum needs which of them. In the library, read
# `mtfcore/schedules/hops.py`; the formulas for rings and lines stand in `mtfcore/schedules/closed_forms.py`. The words are
# in the [glossary](GLOSSARY.md).
