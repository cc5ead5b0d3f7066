from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from corpusforge.sections.vocab import FAMILIES
from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.report import LANGUAGES, describe
from corpusforge.tokens.wordpiece import arrange
from tests.tokens.small_vocabularies import made_up_text, of_family


def test_figures_on_a_sample() -> None:
    vocab = arrange(["a", "##b", "##c", "dog", "never"], 64, 5, BertSegmentation())
    figures = describe(vocab, pa.array(["a abc dog", "dog ☃ ☃ ♞"]))
    assert (figures["sample_documents"], figures["sample_words"], figures["sample_tokens"]) == (2, 7, 9)
    assert figures["fertility"] == pytest.approx(9 / 7)
    assert figures["unknown_rate"] == pytest.approx(3 / 9)
    assert figures["character_coverage"] == pytest.approx(1 - 3 / 13)
    assert figures["unknown_characters"] == [{"character": "☃", "count": 2}, {"character": "♞", "count": 1}]
    assert figures["longest_tokens"][:2] == ["never", "dog"]
    assert figures["unused_slots"] == 54
    assert figures["unseen_share"] == pytest.approx(5 / 64)  # never, and four specials; [UNK] was seen
    assert figures["token_lengths"] == [0, 3, 0, 1, 0, 1]
    # [UNK] three times, "a" and "dog" twice, "##b" and "##c" once.
    assert figures["token_frequencies"] == {"ranks": [1, 2, 3, 4, 5], "occurrences": [3, 2, 2, 1, 1]}
    assert list(figures["languages"]) == ["unknown"]


def test_figures_by_language() -> None:
    vocab = arrange(["a", "##b", "##c", "dog", "never"], 64, 5, BertSegmentation())
    texts, languages = pa.array(["a abc dog", "dog ☃ ☃ ♞", "dog dog", ""]), pa.array(["en", None, "de", "en"])
    figures = describe(vocab, texts, languages)["languages"]
    assert list(figures) == ["unknown", "en", "de"]  # most bytes first
    assert (figures["en"]["documents"], figures["en"]["words"], figures["en"]["tokens"]) == (2, 3, 5)
    assert figures["en"]["fertility"] == pytest.approx(5 / 3)
    assert (figures["en"]["unknown_rate"], figures["en"]["character_coverage"]) == (0, 1)
    assert figures["unknown"]["unknown_rate"] == pytest.approx(3 / 4)
    assert (figures["de"]["fertility"], figures["de"]["bytes_per_token"]) == (1, 3.5)
    assert figures["en"]["longest_tokens"] == ["dog", "##b", "##c", "a"]
    assert figures["de"]["unseen_share"] == pytest.approx(9 / 64)


def test_many_languages_are_counted_together() -> None:
    vocab = arrange(["a"], 64, 0, BertSegmentation())
    names = [f"x{k:02d}" for k in range(LANGUAGES + 9)]
    figures = describe(vocab, pa.array(["a"] * len(names)), pa.array(names))
    assert list(figures["languages"]) == [*names[:LANGUAGES], "other"]
    assert figures["languages"]["other"]["words"] == 9
    assert figures["sample_words"] == len(names)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_figures(name: str) -> None:
    text, vocab = made_up_text(), of_family(name)
    languages = pa.array(["en", "de"] * (len(text) // 2))
    figures = describe(vocab, text, languages)
    ids = [i for document in text.to_pylist() for i in vocab.library_tokenizer(added=False).encode(document).ids]
    assert figures["sample_tokens"] == len(ids)
    assert figures["fertility"] >= 1
    assert figures["character_coverage"] == 1
    assert figures["unseen_share"] == pytest.approx((vocab.size - len(vocab.unused) - len(set(ids))) / vocab.size)
    assert figures["token_frequencies"]["occurrences"][0] == np.bincount(ids).max()
    assert sum(part["tokens"] for part in figures["languages"].values()) == len(ids)
    assert sum(figures["token_lengths"]) == vocab.size - len(vocab.unused) - 5
    if name == "bpe":
        assert figures["unknown_rate"] == 0


def test_an_empty_sample() -> None:
    figures = describe(arrange(["a"], 64, 0, BertSegmentation()), pa.array([], pa.string()))
    assert (figures["fertility"], figures["unknown_rate"], figures["character_coverage"]) == (0, 0, 1)
    assert figures["languages"] == {}
    assert figures["token_frequencies"] == {"ranks": [], "occurrences": []}
