"""What the frontier looks at: every slice and batch of the models, chips and types that a reader names.

    >>> [(model, step[0].topology) for model, step in search({**START, "models": "palm-8b", "most_chips": 2})][:2]
    [('palm-8b', 'v4:1x1x1'), ('palm-8b', 'v4:1x1x1')]

Next file to read: `frontier`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtfcore.errors import LayoutError, nearest
from widgets.explorers import plan_inputs
from widgets.explorers.estimates import Setup, could_hold
from widgets.explorers.plan_finding import read_chips

MOST_MODELS = 5


def read_list(text: str) -> list[str]:
    """Models, separated by commas, each once."""
    names = list(dict.fromkeys(filter(None, (" ".join(name.split()) for name in text.split(",")))))
    if not names:
        raise LayoutError("no model is named; write e.g. palm-540b, palm-62b")
    if len(names) > MOST_MODELS:
        raise LayoutError(f"{len(names)} models; at most {MOST_MODELS} have colours of their own")
    return names


def read_types(text: str) -> list[str]:
    """Types of weights, each once."""
    names = list(dict.fromkeys(text.replace(",", " ").split()))
    unknown = [name for name in names if name not in plan_inputs.TYPES]
    if unknown or not names:
        raise LayoutError(f"weights {' '.join(unknown) or '(none)'}: {nearest(' '.join(unknown), plan_inputs.TYPES)}")
    return names


def search(state: Mapping[str, Any]) -> list[tuple[str, tuple[Setup, ...]]]:
    """Every slice whose memory holds the weights, at every batch, with the model's name; fewest chips first."""
    batches = [1 << power for power in range(state["most_batch"].bit_length())]
    given = {name: state[name] for name in ("input_tokens", "output_tokens", "cache")}
    found = [
        (model, tuple(Setup(cfg, str(one), batch, weights=weights, **given) for batch in batches))
        for model, cfg in ((name, plan_inputs.read_model(name)) for name in read_list(state["models"]))
        for weights in read_types(state["weights"])
        for chip in read_chips(state["chips"])
        for one in plan_inputs.slices_of(chip, state["most_chips"])
    ]
    return sorted((each for each in found if could_hold(each[1][0])), key=lambda each: each[1][0].chips)
