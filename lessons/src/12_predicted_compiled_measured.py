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
# # 12 · Predicted, compiled, measured
#
# **Why:** one step has many times, and whoever can say why they differ knows what to change.
#
# A model predicts one, a compiler's schedule implies another, a clock shows a third, and a paper prints a fourth. Each
# knows something that the others do not.
#
# **After this lesson you can**
#
# 1. say of every number where it comes from, and of some that they say nothing (exercise 1);
# 2. read a schedule: say how long a device waits for its links, and what hides the rest (exercise 2);
# 3. put work between the start and the end of a message, so that nobody waits (exercise 3).
#
# **Needs** [lesson 10](10_parallel_int8_overlap.ipynb) · **Minutes** 45–55 · **Hardware** any computer; a compiler for TPUs
# comes along on Linux, and recorded answers stand in elsewhere; devices are simulated · **Papers** Efficiently Scaling
# Transformer Inference (arXiv 2211.05102), sections 2, 3.5 and 4.4

# %% tags=["setup"]

# %% [markdown]
# ## 1 · Predicted
#
# The step of this lesson is the paper's most quoted one. PaLM 540B on 64 chips of TPU v4, weights in int8, 64 sequences
# with some two thousand tokens each: every step makes one token for each of them. We plan it as ever, and ask both models
# of lesson 07 for its price.

# %%
palm = mtf.model.config("palm-540b", heads=64)
asked = {"ffn": "ws2d", "attention": "batch", "batch": 64, "cached_tokens": 2079, "weights": "int8"}
plan = mtf.model.plan_phase(palm, "decode", "x:4 y:4 z:4", **asked)
prices = {model: mtf.price(plan, "v4:4x4x4", model=model) for model in ("physical", "calibrated")}
for model, price in prices.items():
    parts = ", ".join(f"{part} {1e3 * seconds:.1f}" for part, seconds in price.parts.items() if seconds > 5e-5)
    print(f"{model:10} {1e3 * price.seconds:5.1f} ms a step: {parts} (modelled)")

# %% [markdown]
# The physical model is a bound: all bytes and hops as published, nothing in between. The calibrated one was fitted to
# published times, and knows from them that starting a message takes long. It does not know why. Neither has seen what a
# compiler makes of the plan.
#
# ## 2 · Compiled
#
# A compiler for TPUs needs no TPU. It takes our plan's steps, fuses, copies and orders them, and writes down how many
# cycles it thinks each piece takes. What it knows about links it keeps to itself, so for those we use our own model.
# Together they imply a time, **modelled from compiled schedule**. Compiling takes some ten seconds: guess first.

# %%
predict("12 waits", "Which share of the compiled step does a device wait for its links and compute nothing?",
        choices=["next to nothing", "a quarter", "three quarters"])

# %% tags=["solution"]
predict.record("12 waits", "a quarter")

# %%
from mtfcore.compiling.process import HOW_TO_GET_IT, has_compiler
from mtfcore.compiling.timeline import Timeline
from mtfcore.compiling.timeline import timeline as lanes
from mtfcore.reference import rows
from tpu_runs.records import committed


def recorded(**wanted):
    """The record of a compiled program that keeps its timeline."""
    found = [r for r in committed() if r.facts.get("timeline") and r.status == "ok"]
    return next(r for r in found if wanted.items() <= ({"looped": ""} | r.params["params"]).items())


record = recorded(phase="decode", **asked)
if has_compiler():
    print("Compiling the step for 64 chips of TPU v4; nothing more appears here until that is done …", flush=True)
    line = lanes(mtf.compile(plan, "v4:4x4x4"))
else:
    print(f"{HOW_TO_GET_IT}.\nHere a record stands in: {record.words()}")
    line = Timeline.from_json(record.facts["timeline"])

# %%
whole = line.whole
print(f"{1e3 * whole.seconds:.1f} ms a step: computing {1e3 * whole.compute_seconds:.1f} ms, waiting for links "
      f"{1e3 * whole.exposed_link_seconds:.1f} ms ({line.origin})")
