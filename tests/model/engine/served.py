"""Models to serve, and what plain forward passes over whole sequences make of a prompt."""

import functools

import numpy as np

import mtfcore as mtf

LONGEST = 48

MODELS = {
    "multiquery": ("tiny-palm", {}),
    "multiquery, serial": ("tiny-palm", {"block": "serial", "norm": "rms"}),
    "grouped": ("tiny-grouped", {}),
    "multihead": ("tiny-lm", {"biases": True}),
    "odd vocabulary": ("tiny-lm", {"vocab": 251}),
}


LOUDER = {"wq": 3, "wo": 8, "w_out": 4}  # so that what was said before decides what comes next


@functools.cache
def model(name):
    """Configuration, and parameters with which the next token hangs on all before it."""
    base, changes = MODELS[name]
    cfg = mtf.model.config(base, **changes)
    return cfg, {key: array * LOUDER.get(key, 1) for key, array in mtf.model.initial(cfg).items()}


def prompts(cfg, lengths, seed=0):
    """Random tokens."""
    random = np.random.default_rng(seed)
    return [random.integers(0, cfg.vocab, n).tolist() for n in lengths]


@functools.cache
def _forward(name, rows):
    cfg = model(name)[0]
    return mtf.single(mtf.plan(mtf.model.forward(cfg), "x:1", sizes=f"B:{rows} L:{LONGEST}"))


def scores(name, rows):
    """Logits f32[rows, V] behind each row of tokens: a forward pass over everything, padded behind."""
    tokens = np.zeros((len(rows), LONGEST), np.int32)
    for place, row in zip(tokens, rows):
        place[: len(row)] = row
    found = np.asarray(_forward(name, len(rows))(inputs=tokens, **model(name)[1]))
    return np.stack([found[n, len(row) - 1] for n, row in enumerate(rows)])


def greedy(name, starts, most):
    """The likeliest tokens, one after the other; every choice is clear of float32's rounding."""
    rows = [list(start) for start in starts]
    for _ in range(most):
        found = scores(name, rows)
        two = np.sort(found, axis=-1)[:, -2:]
        assert np.all(two[:, 1] - two[:, 0] > 1e-4 * np.abs(found).max()), "two tokens are nearly as likely"
        for row, token in zip(rows, found.argmax(-1)):
            row.append(int(token))
    return [row[len(start) :] for row, start in zip(rows, starts)]
