"""Rows written into a tensor: it never moves, a donated one is changed in place, and what is elsewhere is left out."""

from functools import partial

import jax
import numpy as np
import pytest
from core.sweep.checking import quick
from ml_dtypes import bfloat16

import mtfcore as mtf
from mtfcore.functions import Function
from mtfcore.kernels import row_writing
from mtfcore.kernels.call import Call

SIZES = {"layers": 2, "B": 8, "S": 16, "K": 4, "D": 8, "N": 2, "P": 4, "T": 3}
CACHE, ROWS = "layers B S K D", "layers B N K D"


def kept(cache, new, at, dim="S"):
    return mtf.write(cache, new, at, dim)


def plan(mesh="x:2 y:2 z:2", place=None, cache=CACHE, rows=ROWS, at="B N", dim="S", fn=kept, dtype="f32", **sizes):
    texts = {"cache": cache, "new": rows, "at": at}
    named = Function.of("kept", texts, lambda **given: {"cache": fn(**given, dim=dim)}, {"at": "i32"})
    used = {word.partition(":")[0] for text in texts.values() for word in text.split() if not word[-1].isdigit()}
    dims = [mtf.Dim(name, (SIZES | sizes)[name]) for name in sorted(used)]
    return mtf.plan(named, mesh, sizes=dims, place=place or {}, dtype=dtype)