paper = next(row for row in rows("second", "Headlines") if row.name == "decode, int8, batch 64")
print(f"{paper.printed} {paper.unit} a step (published, {paper.source})")
print(f"computing takes {whole.compute_seconds / prices['physical'].parts['hbm']:.1f} times as long as the bound's hbm")
share = whole.exposed_link_seconds / whole.seconds
predict.show("12 waits", "next to nothing" if share < 0.1 else "a quarter" if share < 0.5 else "three quarters")

# %% [markdown]
# The paper's own number comes from a clock beside 64 chips. Look at what the others say about the *same* part. Our bound
# reads all weights in its `hbm` milliseconds, since it counts bytes. The compiler wants longer within the device, by the
# factor in the last line: it thinks that even the largest products read their weights at about half the memory's speed
# (section 4 lists them), and it knows about copies into another order that no plan mentions. The calibrated model gets
# the sum nearly right by calling all that *launches*.
#
# A right sum of wrong parts is good for a choice between plans that are alike, and dangerous for any other.
#
# ## 3 · Read a timeline
#
# The text that a compiler writes is [**scheduled**](GLOSSARY.md#compiled-schedule): what stands first starts first. So it can be drawn. One lane computes,
# one lane for each mesh axis sends. What follows is one turn of the loop over layers, from top to bottom.

# %%
predict("12 longest", "One layer of 118: what takes longest in it?",
        choices=["attention over the cache", "the feedforward's input matrices", "an all-reduce"])

# %% tags=["solution"]
predict.record("12 longest", "the feedforward's input matrices")

# %%
longest = sorted(line.bars, key=lambda bar: -bar.seconds)[:8]
for bar in longest:
    how = f"{bar.cycles:,} cycles" if bar.cycles else f"{1e6 * bar.exposed_seconds:.1f} µs waited"
    print(f"{1e6 * bar.start_seconds:6.1f} µs {bar.kind:14} {1e6 * bar.seconds:5.1f} µs, {how:14} "
          f"step {bar.step or '?'}: {line.words(bar).split(' and ')[0]}")
first = line.words(next(bar for bar in longest if bar.kind == "compute"))
predict.show("12 longest", "the feedforward's input matrices" if "F" in first.split("→")[-1] else
             "attention over the cache" if "S" in first else "an all-reduce")

# %% [markdown]
# **Why:** of a layer's weights most are there, and a decode step reads every one of them once. Right behind it stands a sum
# over x, and with it a `wait` as long as itself: nothing computes meanwhile, since what comes next needs its result. A
# message whose `start` and `done` have work between them would cost nothing there. And a copy that no plan mentions, for
# the gather of step 17.0, takes more than the gather.
#
# The same as a picture, from a record, so that nothing has to be compiled now. Point at bars, or walk with the arrow keys;
# hatched is waiting. **Try:** zoom in and walk along one lane; take *decode*, batch 512, from the records and look which
# lanes fill up. With a compiler at hand, let go of any control: another batch, another slice, your own model. Then *the
# whole step* can be shown as well, with a loop that opens.

# %%
from widgets import timeline

timeline(record=record.params["name"], schedule="plain")

# %% [markdown]
# ## 4 · Where two of them part
#
# To explain a difference, lay the two side by side in the smallest pieces that both name. Ours are the plan's steps, and
# every bar says from which step it was lowered.

# %%
ours = {step.ask.number: float(step.once.total) for step in prices["physical"].steps if "." in step.ask.number}
theirs = {}
for bar in line.bars:
    for number in bar.steps if bar.kind != "wait" else ():
        theirs[number] = theirs.get(number, 0) + bar.seconds / len(bar.steps)
apart = {n: theirs.get(n, 0) - ours.get(n, 0) for n in {*ours, *theirs}}
for number in sorted(apart, key=lambda n: -abs(apart[n]))[:8]:
    words = line.steps.get(number, "not in the compiled text by that name")
    print(f"step {number:6} {1e6 * ours.get(number, 0):5.1f} µs modelled, {1e6 * theirs.get(number, 0):5.1f} µs from "
          f"compiled schedule: {words[:48]}")
print(f"{len({*ours} - {*theirs})} of {len(ours)} planned steps are not in the compiled text by their own number")

