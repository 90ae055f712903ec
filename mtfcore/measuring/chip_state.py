"""Is there a chip to run on, and if not, why: told before anything is started, and never a silent fall to the CPU.

    >>> chip_state()
    ChipState(kind='none', words='no TPU or GPU is attached (no device file of one is here)', fix='mtf.simulate …')
    >>> chip_state(mtf.Mesh("x:4 y:4")).kind      # 'none', 'ready', 'held', 'fewer' or 'version'

Before JAX has started, the files that drivers make, what Linux tells of other processes and the versions installed
are looked at; nothing is opened or loaded that could take a chip. Once it has, its devices are counted. Everything
comes through a `Machine`, so that tests can hand in one that has what they need. `mtf.attach` and `mtf.doctor` use it;
lesson 12 shows it. First file to read: `holders`. Next file to read: `mtfcore.device_pool`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mtfcore.errors import DeviceError
from mtfcore.machine import Machine
from mtfcore.measuring.holders import holders, lock_holders
from mtfcore.measuring.installed import mismatch
from mtfcore.mesh import Mesh
from mtfcore.numbers import count
from mtfcore.platforms import gpu_files, tpu_files

SIMULATE = "mtf.simulate runs the same steps on simulated devices"
RESTART = "restart the kernel"


@dataclass(frozen=True)
class ChipState:
    """What there is. `kind`: none, ready, held (by another process), fewer (than needed), version (software)."""

    kind: str
    words: str
    fix: str = ""
    devices: int = 0  # that JAX sees; before it has started, the device files that are there
    chip: str = ""  # "TPU v4", as JAX names it; before it has started, "TPU" or "NVIDIA GPU"

    @property
    def ready(self) -> bool:
        """Whether it can be run on."""
        return self.kind == "ready"

    def __str__(self) -> str:
        return f"{self.words}; {self.fix}" if self.fix else self.words

    def expect_ready(self) -> None:
        """`DeviceError`, in words, if it cannot be run on."""
        if not self.ready:
            raise DeviceError(str(self))


def chip_state(
    need: int | str | Mesh | None = None, found: Sequence[Any] | None = None, machine: Machine | None = None
) -> ChipState:
    """The state of this computer's chips; `need`: so many devices, or a mesh's.

    `found`: the devices that JAX has, if the caller knows; otherwise JAX is asked, but only if it has started.
    """
    need = Mesh(need) if isinstance(need, str) else need
    machine = machine or Machine()
    started = found is not None or _has_started(machine)
    devices = (
        [d for d in machine.modules["jax"].devices() if d.platform != "cpu"] if started and found is None else found
    )
    if devices:
        return _counted(devices, need)
    for chip, files in (("TPU", tpu_files(machine.device_files)), ("NVIDIA GPU", gpu_files(machine.device_files))):
        if files:
            return _by_files(chip, files, started, machine)
    seen = "JAX sees only the CPU" if started else "no device file of one is here"
    return ChipState("none", f"no TPU or GPU is attached ({seen})", SIMULATE)


def _has_started(machine: Machine) -> bool:
    from mtfcore.device_pool import started

    jax = machine.modules.get("jax")
    return jax is not None and started(jax)


def _counted(devices: Sequence[Any], need: int | Mesh | None) -> ChipState:
    number, chip = len(devices), devices[0].device_kind
    needed = need.size if isinstance(need, Mesh) else need or 0
    if needed <= number:
        return ChipState("ready", f"attached: {number} x {chip}", "", number, chip)
    who = f"mesh '{need}' needs {needed} devices" if isinstance(need, Mesh) else f"{needed} devices are needed"
    fix = f"choose a mesh of at most {number}, or measure one device's share: mtf.measure(program, share=True)"
    return ChipState("fewer", f"{who}; attached: {number} x {chip}", fix, number, chip)


def _by_files(chip: str, files: Sequence[Any], started: bool, machine: Machine) -> ChipState:
    """A driver's files are here, and JAX has not started, or has started without them."""
    kind, words, fix = (
        _left_out(chip, machine) or (_held(files, machine) if chip == "TPU" else None) or _software(chip, machine)
        or _not_yet(chip, files, started)
    )  # fmt: skip
    again = f"{fix}; then {RESTART}, since JAX looks once" if started and RESTART not in fix else fix
    return ChipState(kind, words, again, len(files), chip)


def _left_out(chip: str, machine: Machine) -> tuple[str, str, str] | None:
    """The user told JAX to leave it out."""
    said = machine.environment.get("JAX_PLATFORMS", "")
    names = ("tpu",) if chip == "TPU" else ("cuda", "gpu")
    if not said or set(said.split(",")) & set(names):
        return None
    words = f"no TPU or GPU is attached to JAX: JAX_PLATFORMS is {said!r}, so the {chip} that is here is left out"
    return "none", words, f"{SIMULATE}; to use the {chip}, unset JAX_PLATFORMS and {RESTART}"


def _held(files: Sequence[Any], machine: Machine) -> tuple[str, str, str] | None:
    """Another process has the TPU, or seems to libtpu to have it."""
    if others := holders(machine, files) or lock_holders(machine):
        numbers = " ".join(str(other.number) for other in others)
        fix = f"shut that notebook's kernel down or end it (kill {numbers}); until then {SIMULATE}"
        return "held", f"the TPU is held by another process, {' and '.join(map(str, others))}; only one can", fix
    if machine.tpu_lock.exists() and not machine.may_write(machine.tpu_lock):
        words = f"another user's {machine.tpu_lock} is left behind, so libtpu takes the TPU for held by another process"
        return "held", words, f"remove it: sudo rm {machine.tpu_lock}"
    return None


def _software(chip: str, machine: Machine) -> tuple[str, str, str] | None:
    found = mismatch(chip, machine)
    return ("version", *found) if found else None


def _not_yet(chip: str, files: Sequence[Any], started: bool) -> tuple[str, str, str]:
    if not started:
        return "ready", f"{count(len(files), f'{chip} device file')} here; JAX has not started", ""
    ask = "JAX_PLATFORMS=tpu" if chip == "TPU" else "JAX_PLATFORMS=cuda"
    words = f"a {chip} is here, but JAX started without it, for a reason that nothing else here shows"
    return "version", words, f"see what `{ask} python -c 'import jax; jax.devices()'` says"
