"""Arithmetic of one equation of a jaxpr: 2 FLOPs a multiply-add, and elementwise operations counted apart.

Dot products and convolutions make FLOPs. Elementwise: one operation for each element an arithmetic function gives.

Reductions and scatters count one for each element they take in. Moving, casting and comparing shapes is no arithmetic:
transpose, reshape, broadcast, slice, pad, concatenate, convert and the like count nothing.
A transcendental function counts one, as an addition does; that is a convention, not a time.
Next file to read: jaxprs.py.
"""

from math import prod
from typing import Any

from mtfcore.counting import flops

PER_OUTPUT = frozenset(
    """add add_any sub mul div rem neg sign abs max min pow integer_pow square sqrt rsqrt cbrt
    exp exp2 expm1 log log1p logistic tanh sin cos tan asin acos atan atan2 sinh cosh asinh acosh atanh
    erf erfc erf_inv lgamma digamma floor ceil round clamp nextafter select_n is_finite
    eq ne lt le gt ge and or xor not shift_left shift_right_logical shift_right_arithmetic population_count
    cumsum cumprod cummax cummin cumlogsumexp""".split()
)
PER_INPUT = ("reduce_", "reduce", "argmax", "argmin")
NOT_ARITHMETIC = ("reduce_precision",)


def elementwise_flops(eqn: Any) -> int:
    """Elementwise operations of one equation; 0 for data movement."""
    name = eqn.primitive.name
    if name in NOT_ARITHMETIC:
        return 0
    if name in PER_OUTPUT:
        return sum(_size(v) for v in eqn.outvars)
    if name.startswith("scatter"):
        return _size(eqn.invars[2]) if name != "scatter" else 0
    if name.startswith(PER_INPUT):
        return max(_size(v) for v in eqn.invars)
    return 0


def _size(var: Any) -> int:
    return prod(getattr(var.aval, "shape", ()))


def _dot(eqn: Any) -> int:
    lhs, rhs = (v.aval.shape for v in eqn.invars[:2])
    (_, contracted), (_, batch) = eqn.params["dimension_numbers"]
    return flops.matmul_flops(lhs, rhs, (*contracted, *batch))


def _ragged_dot(eqn: Any) -> int:
    lhs, rhs = (v.aval.shape for v in eqn.invars[:2])
    numbers = eqn.params["ragged_dot_dimension_numbers"]
    (_, contracted), (_, batch) = numbers.dot_dimension_numbers
    return flops.matmul_flops(lhs, rhs, (*contracted, *batch, *numbers.rhs_group_dimensions))


def _convolution(eqn: Any) -> int:
    lhs, rhs, out, p = eqn.invars[0].aval.shape, eqn.invars[1].aval.shape, eqn.outvars[0].aval.shape, eqn.params
    numbers = p["dimension_numbers"]
    spatial = zip(numbers.lhs_spec[2:], numbers.rhs_spec[2:], numbers.out_spec[2:])
    windows = [
        flops.Window(lhs[i], rhs[k], out[o], stride, pad[0], dilate, kernel_dilate)
        for (i, k, o), stride, pad, dilate, kernel_dilate in zip(
            spatial, p["window_strides"], p["padding"], p["lhs_dilation"], p["rhs_dilation"]
        )
    ]
    batch, features = (out[i] for i in numbers.out_spec[:2])
    return flops.convolution_flops(batch, features, rhs[numbers.rhs_spec[1]], windows)


FLOPS = {"dot_general": _dot, "ragged_dot_general": _ragged_dot, "conv_general_dilated": _convolution}