# %% [markdown]
# Such a list is worth more than a total. A step that takes longer than its bytes allow is read in an order in which it does
# not lie, or multiplies matrices too thin for the unit. A sum that takes longer became an all-reduce, which sends twice as
# much as a reduce-scatter. A step that vanished was fused into its neighbour. One that appears (`17` alone, the loop
# itself) cuts this layer's part out of the stacked weights. Each has another remedy.
#
# Now the rings of lesson 10. The price model says that they pay for several of this layer's collectives: each block is sent
# while the one before is multiplied. A record with the largest of them as rings is here too.

# %%
predict("12 rings", "The compiled step with these rings takes …",
        choices=["less: sending is hidden", "about as long", "more: something else grew"])

# %% tags=["solution"]
predict.record("12 rings", "more: something else grew")

# %%
rings = Timeline.from_json(recorded(phase="decode", **asked, looped="latency").facts["timeline"])
for name, each in (("plain", line), ("looped", rings)):
    took = each.took
    print(f"{name:6} computing {1e6 * took.compute_seconds:4.0f} µs, waiting {1e6 * took.exposed_link_seconds:3.0f} µs "
          f"a layer ({each.origin})")
grew = max((bar for bar in rings.bars if bar.kind == "compute"), key=lambda bar: bar.seconds)
print(f"the longest bar of the looped layer: {grew.name}, {1e6 * grew.seconds:.0f} µs, {rings.words(grew)}")
more = rings.seconds / line.seconds
predict.show("12 rings", "less: sending is hidden" if more < 0.95 else "more: something else grew" if more > 1.05 else
             "about as long")

# %% [markdown]
# **Why:** some of the waiting is gone, as promised. But products of blocks want the weights in another order, and the
# compiler copies the layer's part into it, in every turn, for every layer. The price model knows no orders in memory, so it
# could not see this; set the *collectives* of the timeline above to *both*, and one bar shows it. Do rings never pay, then?
# The records have other phases:

# %%
others = {"decode, 512 sequences": {"phase": "decode", "batch": 512},
          "prefill, 1 prompt": {"phase": "prefill", "batch": 1},
          "prefill, 64 prompts, weights gathered": {"phase": "prefill", "ffn": "wg_xyz"}}
for name, wanted in others.items():
    plain, looped = (recorded(**wanted, looped=form).facts["seconds"] for form in ("", "latency"))
    print(f"{name:38} looped takes {looped / plain:.2f} of plain ({line.origin})")

# %% [markdown]
# Where products are larger the copies weigh less, and where whole weights travel to many tokens the rings gain. Predicting
# told us where to look, compiling told us what we would have met there.
#
# ## 5 · Measured
#
# A clock knows everything at once: busy links, memory's real speed, what no text says. It needs the device. Ask for it
# plainly, and `measure` says what is missing instead of running somewhere else in silence:

# %%
@mtf.function
def layer(x: "B E", w: "E F", v: "F E"):
    h = mtf.relu(mtf.einsum(x, w, out="B F:x", at=("B E", "E F:x")))
    return mtf.einsum(h, v, out="B E:x", at=("B F:x", "F:x E"))


place = {"x": "B E:x", "w": "E F:x", "v": "F:x E"}
small = mtf.plan(layer, "x:8", sizes="B:64 E:256 F:1024", place=place)
try:
    print(mtf.measure(small))
except mtf.DeviceError as refusal:
    print(refusal)

# %%
repaired = mtf.measure(small, on="simulated", repeats=5)
print(repaired)

# %% [markdown]
# Read all of it. The time is this computer's, which plays eight devices on its few cores: it says that the program runs,
# compiles, and gives the right answer (checked first, against plain whole arrays), and *nothing* about a TPU. So our
# explorers never show such a time as hardware speed. On a slice the very same call measures the slice.
#
# Most classes have one chip for an hour, and the mesh needs more. Then one device's [**share**](GLOSSARY.md#share) runs: its own steps at their
# exact local sizes, with the collectives left out, and the links modelled beside it.

# %%
predict("12 share", "How many collectives of the layer above are left out of one device's share?", unit="collectives")

# %% tags=["solution"]
predict.record("12 share", 2)

