"""Real examples, damaged: what a slip, a bad disk, another program or somebody unkind makes of them.

    for damaged in samples(rng, ["batch:rows"], 100, texts): …

Every mutation is small and keeps most of the example, so that the damage reaches the code behind the first check.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

NUMBERS = (0, -1, 1, 2**31, 2**32 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**18, 10**30, 1e308, -0.0, 0.5)
NO_NUMBERS = (float("nan"), float("inf"), float("-inf"))
WRONG = (None, True, False, "", "x", [], {}, [[]], {"": None}, "NaN", "\x00", "﻿", "é", "日本", "\ud83d", "٣", *NUMBERS)
WORDS = (
    "\x00",
    "﻿",
    "\r\n",
    "٣",
    "²",
    "１２",
    "Ⅷ",
    "é",
    "日",
    "🙂",
    "\u202e",
    "\u200b",
    "NaN",
    "-1",
    "9" * 40,
    "1" + "0" * 400,
    "9223372036854775808",
    "0",
    "1e999",
    "0x10",
    ":",
    "::",
    ";",
    ",",
    "(",
    ")",
    "((",
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    "\\",
    "%",
    "=",
    "<",
    ">",
    "/",
    "\n",
    "\t",
    " ",
    "partialsum",
    "xyz",
    "xx",
    "None",
    "nan",
    "True",
    "-",
    "--",
    "../",
    "a" * 300,
    "{}",
    "{{0,1}}",
    "[2,4]<=[8]",
)


def texts(rng: random.Random, text: str) -> str:
    """One to three small changes of a text."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice(TEXT_CHANGES)(rng, text)
    return text


def _place(rng: random.Random, text: Sequence) -> int:
    return rng.randrange(len(text) + 1)


def _put(rng: random.Random, text: str) -> str:
    at = _place(rng, text)
    return text[:at] + rng.choice(WORDS) + text[at:]


def _cut(rng: random.Random, text: str) -> str:
    return text[: _place(rng, text)]


def _drop(rng: random.Random, text: str) -> str:
    at = _place(rng, text)
    return text[:at] + text[at + rng.choice((1, 1, 2, 5, 20)) :]


def _twice(rng: random.Random, text: str) -> str:
    at, end = sorted((_place(rng, text), _place(rng, text)))
    part = text[at:end][:2_000]
    return text[:end] + part * rng.choice((1, 1, 2, 30)) + text[end:]


def _swap(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def _number(rng: random.Random, text: str) -> str:
    places = [n for n, letter in enumerate(text) if letter in "0123456789"]
    if not places:
        return text
    at = rng.choice(places)
    return text[:at] + str(rng.choice(NUMBERS + NO_NUMBERS)) + text[at + 1 :]


def _word(rng: random.Random, text: str) -> str:
    words = text.split(" ")
    words[rng.randrange(len(words))] = rng.choice((*WORDS, rng.choice(words)))
    return " ".join(words)


def _deep(rng: random.Random, text: str) -> str:
    left, right = rng.choice(("()", "[]", "{}"))
    times = rng.choice((1, 3, 5_000))
    return left * times + text + right * times


def _windows(rng: random.Random, text: str) -> str:
    return rng.choice(("﻿", "")) + text.replace("\n", "\r\n")


TEXT_CHANGES: tuple[Callable[[random.Random, str], str], ...] = (
    _put,
    _put,
    _cut,
    _drop,
    _twice,
    _swap,
    _number,
    _number,
    _word,
    _deep,
    _windows,
)


def raw(rng: random.Random, data: bytes) -> bytes:
    """One to three small changes of bytes; most fall into the first part, where formats keep their tables."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(min(len(made), 4_000) if rng.random() < 0.8 else len(made)) if made else 0
        kind = rng.randrange(6)
        if kind == 0 and made:
            made[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            made[at : at + 4] = rng.randbytes(4)
        elif kind == 2:
            del made[at:]
        elif kind == 3:
            made[at : at + 8] = struct.pack("<Q", rng.choice((0, 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1)))
        elif kind == 4:
            made[at:at] = rng.randbytes(rng.choice((1, 8, 100)))
        else:
            del made[at : at + rng.choice((1, 8, 100))]
    return bytes(made)


def values(rng: random.Random, value: Any) -> Any:
    """A plain value, as JSON gives it, changed somewhere inside."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.choice((1, 1, 2, 3))):
        value = _inside(rng, value)
    return value


def _inside(rng: random.Random, value: Any) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key, kind = rng.choice(list(value)), rng.randrange(10)
        if kind == 0:
            return {name: one for name, one in value.items() if name != key}
        if kind == 1:
            return {**value, rng.choice(("", "x", "__class__", "id", key.upper(), "é" * 200)): rng.choice(WRONG)}
        if kind == 2:
            return {(texts(rng, name) if name == key else name): one for name, one in value.items()}
        return {**value, key: _inside(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        return rng.choice((value[:at], value + value[at:], [*value[:at], _inside(rng, value[at]), *value[at + 1 :]]))
    if isinstance(value, str) and rng.random() < 0.6:
        return texts(rng, value)
    return _deep_value(rng) if rng.random() < 0.05 else rng.choice(WRONG + NO_NUMBERS)


def _deep_value(rng: random.Random) -> Any:
    made: Any = rng.choice(WRONG)
    for _ in range(rng.choice((5, 200))):
        made = [made] if rng.random() < 0.5 else {"a": made}
    return made


def json_texts(rng: random.Random, value: Any) -> str:
    """A damaged value as JSON text, or whole JSON text that was damaged."""
    if rng.random() < 0.6:
        return json.dumps(values(rng, value))
    return texts(rng, json.dumps(value))


def samples(rng: random.Random, seeds: Sequence[Any], count: int, change: Callable) -> Iterator[Any]:
    """The seeds themselves, then damaged ones."""
    yield from (json.dumps(seed) if change is json_texts else seed for seed in seeds)
    for _ in range(count):
        yield change(rng, rng.choice(seeds))
