"""Every published figure that can be computed beside what this library says of it.

    python -m mtfcore.costs.against_published "Table D.2"          # one table; without a name, all of them

    >>> from mtfcore.costs.against_published import compare, table_of
    >>> table_of(compare("Table 1")).rows[0]["ours"]
    '1,332 tokens'

The figures are `mtfcore.reference`'s; ours are modelled, published ones say where they are printed. First file to
read: `prediction`.
"""

from mtfcore.costs.against_published.comparing import Comparison, compare, left_out, table_of
from mtfcore.costs.against_published.explained import EXPLAINED
from mtfcore.costs.against_published.predicting import predicted
from mtfcore.costs.against_published.prediction import Prediction
from mtfcore.costs.against_published.summing import Errors, errors, latencies, summary

__all__ = [
    "EXPLAINED", "Comparison", "Errors", "Prediction", "compare", "errors", "latencies", "left_out", "predicted",
    "summary", "table_of",
]  # fmt: skip
