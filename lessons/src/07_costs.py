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
# # 07 · FLOPs, bytes, seconds
#
# **Why:** three counts of a model and three rates of a chip say before anything runs how fast it can answer, on how
# many chips, at what price.
#
# They show which wish costs what, and also when a number that you read somewhere cannot be right.
#
# **After this lesson you can**
#
# 1. find the mistake in formulas that circulate (exercise 1);
# 2. give the least time of a decode step from three counts (exercise 2);
# 3. say how much of the key-value cache one device holds, by heads and by batch (exercise 3);
# 4. choose the feedforward layout that moves the fewest bytes (exercise 4);
# 5. find the largest batch within a budget of bytes (exercise 5).
#
# **Needs** [lesson 05](05_two_layers.ipynb) · **Minutes** 55–60 · **Hardware** any computer; nothing runs on devices
# here · **Papers** Efficiently Scaling Transformer Inference (arXiv 2211.05102), sections 2 to 4 and appendix A

# %% tags=["setup"]

# %% [markdown]
# ## 1 · Two phases, three counts
#
# A served model works in two phases. [**Prefill**](GLOSSARY.md#prefill) takes all tokens of a prompt at once. [**Decode**](GLOSSARY.md#decode) makes one new token of
# every sequence in a step, and looks at what it remembers of the earlier ones. Both are programs like any other, so we
# plan them and count. The model is PaLM 540B, its 48 heads padded to 64 as in the paper, on a 4x4x4 slice of TPU v4, with
# weights of one byte (int8).

# %%
palm = mtf.model.config("palm-540b", heads=64)
mesh = "x:4 y:4 z:4"
prefill = mtf.model.plan_phase(palm, "prefill", mesh, ffn="ws2d", attention="heads", batch=1, new_tokens=2048,
                               weights="int8")
decode = mtf.model.plan_phase(palm, "decode", mesh, ffn="ws2d", attention="batch", batch=64, cached_tokens=2048,
                              weights="int8")
for name, plan, tokens in (("prefill", prefill, 2048), ("decode", decode, 64)):
    per_parameter = plan.flops() * 64 / tokens / palm.n_params
    print(f"{name:7} {tokens:5,} tokens: {per_parameter:.3f} FLOPs a token and parameter, "
          f"{plan.link_bytes().total / 1e6:5,.0f} MB sent by a device (modelled)")

# %% [markdown]
# **Why:** every parameter takes part in one multiply-add for every token, 2 FLOPs. So a forward pass of N parameters is
# 2·N FLOPs a token. What is above 2.000 is attention itself, the products with cached keys and values. The rule counts
# FLOPs *done for the model*; the share that these are of what the chips could have done meanwhile is the [**MFU**](GLOSSARY.md#mfu) (model
# FLOPs utilisation).
#
# The second count is bytes read from a device's memory (HBM): every weight once a step, however many tokens share it, and
# in decode the whole cache. The third is bytes sent over links, the subject of lessons 02 to 05.
#
# ## 2 · The roofline
#
# A device cannot compute faster than its peak, nor read faster than its memory. A step of f FLOPs that reads b bytes takes
# at least the longer of f/peak and b/HBM. The ratio f/b is called [**intensity**](GLOSSARY.md#intensity). Below peak/HBM the memory decides, above
# it the arithmetic does: drawn over intensity, speed is a slope that ends in a flat roof.
#
# For a product with weights the intensity is simple. A weight of s bytes is read once and used for T tokens, 2·T FLOPs.
# So the roof begins at T = s·peak / (2·HBM) tokens. Both rates of a TPU v5e stand above the question.

# %%
v5e = mtf.chip("v5e")
print(f"TPU v5e: {v5e.peak_flops_per_device('bf16') / 1e12:.0f} TFLOP/s in bf16, reads "
      f"{v5e.hbm_bytes_per_second_per_device / 1e9:.0f} GB/s (published)")
predict("07 roof", "v5e, weights of two bytes: from about how many tokens in a pass does arithmetic decide?",
        choices=["2", "24", "240", "2,400"])

# %% tags=["solution"]
predict.record("07 roof", "240")

# %%
from mtfcore.costs import second_paper as forms

turns = {}
for name in ("v4", "v5e", "v6e", "h100"):
    chip = mtf.chip(name)
    peak, hbm = chip.peak_flops_per_device("bf16"), chip.hbm_bytes_per_second_per_device
    turns[name] = forms.critical_tokens(peak, hbm, itemsize=2)
    print(f"{name:5} bf16 weights from {turns[name]:4.0f} tokens, int8 weights from "
          f"{forms.critical_tokens(peak, hbm, itemsize=1):4.0f} (modelled)")
