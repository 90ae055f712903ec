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
# # 11 · End to end: phases, frontier, the chat turn
#
# **Why:** between a question and the last word of its answer lie two phases, two layouts, a cache that changes hands,
# and a choice of how many chips the wait is worth.
#
# Here all of it runs, with a model that can really write.
#
# **After this lesson you can**
#
# 1. choose the partitions of both phases together (exercise 1);
# 2. show that a mesh changes no token, or find the first that it changes (exercise 2);
# 3. say how long one turn of a conversation takes, and what its kept cache saves (exercise 3);
# 4. pick chips, batch and partition under a limit of latency, at least cost (exercise 4).
#
# **Needs** [lesson 08](08_feedforward_layouts.ipynb), [lesson 09](09_attention_and_cache.ipynb) and
# [lesson 10](10_parallel_int8_overlap.ipynb) · **Minutes** 55–60 · **Hardware** any computer; 64 devices are
# simulated; the real model is what `make lab` fetched, and without it a stand-in that nobody trained · **Papers**
# Efficiently Scaling Transformer Inference (arXiv 2211.05102), sections 1, 2, 3.3, 4.4

# %% tags=["setup"]

# %% [markdown]
# ## 1 · Each phase its own layout
#
# [**Prefill**](GLOSSARY.md#prefill) reads a prompt, thousands of tokens at once; [**decode**](GLOSSARY.md#decode) writes, one token of every sequence a step. Lesson 08
# showed that few tokens want the weights to stay and many want them gathered. `auto` asks the cost model, for each phase
# by itself. PaLM 540B again, bf16, 64 chips of TPU v4; 512 sequences decode together, and prompts of 2,048 tokens are read
# so many at a time:

# %%
import numpy as np

palm = mtf.model.config("palm-540b", heads=64)
for at_a_time in (1, 32, 128):
    est = mtf.costs.inference(palm, "v4:4x4x4", batch=512, prefill_batch=at_a_time, input_tokens=2048, output_tokens=64)
    print(f"{at_a_time:3} prompts at a time: prefill {est.layouts['prefill']:11} {est.prefill_seconds:5.2f} s, MFU "
          f"{est.prefill_mfu:.0%}; decode {est.layouts['decode']} {1e3 * est.step_seconds:.0f} ms a token (modelled)")
predict("11 wrong layout", "Decode under the layout that was best for 128 prompts. A token then takes …",
        choices=["about as long", "5 times as long", "50 times as long"])

# %% tags=["solution"]
predict.record("11 wrong layout", "50 times as long")

# %%
tried = {name: each["seconds"] for name, each in est.candidates["decode"].items()}
print(", ".join(f"{name} {1e3 * seconds:,.0f} ms" for name, seconds in tried.items()), "(modelled)")
slower = tried[est.layouts["prefill"]] / min(tried.values())
predict.show("11 wrong layout", "50 times as long" if slower > 16 else "5 times as long" if slower > 2 else
             "about as long")

# %% [markdown]
# **Why:** it would move all weights to make a few tokens. Both layouts can be had, because 2D weight-stationary and all
# gathered ones **store** the weights alike, E over x and F over z and y: from one phase to the other no weight moves. Only
# `ws1d` stores them in other places, so an engine takes it for both phases or for neither.
#
# ## 2 · A cache that changes hands
#
# What does move is the cache. Prefill by heads keeps a prompt's keys and values where its heads are; decode by batch wants
# each sequence's on one device. `give` writes what prefill kept into slots of decode's cache. The paper reads one prompt
# alone, for the least latency, and writes 64 answers to it (section 4.4): its cache is given to 64 slots.

# %%
predict("11 given", "PaLM has one head of keys and values. By heads, the 64 devices all hold a copy of it. How many "
        "bytes does a device send to give one prompt to 64 sequences, one a device?", unit="bytes")

# %% tags=["solution"]
predict.record("11 given", 0)

# %%
from mtfcore.model.engine.moving_caches import sampling, taking
from mtfcore.model.engine.programs import Shape

sizes = {"cfg": palm, "mesh": mtf.Mesh("x:4 y:4 z:4"), "length": 2112, "weights": "i8", "cache": "bf16",
         "n_tokens": palm.vocab}
