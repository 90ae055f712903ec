"""Partitions: where the Transformer's dimensions lie, as data with names.

    >>> mtf.model.partitions["mtf-2d"].words
    'batch:rows vocab:cols d_ff:cols heads:cols'
    >>> mtf.model.read_layout("batch:rows vocab:cols d_ff:cols heads:cols")
    Layout('B:rows V:cols F:cols H:cols')

No layer ever asks for the name of its partition: these are rules, dimension → mesh axes, and the plan follows. Those of
the second paper (`ws2d-batch` and its kin) have rules for the residual stream, and pins besides: see `serving`. Words
are those of Mesh-TensorFlow, letters those of the second paper; the model's tensors have letters, and both are read.
Source: Mesh-TensorFlow (arXiv 1811.02084), section 9. Next file to read: `mtfcore.layout`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.layout import Layout
from mtfcore.model.serving import SERVING, ServingPartition

WORDS = {  # Mesh-TensorFlow's word → our letter
    "batch": "B", "length": "L", "d_model": "E", "d_ff": "F", "heads": "H", "kv_heads": "K", "d_k": "D", "d_v": "D",
    "head_size": "D", "vocab": "V", "memory_length": "S", "max_length": "P", "layers": "layers",
    "encoder_layers": "encoder_layers", "experts": "X",
}  # fmt: skip
LETTERS = tuple(dict.fromkeys(WORDS.values()))


@dataclass(frozen=True)
class Partition:
    """A named layout of the Transformer: its rules in words, the mesh axes they use, what it is for, its source."""

    name: str
    words: str
    axes: tuple[str, ...]
    idea: str
    source: str

    @property
    def layout(self) -> Layout:
        """The rules in letters, as `mtf.plan` takes them."""
        return read_layout(self.words)


_SECTION_9 = "Mesh-TensorFlow, arXiv 1811.02084, section 9"

_ALL: tuple[Partition | ServingPartition, ...] = (
    Partition(
        "mtf-data", "batch:all", ("all",), "data-parallel: every device has all the weights",
        "Mesh-TensorFlow, arXiv 1811.02084, section 3",
    ),
    Partition(
        "mtf-1d", "vocab:all d_ff:all heads:all", ("all",),
        "model-parallel: each expensive product has exactly one split dimension", _SECTION_9,
    ),
    Partition(
        "mtf-2d", "batch:rows vocab:cols d_ff:cols heads:cols", ("rows", "cols"),
        "data-parallel over rows, model-parallel over cols: 16 x 32 for the largest models", _SECTION_9,
    ),
    Partition(
        "mtf-3d", "batch:rows vocab:cols d_ff:cols heads:cols d_model:planes", ("rows", "cols", "planes"),
        "section 8's third dimension: each weight is split over two axes, and each product sums over one",
        "Mesh-TensorFlow, arXiv 1811.02084, Table 1 and Appendix B, applied to the Transformer",
    ),
    *SERVING.values(),
)  # fmt: skip
partitions: dict[str, Partition | ServingPartition] = {partition.name: partition for partition in _ALL}


def read_layout(text: Any) -> Layout:
    """A layout of the Transformer, in words or letters or as the name of a partition, in letters.

    `text`: such as "batch:rows d_ff:cols", "B:rows F:cols" or "mtf-2d".

    Raises `LayoutError` for dimensions that no Transformer has, and for a partition's name that is none.

        >>> mtf.model.read_layout("batch:rows d_ff:cols")
        Layout('B:rows F:cols')
    """
    if isinstance(text, (Partition, ServingPartition)):
        return text.layout
    named = text.strip() if isinstance(text, str) else ""
    if named in partitions:
        return partitions[named].layout
    if re.fullmatch(r"[\w-]*-[\w-]*", named):  # one word that no layout can be
        raise LayoutError(f"no partition {named[:100]!r}; {nearest(named[:100], partitions)}")
    rules = Layout(text).rules
    known = [*WORDS, *LETTERS]
    faults = [f"no dimension {name!r} in a Transformer; {nearest(name, known)}" for name, _ in rules
              if name not in known]  # fmt: skip
    refuse(faults, f"layout '{text}'")
    return Layout([(WORDS.get(name, name), axes) for name, axes in rules])
