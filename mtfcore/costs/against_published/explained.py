"""Why a latency is far from its published value: one sentence for each row that is more than a fifth off.

    >>> EXPLAINED["Figure 7: weight-gathered, 64 sequences: latency"][:48]
    'Our total adds the gathers of weights to the pro'

A test holds every sentence against the published figures, and refuses rows that far off without one. Next file to
read: `summing`.
"""

from __future__ import annotations

from collections.abc import Mapping

FAR = 0.2  # a relative error that needs an explanation
_OVERLAP = (
    "Our total adds the gathers of weights to the products. Here they overlap (section 3.5): twice the sequences take "
    "4 % longer, and from 64 to 512 each further one takes less than its products at the chips' peak."
)
EXPLAINED: Mapping[str, str] = {
    "Figure 7: weight-gathered, 64 sequences: latency": _OVERLAP,
    "Figure 7: weight-gathered, 64 sequences: MFU": _OVERLAP,
}
