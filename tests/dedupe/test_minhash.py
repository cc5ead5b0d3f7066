"""Signatures against sets of Python strings, and similarities against Python sets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge.dedupe import minhash as room
from corpusforge.dedupe.minhash import Sets, Signer, jaccard, range_minima
from corpusforge.dedupe.normalize import hash_words, whole_documents
from corpusforge.sentences.splitter import sentence_spans
from corpusforge.text import Spans, text_bytes
from tests.draws import draws
from tests.oracles import minhash as oracle
from tests.oracles.spans import words_of

CHARACTERS = st.one_of(
    st.sampled_from("abAB ., -'’\n\t$+_0७9éÉßİKÅȺẞΣς。、中文ひカกກမក한\u00ad\u200b😀Ა"), st.characters(codec="utf-8")
)

WORDS = st.sampled_from(["a", "b", "the", "B", "c-d", "…", "中文", "anti-clockwise", "İ", "x" * 70, "encyclopaedia9"])

SENTENCE = st.lists(WORDS, max_size=9).map(" ".join)

DOCUMENTS = st.lists(st.lists(SENTENCE, max_size=6), max_size=4)


def columns(documents: list[list[str]], gap: str = " ") -> Spans:
    """Sentences of documents in one buffer, with ``gap`` after each."""
    pieces = pa.array([p for d in documents for s in d for p in (s, gap)], pa.string())
    data, offsets = text_bytes(pieces)
    counts = np.cumsum([0, *map(len, documents)])
    return Spans(data, offsets[:-1:2], offsets[1::2], counts, offsets[:-1][::2])


@given(st.lists(st.text(CHARACTERS, max_size=90), max_size=8), st.sampled_from(["", " "]), st.booleans())
@example(["0๐"], "", True)
def test_words_equal_the_oracle(sentences: list[str], gap: str, fold: bool) -> None:
    hashed = hash_words(columns([sentences], gap), fold_numbers=fold)
    expected = [oracle.split_words(sentence, fold) for sentence in sentences]
    assert np.diff(hashed.offsets).tolist() == [len(words) for words in expected]
    assert hashed.hashes.tolist() == [oracle.hash_word(word) for words in expected for word in words]


def test_every_character_is_in_a_word_or_in_none() -> None:
    """All of Unicode through the byte path: one sentence per character, against the table's own rules."""
    characters = [chr(c) for c in range(0x30000) if not 0xD800 <= c < 0xE000]
    words = hash_words(columns([characters], ""))
    counts = np.diff(words.offsets)
    expected = np.array([len(words_of(c)) for c in characters])
    assert np.flatnonzero(counts != expected).tolist() == []


@given(st.lists(st.text(CHARACTERS, max_size=30), min_size=1, max_size=5))
def test_real_sentences_have_the_words_of_their_text(texts: list[str]) -> None:
    words = hash_words(sentence_spans(pa.array(texts, pa.string())))
    expected = [word for text in texts for word in oracle.split_words(text.replace("\n", " "))]
    assert words.hashes.tolist() == [oracle.hash_word(word) for word in expected]


@given(st.lists(st.text(CHARACTERS, max_size=60), max_size=5))
def test_a_document_has_the_words_of_its_sentences(texts: list[str]) -> None:
    column = pa.array(["", *texts, ""], pa.string()).slice(1)
    whole, split = hash_words(whole_documents(column)), hash_words(sentence_spans(column))
    assert whole.hashes.tolist() == split.hashes.tolist()
    assert whole.offsets.tolist() == split.offsets[sentence_spans(column).offsets].tolist()


@given(DOCUMENTS, st.integers(1, 4), st.integers(1, 6), st.sampled_from([1, 4, 64]))
def test_spans_equal_the_oracle(documents: list[list[str]], length: int, shingle: int, permutations: int) -> None:
    signer = Signer(permutations, shingle, seed=3)
    signatures, real = signer.sign(signer.shingles(columns(documents)).span_sets(length))
    multipliers = signer.multipliers().tolist()
    row = 0
    for document in documents:
        for i in range(len(document)):
            words = [word for sentence in document[i : i + length] for word in oracle.split_words(sentence)]
            expected = oracle.shingles(words, shingle) if i + length <= len(document) else set()
            assert bool(real[row]) == bool(expected)
            assert signatures[row].tolist() == (oracle.sign(expected, multipliers) if expected else [0] * permutations)
            row += 1
    assert row == len(signatures)


@given(DOCUMENTS, st.integers(1, 6))
def test_documents_equal_the_oracle(documents: list[list[str]], shingle: int) -> None:
    signer = Signer(16, shingle)
    signatures, real = signer.sign(signer.shingles(columns(documents)).document_sets())
    for document, signature, is_real in zip(documents, signatures, real, strict=True):
        words = [word for sentence in document for word in oracle.split_words(sentence)]
        expected = oracle.shingles(words, shingle)
        assert bool(is_real) == bool(expected)
        if expected:
            assert signature.tolist() == oracle.sign(expected, signer.multipliers().tolist())


