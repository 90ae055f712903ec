"""The library example in README runs as it stands there."""

from __future__ import annotations

import pathlib
import re

import numpy as np

README = pathlib.Path(__file__).parents[2] / "README.md"


def example() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    return code


def test_the_example_prints_its_steps_and_computes_the_network(capsys):
    names: dict = {}
    exec(example(), names)
    assert "einsum" in capsys.readouterr().out
    random = np.random.default_rng(0)
    x, w, v = (random.standard_normal(shape, np.float32) for shape in ((64, 512), (512, 2048), (2048, 512)))
    expected = np.maximum(x @ w, 0) @ v
    np.testing.assert_allclose(np.asarray(names["run"](x, w, v)), expected, rtol=1e-4, atol=1e-2)
    assert names["run"].values(names["program"].steps[-1], 0).shape == (16, 512)


def test_the_example_is_short():
    assert len([line for line in example().splitlines() if line.strip()]) <= 10
