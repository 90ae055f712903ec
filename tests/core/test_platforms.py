"""JAX starts without a word where libtpu is installed and no TPU is; where one may be, it is left alone."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from mtfcore import platforms

needs_libtpu = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed here")


class Config(SimpleNamespace):
    """What `leave_out_tpus` needs of jax.config."""

    def update(self, name: str, value: str) -> None:
        setattr(self, name, value)


@needs_libtpu
@pytest.mark.parametrize("start", ["mtf.devices(2)", "mtf.single(prog)(ones)", "double(ones)"])
def test_nothing_alarming_is_printed(start):
    code = (
        "import numpy as np, mtfcore as mtf\n"
        "@mtf.function\ndef double(x: 'A B'):\n    return x + x\n"
        "prog = mtf.plan(double, 'x:2', 'A:x', sizes='A:2 B:4')\n"
        f"ones = np.ones((2, 4), np.float32)\nprint({start})"
    )
    environment = {n: v for n, v in os.environ.items() if n not in ("JAX_PLATFORMS", "JAX_NUM_CPU_DEVICES")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout


@needs_libtpu
def test_where_no_tpu_is_none_is_tried(tmp_path):
    config = Config(jax_platforms=None)
    assert platforms.leave_out_tpus(config, {}, tmp_path, others=False)
    assert config.jax_platforms == "cpu"


@needs_libtpu
def test_other_plugins_still_look_for_their_devices(tmp_path):
    config, environment = Config(jax_platforms=None), {"TPU_WORKER_ID": "3"}
    assert platforms.leave_out_tpus(config, environment, tmp_path, others=True)
    assert config.jax_platforms is None
    assert environment == platforms.ANSWERS | {"TPU_WORKER_ID": "3"}


@pytest.mark.parametrize("file", ["accel0", "vfio/0"])
def test_a_tpu_is_left_to_jax(tmp_path, file):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    config = Config(jax_platforms=None)
    assert not platforms.leave_out_tpus(config, {}, tmp_path, others=False)
    assert config.jax_platforms is None


def test_what_the_user_said_stands(tmp_path):
    config, environment = Config(jax_platforms="cuda,cpu"), {}
    assert not platforms.leave_out_tpus(config, environment, tmp_path, others=False)
    assert (config.jax_platforms, environment) == ("cuda,cpu", {})