read, kept = Shape(partition="ws2d-heads", sequences=1, **sizes), Shape(partition="ws2d-batch", sequences=64, **sizes)
plans = {"give": sampling(read, kept), "take": taking(read, kept)}
for name, plan in plans.items():
    moved = ", ".join(step.label() for step in plan.collectives()) or "no collective"
    print(f"{name}: {plan.link_bytes().total / 1e6:,.0f} MB sent by a device (modelled): {moved}")
predict.show("11 given", plans["give"].link_bytes().total)

# %% [markdown]
# **Why:** by heads everybody has the prompt already, and each keeps what belongs to its own sequence. It is the way back
# that costs. `take` brings a slot to prefill for the next turn of a conversation, and then all need it. With several heads
# both ways cost. Like every step here, these are planned programs: drawn, priced and run alike.
#
# An [`Engine`](GLOSSARY.md#engine) is these four programs (prefill, give, decode, take) and a queue. Every event says what one launch did. A
# small model with random weights, one prompt, eight answers drawn with one seed:

# %%
tiny = mtf.model.config("palm-8b", layers=2, d_model=64, d_ff=128, heads=8, head_size=8, vocab=96, max_length=128)
params = mtf.model.initial(tiny)
asked = {"prompts": [[5, 17, 33, 60, 2, 8, 41]], "max_new_tokens": 4, "samples": 8, "temperature": 1.0, "seed": 11}
engine = mtf.model.Engine(tiny, params, "x:2 y:2 z:2", prefill="ws2d-heads", decode="ws2d-batch", slots=8, length=64)
answers = [[] for _ in range(8)]
for now in engine.generate(**asked):
    for number, ids in now.tokens.items():
        answers[number] += ids
    sent = " ".join(f"{axis} {n_bytes:,.0f}" for axis, n_bytes in now.traffic.items())
    made = [ids[0] for ids in now.tokens.values()]
    print(f"{now.phase:7} {made!s:34} {now.cache[0]:2} of {now.cache[1]} tokens kept, bytes sent: {sent} (counted)")

# %% [markdown]
# ## 3 · The same tokens everywhere
#
# A layout says where numbers lie. So on any mesh, under any partition, in any chunks and any company a sequence should
# get the same tokens, even those that are drawn: what a token is drawn with depends on the seed, the sequence's number and
# its position, and on no device.

# %%
predict("11 same", "The same question on four devices, under other partitions and in other chunks: how many of the 8 "
        "answers change?", unit="answers")

# %% tags=["solution"]
predict.record("11 same", 0)

# %%
other = mtf.model.Engine(tiny, params, "x:4", prefill="ws1d-heads", decode="ws1d-batch", slots=8, length=64, chunk=4)
others = other.complete(**asked)
for one in (engine, other):
    print(f"{one.mesh!s:11} {one.prefill} → {one.decode}:", *(others if one is other else answers), "(measured)")
predict.show("11 same", sum(mine != yours for mine, yours in zip(answers, others)), "measured")

# %% [markdown]
# **Why:** only the order of sums differs, which moves a logit by some millionths. A token changes only where two were that
# close. Exercise 2 makes a test of this. Try other meshes; one with a single device, `x:1`, has no collectives at all.
#
# ## 4 · A model that writes
#
# SmolLM2-135M-Instruct, 30 layers, read from the file that `make lab` fetched. It has 9 query heads and 3 of keys and values, and eight
# devices cannot share either. `Chat` pads them with heads of zeros, and says what that costs.

# %%
from mtfcore.model.chat import Chat
from mtfcore.model.files import known

there = known.path_of("smollm2-135m").is_file()
print("the real model" if there else "the model was not fetched (python -m mtfcore.model fetch): letters without sense")
chat = Chat("smollm2-135m" if there else "untrained", "x:2 y:2 z:2", prefill="ws2d-heads", decode="ws2d-heads", slots=8,
            length=128, chunk=8)
print(chat.about)

# %%
for piece, now in chat.say("What is the capital of France?", max_new_tokens=8):
    print(piece, end="", flush=True)
    kept, sent = now.cache[0], sum(now.traffic.values())
print(f"\n{kept} tokens kept; {sent / 1e6:.1f} MB sent by a device (counted)")
for name, plan in chat.engine.plans.items():
    print(f"{name:8} sends {plan.link_bytes().total / 1e6:5.2f} MB a launch (modelled)")

