"""A layout: one global partial map from dimension to mesh axis (Mesh-TensorFlow, section 4).

    >>> layout = mtf.Layout("batch:rows hidden:cols")
    >>> layout.sharding("batch:64 hidden:2048", mtf.Mesh("rows:4 cols:2"))
    Sharding('batch:64 hidden:2048', 'batch:rows hidden:cols')

Layouts are data: no operation looks at which layout it is under. Next file to read: `steps`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mtfcore.dims import Dim, DimsLike, parse_dims
from mtfcore.errors import LayoutError, LayoutWarning, in_order, nearest, refuse, refuse_flags
from mtfcore.mesh import Mesh, as_mesh
from mtfcore.notation import NAME_RULE, PARTIAL, format_axes, is_name, looks_like_run, parse, parse_axes
from mtfcore.placing import Axes, axis_twice, uneven
from mtfcore.sharding import Sharding


@dataclass(frozen=True, init=False, repr=False)
class Layout:
    """Rules dimension → axes. `Layout("batch:rows")`, `Layout({"batch": "rows"})` and pairs are the same."""

    rules: tuple[tuple[str, Axes], ...]

    def __init__(
        self, rules: str | Layout | Mapping[str, str | Axes] | Iterable[tuple[str, str | Axes]] = (), /
    ) -> None:
        object.__setattr__(self, "rules", _rules(rules))
        refuse(_faults(self.rules), f"layout '{self}'")

    def axes(self, name: str) -> Axes:
        """The axes of a dimension; none if no rule names it.

        `name`: a dimension; the axes are ordered, outermost first.

            >>> layout.axes("batch")
            ('rows',)
        """
        return dict(self.rules).get(name, ())

    def __str__(self) -> str:
        words = [(name, tuple(map(str, axes))) for name, axes in self.rules]
        return " ".join(f"{name}:{format_axes(axes)}" if axes else str(name) for name, axes in words)

    def __repr__(self) -> str:
        return f"Layout({str(self)!r})"

    def __treescope_repr__(self, path: str | None, subtree_renderer: Any) -> Any:
        from mtfcore.rendering import render_layout

        return render_layout(self, path, subtree_renderer)

    def mesh_tensorflow(self) -> str:
        """The string that Mesh-TensorFlow reads, `batch:rows;hidden:cols`; it has one axis a dimension.

        Raises `LayoutError` for a dimension on several axes.

        Source: arXiv 1811.02084, section 3.

            >>> layout.mesh_tensorflow()
            'batch:rows;hidden:cols'
        """
        several = [name for name, axes in self.rules if len(axes) > 1]
        faults = [f"{name} lies on several axes, which Mesh-TensorFlow cannot say" for name in several]
        refuse(faults, f"layout '{self}'")
        return ";".join(f"{name}:{axis}" for name, (axis,) in self.rules)

    def sharding(self, dims: DimsLike, mesh: Mesh | str, strict: bool = False) -> Sharding:
        """Where a tensor of these dimensions lies; `LayoutError` with all faults if it cannot.

        A rule whose axis the mesh lacks warns (`LayoutWarning`), or is refused if `strict`.

        `dims`: with sizes, "batch:64 io:512"; `mesh`: "rows:4 cols:2".

            >>> layout.sharding("batch:64 io:512", mesh)
            Sharding('batch:64 io:512', 'batch:rows io')
        """
        dims, mesh = parse_dims(dims), as_mesh(mesh)
        refuse_flags("sharding", strict=strict)
        self.complain(self.missing_axes(mesh, [dim.name for dim in dims]), strict)
        return self.place(dims, mesh)

    def place(self, dims: tuple[Dim, ...], mesh: Mesh) -> Sharding:
        """The same without the warning, for callers that have warned once already.

        `dims` and `mesh` as in `sharding`, read already.

        Raises `LayoutError` if they cannot lie so.
        """
        on = tuple(tuple(axis for axis in self.axes(dim.name) if axis in mesh) for dim in dims)
        faults = axis_twice(tuple(dim.name for dim in dims), on)
        faults += [fault for dim, axes in zip(dims, on, strict=True) for fault in uneven(dim, axes, mesh)]
        if faults:
            refuse(faults, f"tensor '{' '.join(map(str, dims))}' under layout '{self}' on mesh '{mesh}'")
        return Sharding.of(dims, on)

    def missing_axes(self, mesh: Mesh, names: Iterable[str] | None = None) -> list[str]:
        """One sentence for each rule whose axis the mesh lacks.

        `names`: the dimensions that count, all if not given; `mesh`: the mesh.

            >>> layout.missing_axes(mtf.Mesh("rows:4"))
            ["hidden -> cols ignored, mesh has no axis 'cols'; hidden is copied on 4 devices (legal here: 'rows')"]
        """
        names = None if names is None else set(names)
        return [
            f"{name} -> {axis} ignored, mesh has no axis {axis!r}; {name} is copied on {_copies(axes, mesh)} devices "
            f"({nearest(axis, mesh.names)})"
            for name, axes in self.rules
            for axis in axes
            if axis not in mesh and (names is None or name in names)
        ]

    def unknown_dims(self, names: Iterable[str]) -> list[str]:
        """One sentence for each rule whose dimension no tensor has.

        `names`: the dimensions that there are.

            >>> layout.unknown_dims(["batch"])
            ["rule hidden -> cols ignored, no tensor has a dimension 'hidden' (legal here: 'batch')"]
        """
        names = list(dict.fromkeys(names))
        return [
            f"rule {name} -> {format_axes(axes)} ignored, no tensor has a dimension {name!r} ({nearest(name, names)})"
            for name, axes in self.rules
            if name not in names
        ]

    def complain(self, sentences: list[str], strict: bool) -> None:
        """Warn about rules without effect, or refuse them all at once if `strict`.

        `sentences`: what `missing_axes` and `unknown_dims` gave.

        Raises `LayoutError` if `strict` and there are any.
        """
        if strict:
            refuse(sentences, f"layout '{self}' (strict)")
        for sentence in sentences:
            warnings.warn(sentence, LayoutWarning, stacklevel=3)


def _copies(axes: Axes, mesh: Mesh) -> int:
    return mesh.size // mesh.group_size(axis for axis in axes if axis in mesh)


def _rules(rules: object) -> tuple[tuple[str, Axes], ...]:
    if isinstance(rules, Layout):
        return rules.rules
    if isinstance(rules, str):
        items = parse(rules)
        return tuple((i.name, (str(i.size),) if i.axes is None and i.size else i.axes or ()) for i in items)
    pairs = rules.items() if isinstance(rules, Mapping) else rules if in_order(rules) else (rules,)
    return tuple(map(_rule, pairs))


def _rule(pair: object) -> tuple[str, Axes]:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise LayoutError(f"expected rules such as 'batch:rows hidden:cols' or [('batch', 'rows')], got {pair!r:.200}")
    name, axes = pair
    if isinstance(axes, str):
        return name, parse_axes(axes, str(name)) if axes.strip() else ()
    return name, tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)


def _faults(rules: tuple[tuple[str, Axes], ...]) -> list[str]:
    faults = [fault for name, axes in rules for fault in _rule_faults(name, axes)]
    counts = Counter(name for name, _ in rules if is_name(name))
    return faults + [
        f"dimension {name!r} has {count} rules; put all its axes in one, e.g. {name}:(rows cols)"
        for name, count in counts.items()
        if count > 1
    ]


def _rule_faults(name: object, axes: Axes) -> Iterator[str]:
    if not is_name(name):
        yield f"{name!r:.200} is not a name: {NAME_RULE}"
    elif name == PARTIAL:
        yield f"{PARTIAL!r} is a reserved name: a layout places dimensions only"
    axes = () if len(axes) == 1 and axes[0] is None else axes
    if not axes:
        yield f"{name} has no mesh axis; write {name}:rows, say, or leave it out to keep it whole"
    for axis in axes:
        if str(axis).isdecimal():
            yield f"{name}:{axis} gives a size; a layout gives mesh axes, e.g. {name}:rows"
        elif not is_name(axis) or looks_like_run(axis):
            yield f"{name}: {axis!r:.200} cannot name a mesh axis: {NAME_RULE}, and no run such as 'xyz'"
        elif axes.count(axis) > 1:
            yield f"{name} names mesh axis {axis!r} {axes.count(axis)} times; once is enough"
