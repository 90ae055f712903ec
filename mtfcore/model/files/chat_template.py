"""placeholder"""

from __future__ import annotations


class ChatTemplate:
    def __init__(self, source, tokenizer, about):
        self.source = source
