"""Wrong answers of lessons 07 to 13, each with words that its message must say. Read next: `test_exercises.py`."""

import functools
import importlib
import math

import numpy as np

import mtfcore as mtf


def _least_sent(cfg, devices):
    meshes = [f"x:{x} y:{devices // x}" for x in (2, 4, 8)]
    plan = functools.partial(mtf.model.plan_phase, ffn="ws2d", attention="heads", batch=64, cached_tokens=16)
    return min(meshes, key=lambda mesh: plan(cfg, "decode", mesh).link_bytes().total)


def _parameters(said, tables=None, square=False):
    heads, kv = said["num_attention_heads"], said["num_key_value_heads"]
    attention = 2 * said["hidden_size"] * said["head_dim"] * (2 * heads if square else heads + kv)
    layer = attention + 3 * said["hidden_size"] * said["intermediate_size"]
    tables = tables or (1 if said["tie_word_embeddings"] else 2)
    return said["num_hidden_layers"] * layer + tables * said["vocab_size"] * said["hidden_size"]


def _kept(said):
    return said["num_hidden_layers"] * 4 * said["num_key_value_heads"] * said["head_dim"]


def _offer(offers, batch="batch"):
    a_token = lambda o: o["price"] * o["chips"] * o["step_seconds"] / (o["batch"] if batch == "batch" else 1)  # noqa: E731
    return min(offers, key=a_token)["name"] if offers else "none"


def _cheap(offers, limit):
    fitting = [offer for offer in offers if offer["fits"] and offer["step_seconds"] <= limit]
    return _offer(fitting) if fitting else ""


def _apart(ours, theirs, parts, size=False):
    apart = {part: theirs.get(part, 0) - ours.get(part, 0) for part in sorted(parts)}
    whole = sum(map(abs, apart.values())) if size else sum(apart.values())
    part = max(apart, key=lambda name: abs(apart[name]))
    return part, apart[part] / whole


def _common(ours, theirs):
    whole = sum(theirs.values()) - sum(ours.values())
    shares = {part: (theirs[part] - ours[part]) / whole for part in ours if part in theirs}
    part = max(shares, key=shares.get)
    return part, shares[part]


def _lax():
    return importlib.import_module("jax").lax


def _rounded(w, largest, to_whole=np.round):
    scale = np.where(largest == 0, 1, largest / 127)
    return to_whole(np.clip(w / scale, -127, 127)).astype(np.int8), np.asarray(scale)


def _turns(read, step, turns, new=lambda kept, new: (new, kept)):
    kept, found = 0, []
    for said, out in turns:
        found.append(read(*new(kept, said)) + sum(step(kept + said + n) for n in range(out)))
        kept += said + out
    return found


def _waited(events, shared=True, asks=True):
    """Exercise 12 waited: not `shared`, each message has its own link; not `asks`, all of each is waited for."""
    now = free = waits = 0
    ends, sizes = {}, {}
    for kind, *rest in events:
        if kind == "work":
            now += rest[0]
        elif kind == "start":
            ends[rest[0]] = free = (max(now, free) if shared else now) + rest[1]
            sizes[rest[0]] = rest[1]
        else:
            late = max(0, ends[rest[0]] - now)
            now, waits = now + late, waits + (late if asks else sizes[rest[0]])
    return now, waits


def _in_turn(messages, works, free_first=False):
    """Exercise 12 schedule with each message waited for at once, or before the work that needs none."""
    free = [("work", n) for n, (_, needs) in enumerate(works) if not needs]
    starts = [("start", name) for name in messages] if free_first else []
    events = [*starts]
    for name in messages:
        events += [] if free_first else [("start", name)]
        events += [("done", name), *(("work", n) for n, (_, needs) in enumerate(works) if needs == name)]
    return events + free


def _cheapest(tokens, good):
    """The cheapest plan of lesson 11's table for which something holds."""
    of = importlib.import_module("lessons.checks.lesson_11")
    est = of.table(tokens)
    row, column = np.argwhere(good(est))[np.argmin(est.chip_seconds_per_output_token[good(est)])]
    return of.SLICES[row], of.BATCHES[column], est.layouts["decode"][row, column]


