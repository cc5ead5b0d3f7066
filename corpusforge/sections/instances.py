"""Settings of training instances: how token ids become training examples.

Defaults that come from a paper carry it in their help.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpusforge.sections.fields import OneOf, at_least, between, option


@dataclass(frozen=True)
class Instances:
    """How token ids become training examples."""

    format: str = option(
        "doc-sentences",
        "input format (RoBERTa, section 4.2; sop: ALBERT, section 3.1)",
        check=OneOf("doc-sentences", "full-sentences", "segment-pair", "sentence-pair", "sop"),
    )
    length: int = option(128, "longest instance with specials", unit="tokens", check=between(8, 65_535))
    long_sentences: str = option(
        "keep",
        "sentences longer than an instance; keep: cut and continued (pairs: shortened); truncate; drop",
        check=OneOf("keep", "truncate", "drop"),
    )
    masking: str = option("dynamic", "when masks are drawn", check=OneOf("static", "duplicated", "dynamic"))
    copies: int = option(
        10, "duplicated: copies of the corpus with masks of their own (BERT: 10)", check=between(1, 1000)
    )
    copies_redraw: str = option(
        "pairs",
        "duplicated segment-pair: copies redraw pairs and masks, or masks only",
        check=OneOf("pairs", "masks"),
    )
    mask_unit: str = option("token", "what is masked together", check=OneOf("token", "whole-word", "ngram", "span"))
    mask_lexicon: str = option(
        "", "a file of phrases or entities, one a line, UTF-8: each is one word to mask", is_path=True
    )
    mask_segmenter: str = option("", "jieba: Chinese words are one word to mask (extra zh)", check=OneOf("", "jieba"))
    mask_rate: float = option(0.15, "share of tokens masked (BERT: 0.15)", check=between(0, 1))
    mask_share: float = option(0.8, "of these, replaced by [MASK] (BERT: 0.8)", check=between(0, 1))
    random_share: float = option(
        0.1, "of these, replaced by a random token (BERT: 0.1); the rest is kept", check=between(0, 1)
    )
    max_predictions: int = option(
        0,
        "most masked tokens an instance (BERT: 20 at 128, 76 at 512); 0: no cap",
        unit="tokens",
        check=at_least(0),
    )
    pair_sampling: str = option(
        "balanced",
        "segment-pair: exactly half random, or google-research/bert's own 53-57 %",
        check=OneOf("balanced", "original"),
    )
    short_probability: float = option(
        0.1, "share of documents with a shorter target length (BERT: 0.1)", check=between(0, 1)
    )
    heldout: float = option(0.01, "share of documents set aside for evaluation, by hash", check=between(0, 0.5))
    heldout_by: str = option(
        "id",
        "url: by the MD5 of the normalised URL, in thousandths (C4: 0.001); by id where there is none",
        check=OneOf("id", "url"),
    )
    donor_megabytes: int = option(
        256,
        "token ids kept in memory to draw random segments from: a uniform sample of the corpus",
        unit="MB",
        check=at_least(1),
    )
