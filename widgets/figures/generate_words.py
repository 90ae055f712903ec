"""The sentence below a writing model, and its table: what happens now and why.

    >>> sentence(facts)
    'Reading: 36 new tokens so far go through prefill under ws2d-heads, a chunk at a time, …'

This is the last file of the explorer; then `mtfcore/model/chat`, which does the work.
"""

from __future__ import annotations

from typing import Any

from mtfcore.model.serving import SERVING
from widgets.figures.generate_html import PHASES, block_words
from widgets.numbers import count, origin, quantity

Facts = dict[str, Any]


def sentence(facts: Facts) -> str:
    """What is going on, or what Write would do."""
    live = facts["live"]
    if live is None or live["state"] != "running":
        return (f"{_ended(live)} " if live else "") + _plan(facts)
    return _NOW.get(live["phase"], _starting)(live)


def _starting(live: Facts) -> str:
    return (f"Starting: {live['model']} is on {_devices(live)}; the first launch of each kind is compiled, which takes "
            "some seconds.")  # fmt: skip


def _reading(live: Facts) -> str:
    return (f"Reading: {live['phases']['prefill']['tokens']:,} new tokens so far go through prefill under "
            f"{live['prefill']}, a chunk at a time, into a small cache of prefill's own; what was kept of earlier "
            "turns is not read again.")  # fmt: skip


def _taking(live: Facts) -> str:
    return (f"Taking: what this conversation has kept comes from its slot under {live['decode']} to prefill's cache "
            f"under {live['prefill']}, so that only what is new must be read. No weight moves.")  # fmt: skip


def _giving(live: Facts) -> str:
    sent = quantity(live["phases"]["give"]["sent"], "iB")
    same = SERVING[live["prefill"]].attention == SERVING[live["decode"]].attention
    why = "both lie by heads" if same else "prefill has it by heads, decode by batch"
    why = why if same or SERVING[live["decode"]].attention == "batch" else "one has it by batch, the other by heads"
    return (f"Giving: the prompt's keys and values go to their slot of decode's cache, {origin(sent, 'counted')} from "
            f"a device so far: {why}. No weight moves.")  # fmt: skip


def _writing(live: Facts) -> str:
    token = sum(live["a_token"].values())
    axis = max(live["a_token"], key=live["a_token"].__getitem__, default="")
    over = f", most of it over {axis}" if token else ""
    busy = sum(1 for slot in live["cache"]["slots"] if slot["writes"])
    sent = origin(quantity(token, "iB"), "counted")
    return (f"Writing under {live['decode']}: each launch makes a token for {count(busy, 'sequence')}, and for it a "
            f"device sends {sent}{over}. {balance(live)}")  # fmt: skip


_NOW = {"prefill": _reading, "take": _taking, "give": _giving, "decode": _writing}


def balance(live: Facts) -> str:
    """How the cache is shared out."""
    cache = live["cache"]
    if cache["blocks"] == 1:
        return "Every device keeps its heads of all sequences."
    load = [sum(1 for s in cache["slots"] if s["who"] and s["block"] == block) for block in range(cache["blocks"])]
    return (f"The batch lies over {cache['axes']}: {count(cache['blocks'], 'block')} of devices look after "
            f"{min(load)} to {max(load)} sequences each.")  # fmt: skip


def _devices(live: Facts) -> str:
    n = 1
    for _, size in live["mesh"]:
        n *= size
    return count(n, "simulated device" if live["simulated"] else "attached device")


def _ended(live: Facts) -> str:
    verb = "Stopped; what was written stays." if live["state"] == "stopped" else "Written."
    kept = next((slot["kept"] for slot in live["cache"]["slots"] if slot["who"] == "you"), 0)
    return f"{verb} {count(kept, 'token')} are kept for your next turn."


def _plan(facts: Facts) -> str:
    modelled = facts["modelled"]
    if modelled is None:
        return f"Write runs {facts['model']} on '{facts['mesh_text']}'; planning and pricing its steps …"
    names = f"reads under {_named(facts, 'prefill')} and writes under {_named(facts, 'decode')}"
    token = modelled["token_by_axis"]
    sent = origin(quantity(sum(token.values()), "iB"), "modelled")
    padded = f" Padded: {modelled['padding'].replace('(modelled)', '[modelled]')}." if modelled["padding"] else ""
    nonsense = " Its weights are random, so its words mean nothing." if facts["model"] == "untrained" else ""
    idea = SERVING[modelled["decode"]].ffn.idea.partition(": ")[2]
    return (f"Write: {facts['model']} on '{facts['mesh_text']}' {names}: {idea}. For a token of "
            f"{count(facts['slots'], 'slot')} a device sends {sent}.{padded}{nonsense}")  # fmt: skip


def _named(facts: Facts, phase: str) -> str:
    """A phase's partition, and whether it was chosen for the reader."""
    return facts["modelled"][phase] + (" (auto: the cheapest, modelled)" if facts[phase] == "auto" else "")


# ---- the table


def table(facts: Facts) -> list[tuple[str, ...]]:
    """The same as text."""
    live = facts["live"]
    rows: list[tuple[str, ...]] = [("what", "value")]
    if modelled := facts["modelled"]:
        rows += [("prefill, decode", f"{modelled.get('prefill', '')}, {modelled.get('decode', '')}")]
        for name, words in (("token", "a token of every slot"), ("chunk", "a chunk that is read")):
            if f"{name}_seconds" in modelled:
                rows.append((f"{words} on {facts['topology']}",
                             origin(quantity(modelled[f"{name}_seconds"], "s"), "modelled")))  # fmt: skip
    rows += [(f"{phase} {name} cannot", reason) for phase, ways in facts["ways"].items()
             for name, reason in ways.items() if reason]  # fmt: skip
    return rows + (_happened(live) if live else [])


def _happened(live: Facts) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [(f"turn {n + 1}: {who}", text) for n, (who, text) in enumerate(live["log"])]
    for name in PHASES:
        if found := live["phases"].get(name):
            rows.append((name, f"{found['launches']} launches, {found['tokens']} tokens, "
                               f"{origin(quantity(found['sent'], 'iB'), 'counted')}"))  # fmt: skip
    for axis, size in live["mesh"]:
        sent = [origin(quantity(live[key].get(axis, 0), "iB"), "counted") for key in ("a_token", "so_far")]
        rows.append((f"sent over {axis}:{size}", f"a token {sent[0]}, so far {sent[1]}"))
    for slot in live["cache"]["slots"]:
        where = block_words(live["cache"]["axes"], slot["block"], dict(live["mesh"]))
        kept = f"{slot['who']}, {slot['kept']} tokens" if slot["who"] else "free"
        rows.append((f"slot {slot['slot']}", f"{kept} [counted]; {where}"))
    return rows
