"""The byte formulas, loop arithmetic and printing that all counters share."""

import subprocess
import sys
from fractions import Fraction

import pytest

from mtfcore.counting import Collective, Counts, facts, flops, sent_bytes

MIB = 2**20


def test_all_reduce_of_64_mib_sends_twice_the_ring_share():
    """Ring: 2 V (g-1)/g for groups of 1, 2, 4, 8, 16, 64."""
    sent = [sent_bytes("all_reduce", 64 * MIB, g) // MIB for g in (1, 2, 4, 8, 16, 64)]
    assert sent == [0, 64, 96, 112, 120, 126]


@pytest.mark.parametrize("g", [2, 3, 4, 8])
def test_gather_and_scatter_are_halves_of_an_all_reduce(g):
    n = 1000
    scatter, gather = sent_bytes("reduce_scatter", n, g), sent_bytes("all_gather", Fraction(n, g), g)
    assert scatter == gather == Fraction(n * (g - 1), g)
    assert sent_bytes("all_reduce", n, g) == scatter + gather
    assert sent_bytes("all_to_all", n, g) == scatter
    assert sent_bytes("permute", n, g) == n


@pytest.mark.parametrize("kind", facts.KINDS)
def test_a_group_of_one_is_free(kind):
    assert sent_bytes(kind, 123, 1) == 0


def test_bytes_are_exact_and_whole_where_they_can_be():
    third = sent_bytes("reduce_scatter", 4, 3)
    assert third == Fraction(8, 3)
    total = Counts(collectives=(Collective("reduce_scatter", ("x",), 3, 4, times=3),)).link_bytes
    assert total == 8 and isinstance(total, int)


def test_unknown_kinds_and_empty_groups_are_refused():
    with pytest.raises(ValueError, match="unknown kind of collective 'gossip'; known: all_gather"):
        sent_bytes("gossip", 1, 2)
    with pytest.raises(ValueError, match="a group of 0 devices"):
        sent_bytes("permute", 1, 0)


@pytest.mark.parametrize(
    ("name", "bits"),
    [("bfloat16", 16), ("bf16", 16), ("float8_e4m3fn", 8), ("f8E4M3FN", 8), ("int4", 4), ("s4", 4), ("pred", 8),
     ("bool", 8), ("i1", 8), ("ui32", 32), ("complex64", 64), ("complex<f32>", 64)],
)  # fmt: skip
def test_element_sizes_in_three_languages(name, bits):
    assert facts.dtype_bits(name) == bits


def test_elements_below_a_byte_are_packed():
    assert facts.array_bytes((3, 5), "int4") == 8
    with pytest.raises(ValueError, match="cannot tell the size of an element of type 'token'"):
        facts.dtype_bits("token")


@pytest.mark.parametrize(
    ("start", "bound", "step", "direction", "runs"),
    [(0, 7, 1, "LT", 7), (0, 7, 2, "LT", 4), (0, 7, 1, "LE", 8), (7, 0, -1, "GT", 7), (7, 0, -2, "GE", 4),
     (5, 5, 1, "LT", 0), (9, 5, 1, "LT", 0), (0, 6, 2, "NE", 3), (6, 0, -2, "NE", 3), (0, 7, 2, "NE", None),
     (0, 7, 0, "LT", None), (0, 7, -1, "LT", None), (0, 7, 1, "EQ", None)],
)  # fmt: skip
def test_trip_counts_by_simulation_and_by_hand(start, bound, step, direction, runs):
    assert flops.trip_count(start, bound, step, direction) == runs
    if runs is None:
        return
    goes_on = {"LT": int.__lt__, "LE": int.__le__, "GT": int.__gt__, "GE": int.__ge__, "NE": int.__ne__}[direction]
    value, seen = start, 0
    while goes_on(value, bound):
        value, seen = value + step, seen + 1
    assert seen == runs


def test_a_permute_ties_together_what_its_pairs_reach():
    assert facts.linked_devices([(0, 0), (1, 1)]) == 1
    assert facts.linked_devices([(0, 1), (1, 2), (2, 3), (4, 5)]) == 4
    assert facts.linked_devices([(0, 4), (4, 0), (1, 5), (5, 1)]) == 2
    assert facts.linked_devices([]) == 1


def test_printing_says_origin_scope_and_exact_bytes():
    c = Collective("all_gather", ("x", "y"), 8, 1000, times=3, dtype="float32", where="scan x3/<b>")
    counts = Counts((c,), free=(Collective("permute"),), flops=12345, scope="per device", notes=("mind the <gap>",))
    text = str(counts)
    assert text.splitlines()[0] == (
        "counted from the jaxpr, per device: 1 collective, 21,000 B sent by one device, 12,345 FLOPs, 0 elementwise"
    )
    row = next(line for line in text.splitlines() if line.startswith("all_gather"))
    assert row.split()[:9] == ["all_gather", "x", "y", "8", "3", "float32", "1,000", "7,000", "21,000"]
    assert "free (moves nothing): permute" in text and "note: mind the <gap>" in text
    html = counts._repr_html_()
    assert 'title="21,000 B">20.5 KiB<' in html
    assert "<b>" not in html.replace(f"<b>{text.splitlines()[0]}</b>", "") and "mind the &lt;gap&gt;" in html
    assert str(c) == "3 x all_gather over x y in groups of 8: 7,000 B sent each"


def test_sums_by_kind_and_axes():
    parts = (
        Collective("all_gather", ("x",), 2, 10, times=2),
        Collective("all_reduce", ("x",), 2, 10),
        Collective("all_gather", ("y",), 3, 10),
    )
    counts = Counts(parts)
    assert counts.by_kind() == {"all_gather": 40, "all_reduce": 10}
    assert counts.by_axes() == {("x",): 30, ("y",): 20}
    assert counts.link_bytes == 50


def test_importing_the_counters_loads_no_jax_and_nothing_of_the_planner():
    script = (
        "import sys; before = set(sys.modules); import mtfcore; planner = set(sys.modules);"
        "import mtfcore.counting; after = set(sys.modules) - planner;"
        "print(sorted(m for m in after if m.startswith('mtfcore') and not m.startswith('mtfcore.counting')),"
        "'jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] False"


def test_bytes_that_do_not_divide_print_as_fractions():
    counts = Counts(collectives=(Collective("all_reduce", ("x",), 3, n_bytes=1000),))
    assert counts.link_bytes == Fraction(4000, 3)
    assert "4,000/3 B sent by one device" in str(counts) and 'title="4,000/3 B"' in counts._repr_html_()
