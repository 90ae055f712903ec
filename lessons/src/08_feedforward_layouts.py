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
# # 08 · Feedforward layouts
#
# **Why:** a decode step brings a layer's weights a few hundred tokens and a prefill a million, so for the first the
# weights should stay where they are, and for the second they should come to the tokens.
#
# Nine tenths of PaLM 540B's weights stand in its feedforward layers, and it is the same weights in the same memory.
# Which layout moves least, and from when on, can be derived with a pencil.
#
# **After this lesson you can**
#
# 1. place the four tensors of the 2D layout so that it needs four collectives and no more (exercise 1);
# 2. give the exact bytes of a weight-gathered layer (exercise 2);
# 3. say from how many tokens on gathering pays (exercise 3);
# 4. find a layout and a mesh that keep to a budget of bytes (exercise 4).
#
# **Needs** [lesson 03](03_collectives.ipynb) and [lesson 07](07_costs.ipynb) · **Minutes** 50–60 · **Hardware** any
# computer; 64 devices are simulated · **Papers** Efficiently Scaling Transformer Inference (arXiv 2211.05102), section
# 3.2, appendix A.2 and Figures 2, 3, 6 and 7

# %% tags=["setup"]

# %% [markdown]
# ## 1 · One layer, five layouts
#
# The layer is y = gelu(x · W_in) · W_out. x is `B L E`: B sequences, L new tokens of each, E = d_model. W_in is `E F`
# with F = d_ff, the hidden layer is `B L F`. The mesh has three axes x, y and z, as the wires of a TPU v4 have; X, Y
# and Z are their sizes. A layout is a small table: where each tensor lies between layers, and where while it is
# multiplied.

# %%
import numpy as np

from mtfcore.costs import second_paper as forms
from mtfcore.costs.second_paper.programs import layer, paper_bytes, planned
from mtfcore.model.serving import FEEDFORWARD

for name, ffn in FEEDFORWARD.items():
    at = ffn.sites
    print(f"{name:7} W_in rests {at['stored']:9} | x {at['residual']:10} → {at['x']:9} W_in → {at['w_in']:9} "
          f"hidden {at['h']}")

# %% [markdown]
# Read one line. In `ws2d` a device has E/X rows and F/(Y·Z) columns of W_in, and multiplies just these: weights are
# **stationary**, x has to come. In `wg_x` the sequences are cut over x, and the weights are **gathered** over x before
# each product. All but `ws1d` store weights in the same way, so one copy serves them all. That is the trick which lets a
# server prefill in one layout and decode in another.
#
# Now the model: PaLM 540B, whose F is 4·E, on 4x4x4 devices; decode, one new token for each of 512 sequences.

# %%
predict("08 decode", "512 sequences, one token each: which layout moves the fewest bytes?",
        choices=["ws1d", "ws2d", "wg_x", "wg_xy", "wg_xyz"])

# %% tags=["solution"]
predict.record("08 decode", "ws2d")

# %%
E, F, CUBE = 18432, 73728, (4, 4, 4)
plans = {name: planned(name, CUBE, batch=512, length=1, d_model=E, d_ff=F) for name in forms.LAYOUTS}
print("MB sent by one device (modelled)")
for name, plan in plans.items():
    does = ", ".join(f"{step.kind} {''.join(step.axes)}" for step in plan.collectives())
    print(f"{name:7} {plan.link_bytes().total / 1e6:7,.1f}  {does}")
print(f"x: {512 * E * 2 / 1e6:.0f} MB, both matrices: {2 * E * F * 2 / 1e9:.1f} GB, of all devices (modelled)")
predict.show("08 decode", min(plans, key=lambda name: plans[name].link_bytes()))

# %% [markdown]
# **Why:** x has 512 · E numbers of 2 bytes, the two matrices have 2 · E · F. As long as there are far fewer tokens than F,
# activations are cheaper to move than weights.
#
# ## 2 · 1D, and why it stops helping
#
# `ws1d` cuts only F. Every device needs all of x for its columns, so x is gathered whole; every device has a partial sum
# for all of y, so y is reduce-scattered whole. That is 2·B·L·E numbers for each device, and n, the number of devices,
# is not in it. More devices compute less each and hold less each, but send the same.

# %%
predict("08 flat", "ws1d: eight times the devices, 8 → 64. By what factor do the bytes of one device change, about?",
        choices=["1/8", "1/3", "1", "3"])

