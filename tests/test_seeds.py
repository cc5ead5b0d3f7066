"""Randomness as a function: reference values, independence of batches, uniformity."""

from __future__ import annotations

import numpy as np

from corpusforge import seeds


def test_mix_is_splitmix64() -> None:
    """The first outputs of the published generator for seed 0 (Steele et al., as in Java's SplittableRandom)."""
    states = np.array([0, 0x9E3779B97F4A7C15, (2 * 0x9E3779B97F4A7C15) % 2**64], np.uint64)
    assert [hex(v) for v in seeds.mix(states).tolist()] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
        "0x6c45d188009454f",
    ]


def test_words_do_not_depend_on_batching() -> None:
    keys = np.arange(1000, dtype=np.uint64)
    whole = seeds.words(3, "stage", keys, 5)
    parts = np.concatenate([seeds.words(3, "stage", keys[:7], 5), seeds.words(3, "stage", keys[7:], 5)])
    assert (whole == parts).all()


def test_seed_stage_key_and_counter_all_matter() -> None:
    key = np.array([1], np.uint64)
    drawn = {
        int(seeds.words(s, t, k, c)[0])
        for s in (0, 1)
        for t in ("a", "b")
        for k in (key, key + np.uint64(1))
        for c in (0, 1)
    }
    assert len(drawn) == 16


def test_uniforms_fill_the_unit_interval() -> None:
    keys = np.repeat(np.arange(300, dtype=np.uint64), 300)
    counters = np.tile(np.arange(300, dtype=np.uint64), 300)
    drawn = seeds.uniforms(0, "uniform", keys, counters)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    counts, _ = np.histogram(drawn, 100, (0, 1))
    expected = len(drawn) / 100
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert 50 < chi_square < 160  # 99 degrees of freedom: both tails below 1e-4


def test_rng_for_is_a_function_of_its_arguments() -> None:
    assert seeds.rng_for(1, "x", "k").integers(1 << 60) == seeds.rng_for(1, "x", "k").integers(1 << 60)
    assert seeds.rng_for(1, "x", "k").integers(1 << 60) != seeds.rng_for(1, "x", "l").integers(1 << 60)
