"""Settings of the vocabulary: its family, size and what it is learned from."""

from __future__ import annotations

from dataclasses import dataclass

from corpusforge.sections.fields import OneOf, at_least, option

FAMILIES = ("wordpiece", "wordpiece-likelihood", "bpe", "unigram", "sentencepiece-bpe")
"""Families of vocabularies (`corpusforge.tokens.families`)."""


def _coverage(value: float) -> str | None:
    """What the trainer takes (google/sentencepiece, trainer_interface.cc, VerifySpec), or nothing.

    >>> _coverage(0.0), _coverage(0.9995), _coverage(0.5)
    (None, None, 'must be 0 or lie between 0.98 and 1')
    """
    return None if value == 0 or 0.98 <= value <= 1 else "must be 0 or lie between 0.98 and 1"


@dataclass(frozen=True)
class Vocab:
    """The vocabulary."""

    model: str = option("wordpiece", "family", check=OneOf(*FAMILIES))
    size: int = option(30_528, "entries with specials and unused slots; a multiple of 64", check=at_least(64))
    unused: int = option(128, "[unusedN] slots inside the size, for users to claim later", check=at_least(0))
    lowercase: bool = option(True, "uncased: lower case, accents stripped")
    min_count: int = option(2, "words seen less often are not learned from", unit="occurrences", check=at_least(1))
    max_words: int = option(4_000_000, "distinct words the learner reads: the most frequent ones", check=at_least(1000))
    alphabet: int = option(
        1000,
        "wordpiece families: distinct characters kept, the most frequent (HF and google default)",
        check=at_least(64),
    )
    min_pair: int = option(
        0,
        "wordpiece-likelihood: pairs seen less often are never merged; 0: the bound starts at the top and is halved",
        unit="occurrences",
        check=at_least(0),
    )
    normalization: str = option(
        "albert",
        "unigram, sentencepiece-bpe; albert: quotes, and uncased NFKD; others: rules of sentencepiece (T5: nmt_nfkc)",
        check=OneOf("albert", "nmt_nfkc", "nmt_nfkc_cf", "nfkc", "nfkc_cf"),
    )
    coverage: float = option(
        0.0,
        "unigram, sentencepiece-bpe: share of characters kept; 0: .99995 (ALBERT), .9995 (sentencepiece)",
        check=_coverage,
    )
    allow_any_size: bool = option(False, "accept a size that is no multiple of 64")
    adopt: str = option("", "a tokenizer folder to take over instead of learning", is_path=True)
    sample: str = option(
        "", "a folder of documents to take the figures from; none: those it is learned from", is_path=True
    )
