"""What no template can be made of, and what a template cannot be asked."""

from __future__ import annotations

import pytest
from costs.test_templates import case

import mtfcore as mtf
from mtfcore.costs.templates.template import Template
from mtfcore.errors import LayoutError


def test_plans_of_another_structure_are_refused():
    plan, sizes = case("two_layers", "batch:rows hidden:cols")
    other, _ = case("two_layers", "batch:rows")
    programs = plan(sizes[0], {"rows": 2, "cols": 2}), other(sizes[1], {"rows": 4, "cols": 2})
    with pytest.raises(LayoutError, match=r"plans 1 and 2 differ in more than sizes: step \d+ is 'einsum.*hidden:cols"):
        Template.of(*programs)


def test_sizes_that_differ_in_step_are_refused():
    plan, sizes = case("two_layers", "batch:rows hidden:cols")
    lone = plan(sizes[0], {"rows": 2, "cols": 2})
    assert Template.of(lone).rows  # every dimension goes by its name, so one plan says it all
    grouped, sizes = case("tiny-grouped", "mtf-2d")
    one, two = grouped(sizes[0], {"rows": 2, "cols": 2}), grouped({**sizes[1], "G": 7}, {"rows": 4, "cols": 8})
    with pytest.raises(LayoutError, match="G:3 is no named size, and one plan cannot say what it is made of"):
        Template.of(one)
    with pytest.raises(LayoutError, match=r"G has sizes 3, 7, which may be layers or H/K; let .* different"):
        Template.of(one, two)


def test_convolutions_are_refused():
    @mtf.function
    def convolved(x: "batch length", w: " tap"):
        return mtf.conv(x, w, spatial={"length": "tap"}, out="batch length")

    with pytest.raises(LayoutError, match="conv: its work is no product of sizes; plan and price each size"):
        Template.of(mtf.plan(convolved, "all:1", sizes="batch:4 length:8 tap:3"))


def test_what_is_unknown_missing_or_fixed_is_refused_at_once():
    plan, sizes = case("two_layers", "batch:rows hidden:cols")
    template = Template.of(*[plan({**each, "io": 64}, {"rows": 2, "cols": 2, "idle": 1}) for each in sizes])
    with pytest.raises(LayoutError) as raised:
        template.evaluate({"bach": 8, "hidden": 64, "io": 32}, {"rows": 2, "idle": [1, 2]})
    text = str(raised.value)
    assert "no size 'bach'; did you mean 'batch'" in text and "no value for size batch" in text
    assert "size io is 64 in every plan of this template" in text and "axis idle is 1 in every plan" in text
    assert "no value for axis cols" in text
    with pytest.raises(LayoutError) as raised:
        template.evaluate({"batch": [8, 0], "hidden": 2.5, "io": 64}, {"rows": 2, "cols": -1})
    text = str(raised.value)
    assert "size batch is [8, 0]; expected whole numbers of at least 1" in text and "size hidden is 2.5" in text
    assert "axis cols is -1" in text
    with pytest.raises(LayoutError, match="a template is made of programs"):
        Template.of()
    with pytest.raises(LayoutError, match=r"meshes of other axes .*: rows:2 cols:2, rows:2$"):
        Template.of(plan(sizes[0], {"rows": 2, "cols": 2}), case("two_layers", "batch:rows")[0](sizes[1], {"rows": 2}))