def filled(program):
    """Arrays whose elements are all different; places from before the beginning to behind the end, none twice."""
    random, arrays = np.random.default_rng(0), []
    for port in program.inputs:
        n = int(np.prod(port.sharding.shape))
        if port.name == "at":
            rows = port.sharding.shape[-1] if port.sharding.names[-1] in "NP" else 1
            arrays.append(np.stack([random.permutation(20)[:rows] - 2 for _ in range(n // rows)]))
        else:
            arrays.append(random.permutation(n).astype(np.float32))
    return [a.reshape(port.sharding.shape) for a, port in zip(arrays, program.inputs, strict=True)]


def written(cache, new, at):
    """`layers B S K D`, one row at a time."""
    found = cache.copy()
    for b, n in np.ndindex(at.shape):
        if 0 <= at[b, n] < cache.shape[2]:
            found[:, b, at[b, n]] = new[:, b, n]
    return found


PLACES = [
    {"cache": "layers B:x S K:zy D", "new": "layers B N K D:zy", "at": "B N"},
    {"cache": "layers B S:zyx K D", "new": "layers B N K:z D"},
    {"cache": "layers B:xz S:y K D", "new": "layers B N K D:x partialsum:yz", "at": "B:x N:y"},
    {"cache": "layers B S:x K D:y partialsum:z", "new": "layers:y B N K D", "at": "B:zyx N"},
]


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("place", PLACES[:1], ids=str)
def test_bits_stay_what_they_are_in_every_dtype(place, dtype, n):
    """NaN with its payload, infinities, -0: rows are moved, not computed with."""
    program = plan(place=place, dtype=dtype, N=n)
    cache, new, at = filled(program)
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-38], np.float32)
    kind = {"f32": np.float32, "bf16": bfloat16}[dtype]
    cache, new = (np.where(a % 7 < 5, odd[(a % 5).astype(int)], a % 64).astype(kind) for a in (cache, new))
    found = quick(mtf.simulate(program))(cache, new, at)["cache"]
    whole = {"f32": np.uint32, "bf16": np.uint16}[dtype]
    np.testing.assert_array_equal(np.asarray(found).view(whole), written(cache, new, at).view(whole))


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_values_and_the_place_of_the_result(place):
    program = plan(place=place)
    cache, new, at = filled(program)
    np.testing.assert_array_equal(quick(mtf.simulate(program))(cache, new, at)["cache"], written(cache, new, at))
    (step,) = [step for step in program.steps if step.kind == "write"]
    assert step.after.axes == step.before[0].axes == program.outputs[0].sharding.axes and not step.after.partial
    if "partialsum" not in place["cache"]:
        assert step.inputs[0] == program.inputs[0].value and program.outputs[0].sharding.text() == place["cache"]
        assert not [s for s in program.collectives() if s.before[0].names == tuple(CACHE.split())]


@pytest.mark.parametrize("way", ["_scattered", "_row_by_row", "_chosen"])
@pytest.mark.parametrize(
    ("names", "rows", "at", "dim"),
    [
        ("A B S D", "A B N D", "B N", "S"), ("S A D", "D N A", "N", "S"), ("A S B D", "N D A B", "N B", "S"),
        ("A S", "N A", "A N", "S"), ("S", "N", "N", "S"), ("A D B S", "B N A D", "N", "S"),
    ],
)  # fmt: skip
def test_every_way_of_each_platform_gives_the_same(way, names, rows, at, dim):
    """Those of TPUs and GPUs too; here all run on the CPU, in bf16 as the choice of bits does."""
    sizes, random = {"A": 3, "B": 2, "S": 16, "D": 5, "N": 4}, np.random.default_rng(0)
    names, rows, at = (tuple(text.split()) for text in (names, rows, at))
    t, new = (random.normal(size=[sizes[n] for n in dims]).astype(bfloat16) for dims in (names, rows))
    free = tuple(n for n in at if n != "N")
    drawn = np.array([random.permutation(20)[:4] - 2 for _ in range(int(np.prod([sizes[n] for n in free])))])
    places = np.moveaxis(drawn.reshape(*[sizes[n] for n in free], 4), -1, at.index("N"))
    right = t.copy()
    for place in np.ndindex(places.shape):
        here = dict(zip(at, place, strict=True))
        if 0 <= places[place] < 16:
            row = np.transpose(new, [rows.index("N"), *[rows.index(n) for n in names if n != dim]])
            taken = row[(here["N"], *[here.get(n, slice(None)) for n in names if n != dim])]
            right[tuple(places[place] if n == dim else here.get(n, slice(None)) for n in names)] = taken
    local = np.where((places >= 0) & (places < 16), places, 16)
    call = Call((names, rows, at), names, t.shape, "bf16", {"dim": dim})
    found = jax.jit(partial(getattr(row_writing, way), call))(t, new, local)
    np.testing.assert_array_equal(np.asarray(found).view(np.uint16), right.view(np.uint16))


def test_prompts_go_into_slots():
    """Of `layers P S K D`, each prompt to the sequence whose number it has; -1 is nobody's."""
    place = {"cache": "layers B:x S K:zy D", "new": "layers P S K:zy D"}
    program = plan(place=place, rows="layers P S K D", at="P", dim="B")
    assert program.link_bytes() == 0
    cache, new, _ = filled(program)
    slots, right = np.array([6, -1, 0, 3], np.int32), cache.copy()
    right[:, slots[[0, 2, 3]]] = new[:, [0, 2, 3]]
    np.testing.assert_array_equal(quick(mtf.simulate(program))(cache, new, slots)["cache"], right)


def test_a_slot_is_looked_up_in_a_table_of_many_dimensions():
    """The other way: of `P layers S K D` the entries that are asked for, with all else lying where it lay."""

    @mtf.function(dtypes={"ids": "i32"})
    def taken(table: "P layers S K D", ids: "B"):
        return mtf.gather(table, ids, "P")

    table, ids = np.random.default_rng(0).normal(size=(4, 2, 16, 4, 8)).astype(np.float32), [3, 0, 9, -1, 1, 1, 2, 3]
    right = table[np.clip(ids, 0, 3)]
    right[[2, 3]] = 0
    for place in ("P layers S K:zy D", "P:x layers S K:zy D", "P layers S:x K:zy D"):
        program = mtf.plan(taken, "x:2 y:2 z:2", sizes="layers:2 B:8 S:16 K:4 D:8 P:4", place={"table": place})
        found = quick(mtf.simulate(program))(table, np.array(ids, np.int32))
        np.testing.assert_array_equal(found, right)
        assert program.outputs[0].sharding.on["K"] == ("z", "y")
        assert program.link_bytes() == 0 or "P:x" in place


def several(cache, new, at, dim):
    """Three turns, each of which writes behind the turn before, as a decode loop does."""

    def turn(cache, at):
        return mtf.write(cache, new, at, dim), at + 2

    return mtf.repeat(turn, 3, (), cache, at)[0]


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("fn", [kept, several])
@pytest.mark.parametrize("cache", ["layers B:x S K:y D", "layers B S:xy K D"])
def test_a_donated_cache_is_changed_in_place(fn, cache, dtype):
    """The compiler's own report: the output is the input's memory, and what it needs besides is far below a copy."""
    program = plan("x:2 y:2", place={"cache": cache}, fn=fn, dtype=dtype, S=256)
    run = mtf.simulate(program)
    report = jax.jit(run.fn, donate_argnums=0).lower(*run.shapes).compile().memory_analysis()
    held = {"f32": 4, "bf16": 2}[dtype] * 2 * 8 * 256 * 4 * 8 // 4
    assert report.alias_size_in_bytes == held
    assert report.temp_size_in_bytes < held / 4


def test_several_turns_write_one_behind_the_other():
    program = plan("x:2 y:2", place={"cache": "layers B:x S:y K D"}, fn=several)
    cache, new, at = filled(program)
    right = cache
    for turn in range(3):
        right = written(right, new, at + 2 * turn)
    np.testing.assert_array_equal(quick(mtf.simulate(program))(cache, new, at)["cache"], right)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"rows": "layers B S K D"}, "have 'S' itself; rename it, e.g. mtf.rename(rows, 'S', 'N')"),
        ({"rows": "layers B N K"}, "lack 'D'"),
        ({"rows": "layers B K D"}, "need exactly one dimension of their own instead of 'S', found none"),
        ({"rows": "layers B N P K D"}, "found 'N', 'P'"),
        ({"at": "B"}, "at[B:8] lacks 'N': it says where each row along it goes"),
        ({"at": "B N P"}, "at has 'P', which t and rows do not share"),
        ({"at": "B N S"}, "at has 'S', which t and rows do not share"),
        ({"dim": "T"}, "no dimension 'T'"),
        ({"fn": lambda cache, new, at, dim: mtf.write(cache, new, mtf.cast(at, "f32"), dim)}, "expected integers"),
        ({"fn": lambda cache, new, at, dim: mtf.write(cache, mtf.cast(new, "bf16"), at, dim)}, "different dtypes"),
    ],
)
def test_faults_are_named(more, words):
    with pytest.raises(mtf.LayoutError) as error:
        plan("x:1", **more)
    assert words in str(error.value)


@pytest.mark.parametrize("at", [-1, 3, 4, 8])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_single_row_that_lies_elsewhere_leaves_a_slice_as_it_was(at, dtype):
    """A tensor cut on the spot: XLA once read the row behind the slice's end and put it in the slice's last place."""

    @mtf.function
    def cut_and_written(t: "A:8 B:4", new: "N:1 B:4"):
        return mtf.write(mtf.reshard(t, "A:x B"), new, mtf.index("N:1", new) + at, "A")

    program = mtf.plan(cut_and_written, "x:2", "", dtype=dtype)
    t, new = np.arange(32, dtype=np.float32).reshape(8, 4), np.full((1, 4), -1, np.float32)
    right = t.copy()
    if 0 <= at < 8:
        right[at] = -1
    np.testing.assert_array_equal(np.asarray(mtf.simulate(program)(t, new), np.float32), right)