@given(st.integers(1, 6000), st.integers(1, 40), st.integers(0, 2**32 - 1), st.sampled_from([1, 64, 3000]))
@draws(60)
def test_minima_of_any_ranges(count: int, ranges: int, seed: int, permutations: int) -> None:
    random = np.random.default_rng(seed)
    hashes = random.integers(0, 2**32, count, dtype=np.uint32)
    multipliers = random.integers(0, 2**32, permutations, dtype=np.uint32) | np.uint32(1)
    starts = random.integers(0, count, ranges)
    stops = np.minimum(starts + 1 + random.integers(0, random.integers(1, count + 1), ranges), count)
    minima = range_minima(hashes, multipliers, starts, stops)
    for row, (a, b) in enumerate(zip(starts, stops, strict=True)):
        assert (minima[row] == (hashes[a:b, None] * multipliers).min(axis=0)).all()


def test_a_span_has_the_same_signature_everywhere() -> None:
    span = ["The red fox ran over the hill at dawn.", "Nobody saw it.", "It was gone before the sun had risen."]
    documents = [span, ["Before it all.", *span, "And so on and so on and on."], [*span, "Other words behind it."]]
    signer = Signer()
    signatures, real = signer.sign(signer.shingles(columns(documents)).span_sets(3))
    rows = [0, 4, 8]
    assert real[rows].all()
    assert (signatures[rows] == signatures[0]).all()
    assert not (signatures[3] == signatures[0]).all()


def test_nothing_to_sign() -> None:
    signer = Signer(8)
    for documents in ([], [[]], [[], ["..."]]):
        shingles = signer.shingles(columns(documents))
        assert signer.sign(shingles.span_sets(3))[0].shape == (sum(map(len, documents)), 8)
        signatures, real = signer.sign(shingles.document_sets())
        assert signatures.shape == (len(documents), 8)
        assert not real.any()


@pytest.mark.parametrize("size", [5, 20, 60, 1000])
@pytest.mark.parametrize("similarity", [0.2, 0.5, 0.8, 0.95])
def test_estimates_stay_within_binomial_bounds(size: int, similarity: float) -> None:
    """The estimates of many pairs of one Jaccard similarity have the mean and the variance of a binomial."""
    permutations, pairs = 64, 2000 if size < 1000 else 200
    random = np.random.default_rng(size)
    shared = round(size * similarity)
    alone = size - shared
    hashes = random.integers(0, 2**32, (pairs, size), dtype=np.uint32) | np.uint32(1)
    left_size = shared + alone // 2
    # Each pair: [left alone | shared | right alone]; the two sets are ranges that overlap in what they share.
    starts = np.arange(pairs) * size
    multipliers = Signer(permutations).multipliers()
    left = range_minima(hashes.ravel(), multipliers, starts, starts + left_size)
    right = range_minima(hashes.ravel(), multipliers, starts + alone // 2, starts + size)
    estimates = (left == right).mean(axis=1)
    truth = shared / size
    deviation = np.sqrt(truth * (1 - truth) / permutations)
    assert abs(estimates.mean() - truth) < 4.5 * deviation / np.sqrt(pairs) + 1e-12
    assert 0.85 < estimates.std() / deviation < 1.15 if truth < 1 else estimates.std() == 0


@given(DOCUMENTS, st.integers(1, 4), st.integers(1, 4))
def test_fingerprints_are_equal_exactly_where_shingles_are(
    documents: list[list[str]], length: int, shingle: int
) -> None:
    fingerprints = Signer(8, shingle).shingles(columns(documents)).span_sets(length).fingerprints().tolist()
    spans = [(d[i : i + length], len(d) - i) for d in documents for i in range(len(d))]
    named: dict[tuple[tuple[str, ...], ...], int] = {}
    for fingerprint, (span, left) in zip(fingerprints, spans, strict=True):
        words = [word for sentence in span for word in oracle.split_words(sentence)]
        size = min(shingle, len(words))
        assert (fingerprint == 0) == (not words or left < length)
        if fingerprint:
            key = tuple(sorted(tuple(words[i : i + size]) for i in range(len(words) - size + 1)))
            assert named.setdefault(key, fingerprint) == fingerprint
    assert len(set(named.values())) == len(named)


def test_the_seed_changes_the_permutations() -> None:
    assert (Signer(seed=1).multipliers() != Signer(seed=2).multipliers()).any()
    assert len(set(Signer(256).multipliers().tolist())) == 256
    assert (Signer(64).multipliers() == Signer(128).multipliers()[:64]).all()


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(1, 30), st.sampled_from([1, 50, room._CELLS]))
def test_equals_sets(seed: int, pairs: int, longest: int, cells: int) -> None:
    random = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        hashes = random.integers(0, 40, 200, dtype=np.uint32) | np.uint32(1)
        starts = random.integers(0, 200 - longest, pairs)
        sides += [hashes, starts, starts + random.integers(1, longest + 1, pairs)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_CELLS", cells)
        similarities = jaccard(Sets(*sides[:3]), Sets(*sides[3:]))
    for row in range(pairs):
        left, right = (set(sides[k][sides[k + 1][row] : sides[k + 2][row]].tolist()) for k in (0, 3))
        assert similarities[row] == np.float32(len(left & right) / len(left | right))


def test_large_hashes_stay_apart() -> None:
    hashes = np.array([2**32 - 1, 2**32 - 3, 1, 3], np.uint32)
    zero, two, four = np.array([0]), np.array([2]), np.array([4])
    assert jaccard(Sets(hashes, zero, two), Sets(hashes, two, four)).tolist() == [0]
    assert jaccard(Sets(hashes, zero, four), Sets(hashes, zero, two)).tolist() == [0.5]
