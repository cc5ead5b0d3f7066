"""Lexicons join words by greedy longest match, segmenters join Chinese characters; both inside one row."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.instances.build import settings_of
from corpusforge.instances.masking import MaskSettings
from corpusforge.instances.measure import judge
from corpusforge.sections import Instances, Recipe
from corpusforge.stages.build_instances import _lexicon_digest
from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.encode import Encoder
from corpusforge.tokens.mask_lexicon import Lexicon, Segmenter, joiner_of
from corpusforge.tokens.splitting import Words
from corpusforge.tokens.wordpiece import arrange
from tests.oracles import lexicon as oracle
from tests.tokens.small_vocabularies import of_family
from tests.tokens.test_encode import UNCASED, documents

SEGMENTATION = BertSegmentation()


def words_of(rows: list[list[str]]) -> Words:
    flat = [word for row in rows for word in row]
    return Words(pa.array(flat, pa.string()), np.cumsum([0, *map(len, rows)]), 0)


def lexicon(phrases: list[tuple[str, ...]]) -> Lexicon:
    return Lexicon("".join(" ".join(p) + "\n" for p in phrases).encode(), SEGMENTATION)


def rows_of(words: Words, flags: np.ndarray) -> list[list[bool]]:
    return [part.tolist() for part in np.split(flags, words.offsets[1:-1])]


WORD = st.sampled_from(["a", "b", "c", "zz"])


@given(
    rows=st.lists(st.lists(WORD, max_size=12), min_size=1, max_size=6),
    phrases=st.lists(st.lists(WORD, max_size=5).map(tuple), max_size=8),
)
def test_equals_the_oracle(rows, phrases):
    words = words_of(rows)
    assert rows_of(words, lexicon(phrases).joined(words)) == oracle.joined(rows, phrases)


def test_phrases_are_split_as_text_is():
    three_phrases = Lexicon("New YORK\n\nMüller's\n東京都\n".encode(), SEGMENTATION)
    words = words_of([["new", "york", "new"], ["york"], ["muller", "'", "s", "東", "京", "都", "京"]])
    joined = [[False, True, False], [False], [False, True, True, False, True, True, False]]
    assert rows_of(words, three_phrases.joined(words)) == joined


def test_mask_units_of_a_lexicon_reach_the_tokens():
    joiner = Lexicon(b"quick brown\nthe lazy dog", UNCASED.segmentation)
    encoder = pickle.loads(pickle.dumps(Encoder(UNCASED, word_starts=True, joiner=joiner)))
    row = encoder.encode(documents(["The quick brown fox. The lazy dog."])).to_pylist()[0]
    units: list[str] = []
    for id_, starts in zip(row["ids"], row["word_starts"], strict=True):
        token = UNCASED.tokens[id_].removeprefix("##")
        units = [*units, token] if starts else [*units[:-1], units[-1] + token]
    assert units == ["the", "quickbrown", "fox", ".", "thelazydog", "."]
    counts = encoder.encode_counted(documents(["The quick brown fox. The lazy dog.", "A fox."])).statistics
    assert (counts["units_joined"], counts["words_joined"]) == (2, 5)
    assert "units_joined" not in Encoder(UNCASED).encode_counted(documents(["The fox."])).statistics


def test_lexicons_of_equal_content_are_equal():
    one, other = lexicon([("a", "b")]), lexicon([("a", "c")])
    assert one == lexicon([("a", "b")])
    assert hash(one) == hash(lexicon([("a", "b")]))
    assert one.digest != other.digest
    with pytest.raises(errors.InputUnreadable):
        Lexicon(b"\xff\xfe", SEGMENTATION).joined(words_of([["a"]]))


def test_an_empty_lexicon_joins_nothing():
    words = words_of([["a", "b"], []])
    assert not lexicon([]).joined(words).any()
    assert len(lexicon([("a", "b")]).joined(words_of([[]]))) == 0


def test_the_segmenter_joins_chinese_characters_only():
    jieba = pytest.importorskip("jieba")
    text = "我来到北京清华大学"
    words = words_of([["hello", "world", *text, "!"], list("北京"), ["北"], ["京"]])
    joined = rows_of(words, Segmenter().joined(words))
    expected = [flag for word in jieba.lcut(text) for flag in [False] + [True] * (len(word) - 1)]
    assert sum(expected) > 2
    assert joined == [[False, False, *expected, False], [False, True], [False], [False]]


# Lexicons and segmenters from settings: what is read, what is refused, and that only content counts.

VOCAB = arrange(["a", "##b"], 64, 0, SEGMENTATION)
WORDS = Instances(mask_unit="whole-word")


def test_joiners_of_settings(tmp_path: Path) -> None:
    path = tmp_path / "phrases.txt"
    path.write_text("new york\n")
    assert joiner_of(VOCAB, WORDS) is None
    assert joiner_of(VOCAB, dataclasses.replace(WORDS, mask_segmenter="jieba")) == Segmenter()
    joiner = joiner_of(VOCAB, dataclasses.replace(WORDS, mask_lexicon=str(path)))
    assert joiner == Lexicon(b"new york\n", SEGMENTATION, str(path))
    assert settings_of(VOCAB, WORDS, 0).word_starts
    assert not settings_of(VOCAB, Instances(), 0).word_starts


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"mask_unit": "token", "mask_segmenter": "jieba"}, "words, not tokens"),
        ({"mask_lexicon": "x", "mask_segmenter": "jieba"}, "too"),
        ({"mask_lexicon": "nowhere.txt"}, "no such lexicon"),
    ],
)
def test_settings_that_contradict_each_other(change: dict[str, str], what: str) -> None:
    with pytest.raises(errors.CorpusForgeError, match=what):
        joiner_of(VOCAB, dataclasses.replace(WORDS, **change))


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b" \n\n"])
def test_an_empty_lexicon_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "phrases.txt").write_bytes(content)
    with pytest.raises(errors.InputMissing, match="holds no phrase"):
        joiner_of(VOCAB, dataclasses.replace(WORDS, mask_lexicon=str(tmp_path / "phrases.txt")))


@pytest.mark.parametrize("family", ["bpe", "unigram", "sentencepiece-bpe"])
def test_a_segmenter_needs_characters_set_apart(family: str) -> None:
    with pytest.raises(errors.RecipeInvalid, match="joins no words"):
        joiner_of(of_family(family), dataclasses.replace(WORDS, mask_segmenter="jieba"))


def test_a_stage_knows_the_lexicon_by_its_content(tmp_path: Path) -> None:
    digests = []
    for name, text in (("one", "new york\n"), ("two", "new york\n"), ("three", "old york\n")):
        (tmp_path / name).write_text(text)
        section = dataclasses.replace(WORDS, mask_lexicon=str(tmp_path / name))
        digests.append(_lexicon_digest(VOCAB, dataclasses.replace(Recipe(), instances=section)))
    assert digests[0] == digests[1] != digests[2]
    assert _lexicon_digest(VOCAB, Recipe()) == ""


def test_shares_of_spans_may_differ_more_than_those_of_tokens() -> None:
    statistics = {"masked": 10_000, "masked_as_mask": 8_300, "masked_as_random": 900, "masked_as_kept": 800}
    statistics |= {"instances": 100, "tokens": 66_000}
    settings = {"where": "train", "length": 1000, "words": 29_000}
    judge(statistics, mask=MaskSettings(unit="span"), **settings)  # type: ignore[arg-type]
    with pytest.raises(errors.InvariantBroken):
        judge(statistics, mask=MaskSettings(unit="ngram"), **settings)  # type: ignore[arg-type]
