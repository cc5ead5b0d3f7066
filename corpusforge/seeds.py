"""Randomness as a function, not a stream: of (seed, stage, key) and, for columns, a counter.

`rng_for` returns a generator for one shard or document. `words` returns a whole column of random 64-bit words, each a
function of its own key alone, so that no result depends on batches, shards or scheduling.
The mixer is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, figure 17), applied to (seed, stage), key and counter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import xxhash

from corpusforge.arrays import F64, U64

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def mix(words: U64) -> U64:
    """SplitMix64's finalizer: a bijection on 64-bit words that looks random.

    >>> mix(np.array([0, 1], np.uint64)).tolist()
    [16294208416658607535, 10451216379200822465]
    """
    with np.errstate(over="ignore"):
        z = words + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * _MIX_1
        z = (z ^ (z >> np.uint64(27))) * _MIX_2
        return np.asarray(z ^ (z >> np.uint64(31)), dtype=np.uint64)


def stage_key(seed: int, stage: str) -> int:
    """One 64-bit number for a (seed, stage) pair, stable over platforms and versions."""
    return xxhash.xxh3_64_intdigest(stage.encode(), seed=seed & (2**64 - 1))


def rng_for(seed: int, stage: str, key: int | str) -> np.random.Generator:
    """An independent generator for one shard, document or step.

    >>> float(rng_for(1, "demo", "a").random()) == float(rng_for(1, "demo", "a").random())
    True
    """
    low = xxhash.xxh3_64_intdigest(str(key).encode(), seed=stage_key(seed, stage))
    return np.random.Generator(np.random.Philox(key=np.array([stage_key(seed, stage), low], np.uint64)))


def words(seed: int, stage: str, keys: U64, counters: U64 | int = 0) -> U64:
    """Random 64-bit words, one for each (key, counter), broadcast against each other."""
    base = np.uint64(stage_key(seed, stage))
    with np.errstate(over="ignore"):
        inner = mix(np.asarray(keys, np.uint64) ^ base)
        return mix(inner + np.asarray(counters, np.uint64) * _GOLDEN)


def uniforms(seed: int, stage: str, keys: U64, counters: U64 | int = 0) -> F64:
    """Uniform floats in [0, 1) with 53 random bits, one for each (key, counter)."""
    return (words(seed, stage, keys, counters) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def document_keys(ids: Sequence[str]) -> U64:
    """64-bit keys of document ids: the order of kept copies, and the key of everything drawn for a document.

    Python loop: one C hash call per document (about 0.2 us) against kilobytes of text.
    """
    digest = xxhash.xxh3_64_intdigest
    return np.fromiter((digest(i.encode()) for i in ids), np.uint64, len(ids))


def instance_keys(documents: U64, indices: npt.NDArray[np.unsignedinteger]) -> U64:
    """64-bit keys of instances from INSTANCES.document and INSTANCES.index (shape ``[n]`` each)."""
    with np.errstate(over="ignore"):
        return mix(documents + mix(np.asarray(indices, np.uint64)))
