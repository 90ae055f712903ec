"""What treescope shows, and that all is well without it."""

import html
import re
import subprocess
import sys

import treescope

import mtfcore as mtf
from mtfcore.rendering import COST_COLOURS, cost_kind
from widgets import theme


@mtf.function
def looped(x: "B E", ws: "N E F", vs: "N F E"):
    def block(h, w, v):
        return mtf.einsum(mtf.relu(mtf.einsum(h, w, out="B F")), v, out="B E")

    return mtf.repeat(block, 3, (ws, vs), mtf.reshard(x, "B E:x"))


PROGRAM = mtf.plan(looped, "x:4", "E:x", sizes="B:4 N:3 E:8 F:16", place={"x": "B:x E"})


def shown(value: object) -> str:
    """All text of the interactive form, folded parts too."""
    page = treescope.render_to_html(value, compressed=False)
    return html.unescape(re.sub(r"<[^>]*>", "", page))


def test_a_program_shows_each_step_on_a_line_of_its_own():
    lines = [line.strip() for line in treescope.render_to_text(PROGRAM).splitlines()]
    assert lines[0] == "Program looped on x:4: 2 steps, 2 collectives"
    assert lines[1:4] == ["input x: B:x E f32", "input ws: N E:x F f32", "input vs: N F E:x f32"]
    for number, step in enumerate(PROGRAM.steps):
        assert f"{number}: {step.label()}: {step.arrow()}" in lines
    assert "output out: B E:x f32" in lines


def test_a_step_unfolds_into_reason_cost_and_the_body_of_a_loop():
    exchange, repeat = PROGRAM.steps
    text = shown(exchange)
    assert f"why: {exchange.why}" in text
    assert "sends 24 B a device in groups of 4 (modelled)" in text
    assert "before=" in text and "E: split over x" not in text and "E:8: split over x" in text
    assert "Program block on x:4: 4 steps, 1 collective" in shown(repeat)


def test_steps_have_the_colour_of_what_they_cost():
    page = treescope.render_to_html(PROGRAM, compressed=False)
    assert {cost_kind(step) for step in PROGRAM.walk()} == {"links", "compute", "memory"}
    assert page.count(COST_COLOURS["links"]) == len(PROGRAM.collectives())
    assert page.count(COST_COLOURS["compute"]) == sum(step.flops > 0 for step in PROGRAM.walk())
    assert COST_COLOURS == {"links": theme.LINKS, "compute": theme.COMPUTE}


def test_meshes_layouts_and_shardings_unfold():
    mesh, layout = mtf.Mesh("rows:4 cols:2"), mtf.Layout("batch:rows hidden:(rows cols)")
    assert all(line in shown(mesh) for line in ("Mesh('rows:4 cols:2')", "rows: 4", "cols: 2", "8 devices"))
    assert all(line in shown(layout) for line in ("batch → rows", "hidden → (rows cols)"))
    text = shown(mtf.Sharding("B:8 E:16", "E:yx partialsum:z"))
    assert "B:8: whole" in text and "E:16: split over yx" in text
    assert "partialsum: an addend on each device along z" in text


def test_folded_each_is_one_line_like_its_repr():
    for value in (mtf.Mesh("x:2"), mtf.Layout("B:x"), mtf.Sharding("B:8 E:16", "B:x")):
        assert treescope.render_to_text(value) == repr(value)


def test_a_tensor_shows_what_it_is_while_a_function_is_planned():
    seen = []

    @mtf.function
    def watched(x: "B E"):
        y = mtf.relu(x)
        seen.extend([shown(x), shown(y)])
        return y

    mtf.plan(watched, "x:2", sizes="B:4 E:8")
    assert "x[B:4, E:8]" in seen[0] and "an input" in seen[0]
    assert "dtype f32" in seen[1] and "made by relu" in seen[1]


def test_without_treescope_the_ordinary_repr_stands():
    code = (
        "import sys; sys.modules['treescope'] = None\n"
        "import mtfcore as mtf\n"
        "print(mtf.Mesh('x:2'), repr(mtf.Sharding('B:8', 'B:x')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "x:2 Sharding('B:8', 'B:x')"


def test_importing_the_library_does_not_load_treescope():
    code = "import sys, mtfcore, mtfcore.rendering; assert 'treescope' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