# %% tags=["solution"]
predict.record("08 flat", "1")

# %%
sent = {}
for mesh in ((2, 2, 2), (4, 4, 4), (4, 8, 8)):
    n = mesh[0] * mesh[1] * mesh[2]
    sent[n] = {name: planned(name, mesh, 512, 1, E, F).link_bytes().total for name in ("ws1d", "ws2d")}
    print(f"{n:4} devices: ws1d {sent[n]['ws1d'] / 1e6:5.1f} MB, ws2d {sent[n]['ws2d'] / 1e6:5.1f} MB (modelled)")
predict.show("08 flat", f"{sent[64]['ws1d'] / sent[8]['ws1d']:.0f}")

# %% [markdown]
# ## 3 · 2D, step by step
#
# `ws2d` cuts both: E over x, F over z and y. Follow the contracted dimension, as in lesson 02.
#
# 1. A device has E/X rows of W_in, so it needs the same E/X of x, for all tokens. [At rest](GLOSSARY.md#at-rest) x is cut over all devices,
#    `E:xzy`; the innermost axes z and y are **gathered**, and `E:x` is left.
# 2. The product contracts E, which lies on x: each device has one addend, for its F/(Y·Z) columns.
# 3. The addends are **reduce-scattered** over x. Into which dimension? Into F: gelu needs sums, but no whole rows.
# 4. W_out has the same F/(Y·Z) as rows, so the hidden layer is **gathered** over x again.
# 5. The second product contracts F, which lies on z and y; its addends are **reduce-scattered** over zy into E, and the
#    result lies as x did.

# %%
for number, step in enumerate(plans["ws2d"].steps, 1):
    sends = f"{step.link_bytes / 1e6:5.2f} MB" if step.is_collective else ""
    print(f"{number} {step.label():32} {step.arrow():48} {sends}")

# %% [markdown]
# Two collectives move parts of width E/X, one before and one after, and two move parts of width F/(Y·Z). So a device
# sends 2·B·L·(E/X + F/(Y·Z)) numbers. Some texts say that the two reduce-scatters are the factor 2; it is one gather and
# one reduce-scatter on each of two volumes. The paper lets a gather over K devices cost the whole volume; exactly, it is
# (K−1)/K of it, as in lesson 03, for each device has its own part already. Our plans count exactly, and `paper_bytes`
# counts as the paper does.
#
# ## 4 · Why the root
#
# With X·(Y·Z) = n fixed, E/X falls as X grows, and F·X/n rises. Their product is E·F/n whatever X is, and a sum of two
# numbers with a fixed product is least where they are equal: X = √(n·E/F), and then the sum is 2·√(E·F/n).

# %%
predict("08 split", "PaLM's F/E is 4, n is 64. Which X is best?", choices=["1", "2", "4", "8", "16"])

# %% tags=["solution"]
predict.record("08 split", "4")

