"""The text form, read, written and refused.

Whatever is typed, the answer is items or a `NotationError` with a caret: never another exception.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mtfcore as mtf
from mtfcore.notation import (
    Item,
    format_axes,
    format_items,
    format_paper,
    is_name,
    looks_like_run,
    parse,
    parse_axes,
    parse_paper,
)

NAMES = st.sampled_from(["batch", "d_ff", "B", "L", "E", "xy", "io_2", "Größe", "x", "heads"])
AXES = st.sampled_from(["rows", "cols", "x", "y", "z", "w", "X", "planes", "a", "é", "xx", "wxyzw"])


def read(text: str) -> list[tuple]:
    return [(item.name, item.size, item.axes) for item in parse(text)]


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("B L E:xyz", [("B", None, None), ("L", None, None), ("E", None, ("x", "y", "z"))]),
        ("E:x F:zy", [("E", None, ("x",)), ("F", None, ("z", "y"))]),
        ("batch:rows d_ff:(cols planes)", [("batch", None, ("rows",)), ("d_ff", None, ("cols", "planes"))]),
        ("B E:x partialsum:yz", [("B", None, None), ("E", None, ("x",)), ("partialsum", None, ("y", "z"))]),
        ("batch:64 io:512", [("batch", 64, None), ("io", 512, None)]),
        ("rows:4;cols:2", [("rows", 4, None), ("cols", 2, None)]),
        ("batch:rows;hidden:cols", [("batch", None, ("rows",)), ("hidden", None, ("cols",))]),
        (" ; a:4 ,, b:2;\n\tc ", [("a", 4, None), ("b", 2, None), ("c", None, None)]),
        ("d:(rows;cols, planes)", [("d", None, ("rows", "cols", "planes"))]),
        ("d:(rows)", [("d", None, ("rows",))]),
        ("d:(xy rows)", [("d", None, ("x", "y", "rows"))]),
        ("d:(xy)", [("d", None, ("x", "y"))]),
        ("E:XY", [("E", None, ("X", "Y"))]),  # either case
        ("E:xX", [("E", None, ("xX",))]),  # not different letters
        ("E:xx", [("E", None, ("xx",))]),
        ("E:x", [("E", None, ("x",))]),
        ("E:wxyz", [("E", None, ("w", "x", "y", "z"))]),
        ("E:wxyzw", [("E", None, ("wxyzw",))]),
        ("E:xya", [("E", None, ("xya",))]),
        ("xy:4", [("xy", 4, None)]),  # a dimension may look like a run; a mesh axis may not
        ("a:007", [("a", 7, None)]),
        ("_a:4 é:2", [("_a", 4, None), ("é", 2, None)]),
        ("", []),
        (" ;,", []),
    ],
)
def test_reads(text: str, items: list[tuple]) -> None:
    assert read(text) == items


REFUSED = [
    ("rows:4x", 5, "'4x' is neither a size (digits only) nor a mesh axis (letters, digits and _ only"),
    ("4rows:4", 0, "'4rows' is not a name: letters, digits and _ only, not starting with a digit"),
    ("batch:-2", 6, "'-2' is neither a size"),
    ("batch:2.5", 6, "'2.5' is neither a size"),
    ("batch:0", 6, "batch has size 0; a size is at least 1"),
    ("batch:000", 6, "batch has size 0"),
    ("batch: rows", 6, "after 'batch:' a size (digits) or mesh axes are missing"),
    ("a :rows", 2, "a name is missing before the colon"),
    (":", 0, "a name is missing before the colon"),
    ("a::b", 2, "':b' is neither a size"),
    ("a:b:c", 2, "'b:c' is neither a size"),
    ("a:()", 2, "after 'a:' no mesh axis stands between the parentheses"),
    ("a:( ; )", 2, "no mesh axis stands between the parentheses"),
    ("a:(b", 2, "'(' is not closed, as in 'd_ff:(rows cols)'"),
    ("a:(b (c))", 2, "'(' is not closed"),
    ("a:b)", 3, "')' without '(' before it"),
    (")", 0, "')' without '(' before it"),
    ("a:(b c)d", 7, "a blank is missing after 'a:(b c)'"),
    ("(a b)", 0, "'(a b)' is not a name"),
    ("a:(x x)", 5, "mesh axis 'x' stands twice on a"),
    ("a:(xy y)", 6, "mesh axis 'y' stands twice on a"),
    ("a:(b 3)", 5, "'3' is neither a size"),
    ("B partialsum:4", 13, "partialsum is a reserved name: it takes the mesh axes still to be summed over"),
    ("B partialsum", 2, "partialsum is a reserved name"),
    ("B partialsum:", 13, "partialsum is a reserved name"),
    ("B:٣", 2, "'٣' is neither a size"),
    ("\u200bB:4", 0, "is not a name"),
    ("🙂", 0, "'🙂' is not a name"),
    ("a:\ud800", 2, "is neither a size"),
    ("batch=64", 0, "'batch=64' is not a name: letters, digits and _ only, not starting with a digit; "
     "did you mean 'batch:64'?"),
    ("batch->rows", 0, "did you mean 'batch:rows'?"),
    ("B E (partialsum-x)", 4, "the second paper's form is read by Sharding.from_paper"),
    ("a:" + "9" * 5000, 2, "a has a size of 5000 digits; the most is 18"),
]  # fmt: skip


def caret(error: BaseException | str) -> tuple[str, list[int]]:
    """The shown text and the places under which carets stand."""
    shown, under = str(error).split("\n")[-2:]
    return shown, [match.start() for match in re.finditer(r"\^", under)]


@pytest.mark.parametrize(("text", "at", "message"), REFUSED, ids=[text[:20] for text, _, _ in REFUSED])
def test_refuses_with_a_caret(text: str, at: int, message: str) -> None:
    with pytest.raises(mtf.NotationError, match=re.escape(message)) as caught:
        parse(text)
    shown, places = caret(caught.value)
    assert places == [2 + at]
    assert len(text) > 100 or shown[2:] == "".join(c if c.isprintable() else " " for c in text)


def test_all_faults_of_a_text_at_once() -> None:
    with pytest.raises(mtf.NotationError) as caught:
        parse("4a:rows ok:4 b:0 c:(x x)\nd:()")
    text = str(caught.value)
    assert text.startswith("4 faults in one text\n  1. '4a' is not a name")
    assert "\n  2. b has size 0" in text and "\n  3. mesh axis 'x' stands twice on c" in text
    assert caret(caught.value)[1] == [2 + place for place in (0, 15, 22, 27)]


def test_a_long_text_is_shown_around_its_fault() -> None:
    text = "batch:rows " * 500 + "?" + " io:cols" * 500
    with pytest.raises(mtf.NotationError, match=r"'\?' is not a name") as caught:
        parse(text)
    shown, (place,) = caret(caught.value)
    assert shown[place] == "?" and len(str(caught.value)) < 400


def test_many_faults_are_counted_and_the_first_are_listed() -> None:
    with pytest.raises(mtf.NotationError, match=r"^500 faults in one text\n  1\. ") as caught:
        parse("? " * 500)
    assert "\n  and 491 more\n" in str(caught.value) and len(str(caught.value)) < 2_000


@pytest.mark.parametrize("given", [None, 5, 2.5, b"batch:4", ["batch"], object, True])
def test_only_texts_are_read(given: object) -> None:
    for reader, form in ((parse, "'batch:64 io:512'"), (parse_paper, "'BLE_xyz (partialsum-w)'")):
        with pytest.raises(mtf.NotationError, match=re.escape(f"expected a text such as {form}, got ")):
            reader(given)


def test_names_and_runs() -> None:
    assert [word for word in ("a", "d_ff", "é", "_", "4a", "a-b", "", "a b", None, 4) if is_name(word)] == [
        "a", "d_ff", "é", "_",
    ]  # fmt: skip
    words = ["xy", "zyx", "WX", "wxyz", "x", "xx", "xX", "xa", "wxyzw", ""]
    assert [word for word in words if looks_like_run(word)] == ["xy", "zyx", "WX", "wxyz"]


@given(st.text(max_size=60) | st.text(alphabet="abxyz:()0123 ;,_-=\n", max_size=60))
def test_any_text_is_read_or_refused_with_a_caret(text: str) -> None:
    message = refusal(parse, text)
    assert message is None or caret(message)[1]
    items = parse(text) if message is None else ()
    assert all(is_name(item.name) and text.startswith(item.name, item.start) for item in items)


@given(st.text(max_size=40) | st.text(alphabet="ABE_xyz{}()- partialsum", max_size=40))
def test_any_text_is_a_sharding_or_a_layout_error(text: str) -> None:
    for read_one in (mtf.Mesh, mtf.Layout, mtf.Sharding, mtf.Sharding.from_paper, mtf.dims.parse_dims):
        message = refusal(read_one, text)
        assert message is None or message.strip()


def refusal(read_one: Callable, text: str) -> str | None:
    """The message of a refusal, None where the text is read; any other exception fails the test."""
    try:
        read_one(text)
    except mtf.LayoutError as error:
        return str(error)
    return None


placements = st.lists(
    st.tuples(NAMES, st.none() | st.integers(1, 10**12) | st.lists(AXES, min_size=1, max_size=4, unique=True)),
    unique_by=lambda item: item[0],
    max_size=5,
)


@given(placements, st.sampled_from([" ", ";", ", ", "\n", " ; "]))
def test_written_items_read_back(items: list[tuple], separator: str) -> None:
    """Our form and Mesh-TensorFlow's differ only in what separates the items."""
    words = [n if v is None else f"{n}:{v if isinstance(v, int) else format_axes(tuple(v))}" for n, v in items]
    sizes = [(n, v, None) if isinstance(v, int) else (n, None, v and tuple(v)) for n, v in items]
    assert read(separator.join(words)) == sizes


