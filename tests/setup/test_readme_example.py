"""The library examples in README run as they stand there, one after the other."""

from __future__ import annotations

import importlib.util
import pathlib
import re

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore import chips

README = pathlib.Path(__file__).parents[2] / "README.md"


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_examples_print_steps_compute_the_network_and_price_it(capsys, monkeypatch):
    monkeypatch.setitem(chips._ADDED, "my-chip", mtf.chip("v4"))  # so that it is taken out again at the end
    first, second = examples()[1:3]
    names: dict = {}
    exec(first, names)
    assert "einsum" in capsys.readouterr().out
    random = np.random.default_rng(0)
    x, w, v = (random.standard_normal(shape, np.float32) for shape in ((64, 512), (512, 2048), (2048, 512)))
    expected = np.maximum(x @ w, 0) @ v
    np.testing.assert_allclose(np.asarray(names["run"](x, w, v)), expected, rtol=1e-4, atol=1e-2)
    assert names["run"].values(names["program"].steps[-1], 0).shape == (16, 512)
    exec(second, names)
    assert "Bottleneck" in capsys.readouterr().out
    assert names["served"].fits and mtf.chip("my-chip").hbm_bytes_per_device == 128 * 2**30


def test_the_real_model_names_planets_and_says_what_it_sends(real_model, capsys):
    (names,) = ({"mtf": mtf},)
    exec(examples()[0], names)
    said = capsys.readouterr().out
    assert "prefill {}" in said and "decode {0: [" in said
    tokens = [token for line in re.findall(r"\{0: \[([\d, ]+)\]\}", said) for token in map(int, line.split(","))]
    assert "Mars" in names["found"].tokenizer.decode(tokens) and names["now"].finished == (0,)


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu has no wheel for this computer")
def test_a_phase_is_compiled_and_its_rings_are_priced(capsys):
    exec(examples()[3], {"mtf": mtf})
    said = capsys.readouterr().out
    assert "compiled" in said and "modelled" in said


def test_each_example_is_short():
    assert max(len([line for line in code.splitlines() if line.strip()]) for code in examples()) <= 10
