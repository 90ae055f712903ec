"""Text to tokens and back, and text that comes a token at a time.

    >>> ids = found.tokenizer.encode("Tides are")
    >>> found.tokenizer.decode(ids)
    'Tides are'
    >>> stream = found.tokenizer.stream()
    >>> [stream.push(token) for token in ids], stream.end()

The work is done by the library `tokenizers`. A token may end inside a character: a stream holds such text back until
the rest has come. Next file to read: `gguf_tokenizer`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from mtfcore.errors import LayoutError
from mtfcore.notation import as_whole

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend

# Special tokens with which some model's turn or text ends, beside the one that its files name
ENDS = (
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>", "<end_of_turn>", "</s>",
)  # fmt: skip
HALF = "\ufffd"  # what stands for bytes that are no character, or not yet
MOST_HELD = 64  # tokens; a character takes at most four, so that what comes after so many is no text at all


class AnyTokenizer(Protocol):
    """What is asked of a tokenizer, be it that of files (`Tokenizer`) or of a model without any."""

    @property
    def end_ids(self) -> tuple[int, ...]: ...

    @property
    def special_texts(self) -> tuple[str, ...]: ...

    def __len__(self) -> int: ...

    def encode(self, text: str, special: bool = True, begin: bool | None = None) -> list[int]: ...

    def decode(self, ids: Sequence[int], special: bool = False) -> str: ...

    def stream(self, special: bool = False) -> TextStream: ...


class Tokenizer:
    """The tokenizer of one model. Special tokens are those that mean something to the model but are no text."""

    def __init__(
        self, backend: Backend, specials: Iterable[str], *, bos: int | None = None, eos: int | None = None,
        begins: bool = False, ends: Iterable[int] = (),
    ) -> None:  # fmt: skip
        self.backend, self.bos_id, self.eos_id, self.begins = backend, bos, eos, begins and bos is not None
        self.special_texts = tuple(sorted(set(specials), key=lambda text: (-len(text), text)))  # longest first
        named = (backend.token_to_id(text) for text in ENDS if text in self.special_texts)
        self.end_ids: tuple[int, ...] = tuple(dict.fromkeys(n for n in (eos, *ends, *named) if n is not None))
        self._lock = threading.Lock()  # whether special tokens are read is a setting of the backend

    def __len__(self) -> int:
        return self.backend.get_vocab_size()

    def encode(self, text: str, special: bool = True, begin: bool | None = None) -> list[int]:
        """Tokens of a text. Without `special`, names of special tokens in it are ordinary text.

        `begin` puts the model's first token in front; None: where its files ask for it and it does not stand there.
        """
        if not isinstance(text, str):
            raise LayoutError(f"encode: {text!r:.100} is no text")
        with self._lock:
            self.backend.encode_special_tokens = not special
            ids = self.backend.encode(_whole_text(text), add_special_tokens=False).ids
        begin = self.begins and ids[:1] != [self.bos_id] if begin is None else begin
        return [self.bos_id, *ids] if begin and self.bos_id is not None else ids

    def decode(self, ids: Sequence[int], special: bool = False) -> str:
        """Text of tokens; with `special`, special tokens by name."""
        return self.backend.decode(self._checked(ids), skip_special_tokens=not special)

    def text_of(self, token: int) -> str:
        """A token as the vocabulary writes it."""
        return self.backend.id_to_token(self._checked([token])[0]) or ""

    def stream(self, special: bool = False) -> TextStream:
        """For tokens that come one at a time."""
        return TextStream(self, special)

    def _checked(self, ids: Sequence[int]) -> list[int]:
        found = [as_whole(n) for n in ids]
        wrong = [n for n, whole in zip(ids, found, strict=True) if whole is None or not 0 <= whole < 2**31]
        if wrong:
            raise LayoutError(f"decode: {wrong[0]!r:.60} is no token; expected whole numbers, 0 to {len(self) - 1:,}")
        return [n for n in found if n is not None]

    def __repr__(self) -> str:
        return f"Tokenizer({len(self):,} tokens, {len(self.special_texts)} of them special; ends {self.end_ids})"


def _whole_text(text: str) -> str:
    """Without halves of characters, which Python allows in a text and UTF-8 does not."""
    return re.sub("[\ud800-\udfff]", HALF, text)


class TextStream:
    """Tokens in, text out, whole characters only: what was pushed and then `end` together give `decode` of all."""

    def __init__(self, tokenizer: AnyTokenizer, special: bool) -> None:
        self._tokenizer, self._special = tokenizer, special
        self._before: list[int] = []  # tokens whose text has been given: some tokenizers drop a first blank
        self._held: list[int] = []
        self._given = 0  # characters of the held tokens' text that have been given

    def push(self, *tokens: int) -> str:
        """The text that these tokens complete."""
        return "".join(self._one(token) for token in tokens)

    def _one(self, token: int) -> str:
        self._held.append(token)
        text = self._text()
        if text.endswith(HALF) and len(self._held) < MOST_HELD:
            begin, self._given = self._given, len(text) - 1  # the last may still become another
            return text[begin:-1]
        return self._all(text)

    def _all(self, text: str) -> str:
        begin, self._given = self._given, 0
        self._before, self._held = self._held or self._before, []
        return text[begin:]

    def _text(self) -> str:
        before = self._tokenizer.decode(self._before, self._special)
        return self._tokenizer.decode([*self._before, *self._held], self._special)[len(before) :]

    def end(self) -> str:
        """What was held back and will not be completed."""
        return self._all(self._text())
