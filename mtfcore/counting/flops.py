"""FLOPs of products and convolutions, and how often a loop turns: the arithmetic that all three readers share.

    >>> matmul_flops((64, 512), (512, 2048), rhs_used=[0])
    134217728

Next file to read: `facts`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod


def matmul_flops(lhs: Sequence[int], rhs: Sequence[int], rhs_used: Iterable[int]) -> int:
    """2 a multiply-add: every element of lhs meets those dimensions of rhs that are neither contracted nor batch."""
    used = set(rhs_used)
    return 2 * prod(lhs) * prod(size for i, size in enumerate(rhs) if i not in used)


MOST_MEETINGS = 20_000_000  # along one dimension; they are looked at one by one


@dataclass(frozen=True)
class Window:
    """One spatial dimension of a convolution."""

    size: int  # of the input
    kernel: int
    out: int
    stride: int = 1
    pad: int = 0  # before the input; negative crops
    dilate: int = 1  # of the input
    kernel_dilate: int = 1

    def multiply_adds(self) -> int:
        """Pairs (output, kernel) that meet a real input element: padding and the holes of dilation are no work."""
        if self.out * self.kernel > MOST_MEETINGS:
            raise ValueError(f"a convolution of {self.out:,} results by a kernel of {self.kernel:,} is too large")
        last = (self.size - 1) * self.dilate
        meetings = product(range(self.out), range(self.kernel))
        places = (o * self.stride + k * self.kernel_dilate - self.pad for o, k in meetings)
        return sum(0 <= place <= last and place % self.dilate == 0 for place in places)


def convolution_flops(batch: int, features_out: int, kernel_features_in: int, windows: Iterable[Window]) -> int:
    """2 a multiply-add. `batch` and `features_out` are the output's; the kernel's inputs are already per group."""
    return 2 * batch * features_out * kernel_features_in * prod(w.multiply_adds() for w in windows)


def trip_count(start: int, bound: int, step: int, direction: str) -> int | None:
    """Runs of `while (i DIRECTION bound) i += step`, or None where that never ends (or cannot be read)."""
    if direction in ("GT", "GE"):
        return trip_count(-start, -bound, -step, {"GT": "LT", "GE": "LE"}[direction])
    if direction == "NE":
        direction = "LT" if step and (bound - start) % step == 0 else "never"
        start, bound, step = (start, bound, step) if step > 0 else (-start, -bound, -step)
    if direction not in ("LT", "LE"):
        return None
    bound += direction == "LE"
    if start >= bound:
        return 0
    return -((start - bound) // step) if step > 0 else None
