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
# # 13 · Your model on your chips
#
# **Why:** the papers' models and chips are not yours: here you bring a model, say what it is for, choose a machine, and
# defend the choice to somebody who pays for it.
#
# And when you write your own sharded code one day, you will want to know what it really sends.
#
# **After this lesson you can**
#
# 1. read a model's size and its cache off its configuration (exercise 1);
# 2. say which part of a step explains why a second opinion differs (exercise 2);
# 3. choose the cheapest machine that keeps a promise (exercise 3);
# 4. count what your own JAX function sends, and make it send less (exercise 4).
#
# **Needs** [lesson 12](12_predicted_compiled_measured.ipynb) · **Minutes** 50–60 · **Hardware** any computer; devices are
# simulated · **Papers** Efficiently Scaling Transformer Inference (arXiv 2211.05102), sections 2, 4.4 and 5;
# Mesh-TensorFlow (arXiv 1811.02084), section 5

# %% tags=["setup"]

# %% [markdown]
# ## 1 · Bring a configuration
#
# Published checkpoints come with a small file, `config.json`. It holds no weights, yet all sizes. This one, of the Llama
# family, is written out for the lesson. Put your own in its place: paste a file's text between the quotes, or give
# `mtf.model.config` a path.

# %%
import json
import pathlib
import tempfile

brought = json.loads("""{
  "model_type": "llama", "hidden_act": "silu", "num_hidden_layers": 28, "hidden_size": 3072,
  "intermediate_size": 8192, "num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128,
  "vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": true,
  "rms_norm_eps": 1e-5, "rope_theta": 500000.0
}""")


def written(said):
    """A folder that holds this as its config.json, as a checkpoint's does."""
    folder = pathlib.Path(tempfile.mkdtemp()) / "yours"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(said))
    return folder


def read_config(said):
    return mtf.model.config(written(said))


cfg = read_config(brought)

# %%
predict("13 parameters", "How many parameters has it? Count the matrices of one layer, times the layers, and the table "
        "of the vocabulary once. One digit behind the point will do.", unit="billion parameters")

# %% tags=["solution"]
predict.record("13 parameters", 3.2)

# %%
kept = 2 * cfg.layers * cfg.kv_heads * cfg.head_size * 2
print(f"{cfg.n_params / 1e9:.2f} billion parameters, {2 * cfg.n_params / 1e9:.1f} GB in bf16; every token kept takes "
      f"{kept / 2**10:.0f} KiB of cache in bf16, {cfg.attention} attention (modelled)")
predict.show("13 parameters", round(cfg.n_params / 1e9, 1))

# %% [markdown]
# **Why:** attention has four matrices, two of E × H·D and two of E × K·D; the gated feedforward has three of E × F; and the
# table has V × E, here used twice but stored once. Norms do not count in a sum of billions.
#
# A file may also say what cannot be. Nothing is guessed then: each fault is named, with what would be legal.

# %%
try:
    read_config(brought | {"num_key_value_heads": 7, "head_dim": 127})
except mtf.LayoutError as refusal:
    print(refusal)

# %%
repaired = read_config(brought | {"num_key_value_heads": 6})
print(repaired.attention, f"{repaired.n_params / 1e9:.2f} billion parameters (modelled)")

# %% [markdown]
# ## 2 · Say what it is for
#
# No machine is good in itself. Write down the promise first. Ours: a chat in which prompts have 2,048 tokens and answers
# 256; a reader should get a token within 25 ms; weights stay in bf16. What is left to choose is the chip, how many, and
# the batch. So ask the cost model for all of it at once: one call for each slice, batches as an array.

# %%
import numpy as np

batches = np.array([1, 4, 16, 64, 256])
slices_asked = ("v5e:1x1", "v5e:2x2", "v5e:2x4", "v5e:4x4", "v6e:1x1", "v6e:2x2", "v4:2x2x1", "h100:1", "h100:4")
promise = {"input_tokens": 2048, "output_tokens": 256, "weights": "bf16"}
asked = {name: mtf.costs.inference(cfg, name, batch=batches, **promise) for name in slices_asked}
print("ms a token (modelled; * does not fit)\nbatch   ", *(f"{batch:5} " for batch in batches))
for name, est in asked.items():
    cells = [f"{1e3 * s:5.1f}{' ' if fits else '*'}" for s, fits in zip(est.step_seconds, est.fits)]
    print(f"{name:8}", *cells, "calibrated" if est.is_calibrated else "a bound")

