"""The look of what students and teachers read about progress: the frame's, and tables of its own.

Next file to read: `progress_view.py`.
"""

from pathlib import Path

from widgets.static import STYLE as FRAME

STYLE = FRAME + Path(__file__).with_name("learning.css").read_text(encoding="utf-8")
