"""What may be asked of an engine: every fault of a request at once, before anything runs.

Next file to read: `engine`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.model.configs import Config
from mtfcore.model.engine.slots import Drawing, Request
from mtfcore.model.sampling import HOTTEST, chances, option_faults
from mtfcore.notation import as_size, as_whole
from mtfcore.overlap.rings import FORMS


def check_prompts(prompts: Any, n_tokens: int, length: int, most: Any, samples: Any, slots: int) -> list[list[int]]:
    """Lists of token ids, each with room for what it may make."""
    if not _is_several(prompts):
        raise LayoutError(f"prompts is {prompts!r:.80}; expected a list of lists of token ids, e.g. [[1, 2, 3]]: "
                          "texts become tokens by a model's tokenizer, tokenizer.encode(text)")  # fmt: skip
    numbers = {"max_new_tokens": most, "samples": samples}
    faults = [f"{name} is {value!r:.100}; expected a whole number of at least 1"
              for name, value in numbers.items() if as_size(value) is None]  # fmt: skip
    refuse(faults, "generate")
    if samples > slots:
        faults.append(f"samples is {samples}, but the engine has {slots} slots; make it with slots={samples}")
    found = []
    for number, prompt in enumerate(prompts):
        fault = prompt_fault(prompt, n_tokens, length, most)
        faults += [f"prompt {number} {fault}"] if fault else []
        found.append([] if fault else [int(token) for token in prompt])
    refuse(faults, "generate")
    return found


def prompt_fault(prompt: Any, n_tokens: int, room: int, most: int) -> str:
    """What is wrong with one, and what is legal; nothing where it can be read."""
    if not _is_several(prompt) or not isinstance(prompt, (Sequence, np.ndarray)):
        return f"is {prompt!r:.60}; expected a list of token ids"
    if not len(prompt):
        return "is empty; a model goes on from something"
    wrong = [token for token in prompt if (whole := as_whole(token)) is None or not 0 <= whole < n_tokens]
    if wrong:
        return f"has {wrong[0]!r:.60}; token ids are whole numbers from 0 to {n_tokens - 1}"
    if len(prompt) + most > room:
        nearest = f"max_new_tokens={room - len(prompt)}, or " if len(prompt) < room else ""
        return (f"has {len(prompt)} tokens and may make {most}, but there is room for {room}; nearest: {nearest}an "
                f"engine with length={len(prompt) + most}")  # fmt: skip
    return ""


def check_engine(
    cfg: Config, slots: Any, length: Any, chunk: Any, prompts: Any, n_tokens: Any, attached: Any, looped: Any
) -> None:
    """The sizes of an engine, refused where they are none or too large for the model."""
    numbers = {"slots": slots, "length": length, "chunk": chunk, **({} if prompts is None else {"prompts": prompts})}
    faults = [f"{name} is {value!r:.100}; expected a whole number of at least 1"
              for name, value in numbers.items() if as_size(value) is None]  # fmt: skip
    if cfg.positions == "learned" and (as_size(length) or 0) > cfg.max_length:
        faults.append(f"length is {length}, but {cfg.name} has {cfg.max_length} learned positions; "
                      f"use length={cfg.max_length}, or cfg.but(max_length={length}) with such weights")  # fmt: skip
    if n_tokens is not None and not 1 <= (as_size(n_tokens) or 0) <= cfg.vocab:
        faults.append(f"n_tokens is {n_tokens!r:.100}; expected a whole number from 1 to {cfg.vocab}, or None for all")
    if not isinstance(attached, bool):
        faults.append(f"attached is {attached!r:.100}; expected True for attached devices, False for simulated ones")
    if looped is not None and not (isinstance(looped, str) and looped in FORMS):
        faults.append(f"looped is {looped!r:.100}; {nearest(looped, FORMS)}, or None")
    refuse(faults, "engine")


def check_turns(turns: Any, name: str = "turns") -> None:
    """How many tokens a launch makes."""
    refuse([] if as_size(turns) else [f"{name} is {turns!r:.100}; expected a whole number of at least 1"], "generate")


def check_stop(stop: Any) -> frozenset[int]:
    """The tokens that end a sequence."""
    if as_whole(stop) is not None:
        raise LayoutError(f"stop is {stop!r:.100}; expected a list of token ids, e.g. stop=[{stop}]")
    given = tuple(stop) if _is_several(stop) else ()
    wrong = [token for token in given if (whole := as_whole(token)) is None or whole < 0]
    if wrong or not _is_several(stop):
        what = f"has {wrong[0]!r:.60}" if wrong else f"is {stop!r:.100}"
        raise LayoutError(f"stop {what}; expected a list of token ids, whole numbers of at least 0; () for none")
    return frozenset(map(int, given))


def check_sequence(first: Any) -> int:
    """The number of a request's first sequence, of those that share a seed."""
    if as_whole(first) is None:
        raise LayoutError(f"first_sequence is {first!r:.100}; expected a whole number")
    return int(first)


def check_requests(requests: Any) -> list[Request]:
    """Requests as `submit` gives them."""
    found = list(requests) if _is_several(requests) else [requests]
    wrong = [request for request in found if not isinstance(request, Request)]
    refuse([f"{wrong[0]!r:.100} is no request; expected a list of those that submit gave"] if wrong else [], "forget")
    return found


def _is_several(value: Any) -> bool:
    """Whether it can be gone through and is no text."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes)) and getattr(value, "shape", None) != ()


def check_drawing(n_tokens: int, temperature: Any, top_k: Any, top_p: Any, seed: Any) -> Drawing:
    """How tokens are chosen, refused where it cannot be."""
    faults = option_faults(n_tokens, temperature, top_k, top_p, None)
    if as_whole(seed) is None or seed < 0:
        faults.append(f"seed is {seed!r:.100}; expected a whole number, 0 or more")
    refuse(faults, "generate")
    top_k = None if top_k is None else int(top_k)
    return Drawing(min(float(temperature), HOTTEST), top_k, None if top_p is None else float(top_p), int(seed))


def drawing_arrays(
    requests: dict[int, Request], n_rows: int, turns: int | None, n_tokens: int
) -> dict[str, np.ndarray]:
    """What a launch draws with, by row; nothing where every row takes its likeliest token.

    A row's chance depends on its seed, its sequence's number and the token's place alone.
    """
    if not any(request.drawing.is_drawn for request in requests.values()):
        return {}
    chance = np.zeros((turns or 1, n_rows), np.float32)
    options = {"temperature": np.zeros(n_rows, np.float32), "top_k": np.zeros(n_rows, np.int32),
               "top_p": np.ones(n_rows, np.float32)}  # fmt: skip
    for row, request in requests.items():
        how = request.drawing
        options["temperature"][row] = how.temperature
        options["top_k"][row] = how.top_k or n_tokens
        options["top_p"][row] = how.top_p or 1.0
        chance[:, row] = chances(how.seed, request.sequence, len(request.made) + np.arange(turns or 1))
    return {"chance": chance if turns else chance[0], **options}
