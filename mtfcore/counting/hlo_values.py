"""Read groups, FLOPs and loop bounds off instructions of compiled HLO text.

Groups come in three spellings: `{{0,1},{2,3}}`, `[2,4]<=[8]` (two groups of four, in some order of the devices) and
`mesh['x'=2,'y'=4] {'y'}` (along named axes, or a part of one: `'y':(1)2`). An empty list means all devices.
Next file to read: show.py.
"""

import re
from itertools import product
from math import prod

from mtfcore.counting import facts, flops
from mtfcore.counting.hlo_module import MOST_DEVICES, Computation, Instruction, Module

# Quotes inside a quoted backend_config are escaped.
_KNOWN_RUNS = re.compile(r"""known_trip_count\W+n\W+(\d+)|\btrip_count\W{1,4}(\d+)""")
_MESH = re.compile(r"@?\w*mesh\w*\[(.*?)\]\s*(?:,\s*device_ids=\(.*?\))?\s*\{(.*)\}$")
_IOTA = re.compile(r"\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?$")
_MOST_COPIES = 10_000  # one after the other: more go round in a circle
_SAME_VALUE = ("copy", "bitcast", "convert", "reshape", "opt-barrier")


def group_sizes(i: Instruction, devices: int) -> set[int]:
    """The different sizes of the groups of a collective."""
    text = i.attributes.get("replica_groups", "{}")
    if text in ("{}", "{{}}"):
        return {devices}
    if re.fullmatch(r"\{(\{\d+(,\d+)*\},?)+\}", text.replace(" ", "")):
        return {len(group.split(",")) for group in re.findall(r"\{([\d, ]+)\}", text)}
    iota = re.match(r"\[(\d+),(\d+)\]<=\[", text)
    if iota:
        return {int(iota.group(2))}
    mesh = _MESH.match(text)
    if mesh:
        sizes, axes = mesh.groups()
        return {_along_mesh(sizes, axes, i)}
    raise i.refuse(f"replica_groups={text[:60]}: expected {{{{0,1}},...}}, [groups,size]<=[...] or mesh[...] {{axes}}")


def groups(i: Instruction, devices: int) -> tuple[tuple[int, ...], ...]:
    """The groups of a collective, device by device; empty where they run along a part of a mesh axis."""
    text = i.attributes.get("replica_groups", "{}").replace(" ", "")
    if text in ("{}", "{{}}"):
        return (tuple(range(devices)),)
    if text.startswith("{{"):
        return tuple(tuple(_integers(group)) for group in re.findall(r"\{([\d,]+)\}", text))
    if iota := _IOTA.match(text):
        count, size, dims, order = iota.groups()
        if max(prod(_integers(dims)), int(count) * int(size)) > MOST_DEVICES:
            raise i.refuse(f"replica_groups={text[:60]}: expected at most {MOST_DEVICES:,} devices")
        return _reordered(_integers(dims), _integers(order or ""), int(count), int(size))
    mesh = _MESH.match(text)
    if mesh and prod(map(int, re.findall(r"=(\d{1,18})", mesh[1]))) > MOST_DEVICES:
        raise i.refuse(f"replica_groups={text[:60]}: expected at most {MOST_DEVICES:,} devices")
    return _mesh_groups(*mesh.groups()) if mesh else ()


def _mesh_groups(mesh: str, axes: str) -> tuple[tuple[int, ...], ...]:
    sizes = {name.strip("' \""): int(size) for name, size in re.findall(r"([^,=]+)=(\d+)", mesh)}
    names = [axis.strip("' \"") for axis in axes.split(",") if axis]
    return facts.groups_along(sizes, names) if all(name in sizes for name in names) else ()


def _reordered(dims: list[int], order: list[int], count: int, size: int) -> tuple[tuple[int, ...], ...]:
    """Devices 0, 1, 2, … as an array of these dimensions, its axes reordered, cut into so many groups."""
    strides = [prod(dims[number + 1 :]) for number in range(len(dims))]
    order = order or list(range(len(dims)))
    places = product(*(range(dims[axis]) for axis in order))
    devices = [sum(step * strides[axis] for step, axis in zip(place, order)) for place in places]
    return tuple(tuple(devices[number * size : (number + 1) * size]) for number in range(count))


def _along_mesh(mesh: str, axes: str, i: Instruction) -> int:
    sizes = {name.strip("' \""): int(size) for name, size in re.findall(r"([^,=]+)=(\d+)", mesh)}
    group = 1
    for axis in filter(None, axes.split(",")):
        name, _, part = (p.strip("' \"") for p in axis.partition(":"))
        if name not in sizes:
            raise i.refuse(f"replica_groups name axis {name!r}, expected one of {', '.join(sizes)}")
        group *= int(part.partition(")")[2]) if part else sizes[name]
    return group


def pairs(i: Instruction) -> list[tuple[int, int]]:
    """(source, target) of a collective-permute."""
    text = i.attributes.get("source_target_pairs")
    if text is None or not re.fullmatch(r"\{(\{\d+,\d+\},?)*\}", text.replace(" ", "")):
        raise i.refuse(f"source_target_pairs={text}: expected {{{{0,1}},{{1,0}},...}}")
    return [(int(a), int(b)) for a, b in re.findall(r"\{(\d+),\s*(\d+)\}", text)]


def _dims(i: Instruction, home: Computation, which: int) -> tuple[int, ...]:
    return home.operand(i, which).arrays[0].dims


def _integers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"-?\d+", text)]


def dot_flops(i: Instruction, home: Computation) -> int:
    used = [i.attributes.get(key, "") for key in ("rhs_contracting_dims", "rhs_batch_dims")]
    return flops.matmul_flops(_dims(i, home, 0), _dims(i, home, 1), _integers(",".join(used)))


