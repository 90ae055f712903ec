"""Readable names for the values of a program, as a person would choose them when writing it by hand.

    x, w, v        inputs keep the names of the arguments
    h1, h2, …      what operations make
    out            what is returned, by the names of the outputs
    w = f(w)       a moved tensor keeps its name, unless the old form is read again: then `w_gathered`

Tables and source share them, so that a line of one is found in the other. Next file to read: `source/program`.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping

from mtfcore.errors import sure
from mtfcore.steps import MOVES, Program, Step

MOVED = {
    "slice": "sliced", "mask": "masked", "all_gather": "gathered", "reduce_scatter": "scattered",
    "all_reduce": "summed", "all_to_all": "exchanged", "permute": "permuted", "halo_exchange": "received",
}  # fmt: skip
RESERVED = frozenset(
    {"jax", "jnp", "lax", "mesh", "P", "AxisType", "NamedSharding", "in_specs", "out_specs", "place", "with_nan"}
)


class Names:
    """The names of one program's values, `names[value]`, and of what its loops hold, `names.inside(step)`."""

    def __init__(
        self,
        program: Program,
        given: Mapping[int, str] | None = None,
        taken: set[str] | None = None,
        is_body: bool = False,
    ) -> None:
        self.program = program
        self.taken = set(RESERVED) if taken is None else taken
        self.function = self.free(program.name, "turn" if is_body else "program")
        self.last_read = _last_reads(program)
        self.literals = _literals(program)
        self.known: dict[int, str] = dict(given or {})
        self.outside = frozenset(self.known)
        self.bodies: dict[int, Names] = {}
        for port in program.inputs:
            if port.value not in self.known:
                self.known[port.value] = self.free(port.name)
        self.returned = {} if is_body else {port.value: port.name for port in reversed(program.outputs)}
        for number, step in enumerate(program.steps):
            self.known[step.output] = self._name(number, step)
            self.known |= {value: self._made(value) for value in step.more}

    def __getitem__(self, value: int) -> str:
        return self.known[value]

    def inside(self, step: Step) -> Names:
        """The names inside a loop: what every turn reads from outside keeps its name there."""
        if step.output not in self.bodies:
            body, first = sure(step.body), step.params["n_carry"] + step.params["n_stacked"]
            ports = body.inputs
            captured = zip(ports[first:], step.inputs[first:], strict=True)
            given = {port.value: self[value] for port, value in captured}
            self.bodies[step.output] = Names(body, given, self.taken, is_body=True)
        return self.bodies[step.output]

    def free(self, wanted: str, otherwise: str = "t") -> str:
        """A name nobody has: the wanted one (if Python allows it), or the same with a number behind it."""
        wanted = str(wanted)  # the keys of returned dictionaries may be anything
        good = wanted if wanted.isidentifier() and not keyword.iskeyword(wanted) else otherwise
        number, name = 2, good
        while name in self.taken:
            number, name = number + 1, f"{good}_{number}"
        self.taken.add(name)
        return name

    def _name(self, number: int, step: Step) -> str:
        if step.output in self.literals:
            return self.literals[step.output]
        if step.output in self.returned:
            return self.free(self.returned[step.output])
        if step.kind in MOVES and step.inputs[0] not in self.literals:
            old = self[step.inputs[0]]
            fn = step.params.get("fn", "sum")
            moved = f"{old.split('_')[0]}_{MOVED[step.kind] if fn == 'sum' else fn}"
            from_outside = step.inputs[0] in self.outside  # in a loop's body: a name assigned there would be local
            return old if self.last_read[step.inputs[0]] == number and not from_outside else self.free(moved)
        return self._numbered()

    def _made(self, value: int) -> str:
        """The name of a further result of a loop."""
        return self.free(self.returned[value]) if value in self.returned else self._numbered()

    def _numbered(self) -> str:
        count = 1
        while f"h{count}" in self.taken:
            count += 1
        return self.free(f"h{count}")


def _last_reads(program: Program) -> dict[int, float]:
    """Value → the number of the last step that reads it; outputs are read when all is done."""
    reads: dict[int, float] = {value: n for n, step in enumerate(program.steps) for value in step.inputs}
    return reads | {port.value: float("inf") for port in program.outputs}


def _literals(program: Program) -> dict[int, str]:
    """Constants that only elementwise functions read: they are written where they are used."""
    readers: dict[int, list[Step]] = {}
    for step in program.steps:
        for value in step.inputs:
            readers.setdefault(value, []).append(step)
    returned = {port.value for port in program.outputs}
    return {
        step.output: number_text(step.params["value"], step.dtype)
        for step in program.steps
        if step.kind == "constant"
        and step.output not in returned
        and all(reader.kind == "pointwise" for reader in readers.get(step.output, ()))
    }


def number_text(value: float, dtype: str) -> str:
    """A number as Python writes it, of the kind that its dtype is."""
    if dtype == "bool":
        return str(bool(value))
    if dtype[0] in "iu":
        return str(int(value))
    text = repr(float(value))
    return text if text not in ("inf", "-inf", "nan") else text.replace("inf", "jnp.inf").replace("nan", "jnp.nan")