predict.show("07 roof", f"{round(turns['v5e'], -1):.0f}")

# %% [markdown]
# **Why:** peak divided by bytes a second is some hundred FLOPs for each byte on all of these chips. A prompt of 2,048
# tokens lies far up the roof; a decode step of 64 sequences lies on the slope. That is why decode needs large batches, and
# why smaller weights help it most. In the explorer, drag the batch and watch the steps of a layer climb, all but those
# of attention: each sequence reads its own cache, and no batch shares that.

# %%
from widgets import frontier, planner, roofline

roofline()

# %% [markdown]
# ## 3 · Seconds
#
# `mtf.price` lays the mesh on the grid and asks of every step how long it computes, reads and sends. What takes longest
# *binds* the step. Its **physical** model has exact volumes, rings, hops, products rounded up to the matrix unit's tile,
# and nothing fitted: it is a bound, no forecast. The [**calibrated**](GLOSSARY.md#calibrated) model adds a few constants a chip, each with a
# meaning (the share of the links' rate that is reached, the [**launch**](GLOSSARY.md#launch) of a message), fitted to published latencies.

# %%
for name, plan, tokens in (("prefill", prefill, 2048), ("decode", decode, 64)):
    for model in ("physical", "calibrated"):
        cost = mtf.price(plan, "v4:4x4x4", model=model)
        shares = ", ".join(f"{part} {1e3 * seconds:.0f}" for part, seconds in cost.parts.items() if seconds > 1e-3)
        price = forms.chip_seconds_per_token(tokens, cost.seconds, chips=64)
        print(f"{name:7} {model:10} {1e3 * cost.seconds:4.0f} ms ({shares}), MFU {cost.mfu:.0%}, "
              f"{1e3 * price:4.1f} chip-ms a token (modelled)")

# %% [markdown]
# Prefill computes, and sends. Decode reads: all the weights, for 64 tokens; and then it waits, for messages to start and
# arrive more than for their bytes, since they are small. The [**cost of a token**](GLOSSARY.md#cost-of-a-token) is chips · time / tokens. `print(cost)`
# shows every step, and what a chip twice as fast in one respect would gain. It also names axes of unequal bandwidth, and
# what groups that share a link wait for each other: *contention*.
#
# Two words that are often mixed: [**latency**](GLOSSARY.md#latency) is how long one answer takes, [**throughput**](GLOSSARY.md#throughput) how many come out a second. A
# larger batch raises both.
#
# ## 4 · Which layout moves least
#
# The paper has five layouts of the feedforward layer. [**Weight-stationary**](GLOSSARY.md#weight-stationary) ones leave weights where they lie and move
# activations: `ws1d` cuts d_ff over all devices, `ws2d` cuts d_model over x and d_ff over y and z. [**Weight-gathered**](GLOSSARY.md#weight-gathered)
# ones gather the weights over x, over x and y, or over all, and move less of the activations, or none. With T tokens,
# E = d_model, F = d_ff and n = X·Y·Z devices, a device moves
#
# | layout | elements |
# |---|---|
# | ws1d | 2·T·E |
# | ws2d | 2·T·(E/X + F/(Y·Z)) |
# | wg_x, wg_xy, with N = X or X·Y | 2·E·F·N/n + 2·T·E/N |
# | wg_xyz | 2·E·F |

# %%
predict("07 layout", "PaLM 540B on 4x4x4, a prefill of 100,000 tokens: which layout moves least?",
        choices=["ws1d", "ws2d", "wg_x", "wg_xy", "wg_xyz"])

# %% tags=["solution"]
predict.record("07 layout", "wg_xy")

# %%
for part in forms.winners(palm.d_model, palm.d_ff, "4x4x4"):
    print(f"from {int(part.tokens):9,} tokens: {part.layout} (modelled)")
best = forms.best_layout(100_000, palm.d_model, palm.d_ff, "4x4x4")
print({layout: f"{n_bytes / 1e9:.2f} GB" for layout, n_bytes in best.candidates.items()}, "(modelled)")
predict.show("07 layout", best.layout)

# %% [markdown]
# **Why:** each layout's bytes are a straight line over T. Gathering starts higher, for the weights must come, and rises
# less. The lines cross at E, F and 12·F. So decode, whose T is the batch, keeps its weights, and a large prefill gathers
# them: one model, two layouts, in one store. Why not decode with `wg_xyz` too?

# %%
try:
    mtf.model.plan_phase(palm, "decode", mesh, ffn="wg_xyz", attention="batch", batch=32, cached_tokens=2048)
except mtf.LayoutError as refusal:
    print(refusal)

