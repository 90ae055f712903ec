"""A conversation as the model was taught to read it: its chat template, run in a sandbox, then tokens.

    >>> found.template.render([{"role": "user", "content": "Hello"}])
    '<|im_start|>system\\nYou are a helpful AI assistant …<|im_end|>\\n<|im_start|>user\\nHello<|im_end|>\\n…'
    >>> found.template.tokens([{"role": "user", "content": "Hello"}])[:4]

Where one turn ends and another begins is said by special tokens. A message that contains the name of one, say
<|im_end|>, is still one message: its text is put aside while the template is run, and turned into tokens as ordinary
text. Next file to read: `sandbox`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mtfcore.errors import LayoutError, refuse
from mtfcore.model.files.metering import Limits
from mtfcore.model.files.tokenizer import Tokenizer

PRIVATE = [chr(n) for n in range(0xE000, 0xE800)]  # characters that texts do not use
Message = Mapping[str, str]


class ChatTemplate:
    """The template of one model, compiled when it is first used."""

    def __init__(self, source: str, tokenizer: Tokenizer, about: str, limits: Limits = Limits()) -> None:  # noqa: B008
        self.source, self.tokenizer, self.about, self.limits = source, tokenizer, about, limits

    @functools.cached_property
    def _render(self) -> Callable[[Mapping[str, Any]], str]:
        from mtfcore.model.files.sandbox import compiled

        return compiled(self.source, self.limits)

    def render(self, messages: Sequence[Message], answer: bool = True) -> str:
        """The text of a conversation; with `answer`, up to where the model's answer begins."""
        refuse(_faults(messages), "conversation")
        tokens = {"bos_token": self.tokenizer.bos_id, "eos_token": self.tokenizer.eos_id}
        named = {name: "" if n is None else self.tokenizer.text_of(n) for name, n in tokens.items()}
        said = [dict(message) for message in messages]
        try:
            return self._render({"messages": said, "add_generation_prompt": bool(answer), **named})
        except LayoutError as fault:
            raise LayoutError(f"{self.about}: {fault}") from None

    def tokens(self, messages: Sequence[Message], answer: bool = True) -> list[int]:
        """The tokens of a conversation. Names of special tokens inside a message stay ordinary text."""
        refuse(_faults(messages), "conversation")
        aside: list[str] = []
        mark = next(c for c in PRIVATE if not any(c in text for message in messages for text in message.values()))
        plain = [{key: self._put_aside(text, mark, aside) for key, text in message.items()} for message in messages]
        parts = re.split(f"{mark}(\\d+){mark}", self.render(plain, answer))
        ids = self.tokenizer.encode(parts[0])
        for number, text in zip(parts[1::2], parts[2::2], strict=True):
            ids += self.tokenizer.encode(aside[int(number)], special=False, begin=False)
            ids += self.tokenizer.encode(text, begin=False)
        return ids

    def _put_aside(self, text: str, mark: str, aside: list[str]) -> str:
        if not self.tokenizer.special_texts:
            return text

        def away(found: re.Match[str]) -> str:
            aside.append(found[0])
            return f"{mark}{len(aside) - 1}{mark}"

        return re.sub("|".join(map(re.escape, self.tokenizer.special_texts)), away, text)

    def __repr__(self) -> str:
        return f"ChatTemplate({len(self.source):,} characters, of {self.about})"


def _faults(messages: Any) -> list[str]:
    """What is no conversation."""
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        return [f'it is {messages!r:.60}; expected a list, [{{"role": "user", "content": "…"}}]']
    faults = []
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping) or not {"role", "content"} <= set(message):
            faults.append(f'message {number} is {message!r:.60}; expected {{"role": "user", "content": "…"}}')
        elif not all(isinstance(part, str) for part in (*message.keys(), *message.values())):
            faults.append(f"message {number} has something that is no text: {message!r:.60}")
    return faults
