"""A conversation keeps its slot and its cache from turn to turn, so that only what is new is read.

    talk = eng.conversation()
    for now in talk.say(tokens, max_new_tokens=100, stop=(end,)): …       # and again, with what is said next
    talk.end()

What a turn made last is in nobody's cache yet; it is read in front of the next turn's tokens. A turn that is stopped
early loses nothing: all that was made so far belongs to it. Source: arXiv 2211.05102, section 1 (a chatbot
turn reads 64 new tokens behind 1920 kept ones). This is the last file of the engine; then `mtfcore/model/chat`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mtfcore.errors import LayoutError, refuse
from mtfcore.model.engine.asking import prompt_fault
from mtfcore.model.engine.progress import Progress
from mtfcore.model.engine.slots import Request

if TYPE_CHECKING:
    from mtfcore.model.engine.engine import Engine


class Conversation:
    """One sequence that goes on; `tokens` are all that were said and made, in order."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.tokens: list[int] = []
        self.over = False
        self._last: Request | None = None

    @property
    def kept(self) -> int:
        """How many of its tokens the cache has."""
        return self._last.kept if self._last else 0

    def say(self, tokens: Sequence[int], max_new_tokens: int = 64, *, tokens_per_launch: int = 1, **options: Any
            ) -> Iterator[Progress]:  # fmt: skip
        """Read these tokens behind what was said before, and go on from them; options are those of `Engine.submit`."""
        if self.over:
            raise LayoutError("this conversation has ended; begin another with engine.conversation()")
        if self._last is not None and not self._last.stays:
            raise LayoutError("this conversation lost its slot; begin another with engine.conversation()")
        fault = prompt_fault(tokens, self.engine.n_tokens, self.engine.length - len(self.tokens), max_new_tokens)
        refuse([f"what is said, behind {len(self.tokens)} tokens, {fault}"] if fault else [], "conversation")
        request = self._next(tokens, max_new_tokens, options)
        self.tokens += [int(token) for token in tokens]
        return self._told(request, tokens_per_launch)

    def _next(self, tokens: Sequence[int], most: int, options: dict[str, Any]) -> Request:
        """The turn as a request that begins where the last one ended."""
        (request,) = self.engine.submit([tokens], most, **options)
        before = self._last
        if before is not None:
            request.unread = before.unread + request.unread
            request.kept, request.slot = before.kept, before.slot
        request.stays = True
        self._last = request
        return request

    def _told(self, request: Request, turns: int) -> Iterator[Progress]:
        numbers = range(request.number, request.number + 1)
        try:
            while not request.done:
                now = self.engine.step(turns).of(numbers)
                self.tokens += now.tokens.get(0, [])
                yield now
        finally:
            self.engine.queue.pause(request)

    def end(self) -> None:
        """Its slot goes to others."""
        if not self.over and self._last is not None:
            self._last.stays = False
            self.engine.queue.release(self._last)
        self.over = True
