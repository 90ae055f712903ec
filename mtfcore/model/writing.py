"""A trained model writes: one token a step for every sequence, each from the last `length` tokens.

    writer = Writer(trainer.cfg, trainer.state, "rows:2 cols:4", "mtf-2d", batch=4, length=64, temperature=0.8)
    print(writer.text(["import ", "def main("], 100, seed=0)[0])

Every step runs the whole window again: simple, and as slow as it sounds; keeping keys and values is the second paper's
subject. Shorter prompts are filled up behind, where a causal model does not look. The same seed writes the same text
on every mesh and in every batch. Next file to read: `sampling`, which chooses the token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import mtfcore as mtf
from mtfcore.errors import LayoutError, expect, refuse, refuse_flags
from mtfcore.functions import Function
from mtfcore.model.configs import Config, config
from mtfcore.model.data import VOCAB, decode, encode
from mtfcore.model.partitioning import read_layout
from mtfcore.model.sampling import chances, pick
from mtfcore.model.transformer import logits
from mtfcore.tensor import Tensor


def next_token(cfg: Config, **options: Any) -> Function:
    """The step as one named function: the window, its last place in each row and a chance each → the next token."""

    def step(inputs: Tensor, last: Tensor, chance: Tensor, **params: Tensor) -> Tensor:
        scores = logits(cfg, params, inputs)
        here = mtf.one_hot(last, "L", scores.dtype)
        row = mtf.cast(mtf.einsum(scores, here, out="B V", follow=True), "f32")
        return pick(row, chance, n_tokens=min(VOCAB, cfg.vocab), **options)

    data = {"inputs": "B L", "last": "B", "chance": "B"}
    texts = {name: param.text for name, param in cfg.params.items()}
    return Function.of("next_token", data | texts, step, {"inputs": "i32", "last": "i32", "chance": "f32"})


class Writer:
    """A model with its parameters on a mesh; options are those of `sampling.pick`."""

    def __init__(
        self,
        cfg: Config | str,
        params: Mapping[str, Any],
        mesh: mtf.Mesh | str,
        layout: Any = "",
        *,
        batch: int = 1,
        length: int = 64,
        dtype: str = "f32",
        attached: bool = False,
        **options: Any,
    ) -> None:
        self.cfg, self.batch, self.length = config(cfg), batch, length
        if not self.cfg.causal or self.cfg.encoder_layers:
            raise LayoutError(f"{self.cfg.name} is no causal decoder alone, so it cannot go on from a prompt")
        expect(params, Mapping, "parameters by name, such as mtf.model.initial(cfg)")
        refuse([f"params has no {name}" for name in self.cfg.params if name not in params], "Writer")
        refuse_flags("Writer", attached=attached)
        sizes = f"B:{batch} L:{length}"
        self.program = mtf.plan(next_token(self.cfg, **options), mesh, read_layout(layout), sizes=sizes, dtype=dtype)
        self.runner = (mtf.attach if attached else mtf.simulate)(self.program)
        self.params = self.runner.put({name: params[name] for name in self.cfg.params})

    def write(self, prompts: Sequence[str], new_tokens: int, seed: int = 0, first: int = 0) -> Iterator[np.ndarray]:
        """The next token of each prompt, i32[prompts], again and again; `first` numbers the first sequence."""
        rows = self._rows(prompts)
        numbers = range(first, first + self.batch)
        for position in range(new_tokens):
            last = np.array([min(len(row), self.length) - 1 for row in rows], np.int32)
            chance = chances(seed, numbers, position)
            found = self.runner.resident(inputs=self._window(rows), last=last, chance=chance, **self.params)
            tokens = self.runner.fetch(found)
            for row, token in zip(rows, tokens, strict=True):
                row.append(int(token))
            yield tokens[: len(prompts)]

    def text(self, prompts: Sequence[str], new_tokens: int, seed: int = 0, first: int = 0) -> list[str]:
        """Each prompt with what the model makes of it."""
        made = np.array(list(self.write(prompts, new_tokens, seed, first))).reshape(new_tokens, len(prompts))
        return [prompt + decode(column) for prompt, column in zip(prompts, made.T, strict=True)]

    def _rows(self, prompts: Sequence[str]) -> list[list[int]]:
        if isinstance(prompts, str):
            raise LayoutError(f"prompts is one text, {prompts!r:.80}; expected a list, e.g. [{prompts!r:.80}]")
        faults = [f"prompt {n} is empty; a model goes on from something" for n, text in enumerate(prompts) if not text]
        if not 1 <= len(prompts) <= self.batch:
            faults.append(f"{len(prompts)} prompts for a batch of {self.batch}; expected 1 to {self.batch}")
        refuse(faults, f"text of {self.cfg.name}")
        rows = [encode(text).tolist() for text in prompts]
        return rows + [list(rows[-1]) for _ in range(self.batch - len(rows))]

    def _window(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
        window = np.zeros((self.batch, self.length), np.int32)
        for place, row in zip(window, rows, strict=True):
            seen = row[-self.length :]
            place[: len(seen)] = seen
        return window
