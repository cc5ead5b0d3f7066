"""langdetect by columns against the package: the same probabilities, to the bit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langdetect.detector import Detector
from langdetect.utils.ngram import NGram

from corpusforge.clean import langdetect, langdetect_profiles, language
from corpusforge.clean.language import guess_languages, langdetect_probabilities
from tests.clean.texts_in_languages import SENTENCES, pages_of
from tests.oracles import langdetect_package as package

SOUP = st.lists(
    st.one_of(
        st.sampled_from([sentence[k : k + 12] for sentence in SENTENCES.values() for k in range(0, len(sentence), 12)]),
        st.sampled_from(
            [" ", "  ", "\n", "\xa0", ". ", "ABC", "Ab", "aB", "É", "\U0001d400", "Ⅷ", "中", "の", "ệ", "ș"]
        ),
        st.sampled_from(["http://a.b/c?d=e ", "https://", "a.b@c.de", "@x.yz", "a@b", "e\u0301", "o\u0323", "u\u0303"]),
        st.text(max_size=5),
    ),
    max_size=30,
).map("".join)


def same(texts: list[str]) -> None:
    """Compare the kernel with the package."""
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    found = langdetect_probabilities(pa.array(texts, pa.string()))
    expected = np.array([package.probabilities(text) for text in texts]).reshape(found.shape)
    if package.ADDS_FROM_THE_LEFT:
        for number in np.flatnonzero((found != expected).any(axis=1)):
            pytest.fail(f"{texts[number]!r:.500}: {abs(found - expected)[number].max()} apart")
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@given(st.lists(SOUP, min_size=1, max_size=4))
def test_any_text(texts: list[str]) -> None:
    same(texts)


def test_every_language() -> None:
    same([*SENTENCES.values(), *(text[:40] for text in SENTENCES.values()), " ".join(SENTENCES.values())])


def test_texts_without_features() -> None:
    texts = ["", " ", "12345 67890", "http://example.org/only-a-link", "a@bc.de", "\U0001f600", "ABC DEF", "\x00", "!?"]
    same(texts)
    assert not langdetect_probabilities(pa.array(texts[:6])).any()
    assert langdetect_probabilities(pa.array([], pa.string())).shape == (0, 55)


def test_texts_that_never_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of draws need more random words than were generated at first."""
    lengths: list[int] = []
    stream = langdetect.stream
    monkeypatch.setattr(langdetect, "stream", lambda seed, length: lengths.append(length) or stream(seed, length))
    same([text * 30 for text in ("中文", "的是 ", "no mi", "sa ti la")])
    assert max(lengths) > min(lengths) == 4096


def test_long_texts_are_truncated_after_addresses_are_removed() -> None:
    english, german = SENTENCES["en"] + " ", SENTENCES["de"] + " "
    link = "https://example.org/" + "a/" * 200 + " "
    texts = [english * 100 + german * 300, (link + english) * 60, (link * 40 + german) * 30, link * 50 + english * 200]
    same([*texts, "x@" * 12_000 + english * 200, ("name@" + "b" * 300 + " " + german) * 60])


@pytest.mark.parametrize("start", range(16_384 - 2_200, 16_384 + 20, 97))
def test_an_address_over_the_edge_of_the_head(start: int) -> None:
    """Where only the head of a long text is searched, an address truncated at its end does not matter."""
    text = ("ab cd " * 4000)[:start] + "https://" + "x" * 2000 + " " + "efg " * 4000
    whole = NGram.normalize_vi(Detector.MAIL_RE.sub(" ", Detector.URL_RE.sub(" ", text)))
    assert langdetect_profiles.prepare(pa.array([text])) == [whole[:10_000]]


@given(st.lists(st.sampled_from([*"aZ0.-_@@ é\n", "a" * 63, "b" * 64, "c" * 255, "d" * 256, "."]), max_size=25))
def test_mail_addresses(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert langdetect_profiles._without_mail(text) == Detector.MAIL_RE.sub(" ", text)


@given(st.text("aeAuoy\u0300\u0301\u0302\u0303\u0309\u0323 ", max_size=12))
def test_vietnamese_letters(text: str) -> None:
    assert langdetect_profiles.prepare(pa.array([text])) == [NGram.normalize_vi(text)]


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(langdetect, "LANES", 3)
    monkeypatch.setattr(langdetect, "TAIL", 1)
    monkeypatch.setattr(langdetect_profiles, "BLOCK_CHARACTERS", 50)
    monkeypatch.setattr(language, "GROUP_CHARACTERS", 200)
    yield


@pytest.mark.usefixtures("_small")
def test_cuts_and_lanes_do_not_matter() -> None:
    texts = [*SENTENCES.values(), "", "1", *(s[::-1] for s in SENTENCES.values())]
    random.Random(1).shuffle(texts)
    same(texts)


def test_slices_of_columns() -> None:
    texts = pa.array(["never seen", *SENTENCES.values()])
    whole = langdetect_probabilities(texts)
    assert (langdetect_probabilities(texts.slice(3, 4)) == whole[3:7]).all()
    assert (langdetect_probabilities(texts.slice(7)) == whole[7:]).all()


def test_every_ngram_of_the_profiles_is_found() -> None:
    """The tables give what the package looks up, for all n-grams that text can have."""
    table = langdetect_profiles.profiles()
    normal = {NGram.normalize(chr(code)) for code in range(langdetect_profiles.CODE_POINTS)}
    expected = {g: p for g, p in package.factory().word_lang_prob_map.items() if normal.issuperset(g)}
    assert table.languages == tuple(package.factory().langlist) == langdetect_profiles.languages()
    assert table.probabilities.shape == (len(expected), 55)
    for gram, chances in expected.items():
        *before, last = (int(table.symbols[ord(c)]) for c in gram)
        start = table.root if not before else table.starts[before[0]]
        if len(before) == 2:
            start = table.pairs[before[0] * table.size + before[1]] >> 1
        assert table.owners[start + last] == start
        assert table.probabilities[table.rows[start + last]].tolist() == chances


def test_no_character_above_the_table_matters() -> None:
    above = [chr(code) for code in range(langdetect_profiles.CODE_POINTS, 0x110000)]
    assert not any(map(str.isupper, above))
    assert all(NGram.normalize(c) == c for c in above[::97])
    assert max(map(ord, "".join(package.factory().word_lang_prob_map))) < langdetect_profiles.CODE_POINTS


@pytest.mark.slow
def test_real_pages(shared_data: Path) -> None:
    """Pages, books and oddities: the same answer and the same decision of C4."""
    texts = pages_of(shared_data, 900)
    same(texts)
    guesses = guess_languages(pa.array(texts), "langdetect")
    expected = [package.best(text) for text in texts[::3]]
    assert [g for g, _ in expected] == guesses.languages.to_pylist()[::3]
    kept = [language == "en" and p >= 0.99 for language, p in expected]
    assert kept == guesses.are("en", 0.99)[::3].tolist()
    assert 0.1 < np.mean(kept) < 0.9
