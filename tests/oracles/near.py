"""The slow, obvious near-duplicates: every pair of items compared, components found by walking.

Shares with the real one the sentence splitter, the document key, the multipliers and the choice of bands.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import xxhash

from tests.oracles import minhash
from tests.oracles.spans import sentences_of

Item = tuple[str, int]
"""A document and the number of the first sentence; a whole document is its own sentence 0."""


class Setup(NamedTuple):
    """How items are signed and compared. ``length`` 0: whole documents."""

    multipliers: Sequence[int]
    shingle_words: int
    bands: int
    rows: int
    threshold: float
    neighbors: int
    length: int


class Found(NamedTuple):
    """The earlier item that an item duplicates."""

    earlier: Item
    similarity: float


def order_of(documents: dict[str, str], keep: str = "hash") -> dict[str, tuple[int, int]]:
    """The sort key of documents; the smaller is the earlier one."""
    before = {name: -len(text.encode()) if keep == "longest" else 0 for name, text in documents.items()}
    return {name: (before[name], xxhash.xxh3_64_intdigest(name.encode())) for name in documents}


class Signed(NamedTuple):
    """An item: its signature, the set of its shingles, and what items that are compared no further have in common."""

    signature: tuple[int, ...]
    shingles: set[tuple[str, ...]]
    same: tuple[object, ...]


def sign_items(documents: dict[str, str], setup: Setup) -> dict[Item, Signed]:
    """Every item with words. Items with the same shingles are the same."""
    found = {}
    for name, text in documents.items():
        raw = text.encode()
        words = [minhash.split_words(raw[a:b].decode()) for a, b in sentences_of(text)]
        length = setup.length or len(words)
        starts = range(len(words) - length + 1) if words else []
        spans = [list(itertools.chain(*words[i : i + length])) for i in starts]
        for i, span in enumerate(spans):
            if span:
                shingles = minhash.shingles(span, setup.shingle_words)
                signature = tuple(minhash.sign(shingles, setup.multipliers))
                size = min(setup.shingle_words, len(span))
                counted = sorted(tuple(span[k : k + size]) for k in range(len(span) - size + 1))
                found[name, i] = Signed(signature, shingles, tuple(counted))
    return found


def repeats(documents: dict[str, str], setup: Setup, keep: str = "hash") -> dict[Item, list[Found]]:
    """For every duplicate, all earlier items that it duplicates."""
    signed, ranks = sign_items(documents, setup), order_of(documents, keep)
    ordered = sorted(signed, key=lambda item: (ranks[item[0]], item[1]))
    found: dict[Item, list[Found]] = {}
    first: dict[tuple[object, ...], Item] = {}
    for item in ordered:
        earlier = first.setdefault(signed[item].same, item)
        if earlier != item and not overlap(earlier, item, setup):
            found[item] = [Found(earlier, 1.0)]
    left = [item for item in ordered if item not in found]
    for earlier, item in sorted(candidates(left, signed, setup), key=lambda pair: tuple(map(left.index, pair))):
        alike = minhash.jaccard(signed[earlier].shingles, signed[item].shingles)
        if not overlap(earlier, item, setup) and alike >= setup.threshold - 1e-6:
            found.setdefault(item, []).append(Found(earlier, alike))
    return found


def candidates(items: list[Item], signed: dict[Item, Signed], setup: Setup) -> set[tuple[Item, Item]]:
    """Pairs that meet in a band: with those before it in the bucket, and with the first of the bucket."""
    pairs = set()
    for band in range(setup.bands):
        buckets: dict[tuple[int, ...], list[Item]] = {}
        for item in items:
            values = signed[item].signature[band * setup.rows : (band + 1) * setup.rows]
            buckets.setdefault(values, []).append(item)
        for bucket in buckets.values():
            for i, j in itertools.combinations(range(len(bucket)), 2):
                if j - i <= setup.neighbors or i < setup.neighbors:
                    pairs.add((bucket[i], bucket[j]))
    return pairs


def overlap(left: Item, right: Item, setup: Setup) -> bool:
    """Whether two items share a sentence."""
    return left[0] == right[0] and abs(left[1] - right[1]) < max(1, setup.length)


def best(found: dict[Item, list[Found]], ranks: dict[str, tuple[int, int]]) -> dict[Item, Found]:
    """The most similar earlier item of each item; the first if several are equal."""
    return {
        item: min(many, key=lambda f: (-f.similarity, ranks[f.earlier[0]], f.earlier[1]))
        for item, many in found.items()
    }


def groups(found: dict[Item, list[Found]]) -> list[set[str]]:
    """Connected documents."""
    joined: list[set[str]] = []
    for item, many in found.items():
        group = {item[0], *(f.earlier[0] for f in many)}
        apart = [other for other in joined if not other & group]
        joined = [*apart, group.union(*(other for other in joined if other & group))]
    return joined
