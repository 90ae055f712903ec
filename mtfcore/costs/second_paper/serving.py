"""What serving costs: FLOPs a token, MFU, chip-seconds a token, and the floors that no layout can pass.

    >>> mfu(540e9, tokens=512 * 2048, seconds=85.2, chips=64, peak_flops=275e12)          # Table 2 prints 76 %
    0.755...
    >>> chip_seconds_per_token(tokens=512 * 64, seconds=6.0, chips=64) * 1e3              # chip-milliseconds
    11.718...
    >>> weight_seconds(540e9, chips=64, hbm_bytes_per_second=1.2e12, itemsize=1) * 1e3    # int8: ms of every step
    7.03...

A parameter is one multiply-add a token, 2 FLOPs; attention's own products with the cache come on top and are left out
of MFU. A step cannot be shorter than reading every weight once from memory, nor cheaper than 2N/peak chip-seconds a
token. Latency (seconds of one answer) and throughput (answers a second) are two quantities: a batch of 512 that takes
85.2 s has a latency of 85.2 s, whatever it is divided by.

Source: "Efficiently Scaling Transformer Inference" (arXiv 2211.05102), sections 2, 3.4 and 4.4, Tables 2 and 3.
Next file to read: `wrong_claims`.
"""

from __future__ import annotations

from mtfcore.costs.second_paper.collectives import Number, positive


def flops_per_token(n_params: Number) -> Number:
    """FLOPs of a forward pass for one token: 2 a parameter. Section 2."""
    positive(n_params=n_params)
    return 2 * n_params


def mfu(n_params: Number, tokens: Number, seconds: Number, chips: Number, peak_flops: Number) -> Number:
    """Model FLOPs utilisation, a share of 1: the model's FLOPs over what the chips could do meanwhile. Section 2."""
    positive(tokens=tokens, seconds=seconds, chips=chips, peak_flops=peak_flops)
    return flops_per_token(n_params) * tokens / (seconds * chips * peak_flops)


def seconds_at_mfu(n_params: Number, tokens: Number, mfu: Number, chips: Number, peak_flops: Number) -> Number:
    """Seconds that so many tokens take all together at an MFU: `mfu` turned round."""
    positive(tokens=tokens, mfu=mfu, chips=chips, peak_flops=peak_flops)
    return flops_per_token(n_params) * tokens / (mfu * chips * peak_flops)


def chip_seconds_per_token(tokens: Number, seconds: Number, chips: Number) -> Number:
    """Cost of a token: chips · time / (B L). Section 4.4."""
    positive(tokens=tokens, seconds=seconds, chips=chips)
    return chips * seconds / tokens


def least_chip_seconds_per_token(n_params: Number, peak_flops: Number) -> Number:
    """The cost at an MFU of 1: 2N/peak."""
    positive(peak_flops=peak_flops)
    return flops_per_token(n_params) / peak_flops


def weight_seconds(n_params: Number, chips: Number, hbm_bytes_per_second: Number, itemsize: Number = 2) -> Number:
    """Seconds to read every weight once from the chips' memories: no decode step is shorter. Section 2."""
    positive(n_params=n_params, chips=chips, hbm_bytes_per_second=hbm_bytes_per_second, itemsize=itemsize)
    return n_params * itemsize / (chips * hbm_bytes_per_second)


def bytes_per_flop(hbm_bytes_per_second: Number, peak_flops: Number) -> Number:
    """Bytes of memory traffic that a chip has for each FLOP: far below one."""
    positive(hbm_bytes_per_second=hbm_bytes_per_second, peak_flops=peak_flops)
    return hbm_bytes_per_second / peak_flops


def critical_tokens(peak_flops: Number, hbm_bytes_per_second: Number, itemsize: Number = 2) -> Number:
    """Tokens in a pass from which products with weights take longer than reading those: peak · bytes / (2 · HBM)."""
    positive(itemsize=itemsize)
    return itemsize / (2 * bytes_per_flop(hbm_bytes_per_second, peak_flops))


def requests_per_second(batch: Number, seconds: Number) -> Number:
    """Throughput of chips that serve one batch after the other."""
    positive(batch=batch, seconds=seconds)
    return batch / seconds


def faster_by(slower_by: Number) -> Number:
    """If one is slower by a share, by which share is the other faster: 1 - 1/(1 + share). Section 4.3's 14 %."""
    positive(slower_by=slower_by)
    return 1 - 1 / (1 + slower_by)


def adam_bytes(n_params: Number, itemsize: Number = 4) -> Number:
    """Weights and Adam's two moments, all in float32: 12 bytes a parameter, gradients apart."""
    positive(n_params=n_params, itemsize=itemsize)
    return 3 * n_params * itemsize
