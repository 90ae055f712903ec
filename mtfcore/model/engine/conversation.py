"""A conversation keeps its slot and its cache from turn to turn, so that only what is new is read.

    talk = eng.conversation()
    for now in talk.say(tokens, max_new_tokens=100, stop=(end,)): …       # and again, with what is said next
    talk.end()

What a turn made last is in nobody's cache yet; it is read in front of the next turn's tokens. A turn that is stopped
early loses nothing: all that was made so far belongs to it. Source: arXiv 2211.05102, section 1 (a chatbot
turn reads 64 new tokens behind 1920 kept ones). This is the last file of the engine; then `mtfcore/model/chat`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from mtfcore.errors import LayoutError, refuse
from mtfcore.model.engine.asking import check_turns, prompt_fault
from mtfcore.model.engine.launches import uninterrupted
from mtfcore.model.engine.progress import Progress
from mtfcore.model.engine.slots import Request

if TYPE_CHECKING:
    from mtfcore.model.engine.engine import Engine


class Conversation:
    """One sequence that goes on."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.over = False
        self._before: list[int] = []  # all that was said and made before what the last turn made
        self._last: Request | None = None

    @property
    def tokens(self) -> list[int]:
        """All that were said and made, in order."""
        return self._before + (self._last.made if self._last else [])

    @property
    def kept(self) -> int:
        """How many of its tokens the cache has."""
        return self._last.kept if self._last else 0

    def say(self, tokens: Sequence[int], max_new_tokens: int = 64, *, tokens_per_launch: int = 1, **options: Any
            ) -> Generator[Progress]:  # fmt: skip
        """Read these tokens behind what was said before, and go on from them; options are those of `Engine.submit`.

        A turn that is still open ends when the next one begins.
        """
        check_turns(tokens_per_launch, "tokens_per_launch")
        check_turns(max_new_tokens, "max_new_tokens")
        refuse(["samples is not for a turn, which goes on once; use engine.generate"] * ("samples" in options),
               "conversation")  # fmt: skip
        self._check(tokens, max_new_tokens)
        (request,) = self.engine.asked([tokens], max_new_tokens, **options)
        return self._told(request, tokens_per_launch)

    def _check(self, tokens: Sequence[int], most: int) -> None:
        if self.over:
            raise LayoutError("this conversation has ended; begin another with engine.conversation()")
        said = len(self.tokens)
        fault = prompt_fault(tokens, self.engine.n_tokens, self.engine.length - said, most)
        refuse([f"what is said, behind {said} tokens, {fault}"] if fault else [], "conversation")

    def _told(self, request: Request, turns: int) -> Generator[Progress]:
        self._check(request.unread, request.most)  # again: other turns may have come between
        self._begin(request)
        try:
            yield from self.engine.told([request], turns)
        finally:
            if self._last is request:
                self.engine.queue.pause(request)

    def _begin(self, request: Request) -> None:
        """The turn goes on where the last one ended, or ends here."""
        before, queue = self._last, self.engine.queue
        with uninterrupted():
            self._before = self.tokens + request.unread
            if before is not None:
                queue.pause(before)
                request.unread = before.unread + request.unread
                request.kept, request.slot = before.kept, before.slot
            request.stays = True
            self._last = request
            queue.add([request])

    def end(self) -> None:
        """Its slot goes to others."""
        if not self.over and self._last is not None:
            self.engine.queue.release(self._last)
        self.over = True