def convolution_flops(i: Instruction, home: Computation) -> int:
    """dim_labels=b01f_01io->b01f: letters for batch and features, digits for spatial dimensions."""
    labels = re.match(r"(\w+)_(\w+)->(\w+)$", i.attributes.get("dim_labels", ""))
    if labels is None:
        raise i.refuse(f"dim_labels={i.attributes.get('dim_labels')}: expected letters such as b01f_01io->b01f")
    sizes = zip(labels.groups(), (_dims(i, home, 0), _dims(i, home, 1), i.arrays[0].dims))
    lhs, rhs, out = (dict(zip(letters, dims)) for letters, dims in sizes)
    spatial = sorted(letter for letter in out if letter.isdigit())
    window = _window(i.attributes.get("window", "{}"), len(spatial))
    windows = [
        flops.Window(lhs[s], rhs[s], out[s], stride, pad, dilate, kernel_dilate)
        for s, (stride, pad, dilate, kernel_dilate) in zip(spatial, window)
    ]
    return flops.convolution_flops(out["b"], out["f"], rhs["i"], windows)


def _window(text: str, rank: int) -> list[tuple[int, ...]]:
    """window={size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=... rhs_dilate=...} → (stride, pad, dilations) for each."""
    given = dict(part.split("=") for part in text.strip("{}").split())
    columns = []
    for key, default in (("stride", 1), ("pad", 0), ("lhs_dilate", 1), ("rhs_dilate", 1)):
        values = given[key].split("x") if key in given else [str(default)] * rank
        columns.append([int(v.split("_")[0]) for v in values])
    return list(zip(*columns))


def while_runs(i: Instruction, home: Computation, test: Computation, body: Computation, module: Module) -> int | None:
    """How often a loop runs: what the compiler noted, else what start, step and bound say, else None."""
    noted = _KNOWN_RUNS.search(i.rest)
    if noted:
        return int(noted.group(1) or noted.group(2))
    loop = _Loop(i, home, test, body, module)
    compare, inputs = loop.root_compare()
    if compare is None:
        return None
    counter, bound = (_element(v) for v in inputs)
    if counter is None:
        return None
    start, end, step = loop.start(counter), loop.bound(inputs[1], bound), loop.step(counter)
    if start is None or end is None or step is None:
        return None
    return flops.trip_count(start, end, step, compare.attributes.get("direction", "?"))


def _through(value: Instruction, home: Computation) -> Instruction:
    """The instruction that makes a value, seen through copies."""
    for _ in range(_MOST_COPIES):
        if value.opcode not in _SAME_VALUE:
            return value
        value = home.operand(value, 0)
    raise value.refuse("a copy of a copy of itself")


def _constant(value: Instruction | None) -> int | None:
    if value is None or value.opcode != "constant" or not re.fullmatch(r"-?\d+", value.inputs.strip()):
        return None
    return int(value.inputs)


def _element(value: Instruction) -> int | None:
    """Which element of the loop's tuple a value is."""
    return int(value.attributes["index"]) if value.opcode == "get-tuple-element" else None


class _Loop:
    """Questions to a while loop whose compiler noted no count."""

    def __init__(self, i: Instruction, home: Computation, test: Computation, body: Computation, module: Module):
        self.test, self.body, self.module, self.home = test, body, module, home
        self.given = _through(home.operand(i, 0), home)

    def root_compare(self) -> tuple[Instruction | None, list[Instruction]]:
        return self._opened(_through(self.test.result, self.test), self.test, ("compare",))

    def _opened(self, value: Instruction, home: Computation, opcodes: tuple[str, ...]) -> tuple:
        """A two-operand instruction and its operands, also where it is wrapped in a fusion of its own."""
        if value.opcode in opcodes:
            return value, [_through(home.operand(value, n), home) for n in (0, 1)]
        if value.opcode not in ("fusion", "call"):
            return None, []
        inner = self.module.called(value.attributes.get("calls", value.attributes.get("to_apply", "?")), value)
        root = _through(inner.result, inner)
        if root.opcode not in opcodes:
            return None, []
        inputs = [_through(inner.operand(root, n), inner) for n in (0, 1)]
        if any(v.opcode not in ("parameter", "constant") for v in inputs):
            return None, []
        outer = [home.operand(value, int(v.inputs)) if v.opcode == "parameter" else v for v in inputs]
        return root, [v if v.opcode == "constant" else _through(v, home) for v in outer]

    def start(self, element: int) -> int | None:
        if self.given.opcode != "tuple":
            return None
        return _constant(_through(self.home.operand(self.given, element), self.home))

    def returned(self, element: int) -> Instruction | None:
        root = _through(self.body.result, self.body)
        return _through(self.body.operand(root, element), self.body) if root.opcode == "tuple" else None

    def bound(self, value: Instruction, element: int | None) -> int | None:
        return _constant(value) if element is None else self.unchanged(element)

    def unchanged(self, element: int) -> int | None:
        """The constant that an element starts with, if the body hands it on as it is."""
        made = self.returned(element)
        return self.start(element) if made is not None and _element(made) == element else None

    def step(self, element: int) -> int | None:
        made = self.returned(element)
        if made is None:
            return None
        operation, inputs = self._opened(made, self.body, ("add", "subtract"))
        if operation is None or _element(inputs[0]) != element:
            return None
        other = _element(inputs[1])
        step = _constant(inputs[1]) if other is None else self.unchanged(other)
        return -step if step is not None and operation.opcode == "subtract" else step
