"""What int8 weights do to a model: the rounding error of every matrix, and of the logits.

    >>> cfg = mtf.model.config("tiny-grouped")
    >>> table = mtf.model.quantisation_error(cfg, mtf.model.initial(cfg), prompts=[[1, 5, 9], [2, 7]])
    >>> table.rows[0]["matrix"], round(table.rows[0]["rms"], 4)                    # print(table) shows all of it
    ('wq', 0.0059)

A matrix w is stored as whole numbers with one scale for each output, w ≈ i8 · scale (`storing`): the largest weight of
an output stands at ±127, so each is wrong by at most half a step, 1/254 of that largest. How much that is beside the
weights as they are is what matters, and it differs from matrix to matrix: one large weight spoils its whole output.
Logits are those of the whole model on whole arrays, with the weights as they are and as they come back from int8; all
else is the same. Source: arXiv 2211.05102, section 3.6. Next file to read: `past`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mtfcore.errors import LayoutError, expect
from mtfcore.model.configs import Config, config
from mtfcore.model.storing import OUTPUTS, as_floats, summed, whole_numbers
from mtfcore.numbers import count
from mtfcore.tables import Column, Row, Table

_PERCENT = "{:.2%}".format
COLUMNS = (
    Column("matrix", "matrix"), Column("dims", "dimensions"), Column("weights", "weights", "{:,}".format, True),
    Column("rms", "error, rms", _PERCENT, True), Column("largest", "largest error", _PERCENT, True),
)  # fmt: skip
_MEANING = ("error, rms: root mean square of w - i8 · scale, as a share of that of w; largest error: as a share of the "
            "largest weight of its output, at most 1/254 = 0.39%")  # fmt: skip


def quantisation_error(cfg: Config | str, params: Mapping[str, Any], prompts: Sequence[Sequence[int]] = ()) -> Table:
    """A row for each matrix, and, with prompts (lists of token ids), what becomes of their logits (counted).

    `cfg`: a configuration or its name; `params`: name → array.

    Source: arXiv 2211.05102, section 3.6.
    """
    cfg = config(cfg)
    expect(params, Mapping, "parameters by name, such as mtf.model.initial(cfg)")
    rows = [_row(cfg, params, name) for name in _matrices(cfg)]
    worst = max(row["rms"] for row in rows)
    for row in rows:
        row["worst"] = row["rms"] == worst
    notes = (f"{_MEANING} (counted).", *([str(logits_error(cfg, params, prompts))] if len(prompts) else []))
    title = f"{cfg.name}: what int8 weights round away"
    return Table(COLUMNS, rows, title, _total(rows), notes, marked="worst")


def rounded_once(cfg: Config, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters as they come back from int8, f32, each made when it is asked for."""
    return _Rounded(cfg, params)


# ---- matrices -----------------------------------------------------------------------------------------------------


def _matrices(cfg: Config) -> list[str]:
    return [name for name in cfg.params if name in OUTPUTS]


def _row(cfg: Config, params: Mapping[str, Any], name: str) -> Row:
    """Errors of one matrix; its square sums too, from which those of all follow."""
    exact, error, largest = _weighed(cfg, params, name)
    squares, wrong = (float(np.square(a, dtype=np.float64).sum()) for a in (exact, error))
    worst = float((np.abs(error) / np.where(largest == 0, 1, largest)).max())
    rms = (wrong / squares) ** 0.5 if squares else 0.0
    return {"matrix": name, "dims": cfg.params[name].text, "weights": exact.size, "rms": rms, "largest": worst,
            "squares": squares, "wrong": wrong}  # fmt: skip


def _weighed(cfg: Config, params: Mapping[str, Any], name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A matrix, how far int8 is from it, and the largest weight of each output."""
    words = cfg.params[name].text.split()
    exact = as_floats(np.asarray(params[name]), "f32")
    over = summed(name, words)
    whole, scale = whole_numbers(exact, over)
    back = whole * np.expand_dims(scale, over)
    return exact, back - exact, np.abs(exact).max(over, keepdims=True)


def _total(rows: Sequence[Row]) -> Row:
    squares, wrong = (sum(row[key] for row in rows) for key in ("squares", "wrong"))
    return {"matrix": "all", "weights": sum(row["weights"] for row in rows), "largest": max(r["largest"] for r in rows),
            "rms": (wrong / squares) ** 0.5 if squares else 0.0}  # fmt: skip


class _Rounded(Mapping):
    def __init__(self, cfg: Config, params: Mapping[str, Any]) -> None:
        self.cfg, self.params = cfg, params

    def __getitem__(self, name: str) -> Any:
        if name not in OUTPUTS:
            return self.params[name]
        exact, error, _ = _weighed(self.cfg, self.params, name)
        return exact + error

    def __iter__(self) -> Iterator[str]:
        return iter(self.params)

    def __len__(self) -> int:
        return len(self.params)


# ---- logits -------------------------------------------------------------------------------------------------------


class LogitsError(NamedTuple):
    """How far the logits of so many tokens are from those of the weights as they are."""

    tokens: int
    rms: float  # root mean square, as a share of that of the logits
    largest: float
    largest_logit: float
    same: int  # tokens whose likeliest next one is the same

    def __str__(self) -> str:
        return (f"logits of {count(self.tokens, 'token')}: error, rms {self.rms:.2%}, largest {self.largest:.3g} where "
                f"the largest logit is {self.largest_logit:.3g}; the likeliest next token is the same for {self.same} "
                f"of {self.tokens} (counted)")  # fmt: skip


def logits_error(cfg: Config, params: Mapping[str, Any], prompts: Sequence[Sequence[int]]) -> LogitsError:
    """The whole model with both, on every token of the prompts."""
    tokens, real = _window(cfg, prompts)
    logits = _oracle(cfg, tokens)
    exact, other = (logits(given)[real] for given in (params, rounded_once(cfg, params)))
    apart, same = np.abs(other - exact), exact.argmax(-1) == other.argmax(-1)
    share = float(np.sqrt(np.mean(apart**2) / np.mean(exact**2)))
    return LogitsError(len(exact), share, float(apart.max()), float(np.abs(exact).max()), int(same.sum()))


def _window(cfg: Config, prompts: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Prompts as i32[B, L], filled up behind, where a causal model does not look; and which places are real."""
    if cfg.encoder_layers or not cfg.causal:
        raise LayoutError(f"{cfg.name} is no causal decoder alone: leave prompts out, or give another model")
    lengths = np.array([len(prompt) for prompt in prompts])
    real = np.arange(lengths.max()) < lengths[:, None]
    tokens = np.zeros(real.shape, np.int32)
    tokens[real] = np.concatenate([np.asarray(prompt) for prompt in prompts])
    return tokens, real


def _oracle(cfg: Config, tokens: np.ndarray) -> Callable[[Mapping[str, Any]], np.ndarray]:
    """Parameters → logits `B L V` of the whole model on whole arrays; compiled once for all that are asked."""
    import mtfcore as mtf

    plan = mtf.plan(mtf.model.forward(cfg), "x:1", sizes=f"B:{tokens.shape[0]} L:{tokens.shape[1]}", dtype="f32")
    run = mtf.single(plan)
    return lambda params: np.asarray(run(inputs=tokens, **params), np.float32)
