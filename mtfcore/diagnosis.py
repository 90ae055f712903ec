"""`mtf.doctor()`: does this installation have what the lessons need, and if not, what mends it?

    report = mtf.doctor()      # in a notebook: a table; in a terminal: the same as text
    report.good                # True if nothing needs a fix
    report.rows[0].fix         # one sentence, empty where all is well

It starts nothing: no JAX, no devices, no download. All it looks at comes through a `Machine`, so that tests can hand in
one with a wrong version or a missing package. Lesson 00 uses it. Next file to read: `machine`.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from mtfcore import memory_limit
from mtfcore.device_pool import started
from mtfcore.errors import DeviceError, expect
from mtfcore.machine import PROJECT, Machine, read_json
from mtfcore.measuring.chip_state import chip_state
from mtfcore.platforms import gpu_files, tpu_files

REINSTALL = "run `make lab` (or `python setup_lab.py lab`) in the project's folder"
LAB_EXTENSIONS = ("@jupyter-widgets/jupyterlab-manager", "anywidget")
GIB = 2**30
ENOUGH_MEMORY = 2 * GIB
_PIN = re.compile(r"==\s*([^\s,]+)$")


@dataclass(frozen=True)
class Row:
    """One thing looked at; `state` is "ok", "warn" (works, but know it) or "fix" (lessons will not work)."""

    what: str
    found: str
    state: str = "ok"
    fix: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All rows; prints as a table."""

    rows: tuple[Row, ...]

    @property
    def good(self) -> bool:
        """Whether nothing needs a fix; warnings are allowed."""
        return all(row.state != "fix" for row in self.rows)

    @property
    def verdict(self) -> str:
        """One sentence on the whole."""
        bad = [row.what for row in self.rows if row.state == "fix"]
        return f"To fix first: {', '.join(bad)}." if bad else "Everything that the lessons need is here."

    def __repr__(self) -> str:
        wide = max(len(row.what) for row in self.rows)
        lines = [f"{row.state:4}  {row.what:{wide}}  {row.found}" + (f"\n      → {row.fix}" if row.fix else "")
                 for row in self.rows]  # fmt: skip
        return "\n".join([*lines, self.verdict])

    def _repr_html_(self) -> str:
        head = "".join(f'<th style="text-align:left">{name}</th>' for name in ("", "what", "found", "what to do"))
        body = "".join(_html_row(row) for row in self.rows)
        return f'<table data-doctor="{self.good}"><tr>{head}</tr>{body}</table><p>{escape(self.verdict)}</p>'


def _html_row(row: Row) -> str:
    mark = {"ok": "✓ ok", "warn": "! note", "fix": "✗ fix"}[row.state]
    texts = [re.sub("`(.+?)`", r"<code>\1</code>", escape(text)) for text in (mark, row.what, row.found, row.fix)]
    styles = ("text-align:left;white-space:nowrap", *["text-align:left"] * 3)
    cells = "".join(f'<td style="{style}">{text}</td>' for style, text in zip(styles, texts, strict=True))
    return f'<tr data-state="{row.state}">{cells}</tr>'


def doctor(machine: Machine | None = None) -> Diagnosis:
    """Look at Python, packages, JupyterLab's front end, this kernel, widgets, devices and memory.

    `machine`: what to look at, this computer if not given. Each row says what is there, and what to do where it will
    not work. Raises `LayoutError` for what is no `Machine`.
    """
    machine = Machine() if machine is None else expect(machine, Machine, "a Machine, or nothing for this computer")
    looks = (_python, _packages, _front_end, _kernel, _widgets, _devices, _accelerators, _memory, _memory_limit)
    return Diagnosis(tuple(row for look in looks for row in look(machine)))


def _python(machine: Machine) -> Iterator[Row]:
    found = ".".join(map(str, machine.python))
    if machine.python >= (3, 11):
        yield Row("Python", f"{found} on {platform.system()}")
    else:
        yield Row("Python", found, "fix", f"Python 3.11 or newer is needed: install it, then {REINSTALL}.")


def _packages(machine: Machine) -> Iterator[Row]:
    """Each pinned package against its pin; those that agree share one row."""
    requirements = machine.requirements()
    if requirements is None:
        unknown = f"{PROJECT} is not installed, so its pins are unknown"
        yield Row("packages", unknown, "warn", f"{REINSTALL.capitalize()}.")
        return
    try:
        pins = _pins(requirements, machine.python)
    except ImportError:
        yield Row("packages", "packaging, which reads the pins, is missing", "fix", f"{REINSTALL.capitalize()}.")
        return
    found = {name: machine.version(name) for name in pins}
    for name, pin in pins.items():
        if found[name] is None:
            yield Row(name, "missing", "fix", f"Install {name} {pin}: {REINSTALL}.")
        elif found[name] != pin:
            yield Row(name, f"{found[name]}, pinned is {pin}", "warn", f"If something misbehaves, {REINSTALL}.")
    agreeing = sum(found[name] == pin for name, pin in pins.items())
    yield Row("packages", f"{agreeing} of {len(pins)} pinned packages at their pinned version")


def _pins(requirements: list[str], python: tuple[int, int]) -> dict[str, str]:
    """The `name==version` requirements that hold on this Python for everybody, so without those of extras."""
    from packaging.requirements import Requirement

    here = {"python_version": ".".join(map(str, python)), "extra": ""}
    wanted = [r for r in map(Requirement, requirements) if r.marker is None or r.marker.evaluate(here)]
    return {r.name: pin[1] for r in wanted if (pin := _PIN.match(str(r.specifier)))}


