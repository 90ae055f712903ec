"""What loading gives: a configuration, parameters, and how text becomes tokens and back.

    found = mtf.model.load("smollm2-135m")
    engine = mtf.model.Engine(found.cfg, found.params, mesh)
    ids = found.prompt([{"role": "user", "content": "Where do tides come from?"}])

Next file to read: `weights`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mtfcore.errors import LayoutError
from mtfcore.model.configs import Config

if TYPE_CHECKING:
    import numpy as np

    from mtfcore.model.files.tokenizer import AnyTokenizer


class AnyTemplate(Protocol):
    """What is asked of a chat template, such as `chat_template.ChatTemplate`."""

    def tokens(self, messages: Sequence[Mapping[str, str]], answer: bool = True) -> list[int]: ...


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model from files. `params` reads a parameter each time it is asked for one."""

    cfg: Config
    params: Mapping[str, np.ndarray]
    tokenizer: AnyTokenizer | None  # None: the files have none
    template: AnyTemplate | None  # None: the files have none, as those of models that were not taught to chat
    source: str  # which files, and what is in them

    @property
    def stop(self) -> tuple[int, ...]:
        """Tokens that end what the model says."""
        return self.tokenizer.end_ids if self.tokenizer else ()

    def prompt(self, messages: Sequence[Mapping[str, str]], answer: bool = True) -> list[int]:
        """Tokens of a conversation, up to where the model's answer begins.

        Words of the template's own, such as <|im_end|>, that stand inside a message stay ordinary text.
        """
        if self.template is None:
            raise LayoutError(f"{self.cfg.name} has no chat template; give tokens: tokenizer.encode(text)")
        return self.template.tokens(messages, answer)

    def __repr__(self) -> str:
        has = [name for name in ("tokenizer", "template") if getattr(self, name) is not None]
        also = f", with {' and '.join(has)}" if has else ""
        return f"LoadedModel({self.cfg.name}: {self.cfg.n_params:,} parameters{also}; {self.source})"
