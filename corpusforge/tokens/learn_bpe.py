"""Learns a byte-level BPE vocabulary from a table of word counts, the same one in every run.

In: COUNTS (pre-token, count) as `Gpt2Cutting` cuts them. Out: a `Vocab` of exactly the size asked for. The learning is
done by `tokenizers`' BpeTrainer (huggingface/tokenizers, models/bpe/trainer.rs). Memory and time depend on distinct
words, never on the size of the corpus. Where the counts are fed as they are, the result is what the library learns
from the text directly, with the whole text of a document as one sequence.

The library reads words from a hash map, but its sums do not depend on their order, and of equally frequent pairs it
merges the one of lower ids first. Ids are numbered by the alphabet, which depends on the text; here it is always all
256 bytes, sorted. Two things that the trainer cannot do are taken from it:

- its pair counts have 32 bits: counts are scaled down until the bytes fed are fewer than 2**31;
- a very long word (a line of dashes, a data URL) costs it time and memory and teaches nothing: it is left out.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors
from corpusforge.arrays import I64
from corpusforge.tokens.byte_bpe import arrange
from corpusforge.tokens.gpt2_split import LETTERS
from corpusforge.tokens.learn_wordpiece import FED_OCCURRENCES, Learned, repeated, scale_counts
from corpusforge.tokens.vocab import Vocab, check_size

LONGEST_WORD = 1024
"""Bytes of the longest word learned from: an ideographic paragraph without punctuation is shorter."""

_FIXED = 256 + 5
"""Ids that are always there: bytes and specials."""


def learn_bpe(counts: pa.Table, size: int, **settings: Any) -> Vocab:
    """The vocabulary of `learn`, without its statistics."""
    return learn(counts, size, **settings).vocab


def learn(
    counts: pa.Table, size: int, *, unused: int = 0, allow_any_size: bool = False, fed: int = FED_OCCURRENCES
) -> Learned:
    """Learn a byte-level BPE of ``size`` ids, specials and at least ``unused`` slots among them.

    ``counts``: COUNTS in any order. Where the words do not suffice to fill the size, more [unusedN] slots do.
    Statistics: words used and left out, ``count_scale`` (1: counts as they are), merges, unused.

    Raises `errors.RecipeInvalid` where the size is no multiple of 64 or too small for bytes, specials and slots.
    """
    check_size(size, allow_any_size=allow_any_size)
    if size < _FIXED + unused:
        what = f"{size:,} is less than the {_FIXED + unused:,} of bytes, specials and unused slots"
        raise errors.RecipeInvalid("vocab.size", what, "raise --size, or lower --unused")
    ordered = counts.take(pc.sort_indices(counts["word"]))
    lengths = pc.binary_length(ordered["word"])
    short = ordered.filter(pc.less_equal(lengths, LONGEST_WORD))
    scaled, scale = scale_counts(short["count"].to_numpy(), _bound(short, fed))
    merges = _train(short["word"].to_pylist(), scaled, size - 5 - unused)
    vocab = arrange(merges, size)
    statistics = {
        "words_learned_from": int(np.count_nonzero(scaled)),
        "words_scaled_away": int(np.count_nonzero(scaled == 0)),
        "words_too_long": len(counts) - len(short),
        "count_scale": scale,
        "merges": len(merges),
        "unused": len(vocab.unused),
    }
    return Learned(vocab, statistics)


def _bound(counts: pa.Table, fed: int) -> int:
    """Occurrences to feed: at most ``fed``, and so few that their bytes, and so any pair count, fit in 31 bits."""
    occurrences = counts["count"].to_numpy().astype(np.float64)
    if not len(occurrences):
        return fed
    bytes_ = float(np.dot(occurrences, pc.binary_length(counts["word"]).to_numpy()))
    # Rounding may give a word one occurrence more than its share; half of the range is left for that.
    return min(fed, max(1, int(occurrences.sum() * min(1.0, 2**30 / bytes_))))


def _train(words: list[str], counts: I64, room: int) -> list[tuple[str, str]]:
    from tokenizers import Tokenizer, models, trainers

    tokenizer = Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(vocab_size=room, min_frequency=1, initial_alphabet=LETTERS, show_progress=False)
    # Without a pre-tokenizer each string read is one word: bytes are written as letters here, once a distinct word.
    spelled = [word.encode().decode("latin-1").translate(_SPELLING) for word in words]
    tokenizer.train_from_iterator(repeated(spelled, counts), trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [(left, right) for left, right in merges]


_SPELLING = dict(enumerate(LETTERS))