def _front_end(machine: Machine) -> Iterator[Row]:
    """The page's half of the widgets: JupyterLab extensions on disk, and whether a setting turns them off."""
    off = _disabled(machine)
    for name in LAB_EXTENSIONS:
        what = f"front end: {name}"
        versions = [read_json(folder / "labextensions" / name / "package.json") for folder in machine.jupyter_data]
        version = next((v["version"] for v in versions if "version" in v), None)
        if version is None:
            yield Row(what, "not installed", "fix", f"Widgets cannot draw: {REINSTALL}, then reload the page.")
        elif name in off:
            fix = f"Run `jupyter labextension enable {name}` in a terminal, then reload the page."
            yield Row(what, f"{version}, disabled", "fix", fix)
        else:
            yield Row(what, f"{version}, enabled")


def _disabled(machine: Machine) -> set[str]:
    """Extensions switched off in any page configuration; the forms `[name]` and `{name: true}` both occur."""
    pages = [folder / "labconfig" / "page_config.json" for folder in machine.jupyter_config]
    pages += [folder / "lab" / "settings" / "page_config.json" for folder in machine.jupyter_data]
    names: set[str] = set()
    for page in pages:
        listed = read_json(page).get("disabledExtensions", {})
        names |= {name for name, off in listed.items() if off} if isinstance(listed, dict) else set(listed)
    return names


def _kernel(machine: Machine) -> Iterator[Row]:
    kernel = _running_kernel(machine)
    if kernel is None:
        fix = "In a terminal this is fine; for the lessons open a notebook in JupyterLab and run mtf.doctor() there."
        yield Row("kernel", "not inside a notebook kernel", "warn", fix)
        return
    yield Row("kernel", f"ipykernel {machine.version('ipykernel') or '(version unknown)'}, {sys.executable}")


def _running_kernel(machine: Machine) -> object | None:
    """The ipykernel application that runs this code, or None."""
    ipython = machine.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None)


def _widgets(machine: Machine) -> Iterator[Row]:
    """The kernel's half. Whether the page answers can only be seen by using a widget, so the row says how."""
    version = machine.version("ipywidgets")
    if version is None:
        yield Row("widgets", "ipywidgets is missing", "fix", f"{REINSTALL.capitalize()}, then restart the kernel.")
    elif getattr(_running_kernel(machine), "comm_manager", None) is None:
        yield Row("widgets", f"ipywidgets {version}; no kernel here to connect it to a page", "warn",
                  "In JupyterLab this row becomes ok.")  # fmt: skip
    else:
        yield Row("widgets", f"ipywidgets {version}, channel to the page is there; to see both ways work, press "
                  "the button of any prediction and watch its line change")  # fmt: skip


def _devices(machine: Machine) -> Iterator[Row]:
    """JAX's devices if it has started; otherwise only what it is set to, because asking would start it."""
    if machine.version("jax") is None:
        yield Row("devices", "JAX is missing", "fix", f"{REINSTALL.capitalize()}, then restart the kernel.")
        return
    jax = machine.modules.get("jax")
    if jax is None or not started(jax):
        yield Row("devices", "JAX has not started; run mtf.devices(64) to have 64 simulated devices", "ok")
        return
    devices = jax.devices()
    kind = f"simulated CPU mesh, {len(devices)} devices" if devices[0].platform == "cpu" else f"{len(devices)} attached"
    few = devices[0].platform == "cpu" and len(devices) < 64
    fix = "Restart the kernel and run mtf.devices(64) before anything else." if few else ""
    yield Row("devices", f"{kind} ({devices[0].device_kind})", "warn" if few else "ok", fix)


def _accelerators(machine: Machine) -> Iterator[Row]:
    """Device files that a TPU's or GPU's driver makes, and whether they can be used; nothing is opened."""
    chips = {"TPU": tpu_files(machine.device_files), "NVIDIA GPU": gpu_files(machine.device_files)}
    found = ", ".join(f"{len(files)} {kind}" for kind, files in chips.items() if files)
    state = chip_state(machine=machine)
    if state.ready:
        yield Row("accelerators", f"{found}: {state.words}" if found else state.words)
    elif not found:
        yield Row("accelerators", "none attached; every lesson works without")
    else:
        yield Row("accelerators", f"{found}: {state.words}", "warn", f"{state.fix[:1].upper()}{state.fix[1:]}.")


def _memory(machine: Machine) -> Iterator[Row]:
    memory = machine.free_memory()
    if memory is None:
        yield Row("memory", "cannot be read here (psutil is missing)", "warn", f"{REINSTALL.capitalize()}.")
        return
    free, total = memory
    low = free < ENOUGH_MEMORY
    fix = "Close other notebooks (their kernels too): lessons want about 2 GiB." if low else ""
    yield Row("memory", f"{free / GIB:.1f} GiB free of {total / GIB:.1f} GiB", "warn" if low else "ok", fix)


def _memory_limit(machine: Machine) -> Iterator[Row]:
    """What a notebook's kernel may take."""
    try:
        yield Row("memory limit", memory_limit.state(machine.environment))
    except DeviceError as error:
        yield Row("memory limit", str(error), "fix", f"Set {memory_limit.ENVIRONMENT} to a number, or not at all.")
