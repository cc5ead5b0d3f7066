"""What a folder of build-instances says about itself: special ids, how masks are drawn, how much an epoch is.

Masks of a loader are those the instances were built for unless the caller chooses others, so a loader on a fresh
machine needs the folder alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from corpusforge import errors
from corpusforge.instances.masking import MaskSettings, Specials
from corpusforge.loader.corpus import Corpus, Ragged
from corpusforge.loader.order import ENDLESS, Part, Stream
from corpusforge.loader.packing import BatchSettings
from corpusforge.shards import Manifest
from corpusforge.tokens.families import load_vocab

SAMPLED_STEPS = 64
"""Padding is that of the first so many steps of an epoch."""


def load_specials(vocab_folder: str) -> Specials:
    """The special ids of a vocabulary folder."""
    vocab = load_vocab(vocab_folder)
    ids = vocab.specials
    return Specials(vocab.size, ids.pad, ids.unk, ids.cls, ids.sep, ids.mask, vocab.unused)


def mask_settings(section: Mapping[str, Any]) -> MaskSettings:
    """How masks are drawn, from the recipe's section [instances] as plain values; other keys are passed over.

    >>> mask_settings({"mask_rate": 0.2, "length": 64}).rate
    0.2
    """
    names = {"mask_rate": "rate", "mask_share": "mask_share", "random_share": "random_share"}
    names |= {"max_predictions": "max_predictions", "mask_unit": "unit"}
    return MaskSettings(**{names[k]: v for k, v in section.items() if k in names})


def check_vocabulary(corpus: Corpus, specials: Specials, data_folder: str, vocab_folder: str) -> None:
    """Look at up to a thousand instances: ids inside the vocabulary, [CLS] first, [SEP] last.

    Raises `errors.StageMismatch` if they do not fit.
    """
    rows = np.unique(np.linspace(0, len(corpus) - 1, 1000).astype(np.int64))
    ids = corpus.ids.whole(rows)
    lengths = corpus.lengths[rows]
    ends = np.cumsum(lengths) - 1
    fits = (ids[ends - lengths + 1] == specials.cls).all() and (ids[ends] == specials.sep).all()
    if fits and ids.max() < specials.size:
        return
    what = f"instances do not begin and end with the [CLS] and [SEP] of the vocabulary {vocab_folder}"
    raise errors.StageMismatch(data_folder, what, "name the vocabulary they were built with")


class EpochSize(NamedTuple):
    """How much an epoch is. ``steps``: how many read as many tokens; ``padding``: share of padding in its batches."""

    steps: int
    instances: int
    tokens: int
    padding: float


def size_of(stream: Stream, settings: BatchSettings, epoch: int = 0) -> EpochSize:
    """The size of an epoch of a part of training. Its padding is measured in its first `SAMPLED_STEPS` steps."""
    instances, tokens = stream.size(epoch)
    steps, first, held, size = -(-tokens // stream.part.batch_tokens), stream.begin(epoch), 0, 0
    for step in range(first, min(first + min(steps, SAMPLED_STEPS), stream.part.stop)):
        lengths = stream.chunks.lengths[np.concatenate([some for _, some in stream.step(step)])].astype(np.int64)
        held += int(lengths.sum())
        size += sum(group.size for group in settings.groups(lengths))
    return EpochSize(steps, instances, tokens, 1 - held / size if size else 0.0)


def epoch_size(folder: str, settings: BatchSettings | None = None, *, table: str = "train") -> EpochSize:
    """How much an epoch is, from ``manifest.json`` alone: of a duplicated corpus an epoch of the mean copy.

    Lengths are those of the manifest's 64 bins, each rounded up to the end of its bin; so padding is an estimate, and
    so is everything where ``settings.length`` cuts instances. With pairs redrawn (``copies_redraw = "pairs"``) copies
    differ, and one of them may have some per cent of steps more or fewer.

    Raises `errors.StageMismatch` if the folder has no lengths of this table, and `errors.RecipeInvalid`.
    """
    manifest = Manifest.load(str(folder))
    counted = manifest.statistics.get(table, {})
    if manifest.stage != "build-instances" or not counted.get("instances"):
        what = f"its manifest counts no instances of {table!r}"
        raise errors.StageMismatch(str(folder), what, "name a build-instances folder and one of its tables")
    section = manifest.recipe["instances"]
    copies = section["copies"] if table == "train" and section["masking"] == "duplicated" else 1
    counts = np.array(counted["lengths"], np.int64)
    ends = np.arange(1, len(counts) + 1) * int(section["length"]) // len(counts)
    lengths = np.repeat(ends, -(-counts // copies)).astype(np.int32)
    settings = (settings or BatchSettings()).resolved(int(lengths.max()))
    nothing = Ragged([], np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int32))
    keys = np.arange(len(lengths), dtype=np.uint64)
    firsts, labels = (lengths // 2 + 1, np.zeros(len(keys), np.int8)) if counted.get("pairs_drawn") else (lengths, None)
    corpus = Corpus(nothing, None, None, keys, lengths, firsts, labels, np.zeros(len(keys), np.uint16))
    stream = Stream(corpus, Part(0, ENDLESS, settings.length, settings.batch_tokens), 0, 0, 0)
    size = size_of(stream, settings)
    if settings.length < corpus.longest:
        return size
    tokens = counted["tokens"] // copies
    return EpochSize(-(-tokens // settings.batch_tokens), counted["instances"] // copies, tokens, size.padding)
