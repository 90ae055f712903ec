"""A tokenizer out of a GGUF file: its vocabulary, merges, kinds of tokens and the way it cuts text first.

    >>> tokenizer = tokenizer_of(metadata, vocab=49_152)
    >>> tokenizer.encode("In 1984")
    [788, 216, 33, 41, 40, 36]

Byte-level BPE, "gpt2" to the format (Sennrich et al., arXiv 1508.07909, over bytes as in GPT-2): text is cut into
words by a pattern that the file names, each word's bytes are written as letters, and pairs are merged in the order of
the list. The library `tokenizers` does it. Next file to read: `chat_template`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.model.files.tokenizer import Tokenizer

if TYPE_CHECKING:
    from tokenizers.pre_tokenizers import PreTokenizer

    from mtfcore.model.files.gguf_model import Metadata

UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4  # kinds of tokens; 1 is an ordinary one, 5 an unused one
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = {  # the file's name for its way of cutting → a pattern, or what the library calls it
    "gpt-2": "bytes", "smollm": "digits", "starcoder": "digits", "llama-bpe": _WORDS % "{1,3}", "qwen2": _WORDS % "",
}  # fmt: skip


def tokenizer_of(metadata: Metadata, vocab: int) -> Tokenizer | None:
    """The tokenizer of a file; None if the file has none."""
    if "tokenizer.ggml.model" not in metadata:
        return None
    kind = metadata.text("tokenizer.ggml.model")
    if kind != "gpt2":
        raise LayoutError(f"{metadata.file} has a tokenizer of kind {kind!r:.60}; 'gpt2' (byte-level BPE) is read")
    tokens = metadata.items("tokenizer.ggml.tokens", str)
    kinds = metadata.items("tokenizer.ggml.token_type", int)
    merges = [tuple(pair.split(" ")) for pair in metadata.items("tokenizer.ggml.merges", str)]
    refuse(_faults(tokens, kinds, merges, vocab), metadata.file)
    return _built(metadata, tokens, kinds, merges)


def _faults(tokens: list[str], kinds: list[int], merges: list[tuple[str, ...]], vocab: int) -> list[str]:
    known, faults = set(tokens), []
    if len(tokens) != vocab:
        faults.append(f"its tokenizer has {len(tokens):,} tokens and its table of embeddings {vocab:,} rows")
    if len(known) != len(tokens):
        faults.append(f"{len(tokens) - len(known):,} of its tokens stand twice")
    if len(kinds) != len(tokens):
        faults.append(f"it has {len(tokens):,} tokens and the kinds of {len(kinds):,}")
    wrong = [pair for pair in merges if len(pair) != 2 or not {*pair, "".join(pair)} <= known]
    if wrong:
        faults.append(f"{len(wrong):,} merges do not give a token from two tokens, such as {' '.join(wrong[0])!r:.60}")
    return faults


def _built(metadata: Metadata, tokens: list[str], kinds: list[int], merges: list[Any]) -> Tokenizer:
    from tokenizers import AddedToken, decoders, models, normalizers
    from tokenizers import Tokenizer as Backend

    way = metadata.text("tokenizer.ggml.pre", "gpt-2")
    if way not in PATTERNS:
        raise LayoutError(f"{metadata.file}: its tokenizer cuts text in the way {way!r:.60}; {nearest(way, PATTERNS)}")
    vocabulary = {token: n for n, token in enumerate(tokens)}
    backend = Backend(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=way == "llama-bpe"))
    backend.pre_tokenizer, backend.decoder = _cutting(PATTERNS[way]), decoders.ByteLevel()
    if way == "qwen2":
        backend.normalizer = normalizers.NFC()
    specials = [token for token, kind in zip(tokens, kinds, strict=True) if kind in (CONTROL, UNKNOWN) and token]
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
    whole = [token for token, kind in zip(tokens, kinds, strict=True) if kind == USER_DEFINED and token]
    backend.add_tokens([AddedToken(token, special=False, normalized=False) for token in whole])
    return Tokenizer(backend, specials, **_numbers(metadata, len(tokens)))


def _cutting(pattern: str) -> PreTokenizer:
    from tokenizers import Regex, pre_tokenizers

    if pattern == "bytes":
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    if pattern == "digits":  # every digit by itself
        parts = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        return pre_tokenizers.Sequence(parts)
    cut = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    return pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _numbers(metadata: Metadata, n_tokens: int) -> dict[str, Any]:
    """Which tokens begin and end texts and turns."""
    found = {}
    for name in ("bos", "eos", "eot", "eom"):
        key = f"tokenizer.ggml.{name}_token_id"
        if key in metadata:
            found[name] = metadata.whole(key)
            if not 0 <= found[name] < n_tokens:
                raise LayoutError(f"{metadata.file}: {key!r} is {found[name]:,}; expected 0 to {n_tokens - 1:,}")
    ends = [found[name] for name in ("eot", "eom") if name in found]
    begins = metadata.truth("tokenizer.ggml.add_bos_token", False)
    return {"bos": found.get("bos"), "eos": found.get("eos"), "ends": ends, "begins": begins}
