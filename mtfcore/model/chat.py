"""A conversation with a model on a mesh: text in, text out, in pieces as they are written.

    chat = Chat("smollm2-135m", "x:2 y:2 z:2")
    print(chat.about)                                              # what runs where, what was padded and why
    for piece, now in chat.say("Where do tides come from?"):
        print(piece, end="", flush=True)                           # now: the engine's Progress of this launch
    chat.change(decode="ws2d-batch")                               # between turns: the kept tokens move, weights do not

Only what is new is read: the template's rendering of the whole conversation begins with the tokens that are kept, or
else all is read again, and `note` says so. Heads that do not divide over the devices are padded, unless `pad="none"`
asks for the refusal. Source: arXiv 2211.05102, section 1 (a chatbot's turn) and 4 (padded heads). Lesson 11 uses
it. Next file to read: `chat_command`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from mtfcore.errors import LayoutError, nearest, sure
from mtfcore.mesh import Mesh, as_mesh
from mtfcore.model import untrained
from mtfcore.model.chat_traffic import Sent, axis_words
from mtfcore.model.configs import Config
from mtfcore.model.engine.engine import Engine
from mtfcore.model.engine.progress import Progress
from mtfcore.model.files import LoadedModel, load
from mtfcore.model.head_padding import least_padding, padded, padding_words
from mtfcore.model.reasons import heads_fit
from mtfcore.notation import as_size
from mtfcore.numbers import count

PADS = ("heads", "none")


class Chat:
    """One conversation; `messages` are its turns so far, as text."""

    def __init__(
        self, model: str | LoadedModel = "smollm2-135m", mesh: Mesh | str = "x:2 y:2 z:2", *, pad: str = "heads",
        prefill: str = "auto", decode: str = "auto", system: str = "", slots: int = 2, length: int = 1024,
        **options: Any,
    ) -> None:  # fmt: skip
        """Load the model (by name or path) and put it on the mesh; `options` are those of `Engine`.

        One of the `slots` is the conversation's; partitions by batch need as many as the axes they cut it over.
        """
        if pad not in PADS:
            raise LayoutError(f"pad is {pad!r:.100}; {nearest(pad, PADS)}")
        self.model, self.pad = open_model(model), pad
        self._options = {"slots": slots, "length": length, **options}
        self.messages: list[dict[str, str]] = [{"role": "system", "content": system}] if system else []
        self.sent, self.note, self.padding = Sent(), "", ""
        self._put(mesh, prefill, decode)

    def _put(self, mesh: Mesh | str, prefill: str, decode: str) -> None:
        """A new engine, with nothing read yet; on a refusal all stays as it was."""
        cfg, params, words = fitted(self.model, as_mesh(mesh), self.pad, self._options["slots"])
        tokenizer = sure(self.model.tokenizer)
        n_tokens = min(len(tokenizer), cfg.vocab)
        try:
            self.engine = Engine(cfg, params, mesh, prefill, decode, n_tokens=n_tokens, **self._options)
        except LayoutError as fault:
            raise LayoutError(f"{fault}{self._could_pad(as_mesh(mesh))}") from None
        self.talk, self.padding = self.engine.conversation(), words

    def _could_pad(self, mesh: Mesh) -> str:
        """A way out of a refusal, where it is one."""
        words = "" if self.pad == "heads" else fitted(self.model, mesh, "heads", self._options["slots"])[2]
        return f'\nThey are not padded, as asked; pad="heads" would do it: {words}' if words else ""

    # ---- talking ------------------------------------------------------------------------------------------------

    def say(self, text: str, max_new_tokens: int = 256, **options: Any) -> Generator[tuple[str, Progress]]:
        """Read this and answer: pieces of text with the launch that made each; options are those of `Engine.generate`.

        Ending the loop early loses nothing: what has been written so far is the answer.
        """
        said = [*self.messages, {"role": "user", "content": text}]
        whole = self.model.prompt(said)
        if as_size(max_new_tokens) is None:
            raise LayoutError(f"max_new_tokens is {max_new_tokens!r:.100}; expected a whole number of at least 1")
        most = min(max_new_tokens, self.engine.length - len(whole))
        if most < 1:
            raise LayoutError(f"the conversation has {len(whole):,} tokens with this, and there is room for "
                              f"{self.engine.length:,}: begin a new one, or give it a larger length")  # fmt: skip
        unread = self._unread(whole)
        launches = self.talk.say(unread, most, stop=self.model.stop, **options)
        self.messages = said
        yield from self._answer(launches)

    def _unread(self, whole: list[int]) -> list[int]:
        """What of the conversation is not kept yet; all of it, where its tokens are not those that were kept."""
        kept, self.note = self.talk.tokens, ""
        if whole[: len(kept)] == kept:
            return whole[len(kept) :]
        place = next(n for n, (one, other) in enumerate(zip([*whole, None], kept, strict=False)) if one != other)
        self.note = (f"the conversation, rendered anew, differs from what is kept at token {place} of {len(kept)}: all "
                     "of it is read again")  # fmt: skip
        self._forget()
        return whole

    def _answer(self, launches: Generator[Progress]) -> Generator[tuple[str, Progress]]:
        tokenizer = sure(self.model.tokenizer)
        stream, made, now = tokenizer.stream(), list[int](), None
        try:
            for now in launches:
                self.sent.add(now.phase, now.program, now.times)
                made += now.tokens.get(0, [])
                yield stream.push(*now.tokens.get(0, [])), now
            if (rest := stream.end()) and now is not None:
                yield rest, now
        finally:
            launches.close()  # its turn ends here, wherever it is
            self.messages.append({"role": "assistant", "content": tokenizer.decode(made)})

    def new(self) -> None:
        """Begin again; what the model was told about itself stays."""
        self.messages = [message for message in self.messages if message["role"] == "system"]
        self._forget()

    def _forget(self) -> None:
        self.talk.end()
        self.talk = self.engine.conversation()

    # ---- moving -------------------------------------------------------------------------------------------------

    def change(
        self, *, prefill: str = "", decode: str = "", mesh: Mesh | str = "", topology: object = None
    ) -> str:  # fmt: skip
        """Other partitions or another mesh from the next turn on; what that took, in words.

        `topology` is what "auto" prices for from now on.
        """
        engine = self.engine
        if topology is not None:
            engine.topology = self._options["topology"] = topology
        if mesh and as_mesh(mesh) != engine.mesh:
            return self._anew(mesh, prefill or "auto", decode or "auto")
        wanted = prefill or engine.prefill, decode or engine.decode
        try:
            program = engine.move(*wanted)
        except LayoutError:  # stored elsewhere, or impossible: then a new engine refuses it too, and says why
            other = (prefill or "auto", decode or "auto")
            return self._anew(engine.mesh, *(wanted if prefill and decode else other))
        where = f"prefill {engine.prefill}, decode {engine.decode}"
        if program is None:
            return f"{where}: nothing had to move"
        self.sent.add("move", program)
        return f"{where}: the kept tokens moved, {axis_words(program.link_bytes().by_axis)} a device (counted)"

    def _anew(self, mesh: Mesh | str, prefill: str, decode: str) -> str:
        read = len(self.talk.tokens)
        self._put(mesh, prefill, decode)
        again = f"; {count(read, 'token')} will be read again with the next turn" if read else ""
        return (f"prefill {self.engine.prefill}, decode {self.engine.decode} on '{self.engine.mesh}': the weights lie "
                f"elsewhere there, so they were loaded again{again}")  # fmt: skip

    # ---- words --------------------------------------------------------------------------------------------------

    @property
    def about(self) -> str:
        """What runs where, in a few lines; `engine.why` says more."""
        engine = self.engine
        kind = "simulated device" if engine.simulated else "attached device"
        lines = [f"{engine.cfg.name} on {count(engine.mesh.size, kind)} ({engine.mesh}), weights {engine.weights}: "
                 f"{self.model.source}"]  # fmt: skip
        lines += [f"padded: {self.padding}"] if self.padding else []
        return "\n".join([*lines, *(line for line in engine.why.splitlines() if not line.startswith(" "))])


def open_model(model: str | LoadedModel) -> LoadedModel:
    """A model that can chat: by name, by path, or as it was loaded."""
    if isinstance(model, LoadedModel):
        found = model
    else:
        found = untrained.untrained_model() if model == untrained.NAME else load(model)
    lacks = [name for name in ("tokenizer", "template") if getattr(found, name) is None]
    if lacks:
        raise LayoutError(f"{found.cfg.name} has no {' and no chat '.join(lacks)} in its files, so nobody can chat "
                          "with it; Engine takes its tokens")  # fmt: skip
    return found


def fitted(model: LoadedModel, mesh: Mesh, pad: str, batch: int) -> tuple[Config, Mapping[str, Any], str]:
    """The model with as many heads as divide over the mesh, its parameters, and what that costs in words."""
    cfg = model.cfg
    if pad == "none" or heads_fit(cfg, "ws2d", "heads", mesh, batch):
        return cfg, model.params, ""
    wider, params = padded(cfg, model.params, *least_padding(cfg, "ws2d", "heads", mesh, batch))
    return wider, params, padding_words(cfg, wider)
