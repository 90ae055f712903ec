"""`slices` without a page: set a trait, read the picture's facts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mtfcore as mtf
from widgets import slices
from widgets.explorers.tensors import read_tensors
from widgets.frame import LayoutError


def tensors(explorer) -> dict[str, dict]:
    return {tensor["name"]: tensor for tensor in explorer.value["tensors"]}


def items(explorer) -> dict[str, dict]:
    return {item["name"]: item for item in explorer.top.row["items"]}


def test_the_picture_follows_the_state():
    explorer = slices()
    assert {name: tensor["local"] for name, tensor in tensors(explorer).items()} == {
        "x": [16, 512], "w": [512, 1024], "h": [16, 1024],
    }  # fmt: skip
    explorer.state = {**explorer.state, "mesh": "rows:8 cols:8"}
    assert tensors(explorer)["h"]["local"] == [8, 256]
    drawing = explorer.picture.drawing
    assert [panel["facts"]["name"] for panel in drawing["panels"]] == ["mesh", "x", "w", "h"]
    assert 'data-local="8,256"' in drawing["panels"][3]["svg"]


def test_the_sentence_says_why():
    assert slices().sentence == (
        "The layout splits batch over rows, hidden over cols. x: 1/4 on each device, 16 KiB [modelled]; it has no "
        "hidden, so 2 devices hold copies of each slice. w: 1/2 on each device, 1 MiB [modelled]; it has no batch, so "
        "4 devices hold copies of each slice. h: 1/8 on each device, 32 KiB [modelled]."
    )


@pytest.mark.parametrize(
    ("edit", "key", "value"),
    [
        ({"axis.rows": 8}, "mesh", "rows:8 cols:2"),
        ({"axis.cols": 3}, "mesh", "rows:4 cols:3"),
        ({"n_axes": "3"}, "mesh", "rows:4 cols:2 planes:2"),
        ({"n_axes": "1"}, "mesh", "rows:4"),
        ({"size.batch": 100}, "dims", "batch:100 io:512 hidden:2048"),
        ({"on.batch": ""}, "layout", "hidden:cols"),
        ({"on.io": "cols"}, "layout", "batch:rows hidden:cols io:cols"),
        ({"on.hidden": "rows"}, "layout", "batch:rows hidden:rows"),
        ({"dtype": "f32"}, "dtype", "f32"),
        ({"tensors": "x: batch io"}, "tensors", "x: batch io"),
        ({"mesh": "rows:2 cols:2"}, "mesh", "rows:2 cols:2"),
    ],
)
def test_controls_write_the_notation(edit, key, value):
    explorer, events = slices(), []
    explorer.observe(events.append, "state")
    explorer.top.press(edit)
    assert explorer.state[key] == value and len(events) == 1


def test_two_controls_in_one_message_are_one_event():
    explorer, events = slices(), []
    explorer.observe(events.append, "state")
    explorer.top.press({"axis.rows": 2, "axis.cols": 8})
    assert explorer.state["mesh"] == "rows:2 cols:8" and len(events) == 1


def test_a_mesh_of_letters_grows_by_letters():
    explorer = slices(mesh="x:256", dims="B:512", layout="B:x")
    explorer.top.press({"n_axes": "3"})
    assert explorer.state["mesh"] == "x:256 y:2 z:1" and explorer.kind == "ok"


def test_too_many_devices_clamp_to_the_nearest():
    explorer = slices(mesh="rows:64 cols:2")
    assert items(explorer)["axis.cols"]["high"] == 8
    explorer.top.press({"axis.cols": 16})
    assert explorer.state["mesh"] == "rows:64 cols:8"
    assert explorer.sentence.startswith("Cols 16 is not possible here; 8 is the nearest.")


def test_a_rule_goes_with_its_axis_and_says_so_in_one_event():
    explorer, events = slices(), []
    explorer.observe(events.append, "state")
    explorer.top.press({"n_axes": "1"})
    assert explorer.state["layout"] == "batch:rows" and len(events) == 1
    assert explorer.sentence.startswith("Hidden over cols is not possible without cols; hidden is copied now.")


def test_a_size_that_does_not_divide_is_refused_in_the_librarys_words():
    """Names the dimension, its size, the axis and its size, and offers the neighbours."""
    explorer = slices()
    before = explorer.picture.drawing
    explorer.top.press({"size.batch": 6}, released=False)
    with pytest.raises(LayoutError) as refused:
        mtf.Layout("batch:rows hidden:cols").sharding("batch:6 io:512", mtf.Mesh("rows:4 cols:2"))
    assert explorer.sentence.startswith(f"x: {refused.value}")
    for part in ("batch", "6", "rows:4", "4 or 8"):
        assert part in explorer.sentence
    assert items(explorer)["size.batch"]["value"] == 6 and "mw-dim" in explorer.stage._dom_classes
    assert explorer.picture.drawing is before
    assert [offer.label for offer in explorer.offers] == ["make batch 4", "make batch 8", "leave batch whole"]
    explorer.top.press({"size.batch": 8}, released=False)
    assert explorer.kind == "ok" and tensors(explorer)["x"]["local"] == [2, 512]


def test_every_offer_works():
    for state in (
        {"dims": "batch:6 io:512 hidden:2048"},
        {"dims": "batch:1 io:512 hidden:2048"},
        {"layout": "batch:rows io:rows"},
        {"layout": "batch:(rows cols)", "dims": "batch:12 io:512 hidden:2048"},
    ):
        explorer = slices()
        explorer.state = {**explorer.state, **state}
        assert explorer.kind == "refused" and explorer.offers
        for number in range(len(explorer.offers)):
            explorer.state = {**slices().state, **state}
            explorer.bottom.asked = {"number": number, "offer": number, "state of": str(state)}
            assert explorer.kind == "ok", (state, number)


def test_a_batch_smaller_than_its_axis_offers_copies_or_the_sequence():
    explorer = slices("batch:1 sequence:128 io:512", "x:8", "batch:x", tensors="x: batch sequence io")
    assert explorer.kind == "refused" and "size 1" in explorer.sentence and "8 parts" in explorer.sentence
    labels = [offer.label for offer in explorer.offers]
    assert labels[:2] == ["copy batch (8x the work)", "shard sequence over x"]
    explorer.bottom.asked = {"number": 1, "offer": 1}
    assert explorer.state["layout"] == "sequence:x" and tensors(explorer)["x"]["local"] == [1, 16, 512]


def test_one_axis_twice_is_refused_naming_both_dimensions():
    """The rules are fine until one tensor has both dimensions."""
    explorer = slices("heads:16 kv:8 d_ff:32", "model:8", "heads:model d_ff:model", tensors="q: heads kv; f: d_ff kv")
    assert explorer.kind == "ok"
    explorer.top.press({"tensors": "q: heads kv; both: heads d_ff"})
    assert explorer.kind == "refused"
    for part in ("both", "'model'", "heads", "d_ff"):
        assert part in explorer.sentence


def test_a_name_twice_in_one_tensor_is_refused_with_the_rename():
    explorer = slices("hidden:8", "x:2", "hidden:x", tensors="w: hidden hidden")
    assert explorer.kind == "refused" and "hidden_out" in explorer.sentence


def test_rules_without_effect_are_said():
    explorer = slices("batch:128 io:8", "model:8", "batch:batch foo:model", tensors="x: batch io")
    assert explorer.kind == "ok"
    assert "Batch -> batch ignored, mesh has no axis 'batch'; batch is copied on 8 devices" in explorer.sentence
    assert "Rule foo -> model ignored, no tensor has a dimension 'foo'" in explorer.sentence


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"dims": "batch:64 io"}, "the size of io is missing; write e.g. io:64"),
        ({"dims": "batch:64 io:("}, "^"),
        ({"dims": "9:3"}, "'9' is not a name"),
        ({"mesh": "rows:64 cols:64"}, "4,096 devices"),
        ({"mesh": "rows"}, "axis 'rows' has no size"),
        ({"mesh": "a:1 b:1 c:1 d:1 e:1"}, "on 5 axes"),
        ({"layout": "batch:4"}, "batch:4 gives a size"),
        ({"dtype": "bf61"}, "unknown dtype 'bf61'; did you mean 'bf16'"),
        ({"tensors": ""}, "no tensor is given"),
        ({"tensors": "batch io"}, "'batch io' is not a tensor"),
        ({"tensors": "x: batch bach"}, "no dimension 'bach'; did you mean 'batch'"),
        ({"tensors": "x: batch; x: io"}, "tensor 'x' stands twice"),
        ({"tensors": "; ".join(f"t{n}: batch" for n in range(9))}, "9 tensors are listed"),
    ],
)
def test_what_cannot_be_read_is_refused_and_mended(state, says):
    explorer = slices()
    explorer.state = {**explorer.state, **state}
    assert explorer.kind == "refused" and says in explorer.sentence
    explorer.state = {}
    assert explorer.kind == "ok"


def test_a_bad_call_shows_its_message_and_does_not_raise():
    assert slices(dims="batch:0").kind == "refused"


def test_all_faults_of_a_list_of_tensors_at_once():
    with pytest.raises(LayoutError, match=r"3 faults") as refused:
        read_tensors("x: bach; y; z: batch:3", [mtf.Dim("batch", 64)])
    assert "bach" in str(refused.value) and "'y'" in str(refused.value) and "sizes 64 and 3" in str(refused.value)


MESHES = [(1,), (8,), (512,), (4, 2), (1, 8), (32, 16), (3, 5), (2, 3, 4), (8, 8, 8), (2, 2, 2, 2)]


@pytest.mark.parametrize("sizes", MESHES)
def test_meshes_of_every_rank_draw(sizes):
    mesh = " ".join(f"{axis}:{size}" for axis, size in zip("xyzw", sizes))
    scale = int(np.prod(sizes))
    for axes in itertools.permutations("xyzw"[: len(sizes)]):
        layout = f"B:{axes[0]} F:{''.join(axes[1:])}" if len(axes) > 1 else "B:x"
        explorer = slices(f"B:{scale} L:3 F:{2 * scale}", mesh, layout, tensors="a: B L F; b: F; c: B F; d: L")
        assert explorer.kind == "ok", explorer.sentence


def test_a_clicked_device_shows_values_of_a_run():
    whole = {"x": np.arange(64 * 512.0).reshape(64, 512), "h": np.zeros((64, 2048))}
    explorer = slices(tensors="x: batch io; h: batch hidden")
    mesh, layout = mtf.Mesh("rows:4 cols:2"), mtf.Layout("batch:rows hidden:cols")

    def values(name: str, device: int) -> np.ndarray:
        dims = {"x": "batch:64 io:512", "h": "batch:64 hidden:2048"}[name]
        return whole[name][layout.sharding(dims, mesh).slices(mesh, device)]

    explorer.show_values(values)
    assert explorer.picture.values == {}
    explorer.picture.device = 3
    shown = {tensor["name"]: tensor for tensor in explorer.picture.values["tensors"]}
    assert shown["x"]["text"] == "float64[16, 512]"
    assert shown["x"]["rows"][0] == ["8192", "8193", "8194", "8195", "8196", "8197", "…"]
    explorer.picture.device = -1
    assert explorer.picture.values == {}


def test_a_device_that_the_mesh_loses_is_no_longer_chosen():
    explorer = slices()
    explorer.picture.device = 7
    explorer.top.press({"axis.rows": 2})
    assert explorer.picture.device == -1


def test_save_as_svg_is_one_file():
    explorer = slices()
    explorer.bottom.asked = {"number": 1, "save": "svg"}
    assert explorer.bottom.saved["name"].startswith("slices_dims-batch-64-io-512")
    text = explorer.bottom.saved["text"]
    assert text.startswith("<svg") and text.count("mw-panel") > 4
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_the_call_gives_the_same_picture():
    explorer = slices("B:8 E:16", "x:2 y:2", "B:x E:y", dtype="f32", tensors="t: E B")
    space: dict = {}
    exec(explorer.code.replace("slices(", "again = slices(", 1).replace("import again = ", "import "), space)
    assert space["again"].state == explorer.state and space["again"].value == explorer.value


def test_without_a_list_all_dimensions_make_one_tensor():
    assert slices("B:8 E:16", "x:2", "B:x").state["tensors"] == "t: B E"
    assert slices("B:8;E:16", "x:2", "B:x").state["tensors"] == "t: B E"
    assert slices("batch:8 io:4 hidden:4").state["tensors"].startswith("x: batch io; w: io hidden")
