"""Running a program: the explicit way, on simulated devices or on attached ones.

    run = mtf.simulate(prog)
    y = run(x, w, v)                     # numpy arrays in, numpy arrays out
    run.values(3, device=5)              # what device 5 holds after step 3
    run.before(3, {"rows": 1, "cols": 0})

Next file to read: `resident`, then `whole`, the two other ways to run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mtfcore import resident
from mtfcore.arrays import check_arrays
from mtfcore.device_pool import attached_devices, attached_mesh, idle_note, inside, launch, simulated_mesh
from mtfcore.dtypes import long_name
from mtfcore.errors import LayoutError, sure
from mtfcore.mesh import DeviceLike, Mesh
from mtfcore.notation import as_whole
from mtfcore.sharding import Sharding
from mtfcore.steps import INPUT, OUTPUT, Port, Program, Step
from mtfcore.tensor import Graph


class Run:
    """A program on devices: call it on whole arrays; then ask for any device's value at any step."""

    def __init__(self, program: Program, jax_mesh: Any, note: str = "") -> None:
        self.program, self.jax_mesh, self.note = program, jax_mesh, note
        self._arrays: list[Any] | None = None
        self._recorded: dict[tuple[int, ...], np.ndarray] | None = None
        self._donating: dict[tuple[str, ...], Callable] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on whole arrays, in the order of the inputs or by name; returns whole numpy arrays."""
        self._arrays, self._recorded = check_arrays(self.program, args, kwargs), None
        results = launch(self.compiled, *self._arrays, jax_mesh=self.jax_mesh)
        summed = [_summed(port, value) for port, value in zip(self.program.outputs, results, strict=True)]
        return unpack(self.program.graph, summed)

    def put(self, arrays: Mapping[str, Any], owned: bool = False) -> dict[str, Any]:
        """Whole arrays by input name → the same on the devices, each laid as the program says; see `resident`."""
        return resident.put(self, arrays, owned)

    def resident(self, *args: Any, donate: Sequence[str] = (), **kwargs: Any) -> Any:
        """A call whose results stay on the devices, as jax arrays laid as the outputs are.

        `donate` names inputs whose memory the results may take over: those arrays cannot be used again.
        """
        self._arrays = self._recorded = None  # what stays there is the caller's: nothing is kept for `values`
        return resident.call(self, args, kwargs, donate)

    def fetch(self, results: Any) -> Any:
        """What `resident` or `put` gave, in the same form, as numpy arrays of this computer."""
        return resident.fetch(results)

    @cached_property
    def fn(self) -> Callable:
        """The function of whole arrays, not yet compiled: `mtf.count(run.fn, *run.shapes)`."""
        return self._mapped(record=False)

    @cached_property
    def compiled(self) -> Any:
        import jax

        return jax.jit(self.fn)

    def donating(self, names: tuple[str, ...]) -> Callable:
        """The compiled function that may write its results where these inputs are."""
        import jax

        if names and names not in self._donating:
            places = tuple(n for n, port in enumerate(self.program.inputs) if port.name in names)
            self._donating[names] = jax.jit(self.fn, donate_argnums=places)
        return self._donating[names] if names else self.compiled

    @cached_property
    def shapes(self) -> list[Any]:
        """Shapes and dtypes of the inputs, for tracing without arrays."""
        import jax

        return [jax.ShapeDtypeStruct(port.sharding.shape, long_name(port.dtype)) for port in self.program.inputs]

    def lower(self) -> Any:
        """The lowered (StableHLO) form, as `jax.jit(...).lower` gives it."""
        with inside(self.jax_mesh):
            return self.compiled.lower(*self.shapes)

    def _mapped(self, record: bool) -> Callable:
        import jax
        from jax.sharding import PartitionSpec

        from mtfcore.execute import Record, interpret
        from mtfcore.execute import _mask as mask

        program = self.program
        everywhere = PartitionSpec(program.mesh.names or None)

        def local(*arrays: Any) -> Any:
            own = [_as_partial(mask, port, a, program.mesh) for port, a in zip(program.inputs, arrays, strict=True)]
            kept: Record | None = {} if record else None
            outputs = interpret(program, own, kept)
            if kept is not None:
                return {path: value[None] for path, value in kept.items()}
            return [_stackable(port, value) for port, value in zip(program.outputs, outputs, strict=True)]

        whole = [_in_spec(port) for port in program.inputs]
        out = everywhere if record else [_out_spec(port) for port in program.outputs]
        return jax.shard_map(local, mesh=self.jax_mesh, in_specs=tuple(whole), out_specs=out, check_vma=False)

    def values(self, step: int | Step | tuple[int, ...], device: DeviceLike = 0, turn: int = -1) -> np.ndarray:
        """What a device holds after a step of the last call; inside a repeat, after its `turn`-th turn."""
        return self._value(self.path(step), device, turn)

    def before(self, step: int | Step | tuple[int, ...], device: DeviceLike = 0, turn: int = -1) -> list[np.ndarray]:
        """What a device holds of each operand before a step of the last call; `turn` as in `values`."""
        *outer, number = self.path(step)
        program = self.program
        for place in outer:
            program = sure(program.steps[place].body)
        made: dict[int, tuple[int, ...]] = {s.output: (n,) for n, s in enumerate(program.steps)}
        made |= {value: (OUTPUT, n, k) for n, s in enumerate(program.steps) for k, value in enumerate(s.more, 1)}
        made |= {port.value: (INPUT, n) for n, port in enumerate(program.inputs)}
        return [self._value((*outer, *made[value]), device, turn) for value in program.steps[number].inputs]

    def _value(self, path: tuple[int, ...], device: DeviceLike, turn: int) -> np.ndarray:
        value = self._record[path][self.program.mesh.device(device)]
        loops = len(path) - (2 if path[-2:-1] == (INPUT,) else 3 if path[-3:-2] == (OUTPUT,) else 1)
        number, turns = as_whole(turn), value.shape[:loops]
        if loops and (number is None or not all(-count <= number < count for count in turns)):
            raise LayoutError(f"the loop has turns 0 to {min(turns) - 1} (or -1, the last), not {turn!r:.200}")
        return value[(number,) * loops]

    def path(self, step: int | Step | tuple[int, ...]) -> tuple[int, ...]:
        """The place of a step in the program: its number, and within a repeat the number there."""
        known = dict(_paths(self.program))
        if isinstance(step, Step):
            same = [path for path, found in known.items() if found is step or _is_copy(found, step)]
            if not same:
                raise LayoutError(f"{step!r} is not a step of {self.program!r}; use those of prog.steps")
            return same[0]
        given, count = step if isinstance(step, tuple) else (step,), len(self.program.steps)
        path = tuple(number for number in map(as_whole, given) if number is not None)
        if not path or len(path) < len(given):
            legal = f"its number (0 to {count - 1}) or as one of prog.steps"
            raise LayoutError(f"a step is given by {legal}, not {step!r:.200}")
        path = (path[0] % count if -count <= path[0] < count else path[0], *path[1:])
        if path not in known:
            raise LayoutError(f"{self.program!r} has steps 0 to {count - 1}, not {step}")
        return path

    @cached_property
    def _recorder(self) -> Callable:
        import jax

        return jax.jit(self._mapped(record=True))

    @property
    def _record(self) -> dict[tuple[int, ...], np.ndarray]:
        if self._arrays is None:
            raise LayoutError("no values yet: call the run on arrays first, e.g. run(x, w, v)")
        if self._recorded is None:
            kept = launch(self._recorder, *self._arrays, jax_mesh=self.jax_mesh)
            self._recorded = {path: np.asarray(value) for path, value in kept.items()}
        return self._recorded

    def __repr__(self) -> str:
        kind = self.jax_mesh.devices.flat[0].device_kind
        where = "simulated CPU" if kind == "cpu" else kind
        note = f"; {self.note}" if self.note else ""
        mesh = self.program.mesh
        return f"<Run of {self.program.name} on {mesh.size} {where} devices ({mesh}){note}>"


def expect_program(program: object) -> Program:
    """Refuse what is not a plan, such as the function itself."""
    if not isinstance(program, Program):
        what = f"{type(program).__name__} {program!r:.200}"
        raise LayoutError(f"expected a program made by mtf.plan(function, mesh, layout, sizes=...), got {what}")
    return program


def simulate(program: Program) -> Run:
    """The program on simulated CPU devices: real values and real collectives, no hardware speed."""
    import jax

    found = simulated_mesh(expect_program(program).mesh)
    return Run(program, found, idle_note(program.mesh, len(jax.devices("cpu")), "simulated"))


def attach(program: Program) -> Run:
    """The same on the TPU or GPU that is attached; `DeviceError` where there is none. Never falls back to the CPU.

    `program`: what `mtf.plan` gave. The result is called with numpy arrays of its inputs, whole, in order or by name.

    Raises `DeviceError` where no TPU or GPU, or too few, are attached.
    """
    found = attached_mesh(expect_program(program).mesh)
    return Run(program, found, idle_note(program.mesh, len(attached_devices()), "attached"))


def _paths(program: Program, before: tuple[int, ...] = ()) -> list[tuple[tuple[int, ...], Step]]:
    found = []
    for number, step in enumerate(program.steps):
        found.append(((*before, number), step))
        found += _paths(step.body, (*before, number)) if step.body else []
    return found


def _is_copy(found: Step, step: Step) -> bool:
    """Whether a step is the one that `prog.walk()` gave out with its repeats multiplied."""
    return found.params is step.params  # copies share it, and no two steps do


def _in_spec(port: Port) -> Any:
    """An input is given whole along the axes over which it is a partial sum."""
    return Sharding.of(port.sharding.dims, port.sharding.axes).partition_spec()


def _out_spec(port: Port) -> Any:
    """A partial output comes out stacked: one leading entry for each axis still to be summed."""
    from jax.sharding import PartitionSpec

    return PartitionSpec(*port.sharding.partial, *_in_spec(port))


def _stackable(port: Port, value: Any) -> Any:
    """A device's part of an output, with a leading 1 for each axis still to be summed."""
    return value.reshape((1,) * len(port.sharding.partial) + value.shape)


def _as_partial(mask: Callable, port: Port, array: Any, mesh: Mesh) -> Any:
    """An input placed as a partial sum is given whole: device 0 along those axes keeps it, the others hold zeros."""
    for axis in port.sharding.partial:
        array = mask(Step("mask", (), 0, (), port.sharding, port.dtype, axes=(axis,)), array, mesh)
    return array


def _summed(port: Port, value: Any) -> np.ndarray:
    array, axes = np.asarray(value), tuple(range(len(port.sharding.partial)))
    return array.sum(axis=axes, dtype=array.dtype) if axes else array


def unpack(graph: Graph, results: list[Any]) -> Any:
    """One result, a tuple, or a dictionary, as the function returned them."""
    if graph.returns == "one":
        return results[0]
    return tuple(results) if graph.returns == "tuple" else dict(zip(graph.outputs, results, strict=True))
