"""Tables for people: aligned text in a terminal, HTML in a notebook, plain rows for code.

    >>> table = mtf.plan(two_layers, mesh, layout, sizes="batch:64 io:512 hidden:2048").table()
    >>> table.rows[3]["sent_bytes"], table.rows[3]["why"]
    (32768, 'the result is wanted as batch:rows io')

A `Table` knows nothing of programs: columns say which entry of a row they show and how. Rows keep exact numbers; the
text rounds them. HTML takes its colours from the page, so it reads in light and dark.
Next file to read: `source/program`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from mtfcore.notation import format_axes
from mtfcore.numbers import count, format_bytes, format_flops
from mtfcore.padding import padding_share
from mtfcore.source.names import Names
from mtfcore.steps import Program, Step, held_bytes, listed

Row = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """One column: the entry of a row that it shows, its heading, and how it writes the entry."""

    key: str
    title: str
    show: Callable[[Any], str] = str
    is_number: bool = False  # right-aligned; in HTML the exact number stands in the hover text
    wraps: bool = False  # may break into lines in HTML, so that the numbers beside it stay in sight
    below: bool = False  # a sentence: in text on a line of its own under the row


@dataclass(frozen=True)
class Table:
    """Rows under a heading. `marked` names an entry: rows where it is true stand out."""

    columns: tuple[Column, ...]
    rows: list[Row]
    title: str = ""
    total: Row | None = None
    notes: tuple[str, ...] = field(default=())
    marked: str = ""

    def cells(self, row: Mapping[str, Any]) -> list[str]:
        """What a row shows, column by column; nothing where it has no entry."""
        shown = [(row.get(column.key), column) for column in self.columns]
        return ["" if entry is None or entry == "" else column.show(entry) for entry, column in shown]

    def __str__(self) -> str:
        return "\n".join([*([self.title] if self.title else []), *self._lines(), *self.notes])

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        """Headings, rows and the total, aligned; sentences on their own lines under their rows."""
        beside = [place for place, column in enumerate(self.columns) if not column.below]
        body = [self.cells(row) for row in self.rows]
        ends = [self.cells(self.total)] if self.total else []
        grid = [[column.title for column in self.columns], *body, *ends]
        widths = [max(len(line[place]) for line in grid) for place in range(len(self.columns))]

        def aligned(cells: Sequence[str], mark: str) -> str:
            words = [_pad(cells[p], widths[p], self.columns[p].is_number) for p in beside]
            return f"{mark} {'  '.join(words)}".rstrip()

        def sentences(cells: Sequence[str]) -> Iterator[str]:
            shown = zip(self.columns, cells, strict=True)
            yield from (f"{' ' * (widths[0] + 6)}{cell}" for column, cell in shown if column.below and cell)

        rule = "  " + "-" * (sum(widths[place] for place in beside) + 2 * (len(beside) - 1))
        yield aligned(grid[0], " ")
        yield rule
        for row, cells in zip(self.rows, body, strict=True):
            yield aligned(cells, "▸" if self._stands_out(row) else " ")
            yield from sentences(cells)
        for cells in ends:
            yield rule
            yield aligned(cells, " ")
            yield from sentences(cells)

    def _stands_out(self, row: Mapping[str, Any]) -> bool:
        return bool(self.marked and row.get(self.marked))

    def _repr_html_(self) -> str:
        beside = [column for column in self.columns if not column.below]
        heads = "".join(f'<th scope="col" style="{_align(c)}">{escape(c.title)}</th>' for c in beside)
        body = "".join(self._html_row(row) for row in self.rows)
        foot = f"<tfoot>{self._html_row(self.total, 'border-top:1px solid currentColor')}</tfoot>" if self.total else ""
        caption = f'<caption style="text-align:left;color:inherit">{escape(self.title)}</caption>' if self.title else ""
        notes = "".join(f"<div>{escape(note)}</div>" for note in self.notes)
        inside = f"{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody>{foot}"
        table = f'<table class="mw-table" style="border-collapse:collapse">{inside}</table>'
        return f'<div class="mw-scroll" style="overflow-x:auto">{table}{notes}</div>'

    def _html_row(self, row: Mapping[str, Any], style: str = "") -> str:
        if self._stands_out(row):
            style = "font-weight:600;border-left:3px solid currentColor"
        shown = list(zip(self.columns, self.cells(row), strict=True))
        cells = "".join(
            f'<td style="{_align(column)}"{_hover(column, row.get(column.key))}>{escape(text)}</td>'
            for column, text in shown
            if not column.below
        )
        sentences = [text for column, text in shown if column.below and text]
        span = sum(not column.below for column in self.columns) - 1
        wide = f'<td></td><td style="text-align:left;padding:0 8px 4px" colspan="{span}">'
        below = "".join(f'<tr style="{style}">{wide}<i>{escape(text)}</i></td></tr>' for text in sentences)
        return f'<tr style="{style}">{cells}</tr>{below}'


def _pad(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)


def _align(column: Column) -> str:
    side = "right" if column.is_number else "left"
    return f"text-align:{side};padding:2px 8px" + ("" if column.wraps else ";white-space:nowrap")


def _hover(column: Column, entry: Any) -> str:
    exact = column.is_number and isinstance(entry, (int, float)) and not isinstance(entry, bool)
    return f' title="{entry:,}"' if exact else ""  # fractions of a byte have no exact decimal form


# ---- the table of a program -------------------------------------------------------------------------------------

PROGRAM_COLUMNS = (
    Column("step", "step"),
    Column("value", "makes"),
    Column("what", "what"),
    Column("shardings", "where it lies, before → after", wraps=True),
    Column("shapes", "shape on one device", wraps=True),
    Column("held_bytes", "holds", format_bytes, is_number=True),
    Column("sent_bytes", "sends", format_bytes, is_number=True),
    Column("times", "times", "× {:,}".format, is_number=True),
    Column("flops", "FLOPs", format_flops, is_number=True),
    Column("why", "why", below=True),
)


def program_table(program: Program) -> Table:
    """The steps of a program, numbered, with shapes, bytes and FLOPs of one device; collectives stand out."""
    sent, collectives = program.link_bytes(), program.collectives()
    by_axis = ", ".join(f"{axis} {format_bytes(part)}" for axis, part in sent.by_axis.items() if part)
    total = {
        "step": "all", "what": count(len(collectives), "collective"), "sent_bytes": sent.total,
        "flops": program.flops(), "why": f"sent along {by_axis}" if by_axis else "nothing is sent",
    }  # fmt: skip
    title = f"{program.name} on mesh {program.mesh}: modelled, one device"
    notes = ["holds: bytes of the result; sends: bytes that one device sends each time it runs."]
    share = padding_share(program)
    notes += [f"{share}."] if share.real else []
    return Table(PROGRAM_COLUMNS, list(_rows(program, Names(program))), title, total, tuple(notes), "is_collective")


def _rows(program: Program, names: Names, prefix: str = "", times: int = 1) -> Iterator[Row]:
    for number, step in enumerate(program.steps):
        label = f"{prefix}{number}"
        yield step_row(step, program, names, label, times * step.times)
        if step.body is not None:
            yield from _rows(step.body, names.inside(step), f"{label}.", times * step.times)


def step_row(step: Step, program: Program, names: Names, label: str, times: int = 1) -> Row:
    """All that a table says of one step; numbers are exact and for one device, each time it runs."""
    mesh = program.mesh
    before, after = [s.local_shape(mesh) for s in step.before], step.after.local_shape(mesh)
    return {
        "step": label,
        "value": names[step.output],
        "inputs": [names[value] for value in step.inputs],
        "what": step.label(),
        "shardings": step.arrow(),
        "shapes": f"{listed([*map(_shape, before)])} → {_shape(after)}",
        "shape_before": before,
        "shape_after": after,
        "axes": format_axes(step.axes) if step.axes else "",
        "group": step.group,
        "held_bytes": held_bytes(step.after, mesh, step.dtype),
        "held_before_bytes": sum(
            held_bytes(s, mesh, program.dtypes[value]) for s, value in zip(step.before, step.inputs, strict=True)
        ),
        "sent_bytes": step.link_bytes if step.is_collective else None,
        "times": times if times > 1 else None,
        "flops": step.flops or None,
        "why": step.why,
        "is_collective": step.is_collective,
    }


def _shape(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"
