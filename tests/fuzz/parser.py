"""One thing that reads what others wrote: how it is called, real examples, and the errors that it may end in.

    mesh = Parser(mtf.Mesh, fixed("rows:4 cols:2"))      # any error but a LayoutError would be a fault

Next file to read: `names`.
"""

from __future__ import annotations

import pathlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fuzz import mutating

from mtfcore.errors import LayoutError

ROOT = pathlib.Path(__file__).parents[2]
Change = Callable[[random.Random, Any], Any]


@dataclass(frozen=True)
class Parser:
    """One of them. `seeds` are made when first asked for, since some take a model file."""

    read: Callable[..., Any]
    seeds: Callable[[], Sequence[Any]]
    change: Change = mutating.texts
    errors: tuple[type[BaseException], ...] = (LayoutError,)
    in_folder: bool = False  # whether `read` is given an empty folder to lay the example in


def fixed(*seeds: Any) -> Callable[[], Sequence[Any]]:
    return lambda: seeds
