"""The families by name: how each cuts text, and what learns it.

In: the settings of a recipe's section [vocab], counted words. Out: a `Cutting`, then a learned `Vocab`. The decision:
counting needs no more than the cutting, and learning no more than the counts, so every family goes through the same
stage.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from corpusforge.tokens.columns import Cutting
from corpusforge.tokens.gpt2_split import GPT2
from corpusforge.tokens.learn_wordpiece import Learned
from corpusforge.tokens.words import Normalization


def cutting_of(section: Any) -> Cutting:
    """How text is cut for the family of a section [vocab] (by attribute)."""
    return GPT2 if section.model == "bpe" else Normalization(section.lowercase)


def learn(section: Any, counts: pa.Table) -> Learned:
    """Learn the vocabulary of a section [vocab] from COUNTS.

    Raises `errors.RecipeInvalid` where its size is no multiple of 64 or too small.
    """
    if section.model == "bpe":
        from corpusforge.tokens.learn_bpe import learn as learn_bpe

        return learn_bpe(counts, section.size, unused=section.unused, allow_any_size=section.allow_any_size)
    from corpusforge.tokens.learn_wordpiece import learn as learn_wordpiece

    return learn_wordpiece(
        counts,
        section.size,
        unused=section.unused,
        lowercase=section.lowercase,
        alphabet=section.alphabet,
        allow_any_size=section.allow_any_size,
    )