# %%
splits = {x: planned("ws2d", (x, 64 // x, 1), 512, 1, E, F) for x in (1, 2, 4, 8, 16, 64)}
moved = {x: paper_bytes(plan) for x, plan in splits.items()}
print(", ".join(f"X {x}: {n_bytes / 1e6:.1f} MB" for x, n_bytes in moved.items()), "(modelled)")
for n in (16, 64, 256):
    best, flat = forms.best_split(n, E, F), forms.ws1d(512, E)
    print(f"{n:4} devices: X {best.x}, 2D / 1D = {best.n_bytes(512) / flat:.2f}; 4·√(EF/n) / 2E = "
          f"{forms.splits.least_bytes(512, E, F, n) / flat:.2f} (modelled)")
predict.show("08 split", str(min(moved, key=moved.get)))

# %% [markdown]
# **Why the root matters:** four times the devices halve the bytes. So 2D goes on helping where 1D has stopped, and it
# wins once 4·√(E·F/n) < 2·E, that is with more than n = 4·F/E devices: 16 here, where X = 1 and X = 2 tie as
# the paper counts. (The paper prints √n > F/E, which says the same only where F/E is 4.)
#
# ## 5 · Many tokens: let the weights come
#
# Activations grow with the tokens, weights do not. Gathered over N devices, a weight-gathered layer moves 2·E·F·N/n
# numbers of weights, however many tokens there are, and 2·B·L·E/N of activations; with N = n none. More gathering: a
# higher start, a flatter line. Which tokens pay for it?

# %%
for counted, exact in (("as the paper counts", False), ("as they are sent", True)):
    parts = forms.winners(E, F, CUBE, pinned=CUBE, exact=exact)
    print(f"{counted:19}", "; ".join(f"{part.layout} from {int(part.tokens):,}" for part in parts), "(modelled)")
print(f"E is {E:,}, F is {F:,}, 12·F is {12 * F:,}, 16·F is {16 * F:,}")

# %% [markdown]
# The lines cross at E, at F, and at 12·F or 16·F, a matter of counting: where N is all 64 devices the factor (K−1)/K
# saves least. "Gather once there are more than F tokens" is one of several crossings. A batch is cut by whole sequences,
# though, and that is a limit which no formula has.

# %%
try:
    planned("wg_xyz", CUBE, batch=16, length=65536, d_model=E, d_ff=F)
except mtf.LayoutError as refusal:
    print(refusal)

# %%
repaired = {name: planned(name, CUBE, batch=16, length=65536, d_model=E, d_ff=F) for name in ("wg_x", "wg_xy")}
print({name: f"{plan.link_bytes().total / 1e9:.1f} GB" for name, plan in repaired.items()}, "(modelled)")

# %% [markdown]
# A million tokens in 16 sequences cannot be cut over 64 devices; over 16 they can. Drag it all yourself. **Try:**
#
# * *new tokens of each* at 2048, then the batch from 1 to 1024: at which batch does each layout take over?
# * x 1, then 2, 4, 16, 64 (make y and z small first): what becomes of `ws2d`, and of the tensors' slices?
# * weights `int8`: which crossings move, and which way? Then a gate, the third matrix that PaLM really has.
# * pick `wg_xy` and walk its steps; press *Run*, and see its bytes counted while they are sent.
# * *chart*: Figures 6 and 7 of the paper, beside what our model of time says.

# %%
from widgets import feedforward

feedforward(batch=64, length=2048)

# %% [markdown]
# ## 6 · Published beside ours
#
# Figure 3 of the paper draws these bytes for E = 16,384 and F = 65,536; its points can be read to four digits. Figure 6
# measures decode under `ws1d` and `ws2d` on more and more chips, Figure 7 prefill under `ws2d` and `wg_xyz`. Those two
# are times of the whole model; ours come from the calibrated model of lesson 07.

# %%
from mtfcore.costs.against_published import compare, summary, table_of

display(summary(["Figure 3", "Figure 6", "Figure 7"]))
for figure, quantity in (("Figure 6", "step latency"), ("Figure 7", "MFU")):
    display(table_of([row for row in compare(figure) if row.row.quantity == quantity], figure))

# %% [markdown]
# Bytes agree to a thousandth: they are arithmetic. Times are a model; some are off by more than a tenth, one by much
# more, where the paper's chips sent and computed at the same time. Lesson 07 says which constants were fitted. What both
# columns show is the lesson of this page. From 64 to 256 chips 1D hardly gets faster and 2D does. With a million tokens 2D
# wastes more than half of the chips on waiting for activations, and gathered weights do not.

# %% tags=["extra"]
feedforward("Figure 3", counted="paper", batch=64, length=2048)  # the published points lie on the lines of our plans

# %% [markdown]
# ## 7 · Counted: bytes of a real run
#
# So far all was planned. Now the five layouts run, on sixteen simulated devices, at a small size. We count the collectives
# in what JAX really executes, and lay every answer beside that of one device. (No seconds: simulated devices share the
# few cores of this computer.)

# %%
rng = np.random.default_rng(8)
shapes = {"x": (16, 4, 32), "w_in": (32, 96), "w_out": (96, 32)}
arrays = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
alone = layer("ws2d")(**arrays)
for name in forms.LAYOUTS:
    plan = planned(name, (4, 2, 2), batch=16, length=4, d_model=32, d_ff=96, dtype="f32")
    run = mtf.simulate(plan)
    same = np.allclose(run(**arrays), alone, rtol=1e-4, atol=1e-3)
    counts = mtf.count(run.fn, *run.shapes)
    print(f"{name:7} as one device: {same}; {counts.link_bytes:6,.0f} bytes counted, "
          f"{plan.link_bytes().total:6,.0f} modelled")

# %% [markdown]
# Five ways to move, one answer: layouts do not change results. And the bytes of the plan are the bytes of the run.
#
# ## 8 · Exercises
#
# **Exercise 1 (fill a line).** Write the steps of the 2D layout as four places: where x lies while it is multiplied,
# where the first product is put, where the hidden layer lies for the second product, where the result goes. Between
# layers x lies as `B L E:xzy`; the matrices lie, and stay, as `E:x F:zy` and `F:zy E:x`. The check plans a layer with
# your places and compares its collectives. (If two of them come out as one dear one, ask where sums should go.)

# %% tags=["stub"]
two_d = {"x": ..., "first": ..., "hidden": ..., "result": ...}  # e.g. "B L E:xzy"


check("08 two_d", two_d)

# %% tags=["solution"]
two_d = {"x": "B L E:x", "first": "B L F:zyx", "hidden": "B L F:zy", "result": "B L E:xzy"}


check("08 two_d", two_d)

# %% [markdown]
# **Exercise 2 (write a function).** Return the bytes that one device sends for a layer whose weights are gathered over
# `gathered` of `devices` devices: exactly, with (K−1)/K for each group of K. Weights have `weight_size` bytes,
# activations 2. (The other devices / gathered devices gather and scatter activations.)

# %% tags=["stub"]
def gathered_bytes(tokens, d_model, d_ff, gathered, devices, weight_size):
    ...  # return bytes


check("08 gathered_bytes", gathered_bytes)

# %% tags=["solution"]
def gathered_bytes(tokens, d_model, d_ff, gathered, devices, weight_size):
    others = devices // gathered
    weights = 2 * d_model * d_ff * weight_size / devices * (gathered - 1)
    activations = 2 * tokens * d_model * 2 / gathered * (others - 1) / others
    return weights + activations


check("08 gathered_bytes", gathered_bytes)

# %% [markdown]
# **Exercise 3 (write a function).** A server has two layouts, `ws2d` and `wg_xyz`. Return the tokens at which both move
# the same, counted as the paper does: above it, gather. On 4x4x4 with F = 4·E that is 2·F; find it for any mesh and F.

# %% tags=["stub"]
def gather_from(d_model, d_ff, x, y, z):
    ...  # return a number of tokens


check("08 gather_from", gather_from)

# %% tags=["solution"]
def gather_from(d_model, d_ff, x, y, z):
    return d_model * d_ff / (d_model / x + d_ff / (y * z))


check("08 gather_from", gather_from)

# %% [markdown]
# **Exercise 4 (meet a budget in bytes).** Return a layout and a mesh, `(name, (x, y, z))` with x·y·z = `devices`, under
# which one layer sends at most `budget` bytes from each device, in bf16. Several answers may do. The check plans yours.
# `forms.LAYOUTS`, `forms.meshes(devices)` and `forms.layout_bytes(name, tokens, d_model, d_ff, x, y, z, exact=True)` are
# yours to use.

# %% tags=["stub"]
def within(tokens, d_model, d_ff, devices, budget):
    ...  # return (name, (x, y, z))


check("08 within", within)

# %% tags=["solution"]
def within(tokens, d_model, d_ff, devices, budget):
    for name in forms.LAYOUTS:
        for mesh in forms.meshes(devices):
            if forms.layout_bytes(name, tokens, d_model, d_ff, *mesh, exact=True) <= budget:
                return name, mesh


check("08 within", within)

# %% [markdown]
# > **Takeaways**
# >
# > * Few tokens: weights stay. Many tokens: weights come. One way of storing them serves both.
# > * 1D moves 2·B·L·E on any number of devices. 2D moves least at X = √(n·E/F), and then shrinks with √n.
# > * 2D is two gathers and two reduce-scatters; sums go into the hidden dimension, so that nothing is summed twice.
# > * Each layout is a straight line over tokens. The best of them is an envelope, and which crossing counts depends on
# >   mesh, F/E, the width of a weight, and how you count.
# > * Whole sequences are cut. A million tokens in 16 sequences cannot be spread over 64 devices by batch.
#
# **Next:** [lesson 09](09_attention_and_cache.ipynb) does the same for attention and its cache. In the library, read
# `mtfcore/model/serving.py` and `mtfcore/costs/second_paper/programs.py`. The words are in the [glossary](GLOSSARY.md).
