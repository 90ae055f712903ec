"""What a student typed into a notebook is never lost: a copy is kept before the notebook is written anew.

A generated notebook carries a digest of its cells' text. Whoever types into one changes the text and not the digest,
so it is known, without git, which notebooks somebody worked in; outputs alone do not count. The copy lies beside the
notebook, `04_sharded_einsum.mine-1.ipynb`, so that its links and the progress file still serve it; git does not see it.

Next file to read: `update`.
"""

import hashlib
import json
import pathlib
import shutil


def digest(cells: list[dict]) -> str:
    """Twelve hex digits that stand for the text of all cells; which are markdown and which code counts too."""
    texts = [[cell["cell_type"], "".join(cell["source"])] for cell in cells]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:12]


def is_typed_in(notebook: pathlib.Path) -> bool:
    """Whether the text differs from what was generated; True also where that cannot be told."""
    try:
        data = json.loads(notebook.read_text(encoding="utf-8"))
        return data["metadata"]["meshwork"]["cells"] != digest(data["cells"])
    except (OSError, ValueError, KeyError, TypeError):
        return True


def keep(notebook: pathlib.Path) -> pathlib.Path:
    """Copy a notebook to a free name beside it, and say which."""
    number = 1
    while (copy := notebook.with_name(f"{notebook.stem}.mine-{number}.ipynb")).exists():
        number += 1
    return pathlib.Path(shutil.copyfile(notebook, copy))
