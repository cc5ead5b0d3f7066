"""The families by name: how each cuts text, and what learns it.

In: the settings of a recipe's section [vocab], counted words. Out: a `Cutting`, then a learned `Vocab`. The decision:
counting needs no more than the cutting, and learning no more than the counts, so every family goes through the same
stage.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from corpusforge import errors
from corpusforge.tokens.columns import Cutting
from corpusforge.tokens.counts import select_counts
from corpusforge.tokens.gpt2_split import GPT2
from corpusforge.tokens.learn_wordpiece import Learned
from corpusforge.tokens.pieces import PieceCutting
from corpusforge.tokens.vocab import check_size
from corpusforge.tokens.words import Normalization

ALGORITHMS = {"unigram": "unigram", "sentencepiece-bpe": "bpe"}
"""The families of SentencePiece: their names here, and what the library calls them."""


def cutting_of(section: Any) -> Cutting:
    """How text is cut for the family of a section [vocab] (by attribute)."""
    if section.model in ALGORITHMS:
        return _piece_cutting(section)
    return GPT2 if section.model == "bpe" else Normalization(section.lowercase)


SPECIALS = 5
"""Special tokens of each family."""

BYTES = 256
"""Tokens that byte-level BPE begins with."""


def check_sizes(section: Any) -> None:
    """Raise `errors.RecipeInvalid` where the size of a section [vocab] is wrong whatever the text that is counted.

    Learning checks it again against the characters of the text.
    """
    if section.adopt:
        return
    check_size(section.size, allow_any_size=section.allow_any_size)
    least = SPECIALS + section.unused + (BYTES if section.model == "bpe" else 1)
    if section.size < least:
        kind = "bytes" if section.model == "bpe" else "one character"
        what = f"{section.size:,} is less than the {least:,} of specials, unused slots and {kind}"
        raise errors.RecipeInvalid("vocab.size", what, "raise --size, or lower --unused")


def select(section: Any, blocks: Iterable[bytes]) -> tuple[pa.Table, dict[str, float]]:
    """The words a section [vocab] learns from, of merged blocks of COUNTS, and what was left out."""
    limits = {"min_count": section.min_count, "max_words": section.max_words}
    if section.model in ALGORITHMS:
        from corpusforge.tokens.learn_sentencepiece import select as select_pieces

        return select_pieces(blocks, **limits)
    counts, found = select_counts(blocks, **limits)
    return counts, dict(found)


def learn(section: Any, counts: pa.Table) -> Learned:
    """Learn the vocabulary of a section [vocab] from COUNTS.

    Raises `errors.RecipeInvalid` where its size is no multiple of 64 or too small.
    """
    if section.model == "bpe":
        from corpusforge.tokens.learn_bpe import learn as learn_bpe

        return learn_bpe(counts, section.size, unused=section.unused, allow_any_size=section.allow_any_size)
    if section.model in ALGORITHMS:
        from corpusforge.tokens.learn_sentencepiece import learn as learn_sentencepiece

        return learn_sentencepiece(
            counts,
            section.size,
            algorithm=ALGORITHMS[section.model],
            cutting=_piece_cutting(section),
            unused=section.unused,
            coverage=section.coverage,
            allow_any_size=section.allow_any_size,
        )
    from corpusforge.tokens import learn_likelihood, learn_wordpiece

    settings: dict[str, Any] = {
        "unused": section.unused,
        "lowercase": section.lowercase,
        "alphabet": section.alphabet,
        "allow_any_size": section.allow_any_size,
    }
    if section.model == "wordpiece-likelihood":
        return learn_likelihood.learn(counts, section.size, min_pair=section.min_pair, **settings)
    return learn_wordpiece.learn(counts, section.size, **settings)


def _piece_cutting(section: Any) -> PieceCutting:
    if section.normalization == "albert":
        return PieceCutting(strip_accents=section.lowercase, lowercase=section.lowercase)
    from corpusforge.tokens.learn_sentencepiece import charsmap_of

    return PieceCutting(False, False, False, charsmap_of(section.normalization))