# %%
repaired = mtf.model.plan_phase(palm, "decode", mesh, ffn="ws2d", attention="batch", batch=32, cached_tokens=2048)
wasteful = mtf.model.plan_phase(palm, "decode", mesh, ffn="wg_xyz", attention="batch", batch=64, cached_tokens=2048)
for plan in (repaired, wasteful):
    print(f"{plan.link_bytes().total / 1e9:8.2f} GB sent by a device (modelled)")

# %% [markdown]
# It needs a sequence for every device, and with enough of them it moves all weights to make 64 tokens.
#
# ## 5 · The cache, and what fits
#
# Of every token the model keeps a key and a value in every layer: 2 · layers · kv_heads · head_size elements. [**Multihead**](GLOSSARY.md#multihead)
# attention keeps all heads; [**multiquery**](GLOSSARY.md#multiquery) attention, as in PaLM, has one head of keys and values for all queries;
# [**grouped**](GLOSSARY.md#grouped) attention lies between. By *heads* devices share out these heads, and one head is copied to all of them. By
# *batch* they share out the sequences.

# %%
from mtfcore.costs.serving_memory.inference_memory import device_bytes
from mtfcore.costs.serving_memory.memory_limits import largest_batch

hbm_bytes = mtf.chip("v4").hbm_bytes_per_device
for by in ("heads", "batch"):
    held = device_bytes(palm, (4, 4, 4), batch=512, context=2048, attention=by, capacity=hbm_bytes)
    terms = ", ".join(f"{term} {n_bytes / 2**30:.1f}" for term, n_bytes in held.terms.items() if n_bytes)
    most = largest_batch(palm, (4, 4, 4), context=2048, attention=by, capacity=hbm_bytes)
    print(f"by {by}: GiB a device: {terms}; {'fits' if held.fits else 'does not fit'}; batch up to {most:,} (modelled)")

# %% [markdown]
# **Why:** the same cache, 64 copies or one. A verdict needs three decisions that texts often hide: GB or GiB (a GiB is
# 7 % more), how much is kept free (here 10 %), and which copies were counted.
#
# ## 6 · Find the mistake
#
# These sentences circulate. Each is wrong, and our functions compute the right value. Read the left column alone, and say
# what is wrong before you look to the right.

# %%
forms.errata_table("cache-multiquery", "gb-gib", "one-pool", "gather-from-f", "bytes-a-flop")

# %% tags=["extra"]
forms.errata_table("communication")  # or "memory", "operating"; without a word, all

# %% [markdown]
# Most slips are of five kinds: elements for bytes, GB for GiB, a factor left out (layers, both matrices, both directions),
# a bound taken for a plan, latency taken for throughput. Three of the formulas wait in exercise 1.
#
# ## 7 · Published beside ours
#
# A model of costs is worth what its predictions are worth. Here are the paper's example configurations (Table 2) with our
# prediction, its error and what sets it, and the errors of longest contexts (Table 1), decode latencies (Figure 1) and
# bytes (Figure 3).

# %%
from mtfcore.costs.against_published import compare, summary, table_of

display(table_of([row for row in compare("Table 2") if row.row.quantity == "latency"]))
display(summary(["Table 1", "Table 2", "Figure 1", "Figure 3"]))

# %% [markdown]
# Two lines matter most: *fitted on* are rows that chose the constants, *checking* are rows that had no say. The next cell
# prints every row of both papers' tables and figures; so does `python -m mtfcore.costs.against_published` in a terminal.

# %% tags=["extra"]
for table in ("Table 1", "Table 2", "Table 3", "Table D.1", "Table D.2", "Figure 1", "Figure 3", "Figure 6", "Figure 7"):
    display(table_of(compare(table), table))
display(table_of(compare(paper="first"), "First paper"))

# %% [markdown]
#
# ## 8 · Plan a deployment
#
# The planner puts it together: a model, a slice and what is asked of it → latency, cost, memory, and which layout wins.
# **Try:**
#
# * batch 1, 64, 512: what binds decode, and what becomes of the cost of a token?
# * batch 8: `ws1d` moves more bytes than `ws2d` and may take less time. What does it have fewer of?
# * a longer input: where does prefill change its layout?
# * weights bf16 instead of int8: which phase notices?
# * the question of the day: *which layout and how many chips for a 70B model with grouped attention at 32k of context,
#   under 30 ms a token?* Choose *find slices under a limit*, the model `llama-3.1-70b` and an input of
#   32768, and load a row of what it finds. (It looks at small slices first, and goes on while you read.)

# %%
planner()

# %% [markdown]
# The frontier draws latency against cost for many batches and slices at once, with the paper's points. A point that no
# other beats in both is on the frontier; all others waste something.

# %%
frontier()

