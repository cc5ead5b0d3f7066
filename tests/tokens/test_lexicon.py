"""Lexicons join words by greedy longest match, segmenters join Chinese characters; both inside one row."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.encode import Encoder
from corpusforge.tokens.mask_lexicon import Lexicon, Segmenter
from corpusforge.tokens.splitting import Words
from tests.oracles import lexicon as oracle
from tests.tokens.test_encode import UNCASED, documents

CUTTING = BertSegmentation()


def words_of(rows: list[list[str]]) -> Words:
    flat = [word for row in rows for word in row]
    return Words(pa.array(flat, pa.string()), np.cumsum([0, *map(len, rows)]), 0)


def lexicon(phrases: list[tuple[str, ...]]) -> Lexicon:
    return Lexicon("".join(" ".join(p) + "\n" for p in phrases).encode(), CUTTING)


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


def test_phrases_are_cut_like_text_is():
    found = Lexicon("New YORK\n\nMüller's\n東京都\n".encode(), CUTTING)
    words = words_of([["new", "york", "new"], ["york"], ["muller", "'", "s", "東", "京", "都", "京"]])
    joined = [[False, True, False], [False], [False, True, True, False, True, True, False]]
    assert rows_of(words, found.joined(words)) == joined


def test_units_of_a_lexicon_reach_the_tokens():
    joins = Lexicon(b"quick brown\nthe lazy dog", UNCASED.segmentation)
    encoder = pickle.loads(pickle.dumps(Encoder(UNCASED, word_starts=True, joiner=joins)))
    row = encoder.encode(documents(["The quick brown fox. The lazy dog."])).to_pylist()[0]
    units: list[str] = []
    for id_, starts in zip(row["ids"], row["word_starts"], strict=True):
        token = UNCASED.tokens[id_].removeprefix("##")
        units = [*units, token] if starts else [*units[:-1], units[-1] + token]
    assert units == ["the", "quickbrown", "fox", ".", "thelazydog", "."]
    found = encoder.encode_counted(documents(["The quick brown fox. The lazy dog.", "A fox."])).statistics
    assert (found["units_joined"], found["words_joined"]) == (2, 5)
    assert "units_joined" not in Encoder(UNCASED).encode_counted(documents(["The fox."])).statistics


def test_a_lexicon_is_its_content():
    one, other = lexicon([("a", "b")]), lexicon([("a", "c")])
    assert one == lexicon([("a", "b")])
    assert hash(one) == hash(lexicon([("a", "b")]))
    assert one.digest != other.digest
    with pytest.raises(errors.InputUnreadable):
        Lexicon(b"\xff\xfe", CUTTING).joined(words_of([["a"]]))


def test_an_empty_lexicon_joins_nothing():
    words = words_of([["a", "b"], []])
    assert not lexicon([]).joined(words).any()
    assert len(lexicon([("a", "b")]).joined(words_of([[]]))) == 0


def test_the_segmenter_joins_chinese_characters_only():
    jieba = pytest.importorskip("jieba")
    text = "我来到北京清华大学"
    words = words_of([["hello", "world", *text, "!"], list("北京"), ["北"], ["京"]])
    found = rows_of(words, Segmenter().joined(words))
    expected = [flag for word in jieba.lcut(text) for flag in [False] + [True] * (len(word) - 1)]
    assert sum(expected) > 2
    assert found == [[False, False, *expected, False], [False, True], [False], [False]]
