"""Write every page of this folder that is made from the code: `make docs`, or `python docs`.

The API reference from docstrings, the words of every refusal from the catalogue of wrong calls, the supported versions
from pyproject.toml. Tests say when this was forgotten. First file to read: `reference.py`.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
# What tests have too: some messages name how many devices there are.
os.environ |= {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "64", "JAX_NUMPY_DTYPE_PROMOTION": "strict"}


def main() -> None:
    """Each kind of page writes itself where it changed."""
    from errors import page

    from docs import reference, versions

    reference.main()
    page.main()
    versions.main()


if __name__ == "__main__":
    main()
