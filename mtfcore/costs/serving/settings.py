"""What is asked of `inference`, as columns: one row for each setting, whatever was broadcast, checked before use.

    >>> asked = mtf.costs.inference(palm, "v4:4x4x4", batch=[64, 512], weights=["int8", "bf16"]).asked
    >>> asked.shape, [cfg.name for cfg in asked.models], asked.numbers["batch"]
    ((2,), ['palm-540b'], array([ 64, 512]))

Models, topologies and words are kept once each, and a column says which of them a row has. Next file to read: `grids`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtfcore.costs.pricing.constants import Constants
from mtfcore.costs.pricing.rates import MODELS
from mtfcore.errors import LayoutError, nearest, refuse
from mtfcore.model.configs import Config, config
from mtfcore.model.serving import ATTENTION, FEEDFORWARD, PHASES
from mtfcore.model.storing import stored_dtype
from mtfcore.notation import as_whole
from mtfcore.topologies import Topology, topology

LEAST = {"batch": 1, "prefill_batch": 1, "input_tokens": 1, "output_tokens": 0, "cached_tokens": 0}
MOST = 10**9  # more is a slip of the keyboard
AUTO = "auto"
RAW = (bytes, bytearray, memoryview)  # numpy would read a text's bytes as numbers


@dataclass(frozen=True)
class Settings:
    """Columns of equal length: numbers, and for models, topologies and words the index of each row's."""

    shape: tuple[int, ...]
    models: tuple[Config, ...]
    topologies: tuple[Topology, ...]
    words: Mapping[str, tuple[str, ...]]  # weights, cache, and ffn and attention of each phase: the words in use
    which: Mapping[str, np.ndarray]  # "models", "topologies" and each of the words: the index of a row's
    numbers: Mapping[str, np.ndarray]
    reserve: np.ndarray
    price: np.ndarray | None  # of a chip-hour, in the reader's own money

    @property
    def n(self) -> int:
        """How many settings."""
        return len(self.reserve)

    def batch(self, phase: str) -> np.ndarray:
        """Sequences of one pass: those of `prefill_batch` are read at a time, those of `batch` written."""
        return self.numbers["prefill_batch" if phase == "prefill" else "batch"]

    def of_model(self, value: Callable[[Config], float]) -> np.ndarray:
        """A number of each row's model."""
        return np.array([value(cfg) for cfg in self.models])[self.which["models"]]

    def of_topology(self, value: Callable[[Topology], float]) -> np.ndarray:
        """A number of each row's topology."""
        return np.array([value(slice_) for slice_ in self.topologies])[self.which["topologies"]]

    def alike(self, rows: np.ndarray) -> Iterator[tuple[tuple[Config, str, str], np.ndarray]]:
        """Of the rows that are true: each model with its dtypes of weights and cache, and the numbers of its rows."""
        kinds = [self.which["models"], self.which["weights"], self.which["cache"]]
        for which in itertools.product(*[range(int(kind.max(initial=0)) + 1) for kind in kinds]):
            found = np.flatnonzero(rows & np.all([kind == n for kind, n in zip(kinds, which, strict=True)], axis=0))
            if len(found):
                model, weights, cache = which
                yield (self.models[model], self.words["weights"][weights], self.words["cache"][cache]), found

    def per_row(self, name: str) -> np.ndarray:
        """A word of each row."""
        return np.array(self.words[name], object)[self.which[name]]


def read_settings(
    cfg: Any, where: Any, *, weights: Any, cache: Any, ffn: Any, attention: Any, model: Any, reserve: Any,
    price: Any = None, **numbers: Any,
) -> Settings:  # fmt: skip
    """Read, check and broadcast everything; all faults at once."""
    faults: list[str] = []
    if not isinstance(model, Constants) and not (isinstance(model, str) and model in MODELS):
        faults.append(f"no model of time {model!r:.100}; {nearest(model, MODELS)}")
    all_at_once = numbers["prefill_batch"] is None
    if all_at_once:
        del numbers["prefill_batch"]
    columns = {name: _number(name, value, faults) for name, value in numbers.items()}
    columns |= {"reserve": _share(reserve, faults), "price": _price(price, faults)}
    faults += [*_phase_faults("ffn", ffn), *_phase_faults("attention", attention)]
    kinds = _kinds(cfg, where, weights, cache, ffn, attention)
    found = {name: _index(value, read, faults) for name, (value, read) in kinds.items()}
    refuse(faults, "inference")
    shape = _shape({name: index for name, (_, index) in found.items()} | columns)
    flat = {name: np.broadcast_to(index, shape).ravel() for name, (_, index) in found.items()}
    rows = {name: np.broadcast_to(column, shape).ravel() for name, column in columns.items()}
    rows["prefill_batch"] = rows["batch"] if all_at_once else np.minimum(rows["prefill_batch"], rows["batch"])
    used = {name: values for name, (values, _) in found.items()}
    return Settings(shape, used.pop("models"), used.pop("topologies"), used, flat, rows, rows.pop("reserve"),
                    None if price is None else rows.pop("price"))  # fmt: skip


