"""One formatter, five origin words."""

from __future__ import annotations

import pytest

from widgets.numbers import ORIGINS, count, origin, quantity, tagged_html


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "B", "0 B"), (16_384, "iB", "16 KiB"), (1024, "iB", "1 KiB"), (1023, "iB", "1,023 B"), (288, "iB", "288 B"),
        (64 * 2**30, "iB", "64 GiB"), (3.2e9, "B", "3.2 GB"), (999.9e6, "B", "1 GB"), (4.5e-5, "s", "45 µs"),
        (0.0012, "s", "1.2 ms"), (90, "s", "90 s"), (3e-10, "s", "0.3 ns"), (2.75e14, "FLOP/s", "275 TFLOP/s"),
        (2**21 + 1, "iB", "2 MiB"), (1e12, "B/s", "1 TB/s"), (123_456, "", "123 k"), (-2e9, "B", "-2 GB"),
        (float("inf"), "s", "inf s"),
    ],
)  # fmt: skip
def test_quantity(value, unit, text):
    assert quantity(value, unit) == text


def test_counts_agree_with_their_noun():
    assert [count(1, "device"), count(2, "device"), count(1, "copy", "copies"), count(4096, "copy", "copies")] == [
        "1 device", "2 devices", "1 copy", "4,096 copies",
    ]  # fmt: skip


@pytest.mark.parametrize("word", ORIGINS)
def test_an_origin_becomes_a_tag_and_the_rest_is_escaped(word):
    assert tagged_html(origin("<1 KiB", word)) == f'&lt;1 KiB <span class="mw-origin">{word}</span>'


def test_no_sixth_word():
    with pytest.raises(ValueError, match="unknown origin 'guessed'; the words are modelled, counted"):
        origin("1 KiB", "guessed")
    assert tagged_html("[guessed]") == "[guessed]"
