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
# # 06 · A Transformer trained on a mesh
#
# **Why:** training is where layouts pay or cost: the backward pass sends what the forward pass did not, the optimizer
# holds more than the model, and a layout that is good for one is not always good for the other.
#
# **After this lesson you can**
#
# 1. write the backward of a product as two einsums, and say what each must send (exercise 1);
# 2. compute what parameters and optimizer state cost each device (exercise 2);
# 3. pad a dimension that does not divide, and say what the padding wastes (exercise 3);
# 4. choose a layout whose training step stays under a budget of bytes (exercise 4);
# 5. make a training step fit in memory, with the optimizer and with recomputation (exercise 5).
#
# **Needs** [lesson 02](02_layouts.ipynb) · **Minutes** 55–60 · **Hardware** any computer; 64 devices are simulated ·
# **Papers** Mesh-TensorFlow (arXiv 1811.02084), sections 8, 9 and 11; Adafactor (arXiv 1804.04235)

# %% tags=["setup"]

# %% [markdown]
# ## 1 · Gradients are named operations
#
# `mtf.gradients(loss, params)` stands inside a named function and appends the backward pass to it, as more named
# operations. So the planner places the backward by the same rules as the forward: you can read it, count its bytes and
# run it step by step. The rule for a product y = x·w with the cotangent d of y (how fast the loss changes with y) is
# two more products: the cotangent of w is x·d summed over `batch`, that of x is d·w summed over the outputs.
#
# Here are the first paper's two layers with a loss. x and the target t are data, so nobody needs their gradients.

# %%
import numpy as np


