"""Which of our functions predicts a row: by its table, and in the headlines by its quantity.

    >>> predicted(rows(table="Table 1", quantity="context")[0]).value
    1332.0

Nothing is predicted of results of training, of choices, of ranges and of words: `left_out` of the row says why.
Next file to read: `comparing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mtfcore.costs.against_published.closed_forms import blocks, communication, crossing, two_layers
from mtfcore.costs.against_published.dimensions import cluster, context, dimension, hardware, kept
from mtfcore.costs.against_published.latencies import latency
from mtfcore.costs.against_published.prediction import Prediction
from mtfcore.errors import sure
from mtfcore.reference import Published, rows

LATENCIES = ("Table 2", "Table 3", "Table D.2", "Table D.3", "Table D.4", "Figure 1", "Figure 6", "Figure 7")
Predictor = Callable[[Published], Prediction]


def multiple(row: Published) -> Prediction:
    """One predicted row over another."""
    ours = {each.key: each for each in rows()}
    above, below = (sure(predicted(ours[key])) for key in row.setup["rows"])
    return Prediction(float(above.value) / float(below.value), above.bound)


BY_TABLE: Mapping[str, Predictor] = {
    "Table 1": context,
    "Table D.1": dimension,
    "Models": dimension,
    "Hardware": hardware,
    "Figure 3": communication,
    "Figure 3, crossings": crossing,
    "first paper, Table 1": two_layers,
    "first paper, Table 2": dimension,
    "first paper, Table 3": dimension,
    "first paper, Appendix B": blocks,
    "first paper, Cluster": cluster,
    **dict.fromkeys(LATENCIES, latency),
}
IN_HEADLINES: Mapping[str, Predictor] = {"cache": kept, "ratio": kept, "multiple": multiple}


def predictor(row: Published) -> Predictor | None:
    """The function that predicts a row; None where nothing does."""
    if row.left_out:
        return None
    return IN_HEADLINES.get(row.quantity, latency) if row.table == "Headlines" else BY_TABLE.get(row.table)


def predicted(row: Published) -> Prediction | None:
    """What this library says of a row's setup; None where the row is left out."""
    found = predictor(row)
    return found(row) if found else None