# %% [markdown]
# That table has three traps. A small batch is fast and dear: the whole slice reads its weights for one reader. What does
# not fit has a time too, which nobody will ever see. And where no constants were fitted to published times, a row is a
# bound: compare it with other bounds, not with a calibrated row.

# %%
predict("13 cheapest", "Which of these keeps 25 ms a token for the fewest chip-seconds a token? Think of what a chip "
        "is worth, too: only chips of one kind can be compared by their seconds.",
        choices=["one v5e, batch 4", "four v5e, batch 64", "eight v5e, batch 256", "sixteen v5e, batch 256"])

# %% tags=["solution"]
predict.record("13 cheapest", "eight v5e, batch 256")

# %%
words = {"v5e:1x1": "one v5e", "v5e:2x2": "four v5e", "v5e:2x4": "eight v5e", "v5e:4x4": "sixteen v5e"}
kept_promise = [(est.chip_seconds_per_output_token[n], f"{words[name]}, batch {batch}")
                for name, est in asked.items() if name in words
                for n, batch in enumerate(batches) if est.fits[n] and est.step_seconds[n] <= 0.025]
for cost, which in sorted(kept_promise)[:4]:
    print(f"{1e3 * cost:6.3f} chip-ms a token: {which} (modelled)")
predict.show("13 cheapest", min(kept_promise)[1])

# %% [markdown]
# **Why:** the cost of a token is chips · seconds / batch. One chip has no room for many readers' caches; sixteen halve what
# each reads, but not what it sends. The best lies between, with room for all readers, and a step that still waits for
# memory rather than for links (`est.parts` has both). With a price for an hour of each kind you can compare kinds:
# `price_per_chip_hour=` gives `est.cost_per_million_tokens` in your own money. We print no prices, for they change.
#
# The planner does the same search with all partitions and more slices. It reads the same file, whose path stands in the
# box of the model, and starts with the cheapest of the list: does it agree? **Try:** choose *find slices under a limit*,
# 25 ms and 2,048 tokens, and look which slice comes first; then 10 ms, and look what becomes of the batches; then 4 ms,
# and look what leaves the list. Then write the path of your own file into the box.

# %%
from widgets import planner

planner(str(written(brought)), topology="v5e:2x4", batch=256, output_tokens=256, weights="bf16")

# %% [markdown]
# ## 3 · Defend it
#
# A modelled number is a claim. Its first critic is the compiler: it has no opinion about your layout and no reason to be
# kind. Plan the very step that you want to buy and have it compiled for the slice, as lesson 12 did. Here it is the second
# of the list, for somebody who has only 64 readers: four v5e, at the last token of an answer. It takes some seconds.

# %%
from mtfcore.compiling.process import HOW_TO_GET_IT, has_compiler

plan = mtf.model.plan_phase(cfg, "decode", "x:2 y:2 z:1", ffn="ws2d", attention="heads", batch=64, cached_tokens=2304)
modelled = mtf.price(plan, "v5e:2x2", model="physical")
compiled = None
if not has_compiler():
    print(f"{HOW_TO_GET_IT}.\nSo {1e3 * modelled.seconds:.2f} ms (modelled) stand alone; the next cell prints nothing.")
else:
    print("Compiling the step for four chips of TPU v5e; nothing more appears here until that is done …", flush=True)
    compiled = mtf.compile(plan, "v5e:2x2")
    print(repr(compiled))
    print(f"{compiled.memory.total / 2**30:.2f} GiB (compiled), {modelled.memory.total / 2**30:.2f} GiB (modelled)")