@mtf.function
def loss(x: "batch io", w: "io hidden", v: "hidden io", t: "batch io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.mean(mtf.square(mtf.einsum(h, v, out="batch io") - t))


@mtf.function
def slopes(x: "batch io", w: "io hidden", v: "hidden io", t: "batch io"):
    return mtf.gradients(loss(x, w, v, t), {"dw": w, "dv": v})


predict("06 products", "The forward pass has 2 products. How many has the backward pass, for the gradients of w and v?",
        unit="products")

# %% tags=["solution"]
predict.record("06 products", 3)

# %%
SIZES = "batch:64 io:32 hidden:128"
forward = mtf.plan(loss, "rows:4", "batch:rows", sizes=SIZES, strict=True)
backward = mtf.plan(slopes, "rows:4", "batch:rows", sizes=SIZES, strict=True)
products = [sum(step.flops > 0 for step in plan.steps) for plan in (forward, backward)]
print(f"products: {products[0]} forward, {products[1]} with the backward;",
      f"FLOPs of a device: {forward.flops():,} and {backward.flops():,} (modelled)")
predict.show("06 products", products[1] - products[0])

# %% [markdown]
# **Why:** v gets one product (h·d), w another (x·d), and between them the cotangent must come back from y to h (d·v):
# three. Had x a gradient too, there would be four, twice the forward. A deep model, where only the first layer's input
# is data, comes close to that: backward costs about twice the forward, a step three times.
#
# Under `batch:rows` the forward sent nothing but the loss. The backward sums over `batch`, and `batch` is cut.

# %%
predict("06 sent", "w and v have 4,096 elements each, in f32, and rows has size 4. How many bytes does each device "
        "send for both gradients?", unit="bytes")

# %% tags=["solution"]
predict.record("06 sent", 49152)

# %%
for step in backward.collectives():
    print(f"{step.label():28} {step.arrow()}   n_bytes {step.n_bytes:,}")
predict.show("06 sent", backward.link_bytes().total)

# %% [markdown]
# **Why:** each gradient is a partial sum over `rows`, and is wanted where its weight lies: whole on every device. That
# is an all-reduce of 16,384 bytes, which makes a device send 2 · 16,384 · 3/4, and there are two. This is the traffic
# of data-parallel training, and it does not depend on the batch. With `hidden:rows` instead, the gradients lie cut as
# the weights do and nothing is sent for them.
#
# Step through the mixed layout. **Try:** press *Run*, then look for the steps where the addends of dv and dw are summed
# over `rows`; change the layout to `hidden:(rows cols)` and see those two all-reduces go.

# %%
program(slopes, mesh="rows:4 cols:2", layout="batch:rows hidden:cols", sizes=SIZES)

# %% [markdown]
# ## 2 · One training step, one function
#
# A Transformer's step is the same thing, larger: forward, backward, and the optimizer's update of every parameter, as
# **one** named function. `mtf.model.training_step` makes it from a loss, a declaration of parameters and an optimizer. The
# configuration below is a toy with the dimensions of the real ones; letters are those of the course: B batch, L length,
# E d_model, F d_ff, H heads, D head size, V vocabulary, P positions.

# %%
from mtfcore.costs.pricing.liveness import peak_memory
from mtfcore.model.optimizers import SGD, Adafactor, Adam

cfg = mtf.model.config("tiny-lm", d_model=32, d_ff=128, heads=8, head_size=8, max_length=64)
step = mtf.model.training_step(mtf.model.loss(cfg), cfg.params, Adam(learning_rate=3e-3))
print(f"{cfg.n_params:,} parameters:", ", ".join(f"{name} [{param.text}]" for name, param in cfg.params.items()))
for mesh, name in (("all:8", "mtf-data"), ("all:8", "mtf-1d"), ("rows:4 cols:2", "mtf-2d")):
    layout = mtf.model.read_layout(name)
    plan = mtf.plan(step, mesh, layout, sizes="B:16 L:32", strict=True)
    print(f"{layout!s:28} {plan.flops():12,} FLOPs, {plan.link_bytes().total:9,.0f} bytes sent (modelled)")
alone = mtf.plan(mtf.model.loss(cfg), mesh, layout, sizes="B:16 L:32", strict=True)
print(f"the step has {plan.flops() / alone.flops():.2f} times the FLOPs of the loss alone")

# %% [markdown]
# `read_layout` knows these three layouts by name. All three divide the products evenly. They differ in how much they
# send, and of what: data-parallel sends gradients, so its bytes grow with the model; the model-parallel layout of the
# paper's section 9 (`vocab`, `d_ff` and `heads` on one axis) sends activations, so its bytes grow with the batch; the
# mixed one sends some of both.
#
# ## 3 · Train it
#
# The text is Python source code: the standard library on your own disk, byte by byte. `Trainer` plans the step, leaves
# parameters and optimizer state on the devices and hands you one event a step. If you press ■ in the toolbar, the cell
# ends with a KeyboardInterrupt and nothing is lost: a new `trainer.run(60)` goes on at the last finished step. The loss
# is in [**nats**](GLOSSARY.md#nats), the natural logarithm of how many bytes, all equally likely, would be as hard to guess. The dashed line
# is what a model could reach that knows only how often each byte comes.

# %%
from widgets import LossCurve

data = {"batch": 16, "length": 32, "seed": 6}
trainer = mtf.model.Trainer(cfg, "rows:4 cols:2", "mtf-2d", Adam(learning_rate=3e-3), **data)
chance = trainer.batches.text.unigram_nats
curve = LossCurve(level=chance, level_name="frequencies of bytes only", unit="nats a byte")
for event in curve.follow(trainer.run(60)):
    if event.step in (1, 60):
        sent = f"{event.traffic:,.0f} bytes sent by each device (modelled)"
        print(f"step {event.step}: {event.tokens:,} bytes of text seen, {sent}")
print(f"mean of the last five: {np.mean(curve.losses[-5:]):.2f} nats a byte; frequencies of bytes only: {chance:.2f}")

# %%
predict("06 curves", "The same seed on another layout and another mesh. Its loss curve will be …",
        choices=["the same up to rounding", "as good but different", "the same for data-parallel layouts only"])

# %% tags=["solution"]
predict.record("06 curves", "the same up to rounding")

# %%
other = mtf.model.Trainer(cfg, "all:8", "mtf-1d", Adam(learning_rate=3e-3), **data)
again = [event.loss for event in other.run(20)]
difference = max(abs(a - b) for a, b in zip(curve.losses, again))
print(f"largest difference of the two curves in {len(again)} steps: {difference:.1e} nats")
found = "the same up to rounding" if difference < 1e-3 else "as good but different"
predict.show("06 curves", found, "measured")

# %% [markdown]
# **Why:** a layout changes where numbers lie and in which order sums are formed, nothing else. Initial values and batches
# depend on the seed alone; so would dropout, whose random numbers belong to an element, not to a device.
#
# So a run may also change its mesh on the way. A checkpoint holds whole arrays and does not know where they lay.

# %%
path = trainer.save("lesson06/step60.safetensors")
print(f"the run on {trainer.program.mesh} stands at step {trainer.step}, that on {other.program.mesh} at {other.step}")
other.resume(path)
print(f"resumed on {other.program.mesh} at step {other.step}")
print("goes on at", [round(event.loss, 2) for event in other.run(3)])
writer = mtf.model.Writer(cfg, other.state, "all:8", "mtf-1d", length=32, temperature=0.7, top_k=20)
print(writer.text(["def "], 80, seed=1)[0])

# %% [markdown]
# The model can write: the last lines are what it makes of `def `. After 60 steps it has learnt little more than which
# characters follow each other. The vocabulary is cut over the eight devices, and still nothing of its size is sent to
# choose a character. Change the temperature or the seed.
#
# ## 4 · Memory
#
# At the fullest moment a device holds parameters, optimizer state, and whatever the backward pass still needs of the
# forward. **Adam** keeps two numbers for every parameter. **Adafactor** keeps, of a matrix, one number a row and one a
# column. [**Recomputation**](GLOSSARY.md#recomputation) keeps only the input of each block and computes the rest again in the backward.

# %%
for optimizer in (SGD(learning_rate=0.1), Adam(learning_rate=3e-3), Adafactor()):
    for again in (False, True):
        fn = mtf.model.training_step(mtf.model.loss(cfg, recompute=again), cfg.params, optimizer)
        plan = mtf.plan(fn, "rows:4 cols:2", mtf.model.read_layout("mtf-2d"), sizes="B:16 L:32", strict=True)
        held = peak_memory(plan)
        print(f"{type(optimizer).__name__:10} {'recomputed' if again else 'kept':10} parameters and state "
              f"{held.inputs:8,}, between {held.between:9,} bytes, {plan.flops():10,} FLOPs (modelled)")

# %% [markdown]
# *Between* is what stands between the inputs and the results at the fullest moment, activations most of all.
# Recomputation buys memory with work, the forward of the blocks once more: the last column says how much. It is worth
# it where the batch, not the model, fills the memory.
#
# ## 5 · What does not divide
#
# A byte has 256 values; three devices cannot share them evenly.

# %%
byte_loss, vocab_layout = mtf.model.loss(cfg), mtf.model.read_layout("vocab:cols")
try:
    mtf.plan(byte_loss, "cols:3", vocab_layout, sizes="B:16 L:32", strict=True)
except mtf.LayoutError as refusal:
    print(refusal)

# %%
from mtfcore.model.data import padded_vocab

padded = cfg.but(vocab=padded_vocab(3))
repaired = mtf.plan(mtf.model.loss(padded), "cols:3", vocab_layout, sizes="B:16 L:32", strict=True)
print(f"{padded.vocab} entries: {(padded.vocab - cfg.vocab) / padded.vocab:.1%} of the vocabulary's work is padding")
print(f"9 heads padded for 16 devices: {(16 - 9) / 16:.0%}")

# %% [markdown]
# Padding happens only when you ask for it, because it costs: the rows that nobody uses are multiplied like the others.
# Of a vocabulary it is little; of a few heads on many devices it is nearly half the work, and another layout is better.
#
# ## 6 · Let the machine choose
#
# The paper ends with a hope: to find the best layout automatically. The step is one function, so that is a **layout
# search** over meshes and layouts, each priced by its plan. For the eight cores of a small slice of TPU v2 it goes through every mesh,
# once with few sequences and once with many, and proves its answer, or says how much a longer search could save at most.

# %%
for batch in (8, 64):
    search = mtf.search_layout(step, "v2:2x2", sizes=f"B:{batch} L:64", dtype="f32", seconds=8, top=3)
    print(f"batch {batch}:")
    print(search, "\n")

# %% [markdown]
# **Why:** times are modelled with the first paper's rule, FLOPs at the chip's peak, then bytes over one link, added.
# With few sequences the gradients weigh more than the activations, so the winner also splits what makes them large.
# With many, splitting the batch alone is best: its traffic does not grow with the batch, and all other traffic does.
#
# ## 7 · Exercises
#
# **Exercise 1 (fill a line).** y = x·w. `d` is the cotangent of y. Return the cotangents of x and of w, as two einsums.

# %% tags=["stub"]
def backward_of(x, w, d):  # x: batch io, w: io hidden, d: batch hidden
    ...  # return two tensors: batch io, io hidden


check("06 backward", backward_of)

# %% tags=["solution"]
def backward_of(x, w, d):  # x: batch io, w: io hidden, d: batch hidden
    return mtf.einsum(d, w, out="batch io"), mtf.einsum(x, d, out="io hidden")


check("06 backward", backward_of)

# %% [markdown]
# **Exercise 2 (write a function).** Return the bytes of one device for a matrix `rows × cols` in f32 and its optimizer
# state. The matrix is cut into `row_parts` × `col_parts`; `optimizer` is `"sgd"` (without momentum), `"adam"` or
# `"adafactor"`, whose state is cut like the dimension that it has.

# %% tags=["stub"]
def state_bytes(rows, cols, row_parts, col_parts, optimizer):
    ...  # return a number of bytes


check("06 state", state_bytes)

# %% tags=["solution"]
def state_bytes(rows, cols, row_parts, col_parts, optimizer):
    rows, cols = rows // row_parts, cols // col_parts
    state = {"sgd": 0, "adam": 2 * rows * cols, "adafactor": rows + cols}[optimizer]
    return 4 * (rows * cols + state)


check("06 state", state_bytes)

# %% [markdown]
# **Exercise 3 (write a function).** Return the smallest size of at least `size` that divides over `parts`, and the share
# of the padded work that is wasted, a number from 0 to 1.

# %% tags=["stub"]
def padded_size(size, parts):
    ...  # return the new size and the share


check("06 padded", padded_size)

# %% tags=["solution"]
def padded_size(size, parts):
    new = -(-size // parts) * parts
    return new, (new - size) / new


check("06 padded", padded_size)

# %% [markdown]
# **Exercise 4 (meet a budget in bytes).** Return the layout from `LAYOUTS` whose `slopes` sends at most `budget` bytes a
# device and has the fewest FLOPs; if several have, the one that sends the fewest bytes.

# %% tags=["stub"]
LAYOUTS = ["", "batch:rows", "hidden:cols", "batch:(rows cols)", "hidden:(rows cols)", "batch:rows hidden:cols"]


def layout_within(mesh, sizes, budget):
    ...  # return one of LAYOUTS


check("06 layout_within", layout_within)

# %% tags=["solution"]
LAYOUTS = ["", "batch:rows", "hidden:cols", "batch:(rows cols)", "hidden:(rows cols)", "batch:rows hidden:cols"]


def layout_within(mesh, sizes, budget):
    plans = {text: mtf.plan(slopes, mesh, mtf.Layout(text), sizes=sizes) for text in LAYOUTS}
    allowed = [text for text in LAYOUTS if plans[text].link_bytes() <= budget]
    return min(allowed, key=lambda text: (plans[text].flops(), plans[text].link_bytes()))


check("06 layout_within", layout_within)

# %% [markdown]
# **Exercise 5 (meet a budget in memory).** `held(optimizer, recompute)` returns the bytes of a device at the fullest
# moment of a training step. Return the pair that fits in `budget`: rather keep than recompute, and among those rather
# Adam than Adafactor; if nothing fits, `("none", False)`.

# %% tags=["stub"]
def choice_within(held, budget):
    ...  # return e.g. ("adam", False)


check("06 choice_within", choice_within)

# %% tags=["solution"]
def choice_within(held, budget):
    for recompute in (False, True):
        for optimizer in ("adam", "adafactor"):
            if held(optimizer, recompute) <= budget:
                return optimizer, recompute
    return "none", False


check("06 choice_within", choice_within)

# %% [markdown]
# > **Takeaways**
# >
# > * The backward is planned like the forward: each cotangent is wanted where its tensor lies, and what is summed over a
# >   cut dimension must be reduced.
# > * Data-parallel steps send gradients, model-parallel ones activations. Which is less depends on batch and model.
# > * No layout changes the loss curve; a checkpoint may move to another mesh.
# > * Memory is parameters, optimizer state and what the backward waits for. Adafactor shrinks the second, recomputation
# >   the third.
# > * Padding is asked for and paid for; a search over plans can choose the layout.
#
# **Next:** [lesson 07](07_costs.ipynb) asks what it takes to serve such a model instead of training it. In the library,
# read `mtfcore/backward/gradient.py`, then `mtfcore/model/step_function.py`. The words are in the [glossary](GLOSSARY.md).
