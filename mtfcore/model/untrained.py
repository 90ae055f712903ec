"""A model that nobody trained, small enough for any computer: it speaks letters, and they mean nothing.

    >>> found = untrained_model()
    >>> found.cfg.heads, found.cfg.kv_heads, found.tokenizer.decode(found.tokenizer.encode("Tides?"))
    (9, 3, 'Tides?')

It stands in for a real model where none was fetched, and where a test needs an answer in a second. A token is one of
the 95 letters and signs of ASCII, or the end of a turn. Its heads are as awkward as SmolLM2's, 9 of them on 3 of keys,
so it too asks for padding. Next file to read: `chat`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mtfcore.model.configs import Config, config
from mtfcore.model.files.loaded import LoadedModel
from mtfcore.model.files.tokenizer import TextStream
from mtfcore.model.params import initial

NAME = "untrained"
FIRST, LAST = " ", "~"
END = ord(LAST) - ord(FIRST) + 1
LOUD = 3  # the random softmax's scale: no two letters are nearly as likely


class Letters:
    """A tokenizer whose tokens are letters."""

    end_ids = (END,)
    special_texts: tuple[str, ...] = ()

    def __len__(self) -> int:
        return END + 1

    def encode(self, text: str, special: bool = True, begin: bool | None = None) -> list[int]:
        """Letters it does not know become question marks; lines become one."""
        known = (letter if FIRST <= letter <= LAST else " " if letter.isspace() else "?" for letter in text)
        return [ord(letter) - ord(FIRST) for letter in known]

    def decode(self, ids: Sequence[int], special: bool = False) -> str:
        """Ends of turns are no text."""
        return "".join(chr(ord(FIRST) + token) for token in ids if token != END)

    def stream(self, special: bool = False) -> TextStream:
        """For tokens that come one at a time."""
        return TextStream(self, special)


class LetterTurns:
    """Its template: one turn behind the other, each with its end; `>` stands before what is asked."""

    def __init__(self, tokenizer: Letters) -> None:
        self.tokenizer = tokenizer

    def tokens(self, messages: Sequence[Mapping[str, str]], answer: bool = True) -> list[int]:
        """The tokens of a conversation."""
        found: list[int] = []
        for message in messages:
            mark = "" if message["role"] == "assistant" else "> "
            found += [*self.tokenizer.encode(mark + message["content"]), END]
        return found


def untrained_config() -> Config:
    """Its numbers, without any weights."""
    return config("tiny-grouped").but(name=NAME, heads=9, kv_heads=3, vocab=END + 1, tied=False, max_length=4096)


def untrained_model(seed: int = 0) -> LoadedModel:
    """A tiny grouped model with random weights."""
    cfg = untrained_config()
    params = initial(cfg, seed)
    params["softmax"] = params["softmax"] * LOUD
    letters = Letters()
    return LoadedModel(cfg, params, letters, LetterTurns(letters), "random weights; its words mean nothing")