def _kinds(
    cfg: Any, where: Any, weights: Any, cache: Any, ffn: Any, attention: Any
) -> dict[str, tuple[Any, Callable[[Any], Any]]]:
    """What is no number: as it was given, and what reads one entry of it."""
    kinds: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "models": (cfg, config), "topologies": (where, topology),
        "weights": (weights, lambda word: _dtype(word, "weights")),
        "cache": (cache, lambda word: _dtype(word, "cache")),
    }  # fmt: skip
    for phase in PHASES:
        kinds[f"{phase}_ffn"] = (_for(phase, ffn), lambda word: _word("ffn", word, FEEDFORWARD))
        kinds[f"{phase}_attention"] = (_for(phase, attention), lambda word: _word("attention", word, ATTENTION))
    return kinds


def _shape(arrays: Mapping[str, np.ndarray]) -> tuple[int, ...]:
    """That to which all broadcast; refused with each one's, where they do not."""
    try:
        return np.broadcast_shapes(*[array.shape for array in arrays.values()])
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items() if array.shape)
        raise LayoutError(f"inference: shapes do not broadcast together: {shapes}; give numbers, "
                          "or arrays of one shape") from None  # fmt: skip


def _phase_faults(name: str, value: Any) -> list[str]:
    """Of a mapping that says each phase: keys that are none."""
    keys = value if isinstance(value, Mapping) else ()
    return [f"{name} of {key!r:.100}, which is no phase; {nearest(key, PHASES)}" for key in keys if key not in PHASES]


def _for(phase: str, value: Any) -> Any:
    """One word for both phases, or a mapping that says each: {"prefill": "wg_xyz", "decode": "ws2d"}."""
    return value.get(phase, AUTO) if isinstance(value, Mapping) else value


def _index(value: Any, read: Callable[[Any], Any], faults: list[str]) -> tuple[tuple, np.ndarray]:
    """The different values, each read once, and for every element which of them it is."""
    single = isinstance(value, (str, *RAW, Config, Topology)) or not isinstance(value, (Sequence, np.ndarray))
    if single:
        array = np.empty((), object)
        array[()] = value
    elif (found := _array(value, object)) is None:
        faults.append(f"{value!r:.100} is no array: its rows differ in length")
        array = np.empty((), object)
    else:
        array = found
    if not array.size:
        faults.append(f"{value!r:.100} is empty; expected at least one model, topology or word")
    known: dict[Any, int] = {}
    index = np.zeros(array.shape, int)
    for at, each in np.ndenumerate(array):
        try:
            index[at] = known.setdefault(each, len(known))
        except TypeError:  # no hash: no word, no name, no configuration
            faults.append(f"{each!r:.100} is neither a word nor a configuration or a topology")
    values = []
    for each in known:
        try:
            values.append(read(each))
        except LayoutError as error:
            faults.append(str(error))
    return tuple(values), index


def _word(name: str, word: Any, legal: Mapping[str, Any]) -> str:
    if word != AUTO and word not in legal:
        raise LayoutError(f"no {name} {word!r:.100}; {nearest(word, [AUTO, *legal])}")
    return word


def _dtype(word: Any, what: str) -> str:
    stored_dtype(word, what)
    return word


def _number(name: str, value: Any, faults: list[str]) -> np.ndarray:
    """Whole numbers within reason."""
    array, least = _array(value), LEAST[name]
    if array is None:
        faults.append(f"{name} is {value!r:.100}, whose rows differ in length; expected whole numbers")
        return np.full((), least)
    if array.dtype == object and all(as_whole(each) is not None and abs(each) < 2**63 for each in array.flat):
        array = array.astype(np.int64)
    whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and bool(np.all(array == np.floor(array))))
    if whole and array.size and bool(np.all((array >= least) & (array <= MOST))):
        return array.astype(np.int64)
    odd = next((each for each in array.ravel().tolist() if as_whole(each) is None or not least <= each <= MOST), value)
    faults.append(f"{name} is {odd!r:.100}; expected whole numbers from {least} to {MOST:,}")
    return np.full(array.shape, least)


def _share(value: Any, faults: list[str]) -> np.ndarray:
    array = _array(value)
    if array is not None and array.size and array.dtype.kind in "iuf" and bool(np.all((array >= 0) & (array < 1))):
        return array.astype(float)
    faults.append(f"reserve is {value!r:.100}; expected a share from 0 up to, not including, 1")
    return np.zeros(())


def _price(value: Any, faults: list[str]) -> np.ndarray:
    array = np.zeros(()) if value is None else _array(value)
    if array is not None and array.size and array.dtype.kind in "iuf":
        if bool(np.all((array >= 0) & np.isfinite(array))):
            return array.astype(float)
    what = f"price_per_chip_hour is {value!r:.100}"
    faults.append(f"{what}; expected your own price of a chip-hour, 0 or more")
    return np.zeros(())


def _array(value: Any, dtype: Any = None) -> np.ndarray | None:
    """As numpy has it; None where its rows differ in length. Raw bytes are one thing, and no number."""
    try:
        if isinstance(value, RAW):
            array = np.empty((), object)
            array[()] = value
            return array
        if dtype is None:
            return np.asarray(value)
        array = np.empty(np.shape(value), dtype)
        array[...] = value
        return array
    except ValueError:
        return None
