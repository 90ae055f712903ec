"""What may be asked of an engine: every fault of a request at once, before anything runs.

Next file to read: `engine`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mtfcore.errors import LayoutError, refuse
from mtfcore.model.engine.slots import Drawing, Request
from mtfcore.model.sampling import chances, option_faults
from mtfcore.notation import as_size, as_whole


def check_prompts(prompts: Any, n_tokens: int, length: int, most: Any, samples: Any, slots: int) -> list[list[int]]:
    """Lists of token ids, each with room for what it may make."""
    if isinstance(prompts, (str, bytes)) or not isinstance(prompts, Iterable):
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
    if isinstance(prompt, (str, bytes)) or not isinstance(prompt, (Sequence, np.ndarray)):
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


def check_drawing(n_tokens: int, temperature: Any, top_k: Any, top_p: Any, seed: Any) -> Drawing:
    """How tokens are chosen, refused where it cannot be."""
    faults = option_faults(n_tokens, temperature, top_k, top_p, None)
    if as_whole(seed) is None or seed < 0:
        faults.append(f"seed is {seed!r:.100}; expected a whole number, 0 or more")
    refuse(faults, "generate")
    return Drawing(float(temperature), top_k, top_p, int(seed))


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
