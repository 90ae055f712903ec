"""Devices to run on: simulated ones on this computer's CPU, or what is attached.

    mtf.devices(64)          every lesson's first cell, before anything else uses JAX

64 simulated devices cost about half a second and 10 MB more than 8, so lessons always start with 64 and meshes
take a part of them. They share this computer's cores: what they send, to whom and in which order is real, how long
it takes is not, so no time measured on them is ever shown as hardware speed. Next file to read: `platforms`.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Any

from mtfcore.errors import DeviceError
from mtfcore.memory_limit import guard
from mtfcore.mesh import Mesh
from mtfcore.notation import as_size
from mtfcore.platforms import settle

# XLA's CPU collectives wait for each other in one process: with many launches in flight they can wait for ever.
LAUNCH = threading.RLock()
_STUCK = {  # a stuck collective ends with a message instead of hanging the notebook
    "--xla_cpu_collective_call_warn_stuck_timeout_seconds": "20",
    "--xla_cpu_collective_call_terminate_timeout_seconds": "120",
}
RESTART = "restart the kernel (menu Kernel > Restart Kernel) and make mtf.devices({n}) its first cell"


class Devices:
    """What `mtf.devices` found; prints as a short line that says what kind of devices these are."""

    def __init__(self, simulated: int, attached: list[Any]) -> None:
        self.simulated, self.attached = simulated, attached

    def __repr__(self) -> str:
        from mtfcore.measuring.chip_state import chip_state

        kinds = sorted({d.device_kind for d in self.attached})
        more = f"attached: {len(self.attached)} x {', '.join(kinds)}" if self.attached else "no accelerator attached"
        state = chip_state(found=self.attached)
        if state.kind in ("held", "version"):  # one is here all the same
            more += f": {state}"
        return f"simulated CPU mesh, {self.simulated} devices (on this computer's cores: no hardware speed); {more}"


def devices(n: int = 64) -> Devices:
    """Start JAX with `n` simulated CPU devices, or say clearly that it is too late; see also `mtf.attach`.

    In a notebook this also limits the memory that the kernel may take (`memory_limit`). Raises `DeviceError` if JAX is
    running already with fewer.
    """
    count = as_size(n)
    if count is None:
        raise DeviceError(f"mtf.devices({n!r:.200}): expected a whole number of at least 1; lessons use 64")
    n, found = count, _start(count)
    if found < n:
        raise DeviceError(
            f"asked for {n} simulated devices, but JAX is running already with {found} (something used it before); "
            + RESTART.format(n=n)
        )
    guard()
    return Devices(found, attached_devices())


def _start(n: int) -> int:
    """Start JAX with `n` simulated devices if it has not started any; returns how many there are."""
    _set_flags()
    settle()
    import jax

    with contextlib.suppress(RuntimeError):  # raised once the devices have started; then their number stands
        jax.config.update("jax_num_cpu_devices", n)
    return len(_jax_devices("cpu"))


def _jax_devices(platform: str | None = None) -> list[Any]:
    """JAX's devices, started if they have not; `DeviceError` where JAX cannot start any."""
    import jax

    try:
        return jax.devices(platform)
    except RuntimeError as error:
        from mtfcore.measuring.chip_state import chip_state

        raise DeviceError(
            f"JAX could not start its devices: {error}. Here: {chip_state(found=())}. "
            "To simulate all the same, set JAX_PLATFORMS=cpu before the kernel starts"
        ) from error


def started(jax: Any) -> bool:
    """Whether JAX has started its devices, asked without starting them: their number can be set until then."""
    now = jax.config.jax_num_cpu_devices
    try:
        jax.config.update("jax_num_cpu_devices", now + 1 if now > 0 else 1)
    except RuntimeError:
        return True
    jax.config.update("jax_num_cpu_devices", now)
    return False


def _set_flags() -> None:
    flags = os.environ.get("XLA_FLAGS", "")
    missing = [f"{flag}={seconds}" for flag, seconds in _STUCK.items() if flag not in flags]
    if missing:
        os.environ["XLA_FLAGS"] = " ".join([flags, *missing]).strip()


def attached_devices() -> list[Any]:
    """The accelerators JAX sees; empty where there is only the CPU."""
    settle()
    return [d for d in _jax_devices() if d.platform != "cpu"]


def simulated_devices(n: int = 64) -> list[Any]:
    """The simulated devices: so many where JAX had none yet, else those that it started with."""
    _start(n)
    return _jax_devices("cpu")


def simulated_mesh(mesh: Mesh) -> Any:
    """A `jax.sharding.Mesh` over the first simulated devices. Raises `DeviceError` if there are too few."""
    count = _start(max(64, mesh.size))
    if count < mesh.size:
        raise DeviceError(
            f"mesh '{mesh}' needs {mesh.size} devices, this kernel has {count} simulated; "
            + RESTART.format(n=mesh.size)
        )
    import jax

    return _jax_mesh(mesh, jax.devices("cpu")[: mesh.size])


def attached_mesh(mesh: Mesh) -> Any:
    """A `jax.sharding.Mesh` over attached accelerators, in the order that suits their links.

    `DeviceError` says what there is instead: no chip, one that is held, too few, software that does not reach it.
    """
    from mtfcore.measuring.chip_state import chip_state

    before = chip_state(mesh)  # a JAX that starts while its chip is held stays without it
    if before.kind in ("held", "version"):
        before.expect_ready()
    found = attached_devices()
    chip_state(mesh, found).expect_ready()
    import jax

    auto = (jax.sharding.AxisType.Auto,) * len(mesh.names)
    return jax.make_mesh(tuple(mesh.shape.values()), mesh.names, devices=found[: mesh.size], axis_types=auto)


def _jax_mesh(mesh: Mesh, found: list[Any]) -> Any:
    import jax
    import numpy as np

    shape = tuple(mesh.shape.values())
    # Auto axes, said outright: the default differs between JAX versions and would change what shard_map accepts.
    auto = (jax.sharding.AxisType.Auto,) * len(shape)
    return jax.sharding.Mesh(np.array(found).reshape(shape), mesh.names, axis_types=auto)


def idle_note(mesh: Mesh, total: int, kind: str) -> str:
    """One sentence that names the idle devices; empty if there are none."""
    idle = total - mesh.size
    which = f"{mesh.size} to {total - 1}" if idle > 1 else f"{total - 1}"
    return f"{idle} of {total} {kind} devices idle (number {which})" if idle else ""


def inside(jax_mesh: Any) -> contextlib.AbstractContextManager:
    """Where JAX sees our mesh, whatever mesh a notebook has set around the call; None: no mesh of ours."""
    import jax

    set_around = not jax.sharding.get_abstract_mesh().empty
    return jax.set_mesh(jax_mesh) if jax_mesh is not None and set_around else contextlib.nullcontext()


def launch(fn: Callable, *args: Any, jax_mesh: Any = None) -> Any:
    """Call a compiled function and wait for its result, one launch in flight in the whole process."""
    settle()
    import jax

    with LAUNCH, inside(jax_mesh):
        return jax.block_until_ready(fn(*args))