# %%
if compiled is not None:
    ours = {"within the device": modelled.seconds - modelled.parts["link"], "links": modelled.parts["link"]}
    theirs = {"within the device": compiled.compute_seconds, "links": compiled.exposed_link_seconds}
    for part in ours:
        two = f"{1e3 * ours[part]:6.2f} ms modelled, {1e3 * theirs[part]:6.2f} ms {compiled.seconds_origin}"
        print(f"{part:18} {two}")
    for number, cycles in sorted(compiled.cycles_by_step.items(), key=lambda each: -each[1])[:4]:
        steps = plan.steps
        for place in number.split("."):
            step = steps[int(place)]
            steps = step.body.steps if step.body else ()
        print(f"{cycles / compiled.cycles:4.0%} of the cycles: step {number}, {step.arrow()} (compiled)")

# %% [markdown]
# Where the two differ, the question is never *who is right* but *what does one know that the other does not*. Look at the
# steps that take most cycles: K, G and S are attention meeting its cache, three queries G for each key head. The bound
# lets that wait for memory alone. The compiler also knows how poorly three rows fill a matrix unit, and that a cache is
# not read at full speed in the order it lies. On the other hand it has never seen your link busy with others' traffic.
# Only a measurement has. So a defence has three lines: what is modelled, what is compiled, what is measured, each with its
# conditions, and a sentence on what sets them apart. If a chip is at hand, `mtf.measure` runs the same plan on it; with one
# chip it runs one device's [share](GLOSSARY.md#share).
#
# Four questions that you should expect:
#
# 1. *What if the context doubles?* The cache doubles, and with it what a step reads at a large batch.
# 2. *What if twice as many come?* A larger batch is nearly free until arithmetic decides, if its caches fit.
# 3. *Why not fewer chips?* Show the row that does not fit, or breaks the promise.
# 4. *Why not int8?* Half the weights to read, the same cache, and room for more readers; what it does to answers is
#    measured, not modelled.

# %%
questions = {"as promised": {}, "context of 4,096": {"input_tokens": 4096}, "int8": {"weights": "int8"}}
for asks, changes in questions.items():
    est = mtf.costs.inference(cfg, "v5e:2x2", batch=np.array([64, 128]), **promise | changes)
    cells = [f"{1e3 * s:5.1f} ms{'' if fits else ', does not fit'}" for s, fits in zip(est.step_seconds, est.fits)]
    print(f"{asks:16} batch 64: {cells[0]}; batch 128: {cells[1]} (modelled)")

# %% [markdown]
# ## 4 · Count your own function
#
# Everything so far was planned here. Your own code is not. `mtf.count` reads any JAX function, runs nothing, and says what
# every device sends and computes; loops are multiplied. It knows nothing of plans, which is why we check ours against it.
# Here is a product whose sum is cut over four devices, as somebody might write it first: each computes its share, and
# `psum` adds the shares up.

# %%
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

four = jax.make_mesh((4,), ("x",), devices=jax.devices("cpu")[:4], axis_types=(jax.sharding.AxisType.Auto,))


def mapped(body, out_specs):
    """A function of whole arrays: x cut along E, w along its rows; `body` sees one device's part."""
    given = {"in_specs": (P(None, "x"), P("x", None)), "check_vma": False}
    return jax.shard_map(body, mesh=four, out_specs=out_specs, **given)


given = jax.ShapeDtypeStruct((64, 512), jnp.float32), jax.ShapeDtypeStruct((512, 256), jnp.float32)
print(mtf.count(mapped(lambda x, w: jax.lax.psum(x @ w, "x"), P()), *given))

# %% [markdown]
# All four devices now hold the whole result. Does the next line of the program need that? If it works on a part of the
# columns, three quarters of what arrived is thrown away. In exercise 4 you make it send half.
#
# Functions that XLA partitions for you have no collectives to count before they are compiled. Compile such a function and
# count its text, as lesson 12's report did: `mtf.count` of the jaxpr would answer *none*, truthfully, and say nothing
# about what will run.
#
# ## 5 · Exercises
#
# **Exercise 1 (fill a line).** `said` is the dictionary of a `config.json` as in section 1. Return two numbers: all
# parameters of the matrices and tables (no norms), and the bytes that one kept token takes in a bf16 cache. Where
# `tie_word_embeddings` is false, there are two tables.