TWO_D = {"x": "B L E:x", "first": "B L F:zyx", "hidden": "B L F:zy", "result": "B L E:xzy"}

WRONG = {
    "07 step_seconds": [
        (lambda n, b, c, k, p, h, s: 2 * n * b / (k * p) + (n * s + c) / (k * h), "ms"),  # one after the other
        (lambda n, b, c, k, p, h, s: max(2 * n * b / (k * p), n * s / (k * h)), "ms"),  # the cache forgotten
        (lambda n, b, c, k, p, h, s: max(n * b / (k * p), (n * s + c) / (k * h)), "ms"),  # a multiply-add as one FLOP
        (lambda n, b, c, k, p, h, s: (n * s + c) / (k * h), "ms"),  # reading alone
    ],
    "07 cache_on_device": [
        (lambda layers, k, d, b, c, n, by, s: 2 * layers * k * d * s * c * b // n, "bytes"),  # no copies
        (lambda layers, k, d, b, c, n, by, s: layers * k * d * s * c * b // min(n, k if by == "heads" else b), "bytes"),
        (lambda layers, k, d, b, c, n, by, s: 2 * layers * k * d * c * b // min(n, k if by == "heads" else b), "bytes"),
    ],
    "07 batch_within": [
        (lambda budget, n, w, s: int(budget // s) * n, "held with batch"),  # the weights forgotten
        (lambda budget, n, w, s: max(0, int((budget - w / n) // s)), "expected"),  # sequences of one device
        (lambda budget, n, w, s: max(0, int((budget - w / n) // s) - 1) * n, "sequences"),  # one too few
    ],
    "07 layout": [
        (lambda t, e, f, x, y, z: "wg_xyz" if t > f else "ws2d", "moved by"),  # the rule that circulates
        (lambda t, e, f, x, y, z: "ws2d", "moved by ws2d"),
        (lambda t, e, f, x, y, z: "wg", "one of"),
    ],
    "07 repaired_claims": [
        (lambda e, f, x, n, s: ((f / e) ** 2, 4 * e * f * x / n, 1 - 1 / (1 + s)), "2D wins"),
        (lambda e, f, x, n, s: (4 * f / e, 4 * e * f / x, 1 - 1 / (1 + s)), "MB of weights"),
        (lambda e, f, x, n, s: (4 * f / e, 4 * e * f * x / n, s), "parallel saves"),
        (lambda e, f, x, n, s: 4 * f / e, "three numbers"),
    ],
    "08 two_d": [
        ({**TWO_D, "first": "B L F:zy"}, "collectives: expected"),  # all-reduced over x
        ({**TWO_D, "first": "B L:x F:zy"}, "the plan"),  # one or three tokens do not divide
        ({**TWO_D, "x": "B L E:xzy"}, "the plan: expected places that can be"),  # x left where it rests
        ({**TWO_D, "result": "B L E:x"}, "collectives: expected"),  # all-reduced over zy
        ("B L E:x", "a text for each of x, first, hidden, result"),
    ],
    "08 within": [
        (lambda t, e, f, n, budget: ("ws2d", (4, n // 4, 1)), "expected at most"),  # weights always stay
        (lambda t, e, f, n, budget: ("wg_xyz", (n, 1, 1)), "expected at most"),  # weights always come
        (lambda t, e, f, n, budget: ("ws2d" if t < f else "wg_xyz", (2, 2, 2)), "devices: expected"),
        (lambda t, e, f, n, budget: "ws2d", "(name, (x, y, z))"),
    ],
    "08 gathered_bytes": [
        (lambda t, e, f, k, n, s: 2 * e * f * s * k / n + (4 * t * e / k if k < n else 0), "bytes"),  # (K-1)/K as 1
        (lambda t, e, f, k, n, s: e * f * s / n * (k - 1) + 4 * t * e / k * (1 - k / n), "bytes"),  # one matrix
        (lambda t, e, f, k, n, s: 2 * e * f * s / n * (k - 1) + 2 * t * e / k * (1 - k / n), "bytes"),  # one collective
    ],
    "08 gather_from": [
        (lambda e, f, x, y, z: f, "tokens"),  # the rule that circulates
        (lambda e, f, x, y, z: 2 * f, "tokens"),  # right on 4x4x4 with F = 4E alone
        (lambda e, f, x, y, z: e * f / (e / (y * z) + f / x), "tokens"),  # the axes swapped
    ],
    "09 copies": [
        (lambda axes, k: math.prod(axes) // k or 1, "devices"),  # as if axes could be cut
        (lambda axes, k: math.prod(axes) // math.gcd(math.prod(axes), k), "devices"),  # the best mesh, not this one
        (lambda axes, k: math.prod(size for size in axes if k % size), "devices"),  # heads that are left forgotten
        (lambda axes, k: math.prod(axes), "devices"),
    ],
    "09 longest": [
        (lambda m, n, k, d, b, p, by, s: m * p // (2 * n * k * d * s * b), "held with"),  # no copies
        (lambda m, n, k, d, b, p, by, s: m * min(p, k if by == "heads" else b) // (2 * n * k * d * s), "held with"),
        (lambda m, n, k, d, b, p, by, s: m * min(p, k if by == "heads" else b) // (n * k * d * s * b), "held with"),
        (lambda m, n, k, d, b, p, by, s: m * min(p, k if by == "heads" else b) / (2 * n * k * d * s * b), "whole"),
        (lambda m, n, k, d, b, p, by, s: 0, "context: expected"),
    ],
    "09 choose": [
        (lambda asked, k, p: ["batch"] * len(asked), "expected 'heads'"),  # always the paper's
        (lambda asked, k, p: ["batch" if context > 1024 else "heads" for _, context in asked], "expected"),
        (lambda asked, k, p: ["batch" if batch > k else "heads" for batch, _ in asked], "expected 'heads'"),
        (lambda asked, k, p: "batch", "a list, "),
        (lambda asked, k, p: ["batch"], "a list of 6"),
    ],
    "09 pins": [
        (lambda q, cache: (q, cache.replace(cache.split()[0], q.split()[0])), "sent of the cache"),  # the cache moves
        (lambda q, cache: ("B H D", "B S D"), "sent of the cache"),  # everything whole
        (lambda q, cache: (q, cache), "k has B on"),  # q stays too: no product
        (lambda q, cache: (f"{cache.split()[0]} H D", cache), "sent of q"),  # heads gathered that need not be
        (lambda q, cache: cache, "two texts"),
    ],
    "09 exchanged": [
        (lambda b, h, d, x, yz, s: (2 * h + 2) * b * d * s // (x * yz), "bytes"),  # what it keeps, counted too
        (lambda b, h, d, x, yz, s: (h + 2) * b * d * s // (x * yz) * (yz - 1) // yz, "bytes"),  # one way only
        (lambda b, h, d, x, yz, s: (2 * h + 2) * b * d * s // yz * (yz - 1) // yz, "bytes"),  # not cut over x
        (lambda b, h, d, x, yz, s: 4 * h * b * d * s // (x * yz) * (yz - 1) // yz, "bytes"),  # 64 heads of keys
    ],
    "10 mesh_within": [
        (lambda cfg, n, budget: f"x:2 y:{n // 2}", "expected at most"),  # the smallest x
        (lambda cfg, n, budget: f"x:{n // 4} y:4", "expected at most"),
        (lambda cfg, n, budget: _least_sent(cfg.but(block="parallel"), n), "expected at most"),  # the other's best
        (lambda cfg, n, budget: "x:2 y:2", "devices: expected"),
        (lambda cfg, n, budget: "x:0 y:8", 'a mesh such as "x:2 y:8"'),
        (lambda cfg, n, budget: f"rows:4 cols:{n // 4}", "x and y"),
    ],
    "10 quantised": [
        (lambda w: _rounded(w, np.full(w.shape[1], np.abs(w).max())), "at most half a step"),  # one scale for all
        (lambda w: _rounded(w, np.abs(w).max(0), np.trunc), "at most half a step"),
        (lambda w: _rounded(w, np.abs(w).max(1, keepdims=True)), "shape of the scales"),  # of each input
        (lambda w: _rounded(w, w.max(0)), "at most half a step"),  # signs forgotten
        (lambda w: (np.round(w / np.abs(w).max(0).clip(1e-9) * 127), np.abs(w).max(0) / 127), "dtype"),
        (lambda w: np.round(w).astype(np.int8), "two arrays"),
    ],
    "10 scaled": [
        (lambda x, w, scale: mtf.einsum(x, w, out="B F") * mtf.max(scale, out="F"), "expected 128, yours gives 254"),
        (lambda x, w, scale: mtf.einsum(mtf.einsum(x, w, out="B F"), scale, out="B F"), "expected 128"),
        (lambda x, w, scale: mtf.einsum(x, w, out="B G F") * scale, "dimensions of the result"),
        (
            lambda x, w, scale: mtf.einsum(
                mtf.reshard(mtf.einsum(x, w, out="B G F") * scale, mtf.Sharding("B G F")), out="B F"
            ),
            "bytes sent by a device",
        ),  # every part to every device
        (lambda x, w, scale: "B F", "a tensor"),
    ],
    "10 rounds": [
        (lambda g, d: [(d, d), *[((d - back) % g, d) for back in range(1, g)]], "round 3"),  # its own, again and again
        (
            lambda g, d: [(None, (d - back) % g) for back in range(g - 1)] + [(block, None) for block in range(g)],
            "rounds: expected at most",
        ),  # all gathered first
        (lambda g, d: [((d + back) % g, (d + back) % g) for back in range(g)], "one of those that it holds"),
        (lambda g, d: list(range(g)), "a list of pairs"),
        (lambda g, d: [(d, (d - back) % g) for back in range(g)], "blocks multiplied"),
    ],
    "11 pair": [
        (lambda p, d, n: (min(p, key=p.get), min(d, key=d.get)), "two stores"),  # each phase for itself
        (lambda p, d, n: ("ws1d-heads", "ws1d-batch"), "ms in all"),
        (
            lambda p, d, n: next(
                (a, b)
                for a in sorted(p, key=p.get)
                for b in sorted(d, key=d.get)
                if a.startswith("ws1d") == b.startswith("ws1d")
            ),
            "ms in all",
        ),  # prefill decides
        (lambda p, d, n: min(p, key=p.get), "a name for decode"),
    ],
    "11 first_difference": [
        (lambda one, other: "same" if one == other else (0, 0), "expected"),
        (
            lambda one, other: next(
                (
                    (p, n)
                    for p, (a, b) in enumerate(zip(one, other, strict=True))
                    for n, (i, j) in enumerate(zip(a, b, strict=False))
                    if i != j
                ),
                "same",
            ),
            "yours gives 'same'",
        ),  # an answer that ends sooner
        (
            lambda one, other: next((p for p, (a, b) in enumerate(zip(one, other, strict=True)) if a != b), "same"),
            "expected",
        ),
    ],
    "11 turns_seconds": [
        (lambda read, step, turns: _turns(read, step, turns, new=lambda kept, new: (kept + new, 0)), "turn 2"),
        (lambda read, step, turns: [read(new, 0) + out * step(new) for new, out in turns], "turn 1"),
        (lambda read, step, turns: [_turns(read, step, [turn])[0] for turn in turns], "turn 2"),  # nothing kept
        (lambda read, step, turns: sum(_turns(read, step, turns)), "numbers"),
    ],
    "11 configuration": [
        (lambda tokens, limit: ("v4:4x4x4", 16, "ws1d-batch"), "cost"),  # soon, and dear
        (lambda tokens, limit: _cheapest(tokens, lambda est: est.step_seconds <= limit), "memory"),
        (lambda tokens, limit: _cheapest(tokens, lambda est: est.fits), "latency"),
        (lambda tokens, limit: ("v4:2x2x4", 16, "wg_xyz-batch"), "latency"),
        (lambda tokens, limit: ("v4:2x2x4", 1 << 20, "ws2d-batch"), "memory"),
        (lambda tokens, limit: ("v4:3x3x3", 16, "ws2d-batch"), "no topology"),
        (lambda tokens, limit: ("v4:4x4x4", 16, "wsd"), "is no partition"),
        (lambda tokens, limit: ("v4:4x4x4", 16), "(slice, batch, partition)"),
    ],
    "12 waited": [
        (lambda events: _waited(events, shared=False), "b"),  # a link for each message
        (lambda events: _waited(events, asks=False), "s of waiting"),  # all of each message
        (lambda events: (sum(e[1] for e in events if e[0] == "work"), 0), "in all"),  # nobody waits
        (lambda events: _waited(events)[0], "two numbers"),
    ],
    "12 schedule": [
        (lambda messages, works: _in_turn(messages, works), "takes: expected at most"),
        (lambda messages, works: _in_turn(messages, works, free_first=True), "takes: expected at most"),
        (lambda messages, works: [("work", n) for n in range(len(works))], "0 times"),
        (
            lambda messages, works: [
                *(("start", m) for m in messages),
                *(("work", n) for n in range(len(works))),
                *(("done", m) for m in messages),
            ],
            "before the done it needs",
        ),
        (lambda messages, works: list(messages), "a list of pairs"),
    ],
    "12 label": [
        (
            lambda number: {
                "plan": "modelled",
                "jaxpr": "counted",
                "paper": "published",
                "compiler": "compiled",
                "clock": "measured",
            }[number["source"]],
            "expected",
        ),  # the first look
        (lambda number: "modelled" if number["what"] == "seconds" else "counted", "expected"),
    ],
    "13 sizes_of": [
        (lambda said: (_parameters(said, tables=1), _kept(said)), "parameters"),  # always tied
        (lambda said: (_parameters(said), _kept(said) // 2), "a kept token"),  # keys without values
        (lambda said: (_parameters(said, square=True), _kept(said)), "parameters"),  # keys as wide as queries
        (lambda said: _parameters(said), "two numbers"),
    ],
    "13 choose": [
        (lambda offers, limit: _cheap(offers, limit) or None, "expected 'none', yours gives None: no offer"),
        (lambda offers, limit: min(offers, key=lambda o: o["step_seconds"])["name"], "expected"),  # the fastest
        (lambda offers, limit: _offer([o for o in offers if o["step_seconds"] <= limit]), "it does not fit"),
        (lambda offers, limit: _offer([o for o in offers if o["fits"]]), "ms"),  # no promise kept
        (
            lambda offers, limit: _offer([o for o in offers if o["fits"] and o["step_seconds"] <= limit], "chips"),
            "expected",
        ),  # a batch of many counts as one
        (lambda offers, limit: "offer 9", "no offer's name"),
    ],
    "13 explains": [
        (lambda ours, theirs: ("links", 1.0), "expected"),
        (lambda ours, theirs: _apart(ours, theirs, {*ours} & {*theirs}), "expected"),  # what one does not name
        (lambda ours, theirs: _common(ours, theirs), "the part: expected"),  # the same, of the whole difference
        (lambda ours, theirs: _apart(ours, theirs, {*ours, *theirs}, size=True), "its share"),
        (lambda ours, theirs: _apart(ours, theirs, {*ours, *theirs})[0], "a part and a share"),
    ],
    "13 body": [
        (lambda x, w: _lax().psum(x @ w, "x"), "shape"),  # all of it everywhere
        (
            lambda x, w: _lax().dynamic_slice_in_dim(
                _lax().psum(x @ w, "x"), 0, w.shape[1] // _lax().axis_size("x"), 1
            ),
            "element",
        ),  # the same columns on every device
        (
            lambda x, w: _lax().dynamic_slice_in_dim(
                _lax().psum(x @ w, "x"),
                _lax().axis_index("x") * (w.shape[1] // _lax().axis_size("x")),
                w.shape[1] // _lax().axis_size("x"),
                1,
            ),
            "bytes sent by a device",
        ),  # right, and sends all
    ],
}
