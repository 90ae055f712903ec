"""Words beside marks that do not lie on each other: the first free place of several, or none.

    >>> labels = Labels(420, 300)
    >>> labels.place("C:64 B:1", 400, 50), labels.place("C:64 B:2", 400, 50)
    ((348.0, 44.0), (348.0, 64.0))

Next file to read: `bars_svg`.
"""

from __future__ import annotations

from collections.abc import Iterator

Box = tuple[float, float, float, float]  # left, top, right, bottom
WIDE, HIGH = 0.56, 1.0  # of a letter, in its size


class Labels:
    """What is taken on a chart so far."""

    def __init__(self, width: float, height: float, size: float = 10.0) -> None:
        self.width, self.height, self.size = width, height, size
        self.taken: list[Box] = []

    def avoid(self, x: float, y: float, room: float) -> None:
        """A mark lies there."""
        self.taken.append((x - room, y - room, x + room, y + room))

    def block(self, box: Box) -> None:
        """No words there."""
        self.taken.append(box)

    def place(self, words: str, x: float, y: float, room: float = 6.0) -> tuple[float, float] | None:
        """Where words may begin (left end, foot) beside a mark at x, y; None where all is taken."""
        width = WIDE * self.size * len(words)
        for left, foot in _beside(x, y, room, width, self.size):
            box = (left, foot - HIGH * self.size, left + width, foot)
            if self._is_inside(box) and not any(_meet(box, other) for other in self.taken):
                self.taken.append(box)
                return left, foot
        return None

    def _is_inside(self, box: Box) -> bool:
        return box[0] >= 0 and box[1] >= 0 and box[2] <= self.width and box[3] <= self.height


def _beside(x: float, y: float, room: float, width: float, size: float) -> Iterator[tuple[float, float]]:
    """Right, left, above, below; first level, then higher and lower."""
    for foot in (y + 0.35 * size, y - room, y + room + 0.8 * size):
        yield x + room, foot
        yield x - room - width, foot
    for foot in (y - room - 2, y + room + size, y - room - size - 2, y + room + 2 * size):
        yield x - width / 2, foot


def _meet(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