# %% tags=["stub"]
def sizes_of(said):
    d_model, heads, kv = said["hidden_size"], said["num_attention_heads"], said["num_key_value_heads"]
    attention = 2 * d_model * said["head_dim"] * (heads + kv)
    layer = attention + 3 * d_model * said["intermediate_size"]
    tables = (1 if said["tie_word_embeddings"] else 2) * said["vocab_size"] * d_model
    return ..., ...  # parameters of all layers and tables, bytes of a kept token


check("13 sizes_of", sizes_of)

# %% tags=["solution"]
def sizes_of(said):
    d_model, heads, kv = said["hidden_size"], said["num_attention_heads"], said["num_key_value_heads"]
    attention = 2 * d_model * said["head_dim"] * (heads + kv)
    layer = attention + 3 * d_model * said["intermediate_size"]
    tables = (1 if said["tie_word_embeddings"] else 2) * said["vocab_size"] * d_model
    return said["num_hidden_layers"] * layer + tables, said["num_hidden_layers"] * 2 * kv * said["head_dim"] * 2


check("13 sizes_of", sizes_of)

# %% [markdown]
# **Exercise 2 (write a function).** Two opinions on one step, each a dictionary of parts and their seconds; a part that an
# opinion does not name takes none. Return the part that explains most of the difference, and which share of the *whole*
# difference it explains (it may be more than 1, where another part pulls the other way).

# %% tags=["stub"]
def explains(ours, theirs):
    ...  # return a part, a share


check("13 explains", explains)

# %% tags=["solution"]
def explains(ours, theirs):
    apart = {part: theirs.get(part, 0) - ours.get(part, 0) for part in {*ours, *theirs}}
    whole = sum(theirs.values()) - sum(ours.values())
    part = max(apart, key=lambda name: apart[name] / whole)
    return part, apart[part] / whole


check("13 explains", explains)

# %% [markdown]
# **Exercise 3 (meet a budget in seconds).** `offers` is a list of dictionaries with `name`, `chips`, `batch`,
# `step_seconds`, `fits` and `price`, what one chip costs an hour. Return the name of the offer whose tokens are cheapest
# among those that fit and keep `limit` seconds a token; "none" if no offer does.

# %% tags=["stub"]
def choose(offers, limit):
    ...  # return a name


check("13 choose", choose)

# %% tags=["solution"]
def choose(offers, limit):
    good = [offer for offer in offers if offer["fits"] and offer["step_seconds"] <= limit]
    costs = [offer["price"] * offer["chips"] * offer["step_seconds"] / offer["batch"] for offer in good]
    return good[costs.index(min(costs))]["name"] if good else "none"


check("13 choose", choose)

# %% [markdown]
# **Exercise 4 (meet a budget in bytes).** Write the body for one device: it gets its columns of x and its rows of w, as in
# section 4, but on any number of devices. The result shall lie cut over its *columns*, `P(None, "x")`, and no device may
# send more than half of what `psum` sends. Nothing but `jax.lax` and `@` is needed.

# %% tags=["stub"]
def body(x, w):
    ...  # return this device's columns of the product


check("13 body", body)

# %% tags=["solution"]
def body(x, w):
    return jax.lax.psum_scatter(x @ w, "x", scatter_dimension=1, tiled=True)


check("13 body", body)

# %% [markdown]
# > **Takeaways**
# >
# > * A configuration says what a model weighs and what a token of its cache weighs; both decide the machine.
# > * Write the promise down first. Then the cheapest offer that keeps it is a search, and the search is yours to repeat.
# > * A defence has three lines: modelled, compiled, measured. What sets them apart is the interesting part.
# > * A time of what does not fit is no time, and a price of one chip-second is no price of another kind's.
# > * Count your own functions before you run them, and ask of every result who needs all of it.
#
# **Next:** this was the last lesson. In the library, read `mtfcore/counting/` and `tpu_runs/`, and add a case of your own.
# The words are in the [glossary](GLOSSARY.md).
