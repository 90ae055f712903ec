"""Whether the packages that are installed can reach a chip: what is missing or does not fit together, and the cure.

    >>> mismatch("NVIDIA GPU", machine)
    ('an NVIDIA GPU is here, but JAX has no plugin for it', "pip install 'jax[cuda12]==0.10.2'")

JAX leaves out a plugin that does not fit with a warning and goes on with the CPU; here it is a state with words. Only
versions are read: nothing is imported. Next file to read: `chip_state`.
"""

from __future__ import annotations

import importlib.util

from mtfcore.machine import Machine

CUDA = ("jax-cuda13", "jax-cuda12")  # each comes as a plugin and as its runtime, in the version of jaxlib
Fault = tuple[str, str]  # words and the cure


def mismatch(chip: str, machine: Machine) -> Fault | None:
    """What keeps JAX from this kind of chip ("TPU", "NVIDIA GPU"); None if nothing that can be seen does."""
    jax = machine.version("jax")
    if jax is None:
        return f"a {chip} is here, but JAX is missing", "run `make lab` in the project's folder"
    extra = "tpu" if chip == "TPU" else "cuda12"
    cure = f"pip install 'jax[{extra}]=={jax}'"
    return _jaxlib(jax, machine) or (_libtpu if chip == "TPU" else _cuda)(jax, machine, cure)


def _jaxlib(jax: str, machine: Machine) -> Fault | None:
    found = machine.version("jaxlib")
    if found and not any(_is_older(found, least) for least in _wanted(machine, "jaxlib", "")):
        if not _is_older(jax, found):
            return None
    what = f"jaxlib {found} does not fit jax {jax}" if found else f"jaxlib, the half of jax {jax} that runs, is missing"
    return what, f"pip install 'jax=={jax}' 'jaxlib=={jax}'"


def _libtpu(jax: str, machine: Machine, cure: str) -> Fault | None:
    """libtpu may be newer than the one that JAX was made with, not older."""
    found = machine.version("libtpu")
    if found is None:
        return "a TPU's driver is here, but libtpu, through which JAX reaches it, is not installed", cure
    for least in _wanted(machine, "libtpu", "tpu"):
        if _is_older(found, least):
            return f"libtpu {found} is older than {least}, with which jax {jax} was made", cure
    return None


def _cuda(jax: str, machine: Machine, cure: str) -> Fault | None:
    made = {name: (machine.version(f"{name}-plugin"), machine.version(f"{name}-pjrt")) for name in CUDA}
    there = {name: versions for name, versions in made.items() if any(versions)}
    if not there:
        return "an NVIDIA GPU's driver is here, but JAX has no plugin for it", cure
    jaxlib = machine.version("jaxlib")
    if any(versions == (jaxlib, jaxlib) for versions in there.values()):
        return None
    (name, (plugin, runtime)) = next(iter(there.items()))
    words = f"{name}-plugin is {plugin or 'missing'}, {name}-pjrt {runtime or 'missing'}, jaxlib {jaxlib}: JAX leaves"
    return f"{words} out what is not of its own version", cure


def _wanted(machine: Machine, package: str, extra: str) -> list[str]:
    """The versions from which on JAX wants a package, as its own metadata says; none where nothing reads them."""
    if importlib.util.find_spec("packaging") is None:
        return []
    from packaging.requirements import Requirement

    asked = [Requirement(text) for text in machine.requires("jax")]
    here = [r for r in asked if r.name == package and (r.marker is None or r.marker.evaluate({"extra": extra}))]
    return [one.version.removesuffix(".*") for r in here for one in r.specifier if one.operator in ("==", ">=", "~=")]


def _is_older(found: str, than: str) -> bool:
    if importlib.util.find_spec("packaging") is None:
        return False
    from packaging.version import Version

    return Version(found) < Version(than)
