"""Looped collective einsum: a collective and the product beside it as rings of permutes, so that both run at once.

Source: Wang et al., "Overlap communication with dependent computation via decomposition in large deep learning models"
(ASPLOS 2023); used by arXiv 2211.05102, section 3.5. First file to read: `rings`, then `spots`, `rewriting`,
`chains`, `gathering`, `scattering`, `looping`, `paying`.
"""

from mtfcore.overlap.looping import looped, refused
from mtfcore.overlap.paying import pays

__all__ = ["looped", "pays", "refused"]
