"""Meshwork's library: name dimensions, lay them on a mesh, plan every collective, then run exactly that plan.

    import mtfcore as mtf
    mesh, layout = mtf.Mesh("rows:4 cols:2"), mtf.Layout("batch:rows hidden:cols")

Nothing here loads JAX until something is run. First file to read: `notation`.
"""

from mtfcore.dims import Dim
from mtfcore.errors import DeviceError, LayoutError, LayoutWarning, NotationError
from mtfcore.layout import Layout
from mtfcore.mesh import Mesh
from mtfcore.sharding import Sharding

__all__ = ["DeviceError", "Dim", "Layout", "LayoutError", "LayoutWarning", "Mesh", "NotationError", "Sharding"]
