"""Element types by short name, with their bytes: `f32`, `bf16`, `i32`, `bool` and their kin.

Long names and numpy or JAX types are read too: `canonical("bfloat16") == canonical(jnp.bfloat16) == "bf16"`.
Next file to read: `dims`.
"""

from __future__ import annotations

from mtfcore.errors import LayoutError, nearest

# short name -> (name in numpy and JAX, bytes an element)
DTYPES: dict[str, tuple[str, int]] = {
    "f64": ("float64", 8), "f32": ("float32", 4), "bf16": ("bfloat16", 2), "f16": ("float16", 2),
    "i64": ("int64", 8), "i32": ("int32", 4), "i16": ("int16", 2), "i8": ("int8", 1), "u8": ("uint8", 1),
    "bool": ("bool", 1),
}  # fmt: skip
_ALIASES = {long: short for short, (long, _) in DTYPES.items()} | {
    short.replace("i", "int", 1): short for short in ("i64", "i32", "i16", "i8")
}


def _name(dtype: object) -> str:
    return str(getattr(dtype, "name", None) or getattr(dtype, "__name__", dtype))


def canonical(dtype: object) -> str:
    """The short name of a dtype given by any of its names or as a numpy or JAX type."""
    name = dtype if isinstance(dtype, str) else _name(dtype)
    name = _ALIASES.get(name, name)
    if name not in DTYPES:
        raise LayoutError(f"unknown dtype {name!r}; {nearest(name, DTYPES)}")
    return name


def itemsize(dtype: object) -> int:
    """Bytes of one element."""
    return DTYPES[canonical(dtype)][1]


def long_name(dtype: object) -> str:
    """The name that numpy and JAX use."""
    return DTYPES[canonical(dtype)][0]


def is_float(dtype: object) -> bool:
    """Whether sums of this type may wait as partial sums (floating point)."""
    return canonical(dtype) in ("f64", "f32", "bf16", "f16")


def whole_range(dtype: object) -> tuple[int, int]:
    """The least and the most whole number of a type that is no float; truth values are 0 and 1."""
    name = canonical(dtype)
    bits = 8 * DTYPES[name][1]
    signed = (-(1 << bits - 1), (1 << bits - 1) - 1)
    return {"bool": (0, 1), "u8": (0, 255)}.get(name, signed)


def cannot_hold(dtype: object, value: float) -> str:
    """Why a type cannot hold a number, in words; nothing where it can (a float holds NaN and infinities too)."""
    if is_float(dtype):
        return "is too large for any float" if isinstance(value, int) and abs(value) >> 1023 else ""
    if value != value // 1:  # NaN and infinities too
        return "would be cut to a whole number"
    least, most = whole_range(dtype)
    return "" if least <= value <= most else f"is out of its range, {least} to {most}"
