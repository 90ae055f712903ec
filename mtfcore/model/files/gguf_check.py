"""A GGUF file's header held against the file's size, before a reader allocates anything by it.

    >>> gguf_check.check(Path("mine.gguf"))
    LayoutError: mine.gguf: tensor 'blk.3.attn_q.weight' ends at byte 98,362,433 of a file of 98,362,432; …

A header is a chain of lengths that somebody else wrote: one wrong number, and a reader asks for more memory than there
is, or reads text where numbers are. Here each is bounded by what is left of the file before it is used, and all of a
tensor must lie behind the header, aligned, and beside the others. What passes is then read by the library `gguf`.
Source: the format's description in ggml (docs/gguf.md). Next file to read: `gguf_model`.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from mtfcore.errors import LayoutError
from mtfcore.model.files.reading import kind_of, mapped

VERSIONS = (2, 3)
LEAST_BYTES = 24  # magic, version, two counts
MOST_ITEMS = 2_000_000  # of all lists in a header together: a vocabulary of 256,000 has less than half of that
MOST_DIMS, MOST_NAME, MOST_ALIGNMENT = 4, 256, 1 << 20
# value type → bytes; the two that have a length of their own
SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
U32, BOOL, TEXT, LIST = 4, 7, 8, 9
OWN_NAMES = ("GGUF.version", "GGUF.tensor_count", "GGUF.kv_count")  # what the reader calls the header's own numbers


def check(path: Path) -> None:
    """Refuse a file whose header cannot be true; reads nothing but the header."""
    with mapped(path, LEAST_BYTES) as data:
        _Header(path.name, data).check()


class _Header:
    """A place in a file's header that moves on as it is read."""

    def __init__(self, name: str, data: mmap.mmap) -> None:
        self.name, self.data, self.size, self.at, self.items = name, data, len(data), 0, 0
        self.alignment = 32

    def fault(self, what: str) -> NoReturn:
        """Refuse the file."""
        raise LayoutError(f"{self.name}: {what}; it may have been cut off or changed while it was copied")

    def check(self) -> None:
        """All of the header, in the order in which it lies."""
        self.begin()
        n_tensors, n_values = self.number("<Q", "the count of tensors"), self.number("<Q", "the count of values")
        self.bounded(n_tensors, 24, "tensors")
        self.bounded(n_values, 13, "values")
        names = set(OWN_NAMES)
        for _ in range(n_values):
            self.value(self.new_name(names, "a value"))
        names, tensors = set(), {}
        for _ in range(n_tensors):
            name = self.new_name(names, "a tensor")
            tensors[name] = self.tensor(name)
        self.places(tensors)

    def begin(self) -> None:
        if self.data[:4] != b"GGUF":
            raise LayoutError(f"{self.name} is no GGUF file; it seems to be {kind_of(self.data[:8])}")
        self.at = 4
        version = self.number("<I", "the version")
        if version & 0xFFFF == 0:
            raise LayoutError(f"{self.name} was written for machines of the other byte order; convert it again")
        if version not in VERSIONS:
            raise LayoutError(f"{self.name} is of GGUF version {version}; versions {VERSIONS} are read")

    # ---- pieces -----------------------------------------------------------------------------------------------------

    def number(self, form: str, what: str) -> int:
        """One whole number."""
        n_bytes = struct.calcsize(form)
        self.bounded(1, n_bytes, what)
        (found,) = struct.unpack_from(form, self.data, self.at)
        self.at += n_bytes
        return found

    def bounded(self, count: int, n_bytes: int, what: str) -> None:
        """Refuse a count of pieces of at least so many bytes that what is left of the file cannot hold."""
        left = self.size - self.at
        if count * n_bytes > left:
            self.fault(f"{what} at byte {self.at:,} would take {count * n_bytes:,} bytes or more, {left:,} are left")

    def text(self, what: str, most: int | None = None) -> str:
        """A length and that many bytes of UTF-8."""
        length = self.number("<Q", f"the length of {what}")
        self.bounded(length, 1, what)
        if most is not None and length > most:
            self.fault(f"{what} at byte {self.at:,} has {length:,} bytes; a name has at most {most}")
        try:
            found = self.data[self.at : self.at + length].decode("utf-8")
        except UnicodeDecodeError:
            self.fault(f"{what} at byte {self.at:,} is no UTF-8 text")
        self.at += length
        return found

    def new_name(self, names: set[str], what: str) -> str:
        """A name that has not been given yet."""
        name = self.text(f"the name of {what}", MOST_NAME)
        if name in names:
            self.fault(f"the name {name!r:.100} stands twice")
        names.add(name)
        return name

    def value(self, name: str) -> None:
        """One value of the metadata; lists of lists are none that a model has."""
        kind = self.number("<I", f"the type of {name!r:.100}")
        if kind != LIST:
            found = self.item(kind, name)
            if name == "general.alignment":
                self.align(kind, found)
            return
        kind = self.number("<I", f"the type in the list {name!r:.100}")
        count = self.number("<Q", f"the length of the list {name!r:.100}")
        self.items += count
        self.bounded(count, 8 if kind == TEXT else SCALARS.get(kind, 1), f"the list {name!r:.100}")
        if self.items > MOST_ITEMS:
            self.fault(f"its lists have {self.items:,} items up to {name!r:.100}; no model has over {MOST_ITEMS:,}")
        if kind in SCALARS and kind != BOOL:
            self.at += count * SCALARS[kind]
            return
        for _ in range(count):
            self.item(kind, name)

    def item(self, kind: int, name: str) -> int | str:
        """One text, truth value or number."""
        if kind == TEXT:
            return self.text(f"the text {name!r:.100}")
        if kind not in SCALARS:
            self.fault(f"{name!r:.100} is of type {kind}; numbers, texts and plain lists of them are read")
        found = self.number({1: "<B", 2: "<H", 4: "<I", 8: "<Q"}[SCALARS[kind]], f"{name!r:.100}")
        if kind == BOOL and found > 1:
            self.fault(f"{name!r:.100} is {found}; expected 0 or 1, for false or true")
        return found

    def align(self, kind: int, found: int | str) -> None:
        """The file's own word for how tensors are aligned."""
        n = found if isinstance(found, int) else 0
        if kind != U32 or n == 0 or n & (n - 1) or n > MOST_ALIGNMENT:
            self.fault(f"general.alignment is {found!r:.40}; expected a power of two up to {MOST_ALIGNMENT:,}")
        self.alignment = int(found)

    # ---- tensors ----------------------------------------------------------------------------------------------------

    def tensor(self, name: str) -> tuple[int, int]:
        """(begin, bytes) of one, from the end of the header on."""
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        n_dims = self.number("<I", f"the number of dimensions of {name!r:.100}")
        if not 1 <= n_dims <= MOST_DIMS:
            self.fault(f"tensor {name!r:.100} has {n_dims} dimensions; 1 to {MOST_DIMS} are read")
        dims = [self.number("<Q", f"a size of {name!r:.100}") for _ in range(n_dims)]
        kind, begin = self.number("<I", f"the type of {name!r:.100}"), self.number("<Q", f"the place of {name!r:.100}")
        if kind not in {known.value for known in GGMLQuantizationType}:
            self.fault(f"tensor {name!r:.100} is of type {kind}, which the library gguf does not know")
        block, n_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        for size in dims:
            if not 1 <= size <= self.size * block:
                self.fault(f"tensor {name!r:.100} has a dimension of size {size:,}")
            n_bytes *= size
        if dims[0] % block:
            self.fault(f"tensor {name!r:.100} has rows of {dims[0]:,}, not whole blocks of {block}")
        return begin, n_bytes // block

    def places(self, tensors: Mapping[str, tuple[int, int]]) -> None:
        """Every tensor lies behind the header, aligned, inside the file and beside the others."""
        first = -(-self.at // self.alignment) * self.alignment
        end, before = first, ""
        for name, (begin, n_bytes) in sorted(tensors.items(), key=lambda item: item[1]):
            if begin % self.alignment:
                self.fault(f"tensor {name!r:.100} begins at {begin:,}, not at a multiple of {self.alignment}")
            if first + begin < end:
                self.fault(f"tensors {before!r:.100} and {name!r:.100} overlap")
            end, before = first + begin + n_bytes, name
            if end > self.size:
                self.fault(f"tensor {name!r:.100} ends at byte {end:,} of a file of {self.size:,}; it is cut off")
