"""What makes one mask unit of several words, from the settings: a lexicon that is read, a segmenter, or nothing.

Comes in: a vocabulary and the section [instances]. Goes out: a `Joins` for the encoder, or an error. The one decision:
what could join no word at all is an error before anything is encoded; what then joins none is counted and said.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Any

from corpusforge import errors, shards
from corpusforge.tokens.mask_lexicon import Lexicon, Segmenter

if TYPE_CHECKING:
    from corpusforge.tokens.encode import Joins
    from corpusforge.tokens.vocab import Vocab


def joins_of(vocab: Vocab, section: Any) -> Joins | None:
    """What makes one mask unit of several words, from the section [instances]; reads the lexicon.

    Raises `errors.RecipeInvalid` where two things do, none is asked for, or a segmenter could join nothing, and
    `errors.InputMissing` where the lexicon is not there or empty.
    """
    lexicon, segmenter = section.mask_lexicon, section.mask_segmenter
    if not lexicon and not segmenter:
        return None
    if section.mask_unit == "token":
        mend = "set mask_unit to whole-word, ngram or span"
        raise errors.RecipeInvalid("instances.mask_unit", "a lexicon or segmenter joins words, not tokens", mend)
    if lexicon and segmenter:
        raise errors.RecipeInvalid("instances.mask_segmenter", "a lexicon is given too", "use one of the two")
    if segmenter:
        _check_apart(vocab, segmenter)
        return Segmenter(segmenter)
    if not shards.exists(lexicon):
        raise errors.InputMissing(lexicon, "no such lexicon", "name a file with one phrase a line")
    with shards.open_binary(lexicon) as file:
        data = file.read()
    if not data.removeprefix(codecs.BOM_UTF8).strip():
        raise errors.InputMissing(lexicon, "the lexicon holds no phrase", "write one phrase a line")
    return Lexicon(data, vocab.segmentation, lexicon)


def _check_apart(vocab: Vocab, segmenter: str) -> None:
    """Raise `errors.RecipeInvalid` where the vocabulary makes one word of characters that the segmenter would join."""
    if len(vocab.segmentation.splitter().words_of("中文")) > 1:
        return
    what = f"{segmenter} joins no words, as a vocabulary of the family {vocab.family.name} sets no characters apart"
    mend = "take one that does (train-vocab --model wordpiece), or leave --mask-segmenter out"
    raise errors.RecipeInvalid("instances.mask_segmenter", what, mend)