@given(placements, st.lists(AXES, max_size=3, unique=True))
def test_a_placement_reads_back(items: list[tuple], partial: list[str]) -> None:
    names = tuple(name for name, _ in items)
    axes = tuple(tuple(v) if isinstance(v, list) else () for _, v in items)
    found = parse(format_items(names, axes, tuple(partial)))
    assert [item.axes or () for item in found[: len(names)]] == list(axes)
    assert [item.axes for item in found[len(names) :]] == ([tuple(partial)] if partial else [])


@given(st.lists(AXES, min_size=1, max_size=4, unique=True))
def test_axes_read_back(axes: list[str]) -> None:
    assert parse_axes(format_axes(tuple(axes))) == tuple(axes)


CAPITALS = st.lists(st.sampled_from("BLEFHKDV"), unique=True, max_size=5)


@given(CAPITALS, st.data())
def test_the_paper_form_reads_back(names: list[str], data: st.DataObject) -> None:
    axes, left = [], list("wxyz")
    for _ in (*names, "partial"):
        on = data.draw(st.lists(st.sampled_from(left), unique=True)) if left else []
        left = [axis for axis in left if axis not in on]
        axes.append(tuple(on))
    text = format_paper(tuple(names), tuple(axes[:-1]), axes[-1])
    items = parse_paper(text)
    expected = [(name, on or None) for name, on in zip(names, axes[:-1], strict=True)]
    assert [(item.name, item.axes) for item in items] == expected + [("partialsum", axes[-1])] * bool(axes[-1])
    assert mtf.Sharding.from_paper(text).text() == format_items(tuple(names), tuple(axes[:-1]), axes[-1])


def test_the_paper_form_of_the_paper() -> None:
    assert format_paper(("B", "L", "E"), ((), (), ("x", "y", "z"))) == "BLE_xyz"
    assert format_paper(("B", "L", "E"), ((), (), ("x",)), ("y", "z")) == "BLE_x (partialsum-yz)"
    assert format_paper((), (), ("x",)) == "(partialsum-x)"
    assert format_paper(("batch",), ((),)) is None and format_paper(("B",), (("rows",),)) is None
    assert format_paper(("B",), (("X",),)) is None  # the axes are small letters
    assert parse_paper("B_{xy}E") == (Item("B", axes=("x", "y")), Item("E", start=6))


@pytest.mark.parametrize("text", ["ble", "B L", "BE_", "BE_X", "BE partialsum-x", "BE (partialsum-x", "BE (x)", "B1"])
def test_the_paper_form_refuses_with_a_caret(text: str) -> None:
    with pytest.raises(mtf.NotationError, match="expected dimensions as single capitals") as caught:
        parse_paper(text)
    assert len(caret(caught.value)[1]) == 1
