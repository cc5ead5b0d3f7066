"""THE mask function: (seed, epoch or copy, instance) -> which tokens the model must guess, and what it sees of them.

Comes in: token ids of many instances in one flat array, and one 64-bit key an instance. Goes out: the masked ids,
positions and labels. The builder stores what it returns (static, duplicated); the loader calls it while it makes
batches (dynamic). Static is epoch 0, the k-th duplicate is epoch k, bit for bit.

The one decision: every draw is a hash of (seed, key, epoch, counter), so no result depends on how instances are
batched, sharded or scheduled. The rule is BERT's (google-research/bert, create_pretraining_data.py): of an instance
of ``len`` tokens, [CLS] and [SEP] counted, ``n = min(max_predictions, max(1, round(rate * len)))`` positions without
replacement; then per position 80 % [MASK], 10 % a random token, 10 % kept. Unlike BERT, no special token at all is
masked ([UNK] neither: there is nothing to guess), and random tokens are never specials or unused slots.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corpusforge import seeds
from corpusforge.instances.ragged import I64, offsets_of, ranges, slices
from corpusforge.seeds import U64

Ids = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

_SLICE = 1 << 17  # tokens handled at once, so that temporaries stay in the cache: 150 M tokens/s, 95 at 2**22


@dataclasses.dataclass(frozen=True)
class MaskSettings:
    """How much is masked and how. ``max_predictions`` 0: no cap; ``unit``: what is masked together."""

    rate: float = 0.15
    mask_share: float = 0.8
    random_share: float = 0.1
    max_predictions: int = 0
    unit: str = "token"


@dataclasses.dataclass(frozen=True)
class Specials:
    """The ids of a vocabulary that are no words. ``size``: ids lie in [0, size); ``unused``: slots without a word."""

    size: int
    pad: int
    unk: int
    cls: int
    sep: int
    mask: int
    unused: tuple[int, ...] = ()

    def is_special(self) -> npt.NDArray[np.bool_]:
        """For each id whether it is one of the five special tokens, ``[size]``. [UNK] is one."""
        table = np.zeros(self.size, bool)
        table[[self.pad, self.unk, self.cls, self.sep, self.mask]] = True
        return table

    def words(self) -> Ids:
        """Ids that a random replacement may draw: neither special nor unused, ascending."""
        allowed = ~self.is_special()
        allowed[list(self.unused)] = False
        found = np.flatnonzero(allowed)
        return found.astype(np.uint16) if self.size <= 1 << 16 else found.astype(np.uint32)


class Masked(NamedTuple):
    """Masked instances. Instance i owns ``positions[offsets[i]:offsets[i + 1]]``, ascending, counted from its start.

    ``input_ids``: flat, what the model sees; ``labels``: the original id at each position.
    """

    input_ids: Ids
    positions: I64
    position_offsets: I64
    labels: Ids


class Masker:
    """`mask_batch` with its tables made once; what a loader keeps.

    Raises ValueError for a mask unit that is not built.
    """

    def __init__(self, specials: Specials, settings: MaskSettings, seed: int) -> None:
        if settings.unit != "token":
            raise ValueError(f"no mask unit {settings.unit!r}")
        self.specials, self.settings, self.seed = specials, settings, seed
        self._special, self._words = specials.is_special(), specials.words()

    def __call__(self, ids: Ids, offsets: I64, keys: U64, epoch: int | U64 = 0) -> Masked:
        """Mask instances: ``ids`` flat, ``offsets`` ``[n + 1]``, ``keys`` ``[n]``, ``epoch`` one or ``[n]``."""
        epochs = np.broadcast_to(np.asarray(epoch, np.uint64), keys.shape)
        parts = [
            self._slice(ids, offsets[a : b + 1], keys[a:b], epochs[a:b])
            for a, b in slices(offsets, _SLICE)
        ]  # fmt: skip
        counts = [np.diff(p.position_offsets) for p in parts]
        empty = np.zeros(0, np.int64)
        return Masked(
            np.concatenate([p.input_ids for p in parts] or [ids[:0]]),
            np.concatenate([p.positions for p in parts] or [empty]),
            offsets_of(np.concatenate(counts or [empty])),
            np.concatenate([p.labels for p in parts] or [ids[:0]]),
        )

    def _slice(self, ids: Ids, offsets: I64, keys: U64, epochs: U64) -> Masked:
        ids = ids[offsets[0] : offsets[-1]].copy()
        offsets = offsets - offsets[0]
        candidates = np.flatnonzero(~self._special[ids])
        bounds = np.searchsorted(candidates, offsets)
        available = np.diff(bounds)
        counts = np.minimum(mask_counts(np.diff(offsets), self.settings), available)
        chosen = _choose(seeds.words(self.seed, "mask", keys, epochs), bounds, counts)
        flat = candidates[chosen]
        positions = flat - np.repeat(offsets[:-1], counts)
        labels = ids[flat]
        draws = seeds.words(self.seed, "mask-token", np.repeat(keys, counts), _counters(epochs, counts, positions))
        ids[flat] = self._seen(labels, draws)
        return Masked(ids, positions, offsets_of(counts), labels)

    def _seen(self, labels: Ids, draws: U64) -> Ids:
        """What stands at a chosen position: the upper half of a draw decides how, the lower half which token."""
        share = draws >> np.uint64(32)
        mask, random = (round(s * 2**32) for s in (self.settings.mask_share, self.settings.random_share))
        seen = np.where(share < np.uint64(mask), labels.dtype.type(self.specials.mask), labels)
        if not len(self._words):
            return seen
        swapped = np.flatnonzero((share >= np.uint64(mask)) & (share < np.uint64(mask + random)))
        seen[swapped] = self._words[_below(draws[swapped], np.uint64(len(self._words)))]
        return seen


def mask_batch(
    ids: Ids,
    offsets: I64,
    keys: U64,
    *,
    specials: Specials,
    settings: MaskSettings,
    seed: int,
    epoch: int | U64 = 0,
) -> Masked:
    """Mask many instances at once.

    ``ids``: flat ``[tokens]``; ``offsets``: ``[n + 1]``; ``keys``: ``[n]`` from `seeds.instance_keys`; ``epoch``: one
    number or ``[n]``. An instance with fewer maskable tokens than ``n`` has all of them masked.

    >>> specials = Specials(100, pad=0, unk=1, cls=2, sep=3, mask=4)
    >>> ids, offsets = np.array([2, 50, 51, 52, 3], np.uint16), np.array([0, 5])
    >>> drawn = mask_batch(ids, offsets, np.array([9], np.uint64), specials=specials, settings=MaskSettings(), seed=1)
    >>> len(drawn.positions), bool(drawn.labels[0] == ids[drawn.positions[0]])
    (1, True)
    """
    return Masker(specials, settings, seed)(ids, offsets, keys, epoch)


def mask_counts(lengths: I64, settings: MaskSettings) -> I64:
    """How many tokens of instances of these lengths (specials counted) are masked.

    >>> mask_counts(np.array([3, 10, 128, 512]), MaskSettings(max_predictions=76)).tolist()
    [1, 2, 19, 76]
    """
    if settings.rate == 0:
        return np.zeros(len(lengths), np.int64)
    counts = np.maximum(1, np.rint(lengths * settings.rate)).astype(np.int64)
    most = settings.max_predictions or np.iinfo(np.int64).max
    return np.asarray(np.minimum(counts, most), np.int64)


def _choose(keys: U64, bounds: I64, counts: I64) -> I64:
    """Choose ``counts[i]`` numbers from [bounds[i], bounds[i + 1]) without replacement, ascending.

    Each row has an endless sequence of uniform draws; chosen are its first ``counts[i]`` different values. That is
    sampling without replacement exactly, and needs random words for about a fifth of the tokens instead of a sort of
    all of them. Rows that repeat themselves too often are drawn again, longer: the sequence is the same.
    """
    chosen = np.zeros(int(bounds[-1]), bool)
    todo = np.flatnonzero(counts)
    draws = _enough_draws(counts, np.diff(bounds))
    while len(todo):
        satisfied = _draw(keys[todo], bounds[todo], bounds[todo + 1], counts[todo], draws[todo], chosen)
        todo = todo[~satisfied]
        draws[todo] *= 2
    return np.flatnonzero(chosen)


def _enough_draws(counts: I64, available: I64) -> I64:
    """Draws of which probably ``counts`` differ: the mean number needed, and three deviations of it."""
    share = np.minimum(counts / np.maximum(available, 1), 0.999)
    mean = -np.log1p(-share) * available
    return np.asarray(np.ceil(mean + 3 * np.sqrt(np.maximum(mean - counts, 0)) + 1), np.int64)


def _draw(
    keys: U64, low: I64, high: I64, counts: I64, draws: I64, chosen: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Set ``chosen`` for rows whose ``draws`` hold enough different values; return which rows those are."""
    total = int(draws.sum())
    counters = ranges(np.zeros_like(draws), draws)
    words = seeds.words(0, "mask-draw", np.repeat(keys, draws), counters.view(np.uint64))
    values = _below(words >> np.uint64(32), np.repeat((high - low).view(np.uint64), draws)) + np.repeat(low, draws)
    # NumPy assigns repeated indices in order, so that backwards the first draw of a value is what stays.
    numbers = np.arange(total)
    first = np.empty(len(chosen), np.int64)
    first[values[::-1]] = numbers[::-1]
    fresh = first[values] == numbers
    ordinal = np.cumsum(fresh)
    starts = offsets_of(draws)
    before = np.concatenate(([0], ordinal))[starts]
    satisfied = np.asarray(np.diff(before) >= counts)
    used = fresh & (ordinal <= np.repeat(np.where(satisfied, before[:-1] + counts, -1), draws))
    chosen[values[used]] = True
    return satisfied


def _below(words: U64, limits: U64 | np.uint64) -> I64:
    """The lower 32 bits of each word as a number in [0, limit); bias below limit / 2**32."""
    scaled: U64 = ((words & np.uint64(0xFFFFFFFF)) * limits) >> np.uint64(32)
    return scaled.view(np.int64)


def _counters(epochs: U64, counts: I64, positions: I64) -> U64:
    """(epoch, position) as one counter: instances are shorter than 2**16 tokens."""
    return (np.repeat(epochs, counts) << np.uint64(16)) + positions.view(np.uint64)
