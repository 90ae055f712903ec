"""How treescope shows meshes, shardings, layouts, tensors, steps and programs: a line that unfolds into its parts.

    treescope.show(prog)        # each step a line; collectives and products in the colour of what they cost

Only treescope calls this, through `__treescope_repr__`; without treescope the ordinary `repr` stands. A step is
coloured by what it uses most: links (collectives) or arithmetic (products); the rest, bound by memory, stays plain.
Next file to read: `device_pool`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mtfcore.notation import PARTIAL, format_axes
from mtfcore.numbers import count, format_bytes, format_flops
from mtfcore.steps import Program, Step

if TYPE_CHECKING:
    from mtfcore.layout import Layout
    from mtfcore.mesh import Mesh
    from mtfcore.sharding import Sharding
    from mtfcore.tensor import Tensor

# The colours that the explorers use for the same costs (widgets.theme); a test holds them equal.
COST_COLOURS = {"links": "#F0E442", "compute": "#E69F00"}


def cost_kind(step: Step) -> str:
    """What a step uses most: links, compute or memory."""
    return "links" if step.is_collective else "compute" if step.flops else "memory"


def render_mesh(mesh: Mesh, path: str | None, subtree: Any) -> Any:
    """A mesh, unfolding into its axes."""
    return _foldable(repr(mesh), [*(f"{axis}: {size}" for axis, size in mesh.axes), count(mesh.size, "device")], path)


def render_layout(layout: Layout, path: str | None, subtree: Any) -> Any:
    """A layout, unfolding into its rules."""
    lines = [f"{name} → {format_axes(axes) if axes else 'nothing'}" for name, axes in layout.rules]
    return _foldable(repr(layout), lines, path)


def render_sharding(sharding: Sharding, path: str | None, subtree: Any) -> Any:
    """A sharding, unfolding into what each dimension lies on."""
    return _foldable(repr(sharding), _placements(sharding), path)


def _placements(sharding: Sharding) -> list[str]:
    lines = [
        f"{dim}: split over {format_axes(on)}" if on else f"{dim}: whole"
        for dim, on in zip(sharding.dims, sharding.axes, strict=True)
    ]
    partial = sharding.partial
    return lines + ([f"{PARTIAL}: an addend on each device along {format_axes(partial)}"] if partial else [])


def render_tensor(tensor: Tensor, path: str | None, subtree: Any) -> Any:
    """A tensor of a function that is being planned: no values, so its dimensions, dtype and origin."""
    op = tensor.op
    made = [f"made by {op.params.get('fn', op.kind)}"] if op.kind != "input" else ["an input"]
    return _foldable(repr(tensor), [*map(str, tensor.dims), f"dtype {tensor.dtype}", *made], path)


def render_step(step: Step, path: str | None, subtree: Any) -> Any:
    """A step, unfolding into why it is there, what it costs, where its operands lie, and the body of a loop."""
    lines: list[Any] = [f"why: {step.why}"] if step.why else []
    if step.is_collective:
        lines += [f"sends {format_bytes(step.link_bytes)} a device in groups of {step.group} (modelled)"]
    if step.flops:
        lines += [f"{format_flops(step.flops)} a device (modelled)"]
    children = {"before": step.before, "after": step.after} | ({"body": step.body} if step.body else {})
    lines += _attributes(children, path, subtree)
    return _foldable(f"{step.label()}: {step.arrow()}", lines, path, COST_COLOURS.get(cost_kind(step)))


def render_program(program: Program, path: str | None, subtree: Any) -> Any:
    """A program: its inputs, its steps in order, its outputs and what it sends."""
    from treescope import rendering_parts as parts

    steps = [subtree(step, path=_under(path, f".steps[{n}]")) for n, step in enumerate(program.steps)]
    children = [
        *(f"input {port.name}: {port.sharding.text()} {port.dtype}" for port in program.inputs),
        *(parts.siblings_with_annotations(f"{number}: ", step) for number, step in enumerate(steps)),
        *(f"output {port.name}: {port.sharding.text()} {port.dtype}" for port in program.outputs),
        f"{format_flops(program.flops())}, sends {format_bytes(program.link_bytes())} a device (modelled)",
    ]
    collectives = count(len(program.collectives()), "collective")
    title = f"Program {program.name} on {program.mesh}: {count(len(steps), 'step')}, {collectives}"
    return _foldable(title, children, path, opened=True)


# ---- treescope's parts ------------------------------------------------------------------------------------------


def _attributes(values: Mapping[str, Any], path: str | None, subtree: Any) -> list[Any]:
    """`name=value` lines whose values unfold by themselves."""
    from treescope import rendering_parts as parts

    return [
        parts.siblings_with_annotations(f"{name}=", subtree(value, path=_under(path, f".{name}")))
        for name, value in values.items()
    ]


def _under(path: str | None, more: str) -> str | None:
    return None if path is None else path + more


def _foldable(
    title: str, lines: Iterable[Any], path: str | None, colour: str | None = None, opened: bool = False
) -> Any:
    """A line that unfolds into indented lines; folded, only the line shows."""
    from treescope import rendering_parts as parts

    head = parts.text(title)
    if colour:
        # black on every colour of ours reads well; the page's own text colour might not
        head = parts.custom_style(head, f"background-color: {colour}; color: black; border-radius: 3px; padding: 0 3px")
    children = [parts.text(line) if isinstance(line, str) else line for line in lines]
    state = parts.ExpandState.EXPANDED if opened else parts.ExpandState.WEAKLY_COLLAPSED
    inside = parts.fold_condition(expanded=parts.indented_children(children))
    return parts.build_custom_foldable_tree_node(contents=inside, path=path, label=head, expand_state=state)
