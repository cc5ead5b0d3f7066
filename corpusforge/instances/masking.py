"""THE mask function: (seed, epoch or copy, instance) -> which tokens the model must guess, and what it sees of them.

Comes in: token ids of many instances in one flat array, and one 64-bit key an instance. Goes out: the masked ids,
positions and labels. The builder stores what it returns (static, duplicated); the loader calls it while it makes
batches (dynamic). Static is epoch 0, the k-th duplicate is epoch k, bit for bit.

The one decision: every draw is a hash of (seed, key, epoch, counter), so no result depends on how instances are
batched, sharded or scheduled. The rule is BERT's (google-research/bert, create_pretraining_data.py): of an instance
of ``len`` tokens, [CLS] and [SEP] counted, ``n = min(max_predictions, max(1, round(rate * len)))`` positions without
replacement; then per position 80 % [MASK], 10 % a random token, 10 % kept. Unlike BERT, no special token at all is
masked ([UNK] neither: there is nothing to guess), and random tokens are never specials or unused slots.

Other units than the token are built on words: `mask_units` (whole words), `mask_spans` (n-grams and spans of words).
Their budget is in tokens too, and never exceeded; for spans it is rounded up, and what is seen of a span is decided
once (SpanBERT, section 3.1).
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from corpusforge import seeds
from corpusforge.arrays import I64, U32, U64, Bools, offsets_of, ranges, slices
from corpusforge.instances.mask_spans import NGRAM_SHARES, Runs, choose_runs, span_shares
from corpusforge.instances.mask_units import Units, choose_words, positions_of, units_of

Ids = npt.NDArray[np.uint16] | U32

UNITS = ("token", "whole-word", "ngram", "span")
"""What is masked together."""

_RUNS_SLICE = 1 << 19  # for n-grams and spans, whose steps cost the same for few instances as for many
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

    def is_special(self) -> Bools:
        """For each id whether it is one of the five special tokens, ``[size]``. [UNK] is one."""
        table = np.zeros(self.size, bool)
        table[[self.pad, self.unk, self.cls, self.sep, self.mask]] = True
        return table

    @functools.cached_property
    def is_word(self) -> Bools:
        """For each id whether it is neither special nor unused, ``[size]``; kept, as unused slots may be many."""
        allowed = ~self.is_special()
        allowed[np.array(self.unused, np.int64)] = False
        return allowed

    def words(self) -> Ids:
        """Ids that a random replacement may draw, ascending."""
        return cast(Ids, np.flatnonzero(self.is_word).astype(np.uint16 if self.size <= 1 << 16 else np.uint32))


class Masked(NamedTuple):
    """Masked instances. Instance i owns ``positions[offsets[i]:offsets[i + 1]]``, ascending, counted from its start.

    ``input_ids``: flat, what the model sees; ``labels``: the original id at each position. Of n-grams and spans also
    the bounds: instance i owns ``spans[span_offsets[i]:span_offsets[i + 1]]``, ``[spans, 2]``: first position, and
    the one behind the last, counted from the start of the instance. The tokens on both sides of a span are those the
    span boundary objective reads; spans may touch.
    """

    input_ids: Ids
    positions: I64
    position_offsets: I64
    labels: Ids
    spans: I64 | None = None
    span_offsets: I64 | None = None


class Masker:
    """`mask_batch` with its tables made once; what a loader keeps.

    Raises ValueError for an unknown mask unit.
    """

    def __init__(self, specials: Specials, settings: MaskSettings, seed: int) -> None:
        if settings.unit not in UNITS:
            raise ValueError(f"no mask unit {settings.unit!r}")
        self.specials, self.settings, self.seed = specials, settings, seed
        self._maskable, self._words = ~specials.is_special(), specials.words()

    @property
    def needs_words(self) -> bool:
        """Whether word starts must be given."""
        return self.settings.unit != "token"

    def __call__(
        self, ids: Ids, offsets: I64, keys: U64, epoch: int | U64 = 0, word_starts: Bools | None = None
    ) -> Masked:
        """Mask instances: ``ids`` flat, ``offsets`` ``[n + 1]``, ``keys`` ``[n]``, ``epoch`` one or ``[n]``.

        ``word_starts``: flat, one a token; without it each token is a word of its own.
        """
        epochs = np.broadcast_to(np.asarray(epoch, np.uint64), keys.shape)
        starts = np.ones(len(ids) if self.needs_words else 0, bool) if word_starts is None else word_starts
        has_runs, parts = self.settings.unit in ("ngram", "span"), []
        for a, b in slices(offsets, _RUNS_SLICE if has_runs else _SLICE):
            own = slice(offsets[a], offsets[b])
            parts.append(self._slice(ids[own], offsets[a : b + 1] - offsets[a], keys[a:b], epochs[a:b], starts[own]))
        return _joined(parts, ids[:0], has_runs)

    def _slice(self, ids: Ids, offsets: I64, keys: U64, epochs: U64, starts: Bools) -> Masked:
        ids = ids.copy()
        sequences = seeds.words(self.seed, "mask", keys, epochs)
        lengths = np.diff(offsets)
        runs: Runs | None = None
        if self.needs_words:
            maskable = self._maskable.take(ids)
            units = units_of(maskable, starts, offsets)
            tokens = np.concatenate(([0], np.cumsum(maskable)))[offsets]
            budgets = np.minimum(mask_counts(lengths, self.settings), np.diff(tokens))
            flat, runs = self._choose_units(sequences, units, budgets)
            counts = np.diff(np.searchsorted(flat, offsets))
        else:
            candidates = np.flatnonzero(self._maskable.take(ids))
            bounds = np.searchsorted(candidates, offsets)
            counts = np.minimum(mask_counts(lengths, self.settings), np.diff(bounds))
            flat = candidates[_choose(sequences, bounds, counts)]
        positions = flat - np.repeat(offsets[:-1], counts)
        labels = ids[flat]
        draws = seeds.words(self.seed, "mask-token", np.repeat(keys, counts), _counters(epochs, counts, positions))
        if runs is None:
            ids[flat] = self._seen(labels, draws, draws)
            return Masked(ids, positions, offsets_of(counts), labels)
        sizes = runs.lengths
        firsts = offsets_of(sizes)[:-1]
        shares = np.repeat(draws[firsts], sizes) if self.settings.unit == "span" else draws
        ids[flat] = self._seen(labels, draws, shares)
        bounds = np.searchsorted(runs.begins, offsets)
        begins = runs.begins - np.repeat(offsets[:-1], np.diff(bounds))
        return Masked(ids, positions, offsets_of(counts), labels, np.stack((begins, begins + sizes), 1), bounds)

    def _choose_units(self, sequences: U64, units: Units, budgets: I64) -> tuple[I64, Runs | None]:
        """The positions to mask, and for n-grams and spans their runs: of tokens, not of units."""
        if self.settings.unit == "whole-word":
            return positions_of(units, choose_words(sequences, units, budgets)), None
        shares = NGRAM_SHARES if self.settings.unit == "ngram" else span_shares()
        runs = choose_runs(sequences, units, budgets, shares)
        ends = offsets_of(units.sizes)
        sizes = ends[runs.begins + runs.lengths] - ends[runs.begins]
        begins = units.begins[runs.begins]
        return ranges(begins, sizes), Runs(begins, sizes)

    def _seen(self, labels: Ids, draws: U64, shares: U64) -> Ids:
        """What stands at chosen positions: the upper half of ``shares`` says how, the lower of ``draws`` which."""
        share = shares >> np.uint64(32)
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
    word_starts: Bools | None = None,
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
    return Masker(specials, settings, seed)(ids, offsets, keys, epoch, word_starts)


def _joined(parts: list[Masked], nothing: Ids, has_spans: bool) -> Masked:
    """The slices as one."""
    empty = np.zeros(0, np.int64)
    counts = [np.diff(p.position_offsets) for p in parts]
    joined = Masked(
        np.concatenate([p.input_ids for p in parts] or [nothing]),
        np.concatenate([p.positions for p in parts] or [empty]),
        offsets_of(np.concatenate(counts or [empty])),
        np.concatenate([p.labels for p in parts] or [nothing]),
    )
    if not has_spans:
        return joined
    spans = np.concatenate([p.spans for p in parts if p.spans is not None] or [empty.reshape(0, 2)])
    numbers = [np.diff(p.span_offsets) for p in parts if p.span_offsets is not None]
    return joined._replace(spans=spans, span_offsets=offsets_of(np.concatenate(numbers or [empty])))


def mask_counts(lengths: I64, settings: MaskSettings) -> I64:
    """How many tokens of instances of these lengths (specials counted) are masked; of other units: the budget.

    >>> mask_counts(np.array([3, 10, 128, 512]), MaskSettings(max_predictions=76)).tolist()
    [1, 2, 19, 76]
    >>> mask_counts(np.array([3, 20, 128, 512]), MaskSettings(unit="span")).tolist()
    [1, 3, 20, 77]
    """
    if settings.rate == 0:
        return np.zeros(len(lengths), np.int64)
    share = lengths * settings.rate
    # 0.1 * 30 is 3.0000000000000004, which is not to become 4.
    rounded = np.ceil(share - 1e-9) if settings.unit == "span" else np.rint(share)
    counts = np.maximum(1, rounded).astype(np.int64)
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


def _draw(keys: U64, low: I64, high: I64, counts: I64, draws: I64, chosen: Bools) -> Bools:
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
