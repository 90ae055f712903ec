"""Tokenizer and chat template out of a model's folder: tokenizer.json, tokenizer_config.json, chat_template.jinja.

    >>> tokenizer, template = tokenizer_and_template(Path("models/mine"), vocab=49_152)

tokenizer.json is the library `tokenizers`' own format and is read by it. Which tokens begin and end texts is said in
tokenizer_config.json by name, and in config.json and generation_config.json by number. Next file to read: `tokenizer`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtfcore.errors import LayoutError
from mtfcore.model.files.chat_template import ChatTemplate
from mtfcore.model.files.reading import inside
from mtfcore.model.files.tokenizer import Tokenizer
from mtfcore.model.plain_json import read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend

MOST_TOKENIZER = 1 << 26  # bytes; a vocabulary of 256,000 takes 35 MB
MOST_CONFIG = 1 << 24


def tokenizer_and_template(folder: Path, vocab: int) -> tuple[Tokenizer | None, ChatTemplate | None]:
    """Both, or None for what the folder has not."""
    if not (folder / "tokenizer.json").is_file():
        return None, None
    backend = _backend(inside(folder, "tokenizer.json"))
    if backend.get_vocab_size() > vocab:
        what = f"{backend.get_vocab_size():,} tokens and the model {vocab:,} rows in its table of embeddings"
        raise LayoutError(f"{folder.name}: tokenizer.json has {what}")
    said = _optional(folder, "tokenizer_config.json")
    bos, eos = (_number(backend, said.get(name)) for name in ("bos_token", "eos_token"))
    specials = [added.content for added in backend.get_added_tokens_decoder().values() if added.special]
    begins = said.get("add_bos_token", bos is not None and _puts_first(backend, bos)) is True
    tokenizer = Tokenizer(backend, specials, bos=bos, eos=eos, begins=begins, ends=_ends(folder, vocab))
    source = _template(folder, said)
    return tokenizer, ChatTemplate(source, tokenizer, folder.name) if source else None


def _backend(path: Path) -> Backend:
    """The library's own tokenizer; the file is known to be plain JSON of a bearable size before it sees it."""
    from tokenizers import Tokenizer as Backend

    model = read_json(path, MOST_TOKENIZER).get("model")
    if not isinstance(model, dict):
        raise LayoutError(f"{path.name} has no model, so it is no tokenizer")
    try:
        return Backend.from_file(str(path))
    except Exception as fault:  # the library raises nothing narrower
        raise LayoutError(f"{path.name} cannot be read by the library tokenizers: {fault!s:.200}") from None


def _optional(folder: Path, name: str) -> dict[str, Any]:
    return read_json(inside(folder, name), MOST_CONFIG) if (folder / name).is_file() else {}


def _number(backend: Backend, said: Any) -> int | None:
    """A token's number, from its text or from a table that has its text as `content`."""
    text = said.get("content") if isinstance(said, dict) else said
    if not isinstance(text, str) or not text.isprintable():  # half a character is no text for the library
        return None
    return backend.token_to_id(text)


def _puts_first(backend: Backend, bos: int) -> bool:
    """Whether the tokenizer's own file puts that token in front of a text."""
    return backend.encode("a", add_special_tokens=True).ids[:1] == [bos]


def _ends(folder: Path, vocab: int) -> list[int]:
    """Numbers of tokens that end an answer; newer files list several."""
    found: list[int] = []
    for name in ("generation_config.json", "config.json"):
        said = _optional(folder, name).get("eos_token_id")
        found += [n for n in (said if isinstance(said, list) else [said]) if type(n) is int and 0 <= n < vocab]
    return list(dict.fromkeys(found))


def _template(folder: Path, said: dict[str, Any]) -> str:
    """The chat template: a file of its own, a text, or the one called default among several."""
    if (folder / "chat_template.jinja").is_file():
        data = inside(folder, "chat_template.jinja").read_bytes()[: MOST_CONFIG + 1]
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise LayoutError(f"{folder.name}: chat_template.jinja is no UTF-8 text") from None
    found = said.get("chat_template")
    if isinstance(found, list):
        named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
        found = named.get("default")
    return found if isinstance(found, str) else ""
