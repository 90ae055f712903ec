"""The layouts that are rules alone (`Partition`), each with a mesh of 8 devices: one that is added is tested by these.

>>> MESHES["mtf-2d"]
'rows:2 cols:4'
"""

from __future__ import annotations

import mtfcore as mtf
from mtfcore.model.partitioning import Partition

_SIZES = {1: "{}:8", 2: "{}:2 {}:4", 3: "{}:2 {}:2 {}:2"}
PARTITIONS = {name: found for name, found in mtf.model.partitions.items() if isinstance(found, Partition)}
MESHES = {name: _SIZES[len(found.axes)].format(*found.axes) for name, found in PARTITIONS.items()}
