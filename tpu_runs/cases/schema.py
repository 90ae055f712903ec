"""A case: what can be run, with parameters that are checked before anything is, all faults at once.

    >>> from tpu_runs.cases import CASES
    >>> check(CASES["product"], {"m": 4096, "kk": 512, "dtype": "bf61"})
    LayoutError: product: 2 faults
      1. no parameter 'kk'; did you mean 'k'? ...
      2. dtype is 'bf61'; did you mean 'bf16'? legal here: 'bf16', 'f32'

A case is data and a few pure functions: nothing here starts JAX. `check` gives the parameters in full, those left out
at their defaults, so that equal requests are equal. A request that comes over a network is checked the same way, and
`bytes` says what one device would hold before anything is made. Next file to read: `collective`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mtfcore.costs.pricing.liveness import peak_memory
from mtfcore.errors import LayoutError, nearest, refuse, sure
from mtfcore.mesh import Mesh
from mtfcore.notation import as_whole
from mtfcore.steps import Program

MOST_DEVICES = 4096
SWEEPS = {  # name → for what its parameter lists are
    "simulated": "tiny: for practice on this computer, whose times are nobody's",
    "chip": "one GPU or TPU; all of them together take less than 8 minutes",
    "slice": "all devices that are attached: 'all' in a mesh stands for their number",
}
Params = dict[str, Any]


@dataclass(frozen=True)
class Param:
    """One parameter. `kind`: "whole" (low to high), "choice" (of `choices`), "mesh" (up to `high` devices), "axes"."""

    kind: str
    default: Any
    words: str
    low: int = 1
    high: int = 1
    choices: tuple[str, ...] = ()

    def read(self, value: object) -> Any:
        """The value in its one form; `LayoutError` says what is legal. Words from a command line are read too."""
        reading = {"whole": self._whole, "choice": self._choice, "mesh": self._mesh, "axes": self._axes}
        return reading[self.kind](value)

    @property
    def legal(self) -> str:
        """What it may be, in words."""
        return {
            "whole": f"{self.low} to {self.high}", "choice": ", ".join(word or "''" for word in self.choices),
            "mesh": f"a mesh of up to {self.high} devices", "axes": "axes of the mesh, or nothing for all",
        }[self.kind]  # fmt: skip

    def _whole(self, value: object) -> int:
        text = value.strip() if isinstance(value, str) else ""
        number = int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else as_whole(value)
        if number is None:
            raise LayoutError(f"{value!r:.60}; expected a whole number, {self.legal}")
        if not self.low <= number <= self.high:
            raise LayoutError(f"{number}; legal are {self.legal}, nearest {min(max(number, self.low), self.high)}")
        return number

    def _choice(self, value: object) -> str:
        if not isinstance(value, str) or value not in self.choices:
            raise LayoutError(f"{value!r:.60}; {nearest(value, self.choices)}")
        return value

    def _mesh(self, value: object) -> str:
        if not isinstance(value, str) or len(value) > 200:
            raise LayoutError(f"{value!r:.60}; expected a mesh, such as 'x:2 y:2'")
        mesh = Mesh(value)
        if not mesh.axes:
            raise LayoutError(f"{value!r}; expected a mesh, such as 'x:2 y:2' (one device is 'x:1')")
        if mesh.size > self.high:
            raise LayoutError(f"'{mesh}', {mesh.size:,} devices; at most {self.high:,}")
        return str(mesh)

    def _axes(self, value: object) -> str:
        """Which of them are legal depends on the mesh: the case's `faults` says."""
        if not isinstance(value, str) or len(value) > 60:
            raise LayoutError(f"{value!r:.60}; expected axes of the mesh, such as 'x' or 'xy'")
        return value.strip()


def whole(default: int, low: int, high: int, words: str) -> Param:
    """A whole number from low to high."""
    return Param("whole", default, words, low, high)


def choice(default: str, choices: tuple[str, ...], words: str) -> Param:
    """One of a few words."""
    return Param("choice", default, words, choices=choices)


def mesh(default: str, words: str = "named axes with sizes") -> Param:
    """A mesh, as `mtf.Mesh` reads it."""
    return Param("mesh", default, words, high=MOST_DEVICES)


def axes(words: str) -> Param:
    """Some of the mesh's axes, a run or a list of them; empty for all."""
    return Param("axes", "", words)


def _planned_bytes(case: Case, params: Params) -> int:
    """What one device holds at a planned program's fullest moment (modelled)."""
    return peak_memory(sure(case.program)(params)).total


@dataclass(frozen=True)
class Case:
    """What can be run. `program` plans it, or is None where `run` does something else than one program."""

    name: str
    about: str
    params: Mapping[str, Param]
    program: Callable[[Params], Program] | None = None
    faults: Callable[[Params], list[str]] = lambda params: []  # of parameters that are legal one by one
    size: Callable[[Case, Params], int] = _planned_bytes
    run: Callable[..., Generator[Any, None, dict[str, Any]]] | None = None
    shares: bool = True  # whether one device's part alone says something
    sweeps: Mapping[str, tuple[Params, ...]] = field(default_factory=dict)  # one for each of `SWEEPS`

    def bytes(self, params: Params) -> int:
        """Bytes of one device, by the memory model: known before anything is made."""
        return int(self.size(self, params))

    def devices(self, params: Mapping[str, Any]) -> int:
        """How many devices its mesh names."""
        return Mesh(params["mesh"]).size

    def sweep(self, name: str, devices: int = 1) -> list[Params]:
        """A list of parameter sets, for so many devices; not checked yet, since not every list suits every number."""
        mesh = self.params["mesh"].default
        return [{**params, "mesh": params.get("mesh", mesh).replace("all", str(devices))}
                for params in self.sweeps.get(name, ())]  # fmt: skip

    def schema(self) -> dict[str, dict[str, Any]]:
        """Its parameters as plain JSON, for forms and for other computers."""
        return {name: {"kind": p.kind, "default": p.default, "low": p.low, "high": p.high, "choices": list(p.choices),
                       "words": p.words} for name, p in self.params.items()}  # fmt: skip


def check(case: Case, params: Mapping[str, Any]) -> Params:
    """The parameters in full and in their one form; `LayoutError` names every fault at once."""
    if not isinstance(params, Mapping):
        raise LayoutError(f"{case.name}: expected parameters by name, got {type(params).__name__}")
    faults = [f"no parameter {str(name)[:60]!r}; {nearest(str(name)[:60], case.params)}" for name in params
              if name not in case.params]  # fmt: skip
    found: Params = {}
    for name, param in case.params.items():
        try:
            found[name] = param.read(params.get(name, param.default))
        except LayoutError as fault:
            faults.append(f"{name} is {fault}")
    refuse(faults or case.faults(found), case.name)
    return found