# %% [markdown]
# That ran on eight simulated devices, by the steps that the plan lists: with one collective left out it would talk
# nonsense. The first launch of each phase takes seconds, since it is compiled; how long the others take says nothing about
# hardware. Between two turns the partition may change, but not to one that stores the weights elsewhere:

# %%
try:
    chat.engine.move(decode="ws1d-heads")
except mtf.LayoutError as refusal:
    print(refusal)

# %%
repaired = chat.change(decode="ws2d-batch")
print(repaired)
for piece, now in chat.say("And of Italy?", max_new_tokens=8):
    print(piece, end="", flush=True)
    kept = now.cache[0]
print(f"\n{kept} tokens kept (counted)")

# %% [markdown]
# The real model knows what *and* means: the first turn is still in the cache, moved but kept, and only the new words are
# read. It has 135 million parameters and knows little; the 540B one of the other sections runs by the same steps.
#
# Now talk to it yourself: press *Write*. **Try**, between two turns: another partition for decode (what moves?); another
# mesh (what must be read again?); others who write at the same time (what becomes of your tokens, and of the bytes of
# each?). Beside what is counted stands what the same programs would take on a TPU, modelled.

# %%
from widgets import frontier, generate

generate()

# %% [markdown]
# ## 5 · A turn in 1.9 seconds
#
# The paper's headline for a chatbot: 540B on 64 chips, int8; 64 new tokens from the user, 1,920 of the conversation kept
# in the cache, 64 tokens of answer. Published: 1.9 s.

# %%
predict("11 turn", "Which share of these 1.9 s goes to reading the 64 new tokens?",
        choices=["half of it", "a tenth", "a hundredth"])

# %% tags=["solution"]
predict.record("11 turn", "a hundredth")

# %%
turn = {"batch": 64, "prefill_batch": 1, "output_tokens": 64, "weights": "int8", "ffn": "ws2d"}
for words, new, cached in (("kept", 64, 1920), ("forgotten", 1984, 0)):
    est = mtf.costs.inference(palm, "v4:4x4x4", input_tokens=new, cached_tokens=cached, **turn)
    print(f"conversation {words:9}: read {est.prefill_seconds:.2f} s, write {est.decode_seconds:.2f} s, together "
          f"{est.total_seconds:.2f} s (modelled)")
    share = est.prefill_seconds / est.total_seconds if cached else share
from mtfcore.costs.against_published import compare, table_of

display(table_of([row for row in compare("Headlines") if row.row.name == "a turn of a chat"]))
predict.show("11 turn", "a hundredth" if share < 0.03 else "a tenth" if share < 0.3 else "half of it")

# %% [markdown]
# **Why:** writing takes 64 steps, each of which reads all weights, however few the tokens; reading is one pass. A text that
# circulates adds the time of a prefill of 1,984 tokens: that is what a turn costs when the cache was *not* kept. And the
# batch of 64 is not one user: the slice writes 64 answers in that time, so it is latency for each, and throughput for all.
#
# ## 6 · The frontier
#
# More chips or fewer sequences make a token sooner and dearer. Of all plans, only those count that no other beats in both.
# Look for the left end of a curve (what does its last factor of two in latency cost?), for where int8 and bf16 meet, and
# for the paper's own points.

# %%
frontier()

# %% [markdown]
# ## 7 · Exercises
#
# **Exercise 1 (fill a line).** `prefill` and `decode` map partitions to seconds, of reading the prompt and of one
# token. Return the pair *(for prefill, for decode)* with which prompt and `tokens` tokens take least. Both must store the
# weights alike; `pairs` holds those that do.

# %% tags=["stub"]
def pair(prefill, decode, tokens):
    pairs = [(p, d) for p in prefill for d in decode if p.startswith("ws1d") == d.startswith("ws1d")]
    return ...  # the pair that takes least, such as ("wg_xy-heads", "ws2d-batch")


check("11 pair", pair)

# %% tags=["solution"]
def pair(prefill, decode, tokens):
    pairs = [(p, d) for p in prefill for d in decode if p.startswith("ws1d") == d.startswith("ws1d")]
    return min(pairs, key=lambda each: prefill[each[0]] + tokens * decode[each[1]])


