"""The compiler's process: waits for programs, compiles each for a slice, answers with texts and sizes.

`process` starts it. A compiler that finds a program it cannot take may end the whole process it runs in; here that is
this one, not a notebook's kernel. It ends by itself when nothing is asked for a while, sooner if other compilers wait
for its room (`turns`), and when its parent is gone.
What it is sent and what it answers are messages of `messages`. Next file to read: `schedule`.
"""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from mtfcore.compiling.messages import Ended, Stopped, TooLate, receive, send
from mtfcore.compiling.slices import Target
from mtfcore.compiling.turns import CompilerSlots

SHORT_IDLE_SECONDS = 1.0  # while somebody waits for room


def main(idle_seconds: float) -> None:
    """Answer requests until there are none for so many seconds."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what the compiler prints goes where its other complaints go, not between our messages
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    while True:
        try:
            request = receive(0, idle_seconds, _makes_room())
            send(answers, answer(request))
        except (Ended, TooLate, Stopped):
            return


def _makes_room() -> Callable[[], bool]:
    """Whether it has idled long enough and somebody waits; not all that idle go at once for one who waits."""
    turns, from_ = CompilerSlots(), time.monotonic() + SHORT_IDLE_SECONDS * (1 + os.getpid() % 10 / 10)
    return lambda: time.monotonic() > from_ and turns.is_wanted()


def _end_with(parent: int) -> None:
    """A parent that was killed closes the pipe, but a compilation would first run to its end."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(0)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The compiled program, or why there is none: `refused` in the compiler's words, `failed` with our own fault."""
    try:
        return compiled(request)
    except Exception:  # whatever it is, the parent says it: nothing is swallowed
        return {"failed": traceback.format_exc()}


def compiled(request: dict[str, Any]) -> dict[str, Any]:
    """Lower and compile one program for the devices of a slice; without a program, the slice's places."""
    if "program" not in request:
        return {"places": list(slice_devices(request["target"]))}
    mesh, version = slice_mesh(request)
    lowered = lowering(request, mesh)
    found: dict[str, Any] = {"stablehlo": lowered.as_text(), "version": version}
    import jax

    start = time.perf_counter()
    try:
        made = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        return found | {"refused": str(error)}
    seconds = time.perf_counter() - start
    return found | {"text": text_of(made, lowered), "memory": sizes(made.memory_analysis()), "compile_seconds": seconds}


def text_of(made: Any, lowered: Any) -> str:
    """The scheduled text. An older JAX cannot read all of a newer compiler: then as the compiler itself prints it."""
    import jax

    try:
        return made.as_text()
    except jax.errors.JaxRuntimeError:
        with tempfile.TemporaryDirectory() as folder:
            lowered.compile(compiler_options={"xla_dump_to": folder, "xla_dump_hlo_as_text": True})
            (printed,) = pathlib.Path(folder).glob("*.after_codegen.txt")
            return printed.read_text(encoding="utf-8")


def slice_mesh(request: dict[str, Any]) -> tuple[Any, str]:
    """The program's mesh over the slice's devices, and what the compiler calls itself."""
    target, mesh = request["target"], request["program"].mesh
    import jax
    import numpy as np

    by_place = slice_devices(target)
    devices = np.array([by_place[place] for place in target.at], dtype=object)
    auto = (jax.sharding.AxisType.Auto,) * len(mesh.names)
    shape = tuple(mesh.shape.values())
    return jax.sharding.Mesh(devices.reshape(shape), mesh.names, axis_types=auto), _version(devices[0])


def slice_devices(target: Target) -> dict[tuple[int, int, int, int], Any]:
    """The devices of a slice that is not there, by their places."""
    from jax.experimental import topologies

    found: Any = topologies.get_topology_desc(topology_name=target.name, platform="tpu", **target.options)
    return {(*device.coords, device.core_on_chip): device for device in found.devices}


def lowering(request: dict[str, Any], mesh: Any) -> Any:
    """The program as it is handed to the compiler: our steps, or whole arrays for the compiler to partition."""
    import jax

    from mtfcore.runs import Run
    from mtfcore.whole import partitioned

    program, donate = request["program"], tuple(request["donate"])
    run = Run(program, mesh)
    fn = partitioned(program, mesh).fn if request["partitioned"] else run.fn
    places = [jax.sharding.NamedSharding(mesh, port.sharding.partition_spec()) for port in program.inputs]
    given = tuple(n for n, port in enumerate(program.inputs) if port.name in donate)
    laid = [at if n in given else laid_out(at) for n, at in enumerate(places)]
    return jax.jit(fn, in_shardings=laid, donate_argnums=given).lower(*run.shapes)


def laid_out(at: Any) -> Any:
    """A place in whose memory the compiler orders an array's dimensions and tiles as it likes best.

    Weights are put there once, so their order costs nothing later; an order that products do not like, such as that of
    two matrices side by side, is mended again in every turn. What is updated in place keeps its order.
    """
    from jax.experimental.layout import Format, Layout

    return Format(Layout.AUTO, at)


def sizes(found: Any) -> dict[str, int]:
    """Bytes of one device by what they are for."""
    return {
        "arguments": found.argument_size_in_bytes, "outputs": found.output_size_in_bytes,
        "temporaries": found.temp_size_in_bytes, "aliased": found.alias_size_in_bytes,
        "code": found.generated_code_size_in_bytes,
    }  # fmt: skip


def _version(device: Any) -> str:
    """`libtpu 0.0.52, TFRT TPU v4, Built on Nov 5 2026 01:07:28`: what the compiler is, and says of itself."""
    said = getattr(getattr(device, "client", None), "platform_version", "")
    lines = [line.split(" (")[0] for line in said.splitlines() if line and line != "PJRT C API"]
    return ", ".join([f"libtpu {importlib.metadata.version('libtpu')}", *lines])


if __name__ == "__main__":
    main(float(sys.argv[1]))
