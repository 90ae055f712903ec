"""State as JSON: out, in, and refused with all faults."""

from __future__ import annotations

import pytest

from widgets.state import StateError, call_text, check_state, read_state, write_state

START = {"mesh": "rows:4", "size": 8, "share": 0.5, "strict": False}


def test_there_and_back():
    state = {**START, "size": 16}
    assert read_state(write_state(state), START) == state


def test_what_is_left_out_keeps_its_start_value():
    assert read_state('{"size": 3}', START) == {**START, "size": 3}
    assert check_state({"share": 1}, START)["share"] == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ('{"size": 1', r"not JSON: .*line 1, column 11"),
        ('{"size": 1,\n oops}', r"line 2, column 2\)\n   oops}\n   \^"),
        ('{"size": \n', "not JSON: "),
        ("[" * 20_000, "not a state: maximum recursion"),
        ('{"size": ' + "9" * 5_000 + "}", "not a state: Exceeds the limit"),
        ("[1]", "a state is an object such as"),
        ('{"sizes": 1}', "no setting 'sizes'; did you mean 'size'"),
        ('{"size": "8"}', "size takes a whole number, not '8'"),
        ('{"size": true}', "size takes a whole number, not True"),
        ('{"strict": 1}', "strict takes true or false, not 1"),
        ('{"mesh": 4, "size": 1.5}', "2 faults\n  1. mesh takes a text, not 4\n  2. size takes a whole number"),
        ('{"share": NaN}', "share takes a number, not nan"),
        ('{"share": Infinity}', "share takes a number, not inf"),
        ('{"share": 1' + "0" * 400 + "}", "share takes a number, not 1000"),
        ('{"mesh": "rows:\\u0000"}', "mesh has characters that cannot be written down"),
        ('{"mesh": "\\ud800"}', r"written down, .*\\ud800"),
        (" " * 20_001, "at most 20000 characters"),
    ],
)
def test_bad_states_say_what_is_wrong(text, says):
    with pytest.raises(StateError, match=says):
        read_state(text, START)


def test_the_call_is_python_that_gives_the_state():
    for state in (START, {"dims": "batch:64 io:512 hidden:2048 and:1", "layout": 'it\'s "quoted"', "n": 2}):
        got = {}
        source = call_text("explorer", state).split("\n", 1)
        assert source[0] == "from widgets import explorer"
        exec(source[1], {"explorer": lambda got=got, **settings: got.update(settings)})
        assert got == state
