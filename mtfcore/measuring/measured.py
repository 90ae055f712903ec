"""What a measurement gives: raw repetitions, and all that one must know to believe them.

    found = mtf.measure(prog, on="simulated", repeats=5)
    found.seconds, found.median, found.spread        # each repetition; the middle one; (slowest - fastest) / median
    print(found)                                     # in words: where, how often, compile time apart, checked how

Times on simulated devices are those of this computer playing many devices: the words say so, and whatever would turn
them into hardware speed (`mfu`, `total_seconds`) is None. Next file to read: `places`.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from mtfcore.numbers import count, format_bytes, format_seconds

OWN_TIME = "this computer's time, playing the devices; never hardware speed"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M")


@dataclass(frozen=True)
class Progress:
    """Where a measurement stands, told before each of its parts; it can be stopped there."""

    done: int
    total: int
    text: str


@dataclass(frozen=True)
class Share:
    """That one device's part was run, and what was left out of it."""

    mesh: str
    left_out: int  # collectives, each as often as it would run
    # of these, by `mtf.price`, without what rings beside products hide; None where no topology is known
    modelled_link_seconds: float | None
    topology: str = ""
    model: str = ""  # of time, by which they are modelled
    buffer_bytes: int = 0  # what stands in for the results of collectives

    @property
    def words(self) -> str:
        """In one sentence."""
        if not self.left_out:
            return f"one device's share of mesh '{self.mesh}', which has no collectives"
        link = "their time is not modelled (no topology is known)"
        if self.modelled_link_seconds is not None:
            took = format_seconds(self.modelled_link_seconds)
            link = f"modelled beside it: {took} exposed on {self.topology} ({self.model})"
        return (f"one device's share of mesh '{self.mesh}' at its exact local shapes; "
                f"{count(self.left_out, 'collective')} left out, {link}")  # fmt: skip


@dataclass(frozen=True, eq=False)
class Measured:
    """The time of a program on devices, measured. Made by `mtf.measure`."""

    name: str
    mesh: str
    seconds: tuple[float, ...]  # each repetition, raw
    compile_seconds: float  # tracing, lowering and compiling
    warm_up: int
    where: Mapping[str, Any]  # platform, device_kind, devices, hosts, topology
    versions: Mapping[str, str]
    check: Mapping[str, Any]  # against, error, tolerance
    counts: Mapping[str, float]  # flops, link_bytes, hbm_bytes: one device's, as planned
    share: Share | None = None
    carried: tuple[str, ...] = ()  # inputs updated in place: each repetition began with what the one before left
    memory: Mapping[str, int] = field(default_factory=dict)  # bytes of one device: in_use, peak, limit
    peak_flops: float | None = None  # of a device a second, as published; None where its chip is not known
    when: str = field(default_factory=_now)  # UTC

    origin = "measured"

    @property
    def simulated(self) -> bool:
        """Whether the devices were this computer's cores."""
        return self.where.get("platform") == "simulated"

    @property
    def median(self) -> float:
        """The middle of the repetitions, in seconds."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """(Slowest - fastest) / median of the repetitions."""
        return (max(self.seconds) - min(self.seconds)) / self.median if self.median else 0.0

    @property
    def total_seconds(self) -> float | None:
        """The whole program: what was measured, and of a share the modelled links added, one after the other.

        None on simulated devices, whose time must not be mixed with that of real links, and where links are unknown.
        """
        if self.simulated:
            return None
        if self.share is None:
            return self.median
        link = self.share.modelled_link_seconds
        return None if link is None else self.median + link

    @property
    def total_origin(self) -> str:
        """The origin of `total_seconds`."""
        parts = self.share is not None and self.share.left_out
        return "measured + modelled" if parts else "measured"

    @property
    def mfu(self) -> float | None:
        """One device's planned FLOPs in the total time, as a share of its published peak; None where that says nothing.

        Work that several devices repeat counts for each of them.
        """
        if self.total_seconds is None or not self.peak_flops:
            return None
        return self.counts["flops"] / self.total_seconds / self.peak_flops

    def words(self) -> str:
        """Where this number comes from, in one line."""
        share = [self.share.words] if self.share else []
        return " · ".join([self.origin, *self._time(), *self._made(), *share, f"{self.when} UTC"])

    def _time(self) -> list[str]:
        spread = f", spread {self.spread:.0%} (slowest - fastest)" if len(self.seconds) > 1 else ""
        said = [f"median {format_seconds(self.median)} of {len(self.seconds)}{spread}"]
        return [*said, OWN_TIME] if self.simulated else said

    def _made(self) -> list[str]:
        where = self.where
        kind = "simulated CPU" if self.simulated else where["device_kind"]
        hosts = f" on {where['hosts']} hosts" if where["hosts"] > 1 else ""
        state = f"state carried from run to run ({', '.join(self.carried[:4])})" if self.carried else "same inputs"
        return [
            f"{where['devices']} x {kind}{hosts}", f"compiled apart in {format_seconds(self.compile_seconds)}",
            f"{count(self.warm_up, 'warm-up run')}, {state}", self._checked(), f"jax {self.versions.get('jax', '?')}",
        ]  # fmt: skip

    def _checked(self) -> str:
        error, against = self.check.get("error"), self.check.get("against", "")
        if error is None:
            return f"answer not checked: {against}"
        return f"answer checked against {against}: error {error:.2g}, allowed {self.check['tolerance']:.2g}"

    def __str__(self) -> str:
        lines = [f"{self.name} on mesh '{self.mesh}'", *self.words().split(" · ")]
        if self.total_seconds is not None and self.share is not None:
            lines.append(f"in all {format_seconds(self.total_seconds)} ({self.total_origin})")
        lines += [f"{name} {format_bytes(n_bytes)} a device" for name, n_bytes in self.memory.items()]
        return "\n  ".join(lines)

    def __repr__(self) -> str:
        own = ", simulated" if self.simulated else ""
        return f"<Measured {self.name}: median {format_seconds(self.median)} of {len(self.seconds)}{own} (measured)>"
