from __future__ import annotations

import pyarrow as pa
import pytest

from corpusforge.tokens import byte_bpe
from corpusforge.tokens.report import describe, longest_tokens
from corpusforge.tokens.wordpiece import arrange
from corpusforge.tokens.words import Normalization


def test_figures_on_a_sample() -> None:
    vocab = arrange(["a", "##b", "##c", "dog", "never"], 64, 5, Normalization())
    found = describe(vocab, pa.array(["a abc dog", "dog ☃ ☃ ♞"]))
    assert (found["sample_words"], found["sample_tokens"]) == (7, 9)
    assert found["fertility"] == pytest.approx(9 / 7)
    assert found["unknown_rate"] == pytest.approx(3 / 9)
    assert found["character_coverage"] == pytest.approx(1 - 3 / 13)
    assert found["unknown_characters"] == [{"character": "☃", "count": 2}, {"character": "♞", "count": 1}]
    assert found["longest_tokens"][:2] == ["never", "dog"]
    assert found["unused_slots"] == 54
    assert found["unseen_share"] == pytest.approx(5 / 64)  # never, and four specials; [UNK] was seen


def test_an_empty_sample() -> None:
    found = describe(arrange(["a"], 64, 0, Normalization()), pa.array([], pa.string()))
    assert (found["fertility"], found["unknown_rate"], found["character_coverage"]) == (0, 0, 1)


def test_tokens_of_bytes_are_shown_as_text() -> None:
    merges = [("Ġ", "t"), ("æ", "Ŀ"), ("æĿ", "±")]
    found = describe(byte_bpe.arrange(merges, 320), pa.array([" t東 ♞"]))
    assert (found["unknown_rate"], found["character_coverage"], found["unknown_characters"]) == (0, 1, [])
    assert "\u2581t" in found["longest_tokens"]
    assert longest_tokens(byte_bpe.arrange(merges, 320), ["æĿ±", "Ġt"]) == ["\u2581t", "東"]
