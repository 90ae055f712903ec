"""A page of its own: one HTML file that a browser shows with no server and no network, light or dark, wide or narrow.

    page("A class", "<p>28 students</p>")[:15]          # '<!DOCTYPE html>'

The browser is told (by the page's own content policy) to run no script and to fetch nothing, whatever stands in the
body. It has JupyterLab's variables, so what is made for a notebook looks the same here. Next file to read: `static`.
"""

from __future__ import annotations

import html
from pathlib import Path

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
STYLE = (Path(__file__).parent / "views" / "page.css").read_text(encoding="utf-8")


def page(title: str, body: str, style: str = "") -> str:
    """The whole file; `title` is escaped, `body` is HTML that is safe already."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
