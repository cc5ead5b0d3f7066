"""The mask function: which tokens of an instance the model must predict in an epoch, and what it sees of them.

The builder stores its results (static, duplicated); the loader calls it while it makes batches (dynamic). Static masks
are those of epoch 0, and the masks of copy k are those of epoch k, bit for bit.

Every draw is a hash of (seed, key, epoch, counter), so no result depends on how instances are batched, sharded or
scheduled. The rule is BERT's (google-research/bert, create_pretraining_data.py): of an instance of ``len`` tokens,
[CLS] and [SEP] counted, ``n = min(max_predictions, max(1, round(rate * len)))`` positions without replacement; then per
position 80 % [MASK], 10 % a random token, 10 % kept. Unlike BERT, no special token at all is masked ([UNK] neither:
there is nothing to guess), and random tokens are never specials or unused slots.

Mask units other than the token (`mask_units`, `mask_runs`) never exceed the budget of tokens; for spans it is rounded
up, and what is seen of a span is decided once (SpanBERT, section 3.1).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from corpusforge import seeds
from corpusforge.arrays import I64, U32, U64, Bools, offsets_of, slices
from corpusforge.instances.mask_units import below, find_unit

if TYPE_CHECKING:
    from corpusforge.tokens.vocab import Vocab

Ids = npt.NDArray[np.uint16] | U32


@dataclasses.dataclass(frozen=True)
class MaskSettings:
    """How much is masked and how. ``max_predictions`` 0: no cap; ``unit``: what is masked together."""

    rate: float = 0.15
    mask_share: float = 0.8
    random_share: float = 0.1
    max_predictions: int = 0
    unit: str = "token"

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> MaskSettings:
        """Those of a recipe's section [instances] as plain values; keys that it lacks keep their defaults.

        >>> MaskSettings.of({"mask_rate": 0.2, "length": 64}).rate
        0.2
        """
        keys = {field.name: field.name for field in dataclasses.fields(cls)} | {
            "rate": "mask_rate",
            "unit": "mask_unit",
        }
        return cls(**{name: section[key] for name, key in keys.items() if key in section})


@dataclasses.dataclass(frozen=True)
class Specials:
    """The ids of a vocabulary that are not words. ``size``: ids lie in [0, size); ``unused``: slots without a word."""

    size: int
    pad: int
    unk: int
    cls: int
    sep: int
    mask: int
    unused: tuple[int, ...] = ()

    @classmethod
    def of(cls, vocab: Vocab) -> Specials:
        """Those of a vocabulary."""
        return cls(vocab.size, **dataclasses.asdict(vocab.specials), unused=vocab.unused)

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
    their boundaries: instance i owns ``spans[span_offsets[i]:span_offsets[i + 1]]``, ``[spans, 2]``: first position,
    and the one after the last, counted from the start of the instance. The tokens on both sides of a span are those the
    span boundary objective reads; spans may touch.
    """

    input_ids: Ids
    positions: I64
    position_offsets: I64
    labels: Ids
    spans: I64 | None = None
    span_offsets: I64 | None = None


class Masker:
    """The mask function with its settings; its tables are made once.

    Raises ValueError for an unknown mask unit.

    >>> masker = Masker(Specials(100, pad=0, unk=1, cls=2, sep=3, mask=4), MaskSettings(), seed=1)
    >>> ids = np.array([2, 50, 51, 52, 3], np.uint16)
    >>> masked = masker(ids, np.array([0, 5]), np.array([9], np.uint64))
    >>> len(masked.positions), bool(masked.labels[0] == ids[masked.positions[0]])
    (1, True)
    """

    def __init__(self, specials: Specials, settings: MaskSettings, seed: int) -> None:
        self.specials, self.settings, self.seed = specials, settings, seed
        self.unit = find_unit(settings.unit)
        self._maskable, self._words = ~specials.is_special(), specials.words()

    def __call__(
        self, ids: Ids, offsets: I64, keys: U64, epoch: int | U64 = 0, word_starts: Bools | None = None
    ) -> Masked:
        """Mask instances: ``ids`` flat, ``offsets`` ``[n + 1]``, ``keys`` ``[n]``, ``epoch`` one or ``[n]``.

        ``keys``: `seeds.instance_keys`; ``word_starts``: flat, one per token; without it each token is a word.
        An instance with fewer maskable tokens than its budget has all of them masked.
        """
        epochs = np.broadcast_to(np.asarray(epoch, np.uint64), keys.shape)
        starts = np.ones(len(ids) if self.unit.needs_words else 0, bool) if word_starts is None else word_starts
        parts = []
        for a, b in slices(offsets, self.unit.tokens_at_once):
            own = slice(offsets[a], offsets[b])
            parts.append(self._slice(ids[own], offsets[a : b + 1] - offsets[a], keys[a:b], epochs[a:b], starts[own]))
        return _joined(parts, ids[:0], self.unit.has_runs)

    def _slice(self, ids: Ids, offsets: I64, keys: U64, epochs: U64, starts: Bools) -> Masked:
        ids = ids.copy()
        sequences = seeds.words(self.seed, "mask", keys, epochs)
        budgets = mask_counts(np.diff(offsets), self.settings)
        flat, runs = self.unit.choose(sequences, self._maskable.take(ids), starts, offsets, budgets)
        counts = np.diff(np.searchsorted(flat, offsets))
        positions = flat - np.repeat(offsets[:-1], counts)
        labels = ids[flat]
        draws = seeds.words(self.seed, "mask-token", np.repeat(keys, counts), _counters(epochs, counts, positions))
        if runs is None:
            ids[flat] = self._seen(labels, draws, draws)
            return Masked(ids, positions, offsets_of(counts), labels)
        sizes = runs.lengths
        firsts = offsets_of(sizes)[:-1]
        shares = np.repeat(draws[firsts], sizes) if self.unit.once_a_run else draws
        ids[flat] = self._seen(labels, draws, shares)
        bounds = np.searchsorted(runs.begins, offsets)
        begins = runs.begins - np.repeat(offsets[:-1], np.diff(bounds))
        return Masked(ids, positions, offsets_of(counts), labels, np.stack((begins, begins + sizes), 1), bounds)

    def _seen(self, labels: Ids, draws: U64, shares: U64) -> Ids:
        """The input ids there: the upper half of ``shares`` decides how, the lower of ``draws`` which token."""
        share = shares >> np.uint64(32)
        mask, random = (round(s * 2**32) for s in (self.settings.mask_share, self.settings.random_share))
        seen = np.where(share < np.uint64(mask), labels.dtype.type(self.specials.mask), labels)
        if not len(self._words):
            return seen
        swapped = np.flatnonzero((share >= np.uint64(mask)) & (share < np.uint64(mask + random)))
        seen[swapped] = self._words[below(draws[swapped], np.uint64(len(self._words)))]
        return seen


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
    # 0.1 * 30 is 3.0000000000000004, which must not become 4.
    rounded = np.ceil(share - 1e-9) if find_unit(settings.unit).rounds_up else np.rint(share)
    counts = np.maximum(1, rounded).astype(np.int64)
    most = settings.max_predictions or np.iinfo(np.int64).max
    return np.asarray(np.minimum(counts, most), np.int64)


def _counters(epochs: U64, counts: I64, positions: I64) -> U64:
    """(epoch, position) as one counter: instances are shorter than 2**16 tokens."""
    return (np.repeat(epochs, counts) << np.uint64(16)) + positions.view(np.uint64)
