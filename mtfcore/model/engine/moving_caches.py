"""Caches on the move: a prompt's into slots of decode's, a slot's back for the next prompt, all to another partition.

    give    prompt_k: layers P S K D, as prefill has it  → written into cache_k: layers B S K D, as decode has it
    take    cache_k → prompt_k, for a conversation that goes on
    move    every part of a cache from one partition to another

Each is a planned program like any other, so it is drawn and priced; none moves a weight. One prompt may be given to
many slots at once: what travels is the prompt's own cache, and each device makes the copies that it keeps, as in arXiv
2211.05102, section 4.4. Where all prompts go to the slots of the same number, it is one reshard from heads to
batch, an all-to-all, section 3.3. Next file to read: `slots`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mtfcore as mtf
from mtfcore.dims import Dim
from mtfcore.functions import Function
from mtfcore.model.block import regrouped
from mtfcore.model.engine.programs import Shape
from mtfcore.model.pins import exactly
from mtfcore.notation import parse
from mtfcore.planning import plan
from mtfcore.steps import Program
from mtfcore.tensor import Tensor

PROMPT = "prompt_"  # what the names of the parts of prefill's cache begin with, as decode's do with cache_


def giving(read: Shape, kept: Shape) -> Program:
    """Prefill's cache into decode's: prompt p to slot[p]; a slot that is none leaves it out."""
    there = kept.where("decode").place

    def call(slot: Tensor, **given: Tensor) -> dict[str, Tensor]:
        found = {}
        for name in kept.cache_texts:
            rows = exactly(given[prompt_name(name)], _renamed(there[name], "B", ""))
            found[name] = mtf.write(given[name], rows, slot, "B")
        return found

    return _planned(read, kept, "give", call, {"slot": "P"})


def sampling(read: Shape, kept: Shape) -> Program:
    """Copies of prompts into many slots: slot b gets prompt source[b], and stays what it was where that is negative."""
    there = kept.where("decode").place

    def call(source: Tensor, **given: Tensor) -> dict[str, Tensor]:
        found = {}
        for name, old in given.items():
            if name.startswith(PROMPT):
                continue
            rows = exactly(given[prompt_name(name)], _renamed(there[name], "B", ""))
            mine = exactly(source, " ".join(word for word in there[name].split() if word.partition(":")[0] == "B"))
            place = mtf.Sharding(old.dims, there[name]).text()
            rows = mtf.transpose(mtf.gather(rows, mine, "P"), " ".join(old.names), out=place)
            found[name] = mtf.where(mtf.less(mine, 0), old, rows, out=place)
        return found

    return _planned(read, kept, "give_samples", call, {"source": "B"})


def given_whole(read: Shape, kept: Shape) -> Program:
    """Every prompt to the slot of its number: prefill's cache where decode has it, nothing else."""
    there = kept.where("decode").place

    def call(**given: Tensor) -> dict[str, Tensor]:
        return {_cache_name(name): exactly(regrouped(t, "P", (Dim("B", t.dim("P").size),)), there[_cache_name(name)])
                for name, t in given.items()}  # fmt: skip

    texts = {prompt_name(name): _renamed(text, "B", "P") for name, text in read.cache_texts.items()}
    return _plan(read, "give_all", call, texts, {}, {**_prompt_places(read)}, f"P:{read.sequences} S:{read.length}")


def taking(read: Shape, kept: Shape) -> Program:
    """Slots of decode's cache into prefill's: prompt p has what slot[p] kept; a slot that is none gives zeros."""
    here = _prompt_places(read)

    def call(slot: Tensor, **given: Tensor) -> dict[str, Tensor]:
        found = {}
        for name, t in given.items():
            rows, names = mtf.gather(t, slot, "B"), _names(_renamed(kept.cache_texts[name], "B", "P"))
            place = mtf.Sharding([rows.dim(part) for part in names.split()], here[prompt_name(name)]).text()
            found[prompt_name(name)] = mtf.transpose(rows, names, out=place)
        return found

    return _planned(read, kept, "take", call, {"slot": "P"}, prompts=False)


def moving(before: Shape, after: Shape) -> Program:
    """Decode's cache from one partition to another."""
    there = after.where("decode").place
    texts = dict(before.cache_texts)

    def call(**given: Tensor) -> dict[str, Tensor]:
        return {name: exactly(t, there[name]) for name, t in given.items()}

    sizes = f"B:{before.sequences} S:{before.length}"
    return _plan(before, "move", call, texts, {}, before.where("decode").place, sizes)


def prompt_name(name: str) -> str:
    """cache_k → prompt_k."""
    return PROMPT + name.removeprefix("cache_")


def _cache_name(name: str) -> str:
    return "cache_" + name.removeprefix(PROMPT).removeprefix("cache_")


def _prompt_places(read: Shape) -> dict[str, str]:
    """Where prefill's cache lies, its sequences called P."""
    place = read.where("prefill").place
    return {prompt_name(name): _renamed(place[name], "B", "P") for name in read.cache_texts}


def _planned(
    read: Shape, kept: Shape, name: str, call: Callable[..., Any], small: Mapping[str, str], prompts: bool = True
) -> Program:
    """The plan of a program of both caches (or of decode's alone), whose `small` inputs are whole everywhere."""
    texts = {**small, **kept.cache_texts}
    if prompts:
        texts |= {prompt_name(part): _renamed(text, "B", "P") for part, text in read.cache_texts.items()}
    place = {part: kept.where("decode").place[part] for part in kept.cache_texts}
    place |= _prompt_places(read) if prompts else {}
    sizes = f"B:{kept.sequences} P:{read.sequences} S:{kept.length}"
    return _plan(kept, name, call, texts, small, place, sizes)


def _plan(
    shape: Shape, name: str, call: Callable[..., Any], texts: Mapping[str, str], small: Mapping[str, str],
    place: Mapping[str, str], sizes: str,
) -> Program:  # fmt: skip
    kinds = {part: shape.cache_dtypes[_cache_name(part)] for part in texts if part not in small}
    fn = Function.of(name, dict(texts), call, {**dict.fromkeys(small, "i32"), **kinds})
    named = {word.partition(":")[0] for word in " ".join(texts.values()).split()}
    sizes = " ".join(word for word in sizes.split() if word.partition(":")[0] in named)
    return plan(fn, shape.mesh, "", sizes=sizes, place={part: place.get(part, "") for part in texts})


def _renamed(text: str, old: str, new: str) -> str:
    """A text with one dimension under another name, or without it where that is empty."""
    words = [(word.partition(":")[0], word.partition(":")[2]) for word in text.split()]
    renamed = [(new if name == old else name, rest) for name, rest in words]
    return " ".join(f"{name}:{rest}" if rest else name for name, rest in renamed if name)


def _names(text: str) -> str:
    return " ".join(item.name for item in parse(text))