# %%
share = mtf.measure(small, on="simulated", share=True, topology="v5e:2x4", repeats=3).share
print(f"{share.left_out} collectives left out; on {share.topology} they would take "
      f"{1e6 * share.modelled_link_seconds:.1f} µs (modelled)")
predict.show("12 share", share.left_out, "counted")

# %% [markdown]
# Half measured and half modelled is a fair number only as long as both halves stay labelled. It cannot show waiting that
# overlap would have hidden, nor a link that others use. But it does show what no model knew about the device itself, and
# that was the larger part of our difference in section 2.
#
# ## 6 · Exercises
#
# **Exercise 1 (fill a line, or three).** `number` says how a number was made: `what` ("seconds" or "bytes"), `source` ("plan",
# "jaxpr", "compiler", "clock" or "paper"), and for a clock, and for nothing else, `device` ("simulated", "TPU v4", …):
# where a key may be missing, ask `number.get("device")`, which is then None. A compiler reports bytes; its seconds are its
# cycles with our links. Return the words that belong to it: "modelled", "counted", "compiled", "measured", "published",
# "modelled from compiled schedule", or "no hardware time" for a clock beside simulated devices.

# %% tags=["stub"]
def label(number):
    words = {"plan": "modelled", "jaxpr": "counted", "paper": "published", "compiler": "compiled", "clock": "measured"}
    return ...  # words[number["source"]] is right for most; for which two is it not?


check("12 label", label)

# %% tags=["solution"]
def label(number):
    words = {"plan": "modelled", "jaxpr": "counted", "paper": "published", "compiler": "compiled", "clock": "measured"}
    if number["source"] == "compiler" and number["what"] == "seconds":
        return "modelled from compiled schedule"
    return "no hardware time" if number.get("device") == "simulated" else words[number["source"]]


check("12 label", label)

# %% [markdown]
# **Exercise 2 (write a function).** `events` is a schedule in order: `("work", seconds)` computes, `("start", name,
# seconds)` begins to send, `("done", name)` waits until that has ended. All messages use one link, in the order in which
# they start, one at a time. Return the seconds of all of it, and how many of them are waited.

# %% tags=["stub"]
def waited(events):
    ...  # return seconds, seconds of waiting


check("12 waited", waited)

# %% tags=["solution"]
def waited(events):
    now = free = waits = 0
    ends = {}
    for kind, *rest in events:
        if kind == "work":
            now += rest[0]
        elif kind == "start":
            ends[rest[0]] = free = max(now, free) + rest[1]
        else:
            waits += max(0, ends[rest[0]] - now)
            now = max(now, ends[rest[0]])
    return now, waits


check("12 waited", waited)

# %% [markdown]
# **Exercise 3 (meet a budget in seconds).** `messages` maps names to seconds on the link, in the order in which they should
# start. `works` is a list of *(seconds, name of the message it needs, or "")*. Return a schedule: `("start", name)`,
# `("work", number)` and `("done", name)`, each once, so that work stands behind the `done` of what it needs, and nothing
# takes longer than it must.

# %% tags=["stub"]
def schedule(messages, works):
    ...  # return a list such as [("start", "a"), ("work", 0), ("done", "a"), ("work", 1)]


check("12 schedule", schedule)

# %% tags=["solution"]
def schedule(messages, works):
    events = [("start", name) for name in messages]
    for name in ("", *messages):
        events += [("done", name)] if name else []
        events += [("work", number) for number, (_, needs) in enumerate(works) if needs == name]
    return events


check("12 schedule", schedule)

# %% [markdown]
# > **Takeaways**
# >
# > * A prediction is a bound or a fit, a compiled schedule is an ordered list of estimates, a measurement is a fact about
# >   one day. Keep their labels.
# > * A schedule shows what a total hides: which message is waited for, and what could stand between its start and its end.
# > * Explain a difference in the smallest pieces that both sides name, and look for what only one of them can know.
# > * Hiding is not free. Look at what grows, not only at what shrinks.
# > * Simulated devices show that something is right, never that it is fast.
#
# **Next:** [lesson 13](13_your_model.ipynb), your model on your chips. The words are in the [glossary](GLOSSARY.md).
