"""Settings of training instances: how token ids become training examples.

Defaults that come from a paper name it in their help.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from corpusforge.sections.fields import OneOf, at_least, between, option


class Named(NamedTuple):
    """A format or a mask unit. ``module``: in `corpusforge.instances`; ``uses``: settings that only some use."""

    module: str
    help: str
    uses: tuple[str, ...] = ()


FORMATS = {
    "doc-sentences": Named("blocks", "sentences of one document (RoBERTa, section 4.2)"),
    "full-sentences": Named("blocks", "sentences across documents (RoBERTa, section 4.2)"),
    "segment-pair": Named(
        "pairs", "B continues A or is random (BERT)", ("pair_sampling", "short_probability", "negatives_megabytes")
    ),
    "sentence-pair": Named("pairs", "the same of single sentences (RoBERTa, section 4.2)", ("negatives_megabytes",)),
    "sop": Named("pairs", "two segments in order or swapped (ALBERT, section 3.1)", ("short_probability",)),
}
"""Formats of instances, by name. The module has each in its ``FORMATS`` (`corpusforge.instances.formats.Format`)."""

_JOINED = ("mask_lexicon", "mask_segmenter")

MASK_UNITS = {
    "token": Named("mask_units", "single tokens"),
    "whole-word": Named("mask_units", "words", _JOINED),
    "ngram": Named("mask_runs", "1 to 3 words (ALBERT)", _JOINED),
    "span": Named("mask_runs", "1 to 10 words (SpanBERT)", _JOINED),
}
"""Mask units, by name. The module has each in its ``UNITS`` (`corpusforge.instances.mask_units.MaskUnit`)."""

MASKING = ("static", "duplicated", "dynamic")
"""When masks are drawn: once, once a copy of the corpus, or in every epoch."""


def described(table: dict[str, Named]) -> str:
    """The entries of a table for a line of help.

    >>> described({"token": Named("mask_units", "single tokens"), "span": Named("mask_runs", "1 to 10 words")})
    'token: single tokens; span: 1 to 10 words'
    """
    return "; ".join(f"{name}: {entry.help}" for name, entry in table.items())


def users(table: dict[str, Named], setting: str) -> tuple[str, ...]:
    """Names of the entries that use a setting."""
    return tuple(name for name, entry in table.items() if setting in entry.uses)


@dataclass(frozen=True, kw_only=True)
class Instances:
    """How token ids become training examples."""

    format: str = option("doc-sentences", f"input format; {described(FORMATS)}", check=OneOf(*FORMATS))
    length: int = option(128, "longest instance with specials", unit="tokens", check=between(8, 65_535))
    long_sentences: str = option(
        "keep",
        "sentences longer than an instance; keep: split over several (pairs: shortened); truncate; drop",
        check=OneOf("keep", "truncate", "drop"),
    )
    masking: str = option("dynamic", "when masks are drawn", check=OneOf(*MASKING))
    copies: int = option(
        10,
        "copies of the corpus with masks of their own (BERT: 10)",
        check=between(1, 1000),
        only_with={"masking": ("duplicated",)},
    )
    copies_redraw: str = option(
        "pairs",
        "segment-pair copies redraw pairs and masks, or masks only",
        check=OneOf("pairs", "masks"),
        only_with={"masking": ("duplicated",)},
    )
    mask_unit: str = option("token", f"what is masked together; {described(MASK_UNITS)}", check=OneOf(*MASK_UNITS))
    mask_lexicon: str = option(
        "", "a file of phrases or entities, one per line, UTF-8: each is masked as one word", is_path=True
    )
    mask_segmenter: str = option(
        "",
        "jieba: each Chinese word is masked as one word (extra zh)",
        check=OneOf("", "jieba"),
        metavar="jieba",
    )
    mask_rate: float = option(0.15, "share of tokens masked (BERT: 0.15)", check=between(0, 1))
    mask_share: float = option(
        0.8, "of masked tokens, the share replaced by [MASK] (BERT: 0.8)", check=between(0, 1), advanced=True
    )
    random_share: float = option(
        0.1,
        "of masked tokens, the share replaced by a random token (BERT: 0.1); the rest is left as it is",
        check=between(0, 1),
        advanced=True,
    )
    max_predictions: int = option(
        0,
        "most masked tokens an instance (BERT: 20 at 128, 76 at 512); 0: no limit",
        unit="tokens",
        check=at_least(0),
    )
    pair_sampling: str = option(
        "balanced",
        "exactly half random, or google-research/bert's own 53-57 %",
        check=OneOf("balanced", "original"),
        only_with={"format": users(FORMATS, "pair_sampling")},
    )
    short_probability: float = option(
        0.1,
        "share of documents with a shorter target length (BERT: 0.1)",
        check=between(0, 1),
        only_with={"format": users(FORMATS, "short_probability")},
    )
    heldout: float = option(0.01, "share of documents held out for evaluation, by hash", check=between(0, 0.5))
    heldout_by: str = option(
        "id",
        "url: by the MD5 of the normalized URL, in thousandths (C4: 0.001), by id where there is none",
        check=OneOf("id", "url"),
        unless={"heldout": 0.0},
    )
    negatives_megabytes: int = option(
        256,
        "token ids kept in memory to draw negatives from: a uniform sample of the corpus",
        unit="MB",
        check=at_least(1),
        only_with={"format": users(FORMATS, "negatives_megabytes")},
        was="donor_megabytes",
        advanced=True,
    )
