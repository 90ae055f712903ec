"""Tables: rows keep exact numbers, text is aligned, HTML is escaped and brings no colours; and number formats."""

import re
from fractions import Fraction
from html.parser import HTMLParser

import pytest

import mtfcore as mtf
from mtfcore.numbers import format_bytes, format_flops, format_seconds
from mtfcore.tables import Column, Table


@mtf.function
def two_layers(x: "batch io", w: "io hidden", v: "hidden io"):
    h = mtf.relu(mtf.einsum(x, w, out="batch hidden"))
    return mtf.einsum(h, v, out="batch io")


@mtf.function
def looped(x: "B E", ws: "N E F", vs: "N F E"):
    def block(h, w, v):
        return mtf.einsum(mtf.einsum(h, w, out="B F"), v, out="B E")

    return mtf.repeat(block, 3, (ws, vs), x)


NET = mtf.plan(two_layers, "rows:4 cols:2", "batch:rows hidden:cols", sizes="batch:64 io:512 hidden:2048")
LOOP = mtf.plan(looped, "x:4", "E:x", sizes="B:4 N:3 E:8 F:16")


def test_rows_keep_exact_numbers():
    first, relu, _, reduce = NET.table().rows
    assert (first["what"], first["inputs"], first["value"]) == ("einsum", ["x", "w"], "h1")
    assert (first["shape_before"], first["shape_after"]) == ([(16, 512), (512, 1024)], (16, 1024))
    assert first["flops"] == 2 * 16 * 512 * 1024
    assert relu["flops"] is None and relu["sent_bytes"] is None
    assert (reduce["what"], reduce["axes"], reduce["group"]) == ("all_reduce over cols", "cols", 2)
    assert reduce["held_bytes"] == 16 * 512 * 4 == reduce["sent_bytes"]  # 2 n (g-1)/g with g = 2
    assert reduce["why"] == NET.steps[3].why


def test_totals_are_those_of_the_program():
    total = NET.table().total
    assert total["flops"] == NET.flops() and total["sent_bytes"] == NET.link_bytes()
    last, sent, _ = str(NET.table()).splitlines()[-3:]
    assert last.split() == ["all", "1", "collective", "32", "KiB", "33.6", "MFLOP"]
    assert sent.strip() == "sent along cols 32 KiB"


def test_loops_are_numbered_within_their_step_and_counted():
    rows = LOOP.table().rows
    assert [row["step"] for row in rows] == ["0", "0.0", "0.1", "0.2"]
    assert {row["times"] for row in rows} == {3}
    assert sum(row["times"] * (row["flops"] or 0) for row in rows) == LOOP.flops()
    assert sum(row["times"] * (row["sent_bytes"] or 0) for row in rows) == LOOP.link_bytes()


def test_text_says_where_numbers_come_from_and_marks_collectives():
    lines = str(NET.table()).splitlines()
    assert lines[0] == "two_layers on mesh rows:4 cols:2: modelled, one device"
    assert [line.split()[3] for line in lines if line.startswith("▸")] == ["all_reduce"]


def test_text_is_aligned():
    lines = [line for line in str(NET.table()).splitlines() if re.match(r"[▸ ] +(step|\d|all)", line)]
    starts = [next(place for place, c in enumerate(line) if place > 14 and c != " ") for line in lines[:-1]]
    assert len(set(starts)) == 1
    assert len({len(line) for line in lines if "FLOP" in line}) == 1


def test_sentences_stand_below_their_rows():
    lines = str(NET.table()).splitlines()
    for step in NET.steps:
        assert step.why in [line.strip() for line in lines]


def test_a_step_is_called_the_same_in_table_and_source():
    lines = NET.source()
    assert all(re.search(rf"\b{row['value']} = ", lines) for row in NET.table().rows)


class Page(HTMLParser):
    """Text of each cell, and every style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.styles, self.words = [], [], []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.styles.append(dict(attrs).get("style") or "")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_html_has_every_cell_and_takes_colours_from_the_page():
    table = NET.table()
    page = Page(table._repr_html_())
    assert page.tags.count("tr") == 2 * len(table.rows) + 3  # each row's sentence is a row; the head has none
    for row in table.rows:
        assert set(filter(None, table.cells(row))) <= set(page.words)
    assert not re.search(r"#[0-9a-f]{3}|rgb|\bwhite\b(?!-)|\bblack\b|background", " ".join(page.styles), re.IGNORECASE)


def test_html_is_escaped():
    table = Table((Column("a<b", "<i>"),), [{"a<b": "<script>alert(1)</script>"}], "<b>title", notes=("1 < 2",))
    page = table._repr_html_()
    assert "<script>" not in page and "<i>" not in page and "<b>" not in page
    assert {"<script>alert(1)</script>", "<i>", "<b>title", "1 < 2"} <= set(Page(page).words)


def test_an_empty_table_still_has_its_headings():
    table = Table((Column("name", "name"), Column("size", "size", is_number=True)), [])
    assert str(table).split() == ["name", "size", "-" * 10]


def test_a_program_without_steps_has_a_table():
    @mtf.function
    def same(x: "B E"):
        return x

    table = mtf.plan(same, "x:2", "B:x", sizes="B:4 E:8").table()
    assert table.rows == [] and "0 collectives" in str(table) and "nothing is sent" in str(table)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (format_bytes(0), "0 B"),
        (format_bytes(1023), "1,023 B"),
        (format_bytes(1024), "1 KiB"),
        (format_bytes(1536), "1.5 KiB"),
        (format_bytes(1021 * 2**30), "1,021 GiB"),
        (format_bytes(Fraction(4096, 3)), "1.33 KiB"),
        (format_bytes(3.2e9, decimal=True), "3.2 GB"),
        (format_bytes(2**30, decimal=True), "1.07 GB"),
        (format_bytes(999_999, decimal=True), "1 MB"),
        (format_flops(2.75e14), "275 TFLOP"),
        (format_seconds(4.5e-5), "45 µs"),
        (format_seconds(0), "0 s"),
        (format_seconds(90), "90 s"),
        (format_seconds(float("inf")), "inf s"),
    ],
)
def test_numbers_for_people(text, expected):
    assert text == expected
