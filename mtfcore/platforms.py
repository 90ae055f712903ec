"""Which platforms JAX tries when it starts: no TPU where there is none.

libtpu also compiles for TPUs that are not there (`mtf.compile`), so it is installed on computers without one. Plain JAX
then takes it for a sign of a TPU, loads its 400 MB, and prints an alarming C++ error before it falls back to the CPU.
So `settle` says beforehand what is known: no TPU, no try. Nor is one tried that another process holds, since JAX would
fail as a whole: simulated devices then still work, and `measuring.chip_state` says who holds it. What the user has said
already (JAX_PLATFORMS) stands, and where a device file of a TPU is seen, JAX is left alone. Next file to read:
`kernels/basic`.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtfcore.machine import Machine

# What libtpu asks of its surroundings, answered: it then finds no TPU without a word.
ANSWERS = {
    "TPU_WORKER_HOSTNAMES": "localhost", "TPU_ACCELERATOR_TYPE": "v4-8", "TPU_WORKER_ID": "0",
    "TPU_SKIP_MDS_QUERY": "1",
}  # fmt: skip
_settled = False


def settle() -> None:
    """Once, before JAX starts its devices: leave out TPUs if none is here."""
    global _settled
    if _settled:
        return
    _settled = True
    import jax

    if not leave_out_tpus(jax.config, os.environ):
        leave_out_held(jax.config, os.environ)


def leave_out_held(config: Any, environment: MutableMapping[str, str], machine: Machine | None = None) -> bool:
    """Tell JAX to try no TPU, if another process holds the one that is here."""
    from mtfcore.measuring.chip_state import chip_state

    # On a TPU's computer JAX itself says "tpu,cpu", and then cannot start at all without the TPU.
    if environment.get("JAX_PLATFORMS") or config.jax_platforms not in (None, "", "tpu,cpu"):
        return False
    if chip_state(found=(), machine=machine).kind != "held":
        return False
    config.update("jax_platforms", "cpu")
    return True


def leave_out_tpus(
    config: Any, environment: MutableMapping[str, str], device_files: Path = Path("/dev"), others: bool | None = None
) -> bool:
    """Tell JAX to try no TPU, if libtpu is here and a TPU is not. `others`: JAX has plugins for other devices."""
    if config.jax_platforms or importlib.util.find_spec("libtpu") is None or tpu_files(device_files):
        return False
    if others is None:
        others = importlib.util.find_spec("jax_plugins") is not None
    if others:  # they know best whether their devices are there, so everything is still tried, quietly
        for name, value in ANSWERS.items():
            environment.setdefault(name, value)
    else:
        config.update("jax_platforms", "cpu")
    return True


def tpu_files(folder: Path = Path("/dev")) -> list[Path]:
    """The files by which a TPU's driver is reached."""
    return [*folder.glob("accel[0-9]*"), *folder.glob("vfio/[0-9]*")]


def gpu_files(folder: Path = Path("/dev")) -> list[Path]:
    """The files by which NVIDIA's driver is reached, or Windows' own where Linux runs inside it."""
    return [*folder.glob("nvidia[0-9]*"), *folder.glob("dxg")]
