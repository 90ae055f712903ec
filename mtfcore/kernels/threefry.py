"""Random numbers of one device's part of a tensor: Threefry-2x32 on each element's index in the whole tensor.

    uniform(call, seed)     # the numbers of jax.random.uniform(jax.random.key(seed), whole_shape) that belong here

The 64-bit index of an element (row by row through the whole tensor) is encrypted with the seed as the key; the two
words that result, joined by exclusive or, are the element's 32 random bits. So a device needs only to know where its
part begins. Source: Salmon et al. 2011, section 2 and table 1. Next file to read: `execute`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from mtfcore.dtypes import long_name

if TYPE_CHECKING:
    from mtfcore.kernels.call import Call

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
Words = tuple[Array, Array]


@partial(jax.jit, inline=True)  # outside of a compiled function its 100 operations would be compiled one by one
def threefry(key: Words, counter: Words) -> Words:
    """Encrypt 64-bit counters with a 64-bit key, each given as its high and its low word: uint32[...]."""
    keys = (*key, key[0] ^ key[1] ^ jnp.uint32(PARITY))
    a, b = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(5):
        for bits in ROTATIONS[group % 2]:
            a = a + b
            b = a ^ ((b << jnp.uint32(bits)) | (b >> jnp.uint32(32 - bits)))
        a = a + keys[(group + 1) % 3]
        b = b + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return a, b


def key_of(seed: Array) -> Words:
    """The key that a seed stands for: i32[] → its 32 bits as the low word."""
    return jnp.uint32(0), seed.astype(jnp.uint32)


def fold_in(seed: Array, number: Array) -> Array:
    """A new seed, i32[]: the first word of what the number is encrypted to."""
    return threefry(key_of(seed), (jnp.uint32(0), number.astype(jnp.uint32)))[0].astype(jnp.int32)


# ---- which element ----------------------------------------------------------------------------------------------


def counters(sizes: Sequence[int], starts: Sequence[Any], shape: Sequence[int]) -> Words:
    """The index in a tensor of `sizes` of every element of the part of `shape` that begins at `starts`."""
    high, low = jnp.zeros((1,) * len(shape), jnp.uint32), jnp.zeros((1,) * len(shape), jnp.uint32)
    for place, start in enumerate(starts):
        along = jnp.arange(shape[place], dtype=jnp.uint32) + jnp.asarray(start).astype(jnp.uint32)
        aligned = along.reshape([-1 if axis == place else 1 for axis in range(len(shape))])
        more_high, more_low = times(aligned, math.prod(sizes[place + 1 :]))
        low = low + more_low
        high = high + more_high + (low < more_low).astype(jnp.uint32)  # a sum that wrapped round carries one
    return jnp.broadcast_to(high, shape), jnp.broadcast_to(low, shape)


def times(index: Array, stride: int) -> Words:
    """uint32[...] × a whole number below 2^63, as 64 bits in two words, from products of 16 bits."""
    low, high = stride & 0xFFFFFFFF, stride >> 32
    a, b = index & jnp.uint32(0xFFFF), index >> jnp.uint32(16)
    c, d = jnp.uint32(low & 0xFFFF), jnp.uint32(low >> 16)
    middle = b * c + ((a * c) >> jnp.uint32(16))
    mixed = a * d + (middle & jnp.uint32(0xFFFF))
    carried = b * d + (middle >> jnp.uint32(16)) + (mixed >> jnp.uint32(16))
    return carried + index * jnp.uint32(high), index * jnp.uint32(low)


def bits(call: Call, seed: Array) -> Array:
    """32 random bits for every element of this part: uint32[...]."""
    sizes = call.sizes or call.out_shape
    starts = call.starts or (0,) * len(sizes)
    high, low = threefry(key_of(seed), counters(sizes, starts, call.out_shape))
    return high ^ low


# ---- distributions ----------------------------------------------------------------------------------------------


def uniform(call: Call, seed: Array) -> Array:
    """[0, 1): random bits as the fraction of a number in [1, 2), less 1."""
    return _unit(bits(call, seed), call.dtype)


def _unit(random: Array, dtype: str) -> Array:
    info = jnp.finfo(long_name(dtype))
    drawn = 8 if info.nmant < 8 else info.bits  # bfloat16 keeps 7 bits of 8, all other types draw as many as they have
    unsigned = {16: jnp.uint16, 32: jnp.uint32}[info.bits]
    random = random.astype({8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32}[drawn]).astype(unsigned)
    one = np.array(1, info.dtype)
    fraction = (random >> unsigned(drawn - info.nmant)) | one.view(unsigned)
    return lax.bitcast_convert_type(fraction, info.dtype) - one


def normal(call: Call, seed: Array) -> Array:
    """The inverse of the error function on (-1, 1), times the root of 2."""
    unit = uniform(call, seed)
    low = np.nextafter(np.array(-1, unit.dtype), np.array(0, unit.dtype), dtype=unit.dtype)
    spread = np.array(1, unit.dtype) - low
    return lax.erf_inv(jnp.maximum(low, unit * spread + low)) * np.array(np.sqrt(2), unit.dtype)


def gumbel(call: Call, seed: Array) -> Array:
    """-log(-log(u)), with u kept above 0."""
    unit = uniform(call, seed)
    tiny = np.array(jnp.finfo(unit.dtype).tiny, unit.dtype)
    return -jnp.log(-jnp.log(jnp.maximum(tiny, unit * (np.array(1, unit.dtype) - tiny) + tiny)))


MAKE: dict[str, Callable[..., Array]] = {"random_uniform": uniform, "random_normal": normal, "random_gumbel": gumbel}


def random(call: Call, seed: Array) -> Array:
    return MAKE[call.params["fn"]](call, seed)


def dropout(call: Call, array: Array, seed: Array) -> Array:
    """What is kept is that of jax.random.bernoulli(jax.random.key(seed), 1 - rate, whole_shape)."""
    keep = 1 - call.params["rate"]
    kept = _unit(bits(call, seed), "f32") < jnp.float32(keep)
    return jnp.where(kept, array / jnp.asarray(keep, array.dtype), jnp.zeros((), array.dtype))
