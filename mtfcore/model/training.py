"""Training a Transformer on a mesh, one event a step; stop whenever you like, nothing is lost.

    trainer = Trainer("tiny-lm", "rows:2 cols:4", "mtf-2d", Adam(learning_rate=3e-3))
    for event in trainer.run(100):
        print(event.step, event.loss, event.tokens, event.traffic)
    trainer.save("tiny.safetensors")

The step is planned once (`trainer.program`: forward, backward and update, see `step_function`) and runs as planned, on
simulated devices or on attached ones. Parameters and the optimizer's state stay on the devices. A batch depends on the
seed and the step's number alone, so a run that is taken up again, on this mesh or on another, sees the same batches.
Next file to read: `writing`.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mtfcore as mtf
from mtfcore.errors import expect, refuse, refuse_flags, sure
from mtfcore.model import checkpoints
from mtfcore.model.configs import Config, config
from mtfcore.model.data import Batches, Text, python_sources
from mtfcore.model.optimizers import Adam, Optimizer
from mtfcore.model.params import Param, initial
from mtfcore.model.partitioning import read_layout
from mtfcore.model.step_function import LOSS, STEP, training_step
from mtfcore.steps import Program
from mtfcore.traffic import Traffic

SEED = "seed"  # of the dropout: the argument that the loss then has


@dataclass(frozen=True)
class Event:
    """What is known after a step; `loss` is that of its batch before the update, in nats a token."""

    step: int  # steps done, this one included
    loss: float
    tokens: int  # seen so far
    traffic: Traffic  # bytes sent so far by one device, in total and by mesh axis (modelled: the plan's, times steps)


class Trainer:
    """A model, its optimizer's state and the batches, on a mesh.

    `options` are those of `mtf.model.loss`: `recompute=True` keeps no intermediates of a block for the backward pass,
    `dropout=0.1` drops the same elements on every mesh. `attached` runs on the TPU or GPU that is there. `donate` lets
    the new state take over the memory of the old, so that it is held once and not twice during a step; stopping within
    a step then ends the run, and only its last checkpoint is left.
    """

    def __init__(
        self,
        cfg: Config | str,
        mesh: mtf.Mesh | str,
        layout: Any = "",
        optimizer: Optimizer | None = None,
        *,
        text: Text | None = None,
        batch: int = 16,
        length: int = 64,
        seed: int = 0,
        dtype: str = "f32",
        attached: bool = False,
        donate: bool = False,
        strict: bool = True,
        **options: Any,
    ) -> None:
        self.cfg = config(cfg)
        adam = Adam(learning_rate=1e-3)
        self.optimizer = adam if optimizer is None else expect(optimizer, Optimizer, f"an optimizer such as {adam!r}")
        self.options = options
        refuse_flags("Trainer", attached=attached, donate=donate, strict=strict)
        source_length = length if self.cfg.encoder_layers else 0
        self.batches = Batches(python_sources() if text is None else text, batch, length, seed, source_length)
        self.params: Mapping[str, Param] = self.cfg.params
        self.slots = self.optimizer.state(self.params)
        self.loss = mtf.model.loss(self.cfg, **options)
        self.function = training_step(self.loss, self.params, self.optimizer)
        sizes = f"B:{batch} L:{length}" + (f" S:{source_length}" if source_length else "")
        self.program: Program = mtf.plan(
            self.function, mesh, read_layout(layout), sizes=sizes, dtype=dtype, strict=strict
        )
        self.runner = (mtf.attach if attached else mtf.simulate)(self.program)
        self.step, self.donate = 0, donate
        self.state = self.runner.put(self._beginning())  # parameters and optimizer state by name, on the devices

    def _beginning(self) -> dict[str, np.ndarray]:
        shapes = {name: tuple(sure(dim.size) for dim in slot.dims) for name, slot in self.slots.items()}
        slots = {name: np.full(shapes[name], slot.init, np.float32) for name, slot in self.slots.items()}
        return {**initial(self.params, self.batches.seed), **slots}

    def run(self, steps: int) -> Iterator[Event]:
        """Train so many steps further. Whatever ends it, the trainer stands at the last step that was finished."""
        for _ in range(steps):
            given = {**self.state, **self.data(self.step), STEP: np.int32(self.step)}
            made = self.runner.resident(donate=tuple(self.state) if self.donate else (), **given)
            loss = float(self.runner.fetch(made.pop(LOSS)))
            self.state, self.step = made, self.step + 1  # at once, after all that can be interrupted
            yield self.event(loss)

    def data(self, step: int) -> dict[str, np.ndarray]:
        """What the loss reads at a step: the batch and, with dropout, a seed; functions of seed and step alone."""
        found = self.batches(step)
        if SEED in self.loss.arguments:
            random = np.random.default_rng((self.batches.seed, step, 1))  # another stream than that of the batch
            found[SEED] = np.asarray(random.integers(np.iinfo(np.int32).max), np.int32)
        return found

    def event(self, loss: float) -> Event:
        """Where the run stands.

        `loss`: that of the last step, in nats a token.
        """
        sent = {axis: n_bytes * self.step for axis, n_bytes in self.program.link_bytes().by_axis.items()}
        return Event(self.step, loss, self.step * self.batches.batch * self.batches.length, Traffic(sent))

    def arrays(self) -> dict[str, np.ndarray]:
        """The parameters, whole."""
        return self.runner.fetch({name: self.state[name] for name in self.params})

    # ---- checkpoints

    def header(self) -> dict[str, Any]:
        """What a checkpoint says beside its arrays: the model, the step, and all that decides the batches."""
        data = self.batches.text.data
        return {
            "config": dataclasses.asdict(self.cfg), "step": self.step, "optimizer": type(self.optimizer).__name__,
            "options": self.options, "seed": self.batches.seed, "batch": self.batches.batch,
            "length": self.batches.length,
            "text": {"n_bytes": int(data.size), "sha256": hashlib.sha256(data.tobytes()).hexdigest()},
        }  # fmt: skip

    def save(self, path: str | Path) -> Path:
        """Write parameters, optimizer state and where the run stands.

        `path`: the file to write, which is returned.
        """
        return checkpoints.save(path, self.state, self.header())

    def resume(self, path: str | Path, same_data: bool = True) -> Trainer:
        """Go on where a checkpoint stood, on whatever mesh; `same_data=False` allows other text, batches and seed.

        `path`: what `save` wrote.

        Raises `LayoutError` for another model or a file that is not whole.
        """
        header, forms = checkpoints.look(path)
        compared = ("config", "optimizer", *(("seed", "batch", "length", "text", "options") if same_data else ()))
        faults = [fault for key in compared for fault in _differences(key, header.get(key), self.header()[key])]
        ports = {port.name: (port.sharding.shape, port.dtype) for port in self.program.inputs}
        expected = {name: ports[name] for name in self.state}
        refuse(faults + checkpoints.differences(forms, expected), f"resume from {Path(path).name}")
        self.state, self.step = self.runner.put(checkpoints.load(path).arrays), int(header["step"])
        return self

    def __repr__(self) -> str:
        return f"<Trainer of {self.cfg.name} with {type(self.optimizer).__name__} at step {self.step}, {self.runner!r}>"


def _differences(name: str, there: Any, here: Any) -> list[str]:
    """A fault for each part of a header that is not as it is here; of a dictionary, for each entry."""
    if isinstance(there, dict) and isinstance(here, dict):
        keys = dict.fromkeys([*there, *here])
        return [fault for key in keys for fault in _differences(f"{name} {key}", there.get(key), here.get(key))]
    return [f"{name} is {there!r:.100} in the checkpoint, {here!r:.100} here"] if there != here else []
