"""Settings of the vocabulary: its family, its size and what it is learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from corpusforge.sections.fields import OneOf, allows, at_least, between, option


class VocabFamily(NamedTuple):
    """A family of vocabularies: its module in `corpusforge.tokens`, and the one that learns it, "": the same."""

    module: str
    learner: str = ""


FAMILIES = {
    "wordpiece": VocabFamily("wordpiece"),
    "wordpiece-likelihood": VocabFamily("wordpiece", "likelihood"),
    "bpe": VocabFamily("byte_bpe"),
    "unigram": VocabFamily("sentencepiece_family"),
    "sentencepiece-bpe": VocabFamily("sentencepiece_family"),
}
"""Every family, by name; `corpusforge.tokens.families` says what their modules contain."""


def _families_of(module: str) -> tuple[str, ...]:
    return tuple(name for name, family in FAMILIES.items() if family.module == module)


WORDPIECE, SENTENCEPIECE = _families_of("wordpiece"), _families_of("sentencepiece_family")
"""Families that share settings."""


def _coverage(value: float) -> str | None:
    """Check what the trainer accepts (google/sentencepiece, trainer_interface.cc, VerifySpec).

    >>> _coverage(0.0), _coverage(0.9995), _coverage(0.5)
    (None, None, 'must be 0 or lie between 0.98 and 1')
    """
    return None if value == 0 or between(0.98, 1)(value) is None else "must be 0 or lie between 0.98 and 1"


@dataclass(frozen=True, kw_only=True)
class Vocab:
    """The vocabulary."""

    model: str = option("wordpiece", "family", check=OneOf(*FAMILIES))
    size: int = option(30_528, "entries with specials and unused slots; a multiple of 64", check=at_least(64))
    unused: int = option(128, "[unusedN] slots within the size, for users to claim later", check=at_least(0))
    lowercase: bool = option(
        True,
        "uncased: lower case, accents stripped",
        only_with={"model": (*WORDPIECE, *SENTENCEPIECE), "normalization": ("albert",)},
        flag="--uncased/--cased",
    )
    alphabet: int = option(
        1000,
        "distinct characters kept, the most frequent (default of Hugging Face and Google)",
        check=at_least(64),
        only_with={"model": WORDPIECE},
    )
    normalization: str = option(
        "albert",
        "albert: quotes, and uncased NFKD; the others are rules of sentencepiece (T5: nmt_nfkc)",
        check=OneOf("albert", "nmt_nfkc", "nmt_nfkc_cf", "nfkc", "nfkc_cf"),
        only_with={"model": SENTENCEPIECE},
    )
    coverage: float = option(
        0.0,
        "share of characters kept; 0: .99995 (ALBERT) for unigram, .9995 (sentencepiece) for sentencepiece-bpe",
        check=allows("0, or 0.98 to 1")(_coverage),
        only_with={"model": SENTENCEPIECE},
    )
    min_count: int = option(2, "rarer words are not learned from", unit="occurrences", check=at_least(1))
    min_pair: int = option(
        0,
        "rarer pairs are never merged; 0: the limit starts at the top and is halved",
        unit="occurrences",
        check=at_least(0),
        only_with={"model": ("wordpiece-likelihood",)},
    )
    max_words: int = option(
        4_000_000,
        "distinct words the learner reads: the most frequent ones",
        check=at_least(1000),
        advanced=True,
    )
    allow_any_size: bool = option(
        False, "accept a size that is not a multiple of 64", flag="--allow-any-size/--only-multiples-of-64"
    )
    adopt: str = option("", "a tokenizer folder to adopt instead of learning one", is_path=True, flag="--from")
    sample: str = option(
        "", "a folder of documents to measure the vocabulary on; empty: those it is learned from", is_path=True
    )
