"""A model's parameters as a mapping that reads one when it is asked for, and keeps none.

    >>> params = found.params                            # of `mtf.model.load`
    >>> params["wq"].shape, params["wq"].dtype           # read from the file now: f32, as `mtf.model.initial` gives
    ((30, 576, 9, 64), dtype('float32'))

The whole array is allocated once and filled layer by layer, a few rows at a time, so that nothing but it and about a
megabyte is held. The file is mapped, not read: its pages are the system's to drop. Next file to read: `llama`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mtfcore.errors import LayoutError, nearest
from mtfcore.model.configs import Config
from mtfcore.model.files.llama import TABLES, matrix, place_of, row_order
from mtfcore.model.params import Param

AT_ONCE = 1 << 18  # numbers dequantized at a time: 1 MiB of f32


class Source(Protocol):
    """Tensors in a file, by name."""

    kind: str  # "gguf" or "safetensors"
    interleaved: bool  # whether rows of queries and keys have each rotary pair side by side

    def rows(self, name: str, begin: int, end: int) -> np.ndarray:
        """f32 rows of a tensor."""


class Weights(Mapping[str, np.ndarray]):
    """Parameter → f32 array, read from the file each time."""

    def __init__(self, cfg: Config, source: Source) -> None:
        self._cfg, self._params, self._source = cfg, cfg.params, source

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __len__(self) -> int:
        return len(self._params)

    def __contains__(self, name: object) -> bool:  # without reading it
        return name in self._params

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._params:
            raise KeyError(f"no parameter {name!r}; {nearest(name, self._params)}")
        param = self._params[name]
        whole, place = np.empty(param.shape, np.float32), place_of(name, self._source.kind)
        layers = whole if "{n}" in place else whole[None]
        for n, layer in enumerate(layers):
            self._fill(param, layer, place.format(n=n))
        return whole

    def _fill(self, param: Param, layer: np.ndarray, tensor: str) -> None:
        """One layer of a parameter: rows of the file's matrix are columns of ours, but in tables and vectors."""
        shape = matrix(param)
        as_it_lies = len(shape) == 1 or param.name in TABLES
        target = layer.reshape(shape) if as_it_lies else layer.reshape(shape[::-1]).T
        order = row_order(self._cfg, param.name) if self._source.interleaved else None
        step = max(1, AT_ONCE // (shape[1] if len(shape) == 2 else 1))
        for begin in range(0, shape[0], step):
            end = min(begin + step, shape[0])
            where = slice(begin, end) if order is None else order[begin:end]
            target[where] = self._source.rows(tensor, begin, end)

    def __repr__(self) -> str:
        return f"Weights({self._cfg.name}: {len(self)} parameters, {self._cfg.n_params:,} numbers, read when asked for)"


class GgufTensors:
    """Tensors of a GGUF file, dequantized by the library that defines the format."""

    kind = "gguf"

    def __init__(self, path: Path, reader: Any, interleaved: bool) -> None:
        self.interleaved = interleaved
        self._found = {tensor.name: (tensor.data, tensor.tensor_type) for tensor in reader.tensors}
        self._refuse_unknown(path)

    def _refuse_unknown(self, path: Path) -> None:
        from gguf import GGML_QUANT_SIZES, dequantize

        for kind in {kind for _, kind in self._found.values()}:
            block = np.zeros((1, GGML_QUANT_SIZES[kind][1]), np.uint8)
            try:
                dequantize(block, kind)
            except NotImplementedError:
                raise LayoutError(
                    f"{path.name} has tensors of type {kind.name}, which the library gguf cannot turn into numbers"
                ) from None

    def rows(self, name: str, begin: int, end: int) -> np.ndarray:
        """f32 rows of a tensor, exactly what its quantized numbers stand for."""
        from gguf import dequantize

        data, kind = self._found[name]
        return dequantize(data[begin:end], kind)
