"""Importing costs little and never loads JAX."""

from __future__ import annotations

import subprocess
import sys

import pytest

import widgets

QUIET = "import sys; assert not {'jax', 'jaxlib', 'plotly'} & set(sys.modules), sorted(sys.modules)"


@pytest.mark.parametrize(
    "source",
    [
        "import mtfcore, widgets; import sys; assert 'ipywidgets' not in sys.modules",
        "from widgets import slices; slices().top.press({'axis.rows': 8})",
        "from widgets import PlotView; PlotView({'data': [], 'layout': {}})",
    ],
)
def test_no_jax(source):
    subprocess.run([sys.executable, "-c", f"{source}\n{QUIET}"], check=True, timeout=60)


def test_every_public_name_exists_and_is_no_module():
    for name in widgets.__all__:
        assert callable(getattr(widgets, name)), name


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(AttributeError, match="no attribute 'slice'; it has slices"):
        widgets.slice  # noqa: B018