# %% [markdown]
# ## 9 · Exercises
#
# **Exercise 1 (fill a line).** Three formulas from texts about the paper: *2D beats 1D once sqrt(n) > F/E*; *gathering
# over X brings 2·E·F/X weights*; *if serial blocks are 14 % slower, parallel ones are 14 % faster*. Return the three right
# values: the n from which 2D wins, the bytes of weights (both matrices, two bytes an element), the share saved.

# %% tags=["stub"]
def repaired_claims(d_model, d_ff, x, devices, slower):
    return ..., ..., ...  # devices, bytes, a share


check("07 repaired_claims", repaired_claims)

# %% tags=["solution"]
def repaired_claims(d_model, d_ff, x, devices, slower):
    return 4 * d_ff / d_model, 2 * d_model * d_ff * x / devices * 2, 1 - 1 / (1 + slower)


check("07 repaired_claims", repaired_claims)

# %% [markdown]
# **Exercise 2 (write a function).** Return the least seconds of a decode step. Given: parameters, sequences in the batch,
# bytes of all their caches together, chips, FLOPs a second and bytes a second of one chip, bytes of one weight. Leave
# links and attention's FLOPs out.

# %% tags=["stub"]
def step_seconds(n_params, batch, cache_bytes, chips, peak, hbm, weight_size):
    ...  # return seconds


check("07 step_seconds", step_seconds)

# %% tags=["solution"]
def step_seconds(n_params, batch, cache_bytes, chips, peak, hbm, weight_size):
    computing = 2 * n_params * batch / (chips * peak)
    reading = (n_params * weight_size + cache_bytes) / (chips * hbm)
    return max(computing, reading)


check("07 step_seconds", step_seconds)

# %% [markdown]
# **Exercise 3 (write a function).** Return the bytes of the cache that one device holds, attention `by` "heads" or "batch".
# All numbers are powers of two; where there are fewer heads (or sequences) than devices, devices hold copies.

# %% tags=["stub"]
def cache_on_device(layers, kv_heads, head_size, batch, context, devices, by, itemsize):
    ...  # return bytes


check("07 cache_on_device", cache_on_device)

# %% tags=["solution"]
def cache_on_device(layers, kv_heads, head_size, batch, context, devices, by, itemsize):
    whole = 2 * layers * kv_heads * head_size * itemsize * context * batch
    return whole // min(devices, kv_heads if by == "heads" else batch)


check("07 cache_on_device", cache_on_device)

# %% [markdown]
# **Exercise 4 (write a function).** Return "ws2d", "wg_x", "wg_xy" or "wg_xyz", whichever moves the fewest elements.
# (A text says: gather the weights once tokens exceed d_ff.)

# %% tags=["stub"]
def layout(tokens, d_model, d_ff, x, y, z):
    ...  # return a name


check("07 layout", layout)

# %% tags=["solution"]
def layout(tokens, d_model, d_ff, x, y, z):
    n = x * y * z
    moved = {"ws2d": tokens * (d_model / x + d_ff / (y * z)), "wg_xyz": d_model * d_ff}
    for name, gathered in (("wg_x", x), ("wg_xy", x * y)):
        moved[name] = d_model * d_ff * gathered / n + tokens * d_model / gathered
    return min(moved, key=moved.get)


check("07 layout", layout)

# %% [markdown]
# **Exercise 5 (meet a budget in bytes).** Return the largest batch, a multiple of `devices`, with which no device holds
# more than `budget` bytes; 0 if none does. All weights together take `weights` bytes and lie evenly, the cache of one
# sequence takes `sequence` bytes, and attention goes by batch.

# %% tags=["stub"]
def batch_within(budget, devices, weights, sequence):
    ...  # return a number of sequences


check("07 batch_within", batch_within)

# %% tags=["solution"]
def batch_within(budget, devices, weights, sequence):
    left = budget - weights / devices
    return max(0, int(left // sequence)) * devices


check("07 batch_within", batch_within)

# %% [markdown]
# > **Takeaways**
# >
# > * A token costs 2 FLOPs a parameter. A step reads every weight once, and in decode the whole cache.
# > * Up to some hundred tokens in a pass memory decides, above that arithmetic: s·peak / (2·HBM).
# > * Decode keeps weights where they lie. A large prefill gathers them. Where they cross is a formula, and not one number.
# > * One shared head of keys and values is small only if sequences, not heads, are shared out.
# > * Ask of every number: elements or bytes, GB or GiB, one layer or all, bound or plan, latency or throughput?
#
# **Next:** [lesson 08](08_feedforward_layouts.ipynb) derives the five layouts with a pencil. In the library, read
# `mtfcore/costs/second_paper/`. The words are in the [glossary](GLOSSARY.md).
