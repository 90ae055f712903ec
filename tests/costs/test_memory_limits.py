"""Largest batches and longest contexts: what is returned fits, one step more does not, whatever is asked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mtfcore as mtf
from mtfcore.costs.serving_memory.cache_bytes import cache
from mtfcore.costs.serving_memory.cuts import across, partition
from mtfcore.costs.serving_memory.inference_memory import device_bytes
from mtfcore.costs.serving_memory.memory_limits import (
    batch_step,
    divisors,
    largest_batch,
    longest_context,
    longest_read,
)
from mtfcore.costs.serving_memory.weight_bytes import evenly
from mtfcore.model.serving import FEEDFORWARD

GIB = 2**30
SEVENTY = mtf.model.config("llama-3.1-70b")
NAMES = ("llama-3-8b", "llama-3-70b", "palm-62b", "gpt-3-175b", "qwen2.5-7b")
SIZES = st.sampled_from([1, 2, 4, 8])
deployments = st.fixed_dictionaries(
    {
        "ffn": st.sampled_from(list(FEEDFORWARD)), "attention": st.sampled_from(["heads", "batch", "even"]),
        "weights": st.sampled_from(["bf16", "int8", "int4"]), "cache_dtype": st.sampled_from(["bf16", "int8"]),
        "new_tokens": st.sampled_from([1, 64, 2048]), "scores": st.sampled_from(["tiled", "whole"]),
        "gathered_kept": st.sampled_from(["matrix", "layers"]), "reserve": st.sampled_from([0, 0.1, 0.35]),
        "capacity": st.integers(1, 200).map(lambda gib: gib * GIB + 12_345),
    }
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(NAMES), grid=st.tuples(SIZES, SIZES, SIZES), how=deployments, context=st.integers(1, 200_000)
)
def test_the_largest_batch_fits_and_the_next_does_not(name, grid, how, context):
    cfg = mtf.model.config(name)
    batch = largest_batch(cfg, grid, context=context, **how)
    step = batch_step(grid, how["ffn"], how["attention"])
    cut = across(grid, partition(how["ffn"]).batch)  # weight-gathered layouts cut the batch as they are
    legal = [n for n in divisors(step) if n % cut == 0]
    above = batch + step if batch >= step else next(n for n in legal if n > batch)
    assert batch % step == 0 or batch in legal
    assert batch == 0 or device_bytes(cfg, grid, batch=batch, context=context, **how).fits
    assert not device_bytes(cfg, grid, batch=above, context=context, **how).fits


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(NAMES), grid=st.tuples(SIZES, SIZES, SIZES), how=deployments,
    batch=st.sampled_from([1, 8, 512]),
)  # fmt: skip
def test_the_longest_context_fits_and_one_more_token_does_not(name, grid, how, batch):
    cfg = mtf.model.config(name)
    context = longest_context(cfg, grid, batch=batch, **how)
    assert context == 0 or device_bytes(cfg, grid, batch=batch, context=context, **how).fits
    assert not device_bytes(cfg, grid, batch=batch, context=context + 1, **how).fits


# Bits of every stored number and the devices halved together leave the count of caches as it was.
@settings(max_examples=80, deadline=None)
@given(
    name=st.sampled_from(NAMES), n=st.sampled_from([1, 2, 4, 16]), context=st.integers(1, 100_000),
    n_params=st.integers(10**9, 10**12).map(lambda n: 2 * n), capacity=st.integers(10**9, 10**12),
)  # fmt: skip
def test_halving_bytes_and_devices_leaves_the_count_of_caches(name, n, context, n_params, capacity):
    cfg, counts, batches = mtf.model.config(name), [], []
    for dtype, devices in (("bf16", 4 * n), ("int8", 2 * n), ("int4", n)):
        left = capacity - evenly(cfg, devices, dtype, n_params)
        one = cache(cfg, (devices, 1, 1), batch=1, context=context, dtype=dtype, attention="even", ffn="ws1d").bytes
        counts.append(max(0, left // one))
        stored_as = {"n_params": n_params, "weights": dtype, "cache_dtype": dtype, "attention": "even", "ffn": "ws1d"}
        batches.append(largest_batch(cfg, (devices, 1, 1), capacity=capacity, reserve=0, context=context, **stored_as))
    assert len(set(counts)) == 1
    assert all(batch <= counts[0] for batch in batches)  # fewer where activations need room


def test_arrays_give_what_numbers_give():
    random = np.random.default_rng(3)
    x, y, z = (2 ** random.integers(0, 4, 30) for _ in range(3))
    context, capacity = random.integers(1, 300_000, 30), random.integers(1, 100, 30) * GIB
    for attention in ("heads", "batch"):
        together = largest_batch(SEVENTY, (x, y, z), context=context, capacity=capacity, attention=attention)
        longest = longest_context(SEVENTY, (x, y, z), batch=64, capacity=capacity, attention=attention)
        for n in range(30):
            grid, room = (int(x[n]), int(y[n]), int(z[n])), int(capacity[n])
            assert together[n] == largest_batch(SEVENTY, grid, context=context[n], capacity=room, attention=attention)
            assert longest[n] == longest_context(SEVENTY, grid, batch=64, capacity=room, attention=attention)


def test_a_teachers_question():
    """70B with grouped attention at 32k context on 16 chips of 16 GiB: 8 sequences in bf16, 32 in int8, none on 4."""
    how = {"context": 32_768, "capacity": 16 * GIB, "attention": "batch"}
    assert largest_batch(SEVENTY, (2, 2, 4), **how) == 8
    assert largest_batch(SEVENTY, (2, 2, 4), weights="int8", cache_dtype="int8", **how) == 32
    assert largest_batch(SEVENTY, (1, 2, 2), **how) == 0


def test_limits_refuse_what_is_looked_for():
    with pytest.raises(mtf.LayoutError, match="batch is what is looked for"):
        largest_batch(SEVENTY, (1, 1, 1), batch=3, capacity=GIB)
    with pytest.raises(mtf.LayoutError, match="context is what is looked for"):
        longest_context(SEVENTY, (1, 1, 1), context=3, capacity=GIB)
    with pytest.raises(mtf.LayoutError, match="capacity is 0"):
        longest_context(SEVENTY, (1, 1, 1), capacity=0)


@pytest.mark.parametrize("limit", [largest_batch, longest_context, longest_read])
@pytest.mark.parametrize("attention", ["heads", "batch"])
def test_many_capacities_are_answered_like_each(limit, attention):
    """Three of them, as many as there are moments of a pass, must not be taken for these."""
    room = np.array([3, 4, 16]) * GIB
    how = {"attention": attention} | ({"context": 10**6} if limit is largest_batch else {"batch": 8})
    found = limit(SEVENTY, (4, 4, 4), capacity=room, **how)
    assert found.tolist() == [limit(SEVENTY, (4, 4, 4), capacity=int(one), **how) for one in room]
