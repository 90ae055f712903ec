"""One strict session: 64 simulated devices, strict dtype promotion, repeatable random programs; pyproject.toml
adds that warnings are errors and that every test has a time limit.

All that JAX needs is said in environment variables, before JAX can start, and reaches the processes that tests
start. Importing this file must not load JAX, since tests check that `import mtfcore, widgets` does not. Tests
that take minutes carry the mark `long`, and run with `--long`.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

DEVICES = 64

# A collective on simulated devices that can never finish ends the process with a message; without this the
# suite hangs.
STUCK_COLLECTIVES = (
    "--xla_cpu_collective_call_warn_stuck_timeout_seconds=10 --xla_cpu_collective_call_terminate_timeout_seconds=60"
)

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = str(DEVICES)
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
os.environ["XLA_FLAGS"] = STUCK_COLLECTIVES

# Compiling makes one example slow and the next fast, so hypothesis's own clock means nothing here; every test
# has a limit. Derandomized: the same programs on every machine, and a failure prints the line that repeats it.
# The phase that explains a failure traces every line that runs, JAX's too, which takes minutes: it is left out.
_common = {
    "deadline": None,
    "print_blob": True,
    "derandomize": True,
    "suppress_health_check": [HealthCheck.too_slow],
    "phases": [phase for phase in Phase if phase is not Phase.explain],
}
settings.register_profile("default", max_examples=100, **_common)
settings.register_profile("long", max_examples=2_000, **_common)


@pytest.fixture(scope="session")
def real_model():
    """The model that `make test` fetches. With LITE=1 it may be missing; otherwise a test that needs it then fails."""
    from mtfcore.model.files import known, load

    path = known.path_of("smollm2-135m")
    if os.environ.get("LITE") == "1" and not path.is_file():
        pytest.skip("LITE=1: the real model was not fetched")
    assert path.is_file(), f"{path} is missing: python -m mtfcore.model fetch, or LITE=1 to leave such tests out"
    return load("smollm2-135m")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long", action="store_true", help="also run tests marked long, and more random programs in others"
    )


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("long" if config.getoption("--long") else "default")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave long tests out without a word for each: they are not missing, they are another command."""
    if config.getoption("--long") or "long" in config.getoption("markexpr"):
        return
    wanted, left_out = [], []
    for item in items:
        (left_out if "long" in item.keywords else wanted).append(item)
    items[:] = wanted
    config.hook.pytest_deselected(items=left_out)