check("11 pair", pair)

# %% [markdown]
# **Exercise 2 (write a function).** `one` and `other` are what two engines wrote to the same prompts, a list of tokens for
# each. Return *(prompt, position)* of the first token that differs or that only one of them has, or `"same"`.

# %% tags=["stub"]
def first_difference(one, other):
    ...  # return (0, 3), say, or "same"


check("11 first_difference", first_difference)

# %% tags=["solution"]
def first_difference(one, other):
    for prompt, (mine, yours) in enumerate(zip(one, other)):
        for position in range(max(len(mine), len(yours))):
            if mine[position : position + 1] != yours[position : position + 1]:
                return prompt, position
    return "same"


check("11 first_difference", first_difference)

# %% [markdown]
# **Exercise 3 (write a function).** `prefill(new, cached)` gives the seconds of reading new tokens behind cached ones,
# `step(context)` those of one more token behind a context. A conversation has turns, a list of *(tokens of the user, tokens
# of the answer)*. Return the seconds of each turn; the cache is kept throughout. (As the paper does, count one step for each
# token of the answer.)

# %% tags=["stub"]
def turns_seconds(prefill, step, turns):
    ...  # return a list of seconds, one a turn


check("11 turns_seconds", turns_seconds)

# %% tags=["solution"]
def turns_seconds(prefill, step, turns):
    kept, found = 0, []
    for new, answer in turns:
        found.append(prefill(new, kept) + sum(step(kept + new + n) for n in range(answer)))
        kept += new + answer
    return found


check("11 turns_seconds", turns_seconds)

# %% [markdown]
# **Exercise 4 (meet a budget in seconds).** PaLM 62B reads prompts of `tokens` tokens. Return *(slice, batch, partition of
# decode)* with which a token of every sequence takes at most `limit` seconds, everything fits, and an output token costs
# least. `ASKED` says the rest: int8, prompts read one at a time. `SLICES` and `BATCHES` have good answers, and any other
# that is as cheap passes.

# %% tags=["stub"]
SLICES, BATCHES = ["v4:2x2x4", "v4:4x4x4"], [16, 64, 256, 1024]
ASKED = {"prefill_batch": 1, "weights": "int8", "ffn": {"prefill": "ws2d", "decode": "auto"},
         "attention": {"prefill": "heads", "decode": "auto"}}


def configuration(tokens, limit):
    ...  # mtf.costs.inference("palm-62b", slice, batch=batch, input_tokens=tokens, **ASKED)


check("11 configuration", configuration)

# %% tags=["solution"]
SLICES, BATCHES = ["v4:2x2x4", "v4:4x4x4"], [16, 64, 256, 1024]
ASKED = {"prefill_batch": 1, "weights": "int8", "ffn": {"prefill": "ws2d", "decode": "auto"},
         "attention": {"prefill": "heads", "decode": "auto"}}


def configuration(tokens, limit):
    est = mtf.costs.inference("palm-62b", np.array(SLICES)[:, None], batch=BATCHES, input_tokens=tokens, **ASKED)
    good = est.fits & (est.step_seconds <= limit)
    cost = np.where(good, est.chip_seconds_per_output_token, np.inf)
    row, column = np.unravel_index(cost.argmin(), cost.shape)
    return SLICES[row], BATCHES[column], est.layouts["decode"][row, column]


check("11 configuration", configuration)

# %% [markdown]
# > **Takeaways**
# >
# > * Prefill and decode are two programs on one store of weights; each takes the partition that suits its tokens.
# > * Between them only the cache moves, by planned steps. With one shared head, giving costs nothing and taking does.
# > * Tokens depend on model, prompt and seed. If a mesh changes one, something is wrong.
# > * A turn of a conversation reads what is new. Its seconds are steps of decode, and those are weights being read.
# > * Latency and cost are a trade: give a limit, then take the cheapest plan that keeps it.
#
# **Next:** ask a compiler and a clock what they think of it, in [lesson 12](12_predicted_compiled_measured.ipynb). The words
# are in the [glossary](GLOSSARY.md); in the library, read `mtfcore/model/engine/`, or hold a conversation in a terminal:
# `python -m mtfcore.model chat`.
