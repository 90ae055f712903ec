"""What the engine costs: decoding a real model on one device, beside plain JAX by hand and beside llama.cpp.

The model is SmolLM2-135M (`python -m mtfcore.model fetch`). Times are of this CPU: only ratios mean anything.
llama.cpp is run where `make peers` has built it; it multiplies numbers of 4 and 8 bits as they lie in the file, where
both of ours multiply floats of 32, which are 7 times as many bytes to read for every token.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import mtfcore as mtf
from mtfcore.model.files import known
from mtfcore.numbers import format_seconds

from .hand_written_llama import decode_step
from .pairs import Spread, interleaved, report

LENGTH, KEPT, STEPS = 512, 100, 60
PEERS = Path(os.environ.get("MESHWORK_PEERS", Path(__file__).parents[2] / ".peers"))
PEER = """
import sys, time, llama_cpp
path, length, kept, steps = sys.argv[1], *map(int, sys.argv[2:])
model = llama_cpp.Llama(path, n_ctx=length, n_threads=2, verbose=False)
model.eval([5] * kept)
for _ in range(steps):
    start = time.perf_counter()
    model.eval([5])
    print(time.perf_counter() - start)
"""


def main() -> None:
    """Print the ratios."""
    mtf.devices(1)
    found = mtf.model.load("smollm2-135m")
    params = dict(found.params)
    print("decode of SmolLM2-135M on one device, f32, batch 1 (measured on this CPU: only ratios mean anything)")
    for turns in (1, 8):
        ours, theirs = engine_step(found.cfg, params, turns), hand_step(found.cfg, params, turns)
        assert ours() == theirs(), "the two do not choose the same tokens"
        ratio, first, second = interleaved(theirs, ours, STEPS // turns)
        what = f"tokens a second, ours / by hand, {turns} a launch"
        report(what, str(ratio), "0.95")
        print(f"    ours {first_seconds(second, turns)} a token, by hand {first_seconds(first, turns)}")
        if turns == 1:
            beside_the_peer(second)


def beside_the_peer(ours: Spread) -> None:
    """The ratio to llama.cpp on the same cores and file, where `make peers` has built it."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        print("  llama.cpp is not here: make peers builds it")
        return
    path = str(known.path_of("smollm2-135m"))
    said = subprocess.run([python, "-c", PEER, path, str(LENGTH), str(KEPT), str(STEPS)], capture_output=True,
                          text=True, check=True, timeout=300)  # fmt: skip
    theirs = Spread.of(map(float, said.stdout.split()[-STEPS:]))
    report("tokens a second, ours / llama.cpp", f"{theirs.median / ours.median:.3f}", "none: see above")
    print(f"    llama.cpp {theirs.seconds()} a token")


def first_seconds(spread: Spread, turns: int) -> str:
    """The median of one token."""
    return format_seconds(spread.median / turns)


def engine_step(cfg, params, turns: int):
    """A call that decodes `turns` tokens behind KEPT others, always the same ones."""
    eng = mtf.model.Engine(cfg, params, "x:1", "ws2d-heads", "ws2d-heads", slots=1, length=LENGTH)
    one = np.ones(1, np.int32)

    def call() -> list[int]:
        return eng.launches.decode(one * 5, one * KEPT, one, {}, turns)[:, 0].tolist()

    return call


def hand_step(cfg, params, turns: int):
    """The same by the plain loop; an empty cache holds zeros in both."""
    step, p = decode_step(cfg), {name: jnp.asarray(array) for name, array in params.items()}
    shape = (cfg.layers, 1, LENGTH, cfg.kv_heads, cfg.head_size)
    caches = [jnp.zeros(shape), jnp.zeros(shape)]

    def call() -> list[int]:
        token, made = jnp.array([5]), []
        for n in range(turns):
            token, *caches[:] = step(p, *caches, token, KEPT + n)
            made.append(int(token[0]))
        return made

    return call


if __name__ == "__main__":
    main()
