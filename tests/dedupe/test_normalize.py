"""Normal forms against the character-by-character oracle."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.dedupe import normalize
from corpusforge.dedupe.normalize import sentence_hashes
from corpusforge.sentences.splitter import sentence_spans
from corpusforge.text import Spans, text_bytes
from tests.oracles import spans as oracle

CHARACTERS = st.one_of(
    st.sampled_from("aB .,-'’“”\n\t$+_0७9éÉßİΣσς。、中文\u00ad\u200b😀"), st.characters(codec="utf-8")
)
SENTENCES = st.lists(st.text(CHARACTERS, max_size=12), max_size=8)


def columns(sentences: list[str], gap: str = "") -> Spans:
    """Sentences in one buffer with ``gap`` between them (it belongs to none)."""
    pieces = pa.array([p for s in sentences for p in (s, gap)], pa.string())
    data, offsets = text_bytes(pieces)
    return Spans(data, offsets[:-1:2], offsets[1::2], np.array([0, len(sentences)]), offsets[:1])


@given(SENTENCES, st.sampled_from(["", " ", "a", "é"]), st.booleans())
def test_equals_the_oracle(sentences: list[str], gap: str, fold: bool) -> None:
    forms = [" ".join(oracle.words_of(s, fold)) for s in sentences]
    hashes, _ = sentence_hashes(columns(sentences, gap), fold_numbers=fold)
    assert hashes.tolist() == [xxhash.xxh3_64_intdigest(form.encode()) for form in forms]


@given(SENTENCES)
def test_hashes_are_equal_exactly_where_words_are(sentences: list[str]) -> None:
    hashes, empty = sentence_hashes(columns(sentences))
    words = [oracle.words_of(s) for s in sentences]
    assert empty.tolist() == [not w for w in words]
    for i, a in enumerate(words):
        assert [bool(h == hashes[i]) for h in hashes] == [a == b for b in words]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("It's here.", "IT’S HERE"),
        ("“Quoted,” he said", '"quoted" he said!'),
        ("ÀÉÎ", "àéî"),
        ("ПРИВЕТ, мир", "Привет  МИР."),
        ("你好，世界。", "你好 世界"),
        ("a\u00a0b", "a b"),
        ("zero\u200bwidth", "zero width"),
    ],
)
def test_equal_sentences(left: str, right: str) -> None:
    first, second = sentence_hashes(columns([left, right]))[0]
    assert first == second


@pytest.mark.parametrize(
    ("left", "right"), [("C++", "C"), ("3.5 %", "35 %"), ("5 < 6", "5 > 6"), ("icecream", "ice cream")]
)
def test_different_sentences(left: str, right: str) -> None:
    first, second = sentence_hashes(columns([left, right]))[0]
    assert first != second


def test_numbers_fold_only_on_request() -> None:
    pair = columns(["rose 3.5 % in 2021", "rose 9.1 % in 1999"])
    assert len(set(sentence_hashes(pair)[0])) == 2
    assert set(sentence_hashes(pair, fold_numbers=True)[0]) == {xxhash.xxh3_64_intdigest(b"rose 0 0 in 0000")}


def test_a_large_text_is_normalized_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = sentence_spans(pa.array(["One. Two é! Three.\n...\nFour.", "", "Five is longer than a part. Six."]))
    whole = sentence_hashes(sentences)
    for size in (1, 5, 11, 40):
        monkeypatch.setattr(normalize, "_AT_ONCE", size)
        hashes, empty = sentence_hashes(sentences)
        assert (hashes.tolist(), empty.tolist()) == (whole[0].tolist(), whole[1].tolist())
