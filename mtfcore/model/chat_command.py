"""`python -m mtfcore.model chat`: hold a conversation with a model on a mesh.

    $ python -m mtfcore.model chat --mesh "x:2 y:2 z:2" --decode ws2d-batch
    $ echo "Where do tides come from?" | python -m mtfcore.model chat
    $ python -m mtfcore.model chat --once "Where do tides come from?" --pad none      # the refusal

Lines are read from the terminal or a pipe; those that begin with / are commands. Ctrl-C ends an answer where it is, and
what was written stays in the conversation. The answer goes to standard output, everything else to standard error, so
that an answer can be piped on. Every fault is said in words. This is the last file of a model that is served.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mtfcore.errors import DeviceError, LayoutError, nearest

if TYPE_CHECKING:
    from mtfcore.model.chat import Chat

HELP = {
    "/move": "decode=ws2d-batch   other partitions (prefill=… decode=…) or another mesh (mesh=x:4,y:2)",
    "/traffic": "what was sent so far, by phase and mesh axis",
    "/why": "what was chosen and what else could be",
    "/new": "begin again",
    "/quit": "leave; so does the end of the input",
}
DRAWING = ("temperature", "top_k", "top_p", "seed")
ENGINE = ("weights", "cache", "slots", "length", "chunk", "topology", "attached")


def main(words: list[str]) -> int:
    """The command."""
    asked = read(words)
    if not asked.attached:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")  # no waiting for a TPU that is not wanted
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what cannot be written in this terminal's letters is no fault
            stream.reconfigure(errors="replace")
    from mtfcore.model.chat import Chat

    options = {name: getattr(asked, name) for name in ENGINE}
    chat = Chat(asked.model, asked.mesh, pad=asked.pad, prefill=asked.prefill, decode=asked.decode,
                system=asked.system, **options)  # fmt: skip
    tell(chat.about)
    try:
        return Talk(chat, asked).once(asked.once) if asked.once is not None else Talk(chat, asked).lines()
    except BrokenPipeError:  # nobody reads on; nothing may be said to them while Python ends, either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def read(words: list[str]) -> argparse.Namespace:
    """What the words of the command ask for."""
    about = "Hold a conversation with a model on a mesh."
    parser = argparse.ArgumentParser(prog="python -m mtfcore.model chat", allow_abbrev=False, description=about)
    add = parser.add_argument
    add("--model", default="smollm2-135m", help="a fetched model, a .gguf file, a folder; or untrained: tiny, random")
    add("--mesh", default="x:2 y:2 z:2", help="axes x, y, z and their sizes (default: %(default)s)")
    add("--pad", default="heads", choices=["heads", "none"], help="pad heads that do not divide, or refuse")
    add("--prefill", default="auto", help="a partition, such as ws2d-heads (default: the cheapest, modelled)")
    add("--decode", default="auto", help="the same for decode")
    add("--weights", default="f32", help="f32, bf16 or int8")
    add("--cache", help="f32, bf16 or int8 (default: what is computed in)")
    add("--slots", type=int, default=2, help="sequences that decode has room for; this conversation is one of them")
    add("--length", type=int, default=1024, help="tokens that a conversation has room for")
    add("--chunk", type=int, default=64, help="tokens read in one launch, at most")
    add("--topology", help="what partitions are chosen for, e.g. v5e:2x4")
    add("--attached", action="store_true", help="on the TPU or GPU that is attached, not on simulated devices")
    add("--max-new-tokens", type=int, default=256, help="of one answer")
    add("--tokens-per-launch", type=int, default=1)
    add("--temperature", type=float, default=0.0, help="0: always the likeliest token")
    add("--top-k", type=int, help="draw among so many")
    add("--top-p", type=float, help="draw among the likeliest that together have this chance")
    add("--seed", type=int, default=0)
    add("--system", default="", help="what the model is told about itself first")
    add("--once", metavar="TEXT", help="answer this and leave")
    return parser.parse_args(words)


def tell(text: str) -> None:
    """Beside the answers."""
    print(text, file=sys.stderr, flush=True)


class Talk:
    """Lines in, answers out."""

    def __init__(self, chat: Chat, asked: argparse.Namespace) -> None:
        self.chat = chat
        self.options: dict[str, Any] = {name: getattr(asked, name) for name in DRAWING}
        self.options |= {"max_new_tokens": asked.max_new_tokens, "tokens_per_launch": asked.tokens_per_launch}

    def once(self, text: str) -> int:
        """One answer."""
        self.answer(text)
        return 0

    def lines(self) -> int:
        """Until there are no more; a fault in one is said, and the next is read."""
        tell("".join(f"\n  {name:10}{what}" for name, what in HELP.items()).strip("\n"))
        for line in given():
            try:
                if line == "/quit":
                    break
                if line:
                    self.command(line) if line.startswith("/") else self.answer(line)
            except (LayoutError, DeviceError) as fault:
                tell(str(fault))
        return 0

    def answer(self, text: str) -> None:
        """Write what the model says, as it says it."""
        n_tokens, phases = 0, list[str]()
        with stoppable() as stop, contextlib.closing(self.chat.say(text, **self.options)) as pieces:
            for piece, now in pieces:
                n_tokens += sum(map(len, now.tokens.values()))
                phases += [now.phase] if phases[-1:] != [now.phase] else []
                print(piece, end="", flush=True)
                if stop:
                    break
        print(flush=True)
        note = f"{self.chat.note}\n" if self.chat.note else ""
        ended = "stopped; what was written stays. " if stop else ""
        kept = f"{len(self.chat.talk.tokens):,} of {self.chat.engine.length:,}"
        tell(f"{note}[{ended}{' → '.join(phases)}; {n_tokens} tokens, the conversation has {kept}]")

    def command(self, line: str) -> None:
        """What begins with /."""
        name, *words = line.split()
        if name == "/move":
            tell(self.chat.change(**moves(words)))
        elif name == "/traffic":
            tell(self.chat.sent.words())
        elif name == "/why":
            tell(f"{self.chat.about}\n{self.chat.engine.why}")
        elif name == "/new":
            self.chat.new()
            tell("a new conversation")
        else:
            raise LayoutError(f"no command {name!r:.60}; {nearest(name, HELP)}")


def moves(words: list[str]) -> dict[str, str]:
    """decode=ws2d-batch and the like, as `Chat.change` takes them."""
    legal = ("prefill", "decode", "mesh")
    apart = [word.partition("=") for word in words]
    wrong = [word for word, (name, _, value) in zip(words, apart, strict=True) if name not in legal or not value]
    if wrong or not words:
        raise LayoutError(f"/move {' '.join(words)[:60]}: expected one or more of prefill=…, decode=…, mesh=…, e.g. "
                          "/move decode=ws2d-batch")  # fmt: skip
    return {name: value.replace(",", " ") if name == "mesh" else value for name, _, value in apart}


def given() -> Iterator[str]:
    """Lines of the input; a pipe's are shown, since nobody typed them."""
    typed = sys.stdin.isatty()
    if typed:
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  # arrows and history; not on every system
    while True:
        try:
            line = input("> ") if typed else _next_line()
        except EOFError:
            return
        except KeyboardInterrupt:
            tell("\n/quit, or the end of the input, leaves")
            continue
        yield line.strip()


def _next_line() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    tell(f"> {line.rstrip()}")
    return line


@contextlib.contextmanager
def stoppable() -> Iterator[list[bool]]:
    """A list that Ctrl-C makes true, looked at between two launches; pressed again, it raises as usual."""
    asked: list[bool] = []

    def interrupted(*_: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(True)

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
