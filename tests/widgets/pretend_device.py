"""A device that is not there: what an explorer's `measure` and `chips` take instead of `mtfcore.measuring`'s.

pretend(monkeypatch, Roofline, seconds=(2e-3, 3e-3, 4e-3))         # a TPU v4 that always takes so long
"""

from __future__ import annotations

from types import SimpleNamespace

from mtfcore.measuring import Measured, Progress, Share

WHERE = {"platform": "tpu", "device_kind": "TPU v4", "devices": 64, "hosts": 16, "topology": "v4:4x4x4"}


class Device:
    """Counts what it is asked to run."""

    def __init__(self, seconds=(2e-3, 3e-3, 4e-3), where=WHERE, share=False, between=lambda: None) -> None:
        self.seconds, self.where, self.share, self.between = tuple(seconds), where, share, between
        self.asked: list = []

    def steps(self, program, **options):
        """As `mtfcore.measuring.steps`."""
        self.asked.append((program, options))
        for n in range(len(self.seconds)):
            self.between()
            yield Progress(n, len(self.seconds), f"repetition {n + 1} of {len(self.seconds)}")
        left_out = sum(step.times for step in program.collectives())
        share = Share(str(program.mesh), left_out, 1e-3, "v4:4x4x4", "calibrated") if self.share else None
        return Measured(
            program.name, str(program.mesh), self.seconds, 1.5, 2, self.where, {"jax": "0.0"},
            {"against": "the oracle", "error": 1e-6, "tolerance": 1e-4},
            {"flops": program.flops(), "link_bytes": float(program.link_bytes())}, share,
        )  # fmt: skip


def pretend(monkeypatch, explorer, kind="ready", words="", fix="", **device) -> Device:
    """Give an explorer's class a device, or the state of a chip that cannot be run on."""
    found = Device(**device)
    monkeypatch.setattr(explorer, "measure", staticmethod(found.steps))
    state = SimpleNamespace(kind=kind, words=words, fix=fix)
    monkeypatch.setattr(explorer, "chips", staticmethod(lambda mesh: state))
    return found
