"""Text to train on that every reader has: the Python sources of the standard library on this disk, as bytes.

    text = python_sources(limit_bytes=1_000_000)        # 1 MB of source files, always the same ones in the same order
    batches = Batches(text, batch=16, length=64, seed=0)
    batches(step=7)["inputs"]                            # i32[16, 64]; the same whenever it is asked for

A token is a byte, so there are 256 of them and no tokenizer to learn. A batch depends on the seed and the step's
number alone: a run that is taken up again at step 7 sees what it would have seen. Next file to read: `training`.
"""

from __future__ import annotations

import os
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mtfcore.errors import LayoutError, expect, refuse
from mtfcore.ops import whole_number

VOCAB = 256
LEFT_OUT = {"__pycache__", "dist-packages", "site-packages", "idlelib", "test", "tests"}


@dataclass(frozen=True, eq=False)
class Text:
    """Bytes to train on, `u8[n]`, and the files they were read from."""

    data: np.ndarray
    files: tuple[str, ...] = ()
    skipped: tuple[str, ...] = field(default=(), repr=False)  # could not be read

    @property
    def unigram_nats(self) -> float:
        """Entropy of a byte if only the frequencies of bytes are known: what a model must get below to have learnt."""
        counts = np.bincount(self.data, minlength=VOCAB)
        shares = counts[counts > 0] / self.data.size
        return float(-(shares * np.log(shares)).sum())

    def split(self, share: float = 0.9) -> tuple[Text, Text]:
        """The first `share` of the bytes to train on, and the rest to test with."""
        if not 0 < share < 1:
            raise LayoutError(f"split: share is {share!r:.200}; expected a number between 0 and 1, e.g. 0.9")
        cut = int(self.data.size * share)
        return Text(self.data[:cut], self.files), Text(self.data[cut:], self.files)


def python_sources(limit_bytes: int = 1_000_000, folder: str | Path | None = None) -> Text:
    """The .py files below a folder (the standard library), in order of their names, up to a number of bytes."""
    root = Path(sysconfig.get_path("stdlib") if folder is None else folder)
    limit = whole_number(limit_bytes, "python_sources: limit_bytes")
    parts, files, skipped, left = [], [], [], limit
    for path in _sources(root):
        if left <= 0:
            break
        name = path.relative_to(root).as_posix()
        try:
            found = path.read_bytes()[:left]
        except OSError:  # no right to read it, or gone since it was listed
            skipped.append(name)
            continue
        left -= len(found)
        parts.append(np.frombuffer(found, np.uint8))
        files.append(name)
    if left == limit:
        raise LayoutError(f"no Python sources to read in {root}; give a folder that has some: python_sources(folder=…)")
    return Text(np.concatenate(parts), tuple(files), tuple(skipped))


def _sources(root: Path) -> list[Path]:
    """By name, the same order on every system; tests of the library and other people's packages are left out."""
    found = []
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in LEFT_OUT and not name.endswith(".py")]
        found += [Path(folder, name) for name in names if name.endswith(".py")]
    return sorted(found, key=lambda path: path.relative_to(root).as_posix())


def encode(text: str) -> np.ndarray:
    """Text → `i32[n]` tokens, its UTF-8 bytes."""
    return np.frombuffer(text.encode(), np.uint8).astype(np.int32)


def decode(tokens: np.ndarray) -> str:
    """Tokens → text; bytes that are no UTF-8 show as �, and ids that pad the vocabulary too."""
    tokens = np.asarray(tokens).reshape(-1)
    return bytes(int(t) if 0 <= t < VOCAB else 0xFF for t in tokens).decode(errors="replace")


def padded_vocab(parts: int) -> int:
    """The smallest vocabulary with room for every byte that divides over so many devices."""
    parts = whole_number(parts, "padded_vocab: parts")
    if parts < 1:
        raise LayoutError(f"padded_vocab: parts is {parts}; expected at least 1")
    return -(-VOCAB // parts) * parts


class Batches:
    """Windows of a text at random places: `batches(step)` is a function of the seed and the step's number alone."""

    def __init__(self, text: Text, batch: int, length: int, seed: int = 0, source_length: int = 0) -> None:
        self.text = expect(text, Text, "a text such as mtf.model.data.python_sources()")
        self.seed = whole_number(seed, "Batches: seed")
        self.source_length = whole_number(source_length, "Batches: source_length")
        self.batch, self.length = whole_number(batch, "Batches: batch"), whole_number(length, "Batches: length")
        faults = [f"{what} is {n}; expected at least {least}" for what, n, least in (
            ("batch", self.batch, 1), ("length", self.length, 1), ("seed", self.seed, 0),
            ("source_length", self.source_length, 0)) if n < least]  # fmt: skip
        window = self.source_length + self.length
        if text.data.size <= window:
            faults.append(f"the text has {text.data.size} bytes, a window of length {window} needs more")
        refuse(faults, "Batches")

    def __call__(self, step: int) -> dict[str, np.ndarray]:
        """`inputs` and `targets`, each i32[batch, length]; a target is the token that follows.

        With a `source_length`, also `source`: what stands before in the text, for an encoder to read.
        """
        before, after = self.source_length, self.length + 1
        starts = np.random.default_rng((self.seed, step)).integers(
            0, self.text.data.size - before - self.length, self.batch
        )
        windows = self.text.data[starts[:, None] + np.arange(before + after)].astype(np.int32)
        made = {"inputs": windows[:, before:-1], "targets": windows[:, before + 1 :]}
        return {**made, "source": windows[:, :before]} if before else made

    def __repr__(self) -> str:
        return f"<Batches of {self.batch} x {self.length} bytes, seed {self.seed}, from {self.text.data.size:,} bytes>"
