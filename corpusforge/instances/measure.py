"""The build report: numbers about instances that add up over shards, and the checks of their sums.

Batches are measured while they are built, as dicts of numbers and histograms (`shards.add_statistics` adds them); from
their sum come the ratios a person reads. `judge` stops the stage where something is lost or where shares lie outside
binomial bounds: six standard deviations, which a correct build leaves once in 500 million times.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from corpusforge import errors
from corpusforge.arrays import I64
from corpusforge.instances.formats import Plan
from corpusforge.instances.mask_units import find_unit
from corpusforge.instances.masking import MaskSettings, Specials, mask_counts
from corpusforge.instances.source import Source, list_column

LENGTH_BINS = 64
"""Bins of the length histogram; bin k holds lengths in (k * length / 64, (k + 1) * length / 64]."""

COUNT_BINS = 32
"""Bins of instances per document: 0, 1, 2-3, 4-7, ... doubling."""

_DEVIATIONS = 6.0

_TOKENS_A_DRAW = 24
"""Bounds treat spans as if each had this many tokens: 80/10/10 is drawn once a span, the mean of squared lengths over
the mean length is 5.6 words (SpanBERT's lengths), and a word rarely has more than four tokens."""


def measure_documents(source: Source, plan: Plan, shortest: int = 1) -> dict[str, Any]:
    """Statistics of documents: how many, lost ones, and instances per document.

    ``shortest``: tokens that a document must have to give an instance.
    """
    size, instances = np.diff(source.token_offsets), _instances(source, plan)
    empty, short = size == 0, (size > 0) & (size < shortest)
    bins = np.frexp(instances.astype(np.float64))[1]  # 0 for 0, else the number of binary digits
    return {
        "documents": len(size),
        "documents_empty": int(empty.sum()),
        "documents_too_short": int(short.sum()),
        "documents_lost": documents_lost(source, plan, shortest),
        "instances_per_document": np.bincount(np.minimum(bins, COUNT_BINS - 1), minlength=COUNT_BINS).tolist(),
    }


def documents_lost(source: Source, plan: Plan, shortest: int = 1) -> int:
    """How many documents of ``shortest`` tokens or more have no instance."""
    long_enough = np.diff(source.token_offsets) >= max(shortest, 1)
    return int(np.count_nonzero(long_enough & (_instances(source, plan) == 0)))


def _instances(source: Source, plan: Plan) -> I64:
    """Instances of each document; one that spans several documents counts for each of them."""
    rows = len(source.keys)
    begun, ended = (np.bincount(at, minlength=rows + 1) for at in (plan.document, plan.last_document + 1))
    return np.where(np.diff(source.token_offsets) > 0, np.cumsum(begun - ended)[:rows], 0)


def measure_text(source: Source, specials: Specials) -> dict[str, int]:
    """Statistics of the text that instances are made of: tokens, [UNK], special ids that must not be there."""
    frame = specials.is_special()
    frame[specials.unk] = False
    return {
        "source_tokens": len(source.ids),
        "unknown_tokens": int(np.count_nonzero(source.ids == specials.unk)),
        "specials_in_text": int(np.count_nonzero(frame[source.ids])),
    }


def measure_instances(
    batch: pa.RecordBatch, plan: Plan, specials: Specials, length: int, mask: MaskSettings
) -> dict[str, Any]:
    """Statistics of instances: tokens, lengths, masks by kind, labels. ``mask``: gives the budget."""
    lengths = batch.column("length").to_numpy().astype(np.int64)
    bins = (lengths * LENGTH_BINS + length - 1) // length - 1
    drawn = ~plan.forced
    return {
        "instances": batch.num_rows,
        "tokens": int(lengths.sum()),
        "lengths": np.bincount(bins, minlength=LENGTH_BINS).tolist(),
        "pairs_next": int(np.count_nonzero(plan.label == 0)),
        "pairs_random": int(np.count_nonzero(plan.b_foreign)),
        "pairs_swapped": int(np.count_nonzero((plan.label == 1) & ~plan.b_foreign)),
        "pairs_forced": int(np.count_nonzero(plan.forced)),
        "pairs_drawn": int(np.count_nonzero(drawn & (plan.label >= 0))),
        "pairs_drawn_random": int(np.count_nonzero(drawn & (plan.label == 1))),
        **_measure_masks(batch, specials, mask),
    }


def _measure_masks(batch: pa.RecordBatch, specials: Specials, mask: MaskSettings) -> dict[str, int]:
    if "masked_positions" not in batch.schema.names:
        return {}
    ids, offsets = list_column(batch.column("input_ids"))
    positions, position_offsets = list_column(batch.column("masked_positions"))
    labels, _ = list_column(batch.column("masked_labels"))
    seen = ids[positions + np.repeat(offsets[:-1], np.diff(position_offsets))]
    as_mask, kept = int(np.count_nonzero(seen == specials.mask)), int(np.count_nonzero(seen == labels))
    # Words may all be longer than the budget; tokens never are.
    bare = {"instances_unmasked": int(np.count_nonzero(np.diff(position_offsets) == 0))}
    return {
        **(bare if "word_starts" in batch.schema.names else {}),
        "mask_budget": int(mask_counts(np.diff(offsets), mask).sum()),
        "masked": len(labels),
        "masked_as_mask": as_mask,
        "masked_as_random": len(labels) - as_mask - kept,
        "masked_as_kept": kept,
    }


def judge(
    statistics: dict[str, Any],
    *,
    where: str,
    length: int,
    mask: MaskSettings,
    words: int,
) -> dict[str, float]:
    """The ratios of summed statistics, after asserting them.

    ``pairs_drawn`` counts coin flips: neither forced labels nor those that a copy of the corpus repeats.
    Labels that are not forced are fair coins in every format, including segment-pair as google-research/bert draws it.
    ``words``: how many tokens a random replacement is drawn from (it may draw the original: counted as kept).
    Raises `errors.InvariantBroken`.
    """
    for key, what in (("documents_lost", "documents without an instance"), ("specials_in_text", "special ids in text")):
        _equal(where, what, statistics.get(key, 0), 0)
    for key, parts in (("instances", "lengths"), ("documents", "instances_per_document")):
        if parts in statistics:
            _equal(where, f"{key} in the histogram of {parts}", sum(statistics[parts]), statistics.get(key, 0))
    instances, tokens = statistics.get("instances", 0), statistics.get("tokens", 0)
    ratios = {
        "fill": _ratio(tokens, instances * length),
        "unknown_share": _ratio(statistics.get("unknown_tokens", 0), statistics.get("source_tokens", 0)),
        "instances_per_document": _ratio(instances, statistics.get("documents", 0)),
    }
    if statistics.get("masked", 0):
        ratios |= _judge_masks(statistics, where, mask, words)
    kinds = {key: statistics.get(key, 0) for key in ("pairs_next", "pairs_random", "pairs_swapped")}
    if pairs := sum(kinds.values()):
        _equal(where, "pairs with a label", pairs, instances)
        ratios |= {key: count / pairs for key, count in kinds.items() if count}
        ratios["pairs_forced"] = statistics["pairs_forced"] / pairs
        _within(where, "labels drawn 1", statistics["pairs_drawn_random"], statistics["pairs_drawn"], 0.5)
    return ratios


def judge_whole(
    parts: dict[str, dict[str, Any]], *, where: str, documents: int, encoded: dict[str, Any], rows: dict[str, int]
) -> None:
    """Check that nothing is lost or doubled between the steps of the stage. Raises `errors.InvariantBroken`.

    ``parts``: summed statistics of training and held-out part; ``documents``: read by the stage; ``encoded``:
    statistics of encoding; ``rows``: instances of each part on disk.
    """
    for split, counts in parts.items():
        _equal(f"{where} ({split})", "instances on disk", rows.get(split, 0), counts.get("instances", 0))
    tokens = encoded.get("tokens", 0) - encoded.get("tokens_too_long", 0)
    _equal(where, "documents encoded", encoded.get("documents", 0), documents)
    for key, expected in (("documents", documents), ("source_tokens", tokens)):
        _equal(where, f"{key} of all parts", sum(counts.get(key, 0) for counts in parts.values()), expected)


def _judge_masks(statistics: dict[str, Any], where: str, mask: MaskSettings, words: int) -> dict[str, float]:
    """The share of each kind of masked token, of masked tokens, and of instances without any."""
    masked, ratios = statistics["masked"], {}
    same = mask.random_share / words if words else mask.random_share
    kept = 1 - mask.mask_share - mask.random_share + same
    shares = {"mask": mask.mask_share, "random": mask.random_share - same, "kept": kept}
    for kind, share in shares.items():
        together = _TOKENS_A_DRAW if find_unit(mask.unit).once_a_run else 1
        _within(where, f"masked as {kind}", statistics[f"masked_as_{kind}"], masked, share, together)
        ratios[f"masked_as_{kind}"] = statistics[f"masked_as_{kind}"] / masked
    ratios["masked"] = masked / statistics["tokens"]
    ratios["masked_of_budget"] = _ratio(masked, statistics.get("mask_budget", 0))
    if "instances_unmasked" in statistics:
        ratios["instances_unmasked"] = statistics["instances_unmasked"] / statistics["instances"]
    return ratios


def _within(where: str, name: str, count: int, trials: int, share: float, together: int = 1) -> None:
    """``together``: how many trials share a draw."""
    bound = _DEVIATIONS * math.sqrt(max(trials * share * (1 - share) * together, 0)) + together
    if abs(count - trials * share) > bound:
        what = f"{name}: {count} of {trials}, expected {trials * share:.0f} +- {bound:.0f}"
        raise errors.InvariantBroken(where, what, "please report this with the recipe and its seed")


def _equal(where: str, name: str, count: int, expected: int) -> None:
    if count != expected:
        raise errors.InvariantBroken(where, f"{name}: {count}, expected {expected}", "please report this")


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
