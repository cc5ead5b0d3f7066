"""Words to mask in every family: white space parts them, and a phrase of a lexicon is one in the middle of text too."""

from __future__ import annotations

import functools

import pyarrow as pa
import pytest

from corpusforge.sections import Vocab as Section
from corpusforge.tokens.counts import count_words, pack_counts
from corpusforge.tokens.encode import Encoder
from corpusforge.tokens.families import learn, segmentation_of, select
from corpusforge.tokens.mask_lexicon import Lexicon
from corpusforge.tokens.vocab import Vocab
from tests.tokens.test_encode import documents

TEXT = "Hello, old York! We saw new york and a new yorker in New York."
FAMILIES = ("wordpiece", "bpe", "unigram", "sentencepiece-bpe")


@functools.lru_cache
def vocabulary(model: str) -> Vocab:
    section = Section(model=model, size=320, unused=0, allow_any_size=True)
    text = [TEXT, "the quick brown fox jumps over lazy dogs", "a b c d e f g h i j k l m n o p q r s t u v w x y z"]
    counted = count_words(pa.array(text * 20), segmentation_of(section))
    return learn(select([block for _, block in pack_counts(counted, 1)], section)[0], section).vocab


def units(model: str, lexicon: str = "") -> list[list[str]]:
    """The sentences of the text as the units of their tokens."""
    vocab = vocabulary(model)
    joins = Lexicon(lexicon.encode(), vocab.segmentation) if lexicon else None
    row = Encoder(vocab, word_starts=True, joiner=joins).encode(documents([TEXT])).to_pylist()[0]
    sentences, at = [], 0
    for count in row["sentences"]:
        found: list[list[int]] = []
        for id_, starts in zip(row["ids"][at : at + count], row["word_starts"][at : at + count], strict=True):
            if starts:
                found.append([])
            found[-1].append(id_)
        tokenizer = vocab.library_tokenizer()
        sentences.append([tokenizer.decode(unit).strip() for unit in found])
        at += count
    return sentences


@pytest.mark.parametrize("model", FAMILIES)
def test_white_space_parts_words(model: str) -> None:
    whole = [sentence.lower().split() for sentence in ("Hello, old York!", TEXT[17:])]
    found = [[unit.lower() for unit in sentence] for sentence in units(model)]
    if model == "wordpiece":  # where punctuation is a word of its own
        assert found[0] == ["hello", ",", "old", "york", "!"]
    else:
        assert found == whole


@pytest.mark.parametrize("model", FAMILIES)
def test_a_phrase_is_one_word(model: str) -> None:
    found = [unit for sentence in units(model, "New York\nWe saw") for unit in sentence]
    assert "we saw" in [unit.lower() for unit in found]
    assert any(unit.lower().startswith("new york") for unit in found)
    assert "a" in found  # and "new yorker" is no phrase
    assert not any(unit.lower().startswith("new yorker") for unit in found)
