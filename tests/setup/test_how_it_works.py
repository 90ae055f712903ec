"""The page `docs/how_it_works.md` is run: each block of Python prints the block of text below it."""

import contextlib
import io
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how_it_works.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def test_every_block_prints_what_stands_below_it():
    world: dict = {}
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) == PAGE.count("```python") >= 5
    for code, expected in blocks:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, "how_it_works.md", "exec"), world)
        assert said.getvalue().rstrip() == expected.rstrip()


def test_the_page_has_two_pages_and_its_links_arrive():
    assert len(re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL).split()) < 1000
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).resolve().exists(), target
