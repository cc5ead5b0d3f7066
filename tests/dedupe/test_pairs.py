"""Pairs of similar items, against the slow oracle for any cut of the corpus, and shared band hashes."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.content import ContentDigest
from corpusforge.dedupe import pairs
from corpusforge.dedupe.lsh import NEIGHBORS, Bands
from corpusforge.dedupe.minhash import Signer
from corpusforge.dedupe.pairs import Shared, SharedSlots, Slots, find_shared, shared_width, write_shared
from corpusforge.dedupe.signed_units import Signing
from tests.dedupe.in_process import Done, near_documents, near_spans, write_units
from tests.draws import draws
from tests.oracles import near as oracle
from tests.oracles.minhash import jaccard
from tests.oracles.spans import cut_all

LOW = np.uint64(0xFFFFFFFF)

WORDS = ["aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh", "É", "你好"]


def test_every_shared_hash_passes_and_few_others_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    hashes = random.integers(0, 2**64, 40_000, dtype=np.uint64)
    shared = np.concatenate([hashes[:2000], hashes])
    slots = Slots(5, 3)
    width = shared_width(len(shared), slots)
    known = SharedSlots(str(tmp_path), slots, width)
    slot = slots.of(shared)
    counted = [0, 0]
    for number in np.unique(slot).tolist():
        slot_shared = find_shared([(shared[slot == number] & LOW).astype("<u4").tobytes()], width)
        write_shared(str(tmp_path), number, slot_shared)
        counted = [counted[0] + slot_shared.hashes, counted[1] + slot_shared.pairs]
    ascending = shared[np.argsort(slot, kind="stable")]
    passing = ascending[known.contain(ascending)]
    assert set(hashes[:2000].tolist()) <= set(passing.tolist())
    assert len(passing) < 4000 + 0.06 * len(shared)
    assert known.counts() == (len(passing), 2000)
    assert sorted(set(slot.tolist())) == list(range(15))
    read, reads = pairs.read_shared, list[int]()

    def reading(folder: str, slot: int) -> Shared:
        reads.append(slot)
        return read(folder, slot)

    monkeypatch.setattr(pairs, "read_shared", reading)
    assert shared[known.contain(shared)].tolist() == shared[np.isin(shared, passing)].tolist()
    assert reads == list(range(15)), "in any order of hashes every slot is read once"


def test_slots_are_ranges_of_the_hash() -> None:
    hashes = np.sort(np.random.default_rng(1).integers(0, 2**64, 1000, dtype=np.uint64))
    slots = Slots(7, 4).of(hashes)
    assert (np.diff(slots) >= 0).all()
    assert slots.min() == 0
    assert slots.max() == 27


@st.composite
def corpora(draw: st.DrawFn) -> dict[str, str]:
    """Documents made of passages with a word or two changed, so that near-duplicates are common."""
    word = st.sampled_from(WORDS)
    passages = draw(st.lists(st.lists(st.lists(word, max_size=7), max_size=6), min_size=1, max_size=3))
    edits = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6), word), max_size=2)
    chosen = st.lists(st.tuples(st.integers(0, len(passages) - 1), edits), max_size=2)
    documents = {}
    for number, parts in enumerate(draw(st.lists(chosen, max_size=6))):
        sentences = []
        for passage, changes in parts:
            copy = [list(sentence) for sentence in passages[passage]]
            for i, j, new in changes:
                if i < len(copy) and j < len(copy[i]):
                    copy[i][j] = new
            sentences += copy
        text = " ".join(" ".join(sentence).capitalize() + "." for sentence in sentences)
        documents[f"d{number}"] = text
    return documents


def grouped(corpus: dict[str, str], dice: random.Random) -> list[list[tuple[str, str]]]:
    rows = list(corpus.items())
    dice.shuffle(rows)
    groups: list[list[tuple[str, str]]] = [[] for _ in range(dice.randint(1, 4))]
    for row in rows:
        groups[dice.randrange(len(groups))].append(row)
    return groups


def setups(signing: Signing, threshold: float) -> oracle.Setup:
    signer = signing.signer
    multipliers = [int(m) for m in signer.multipliers()]
    shape = (signing.bands.bands, signing.bands.rows, threshold, NEIGHBORS, signing.span_sentences)
    return oracle.Setup(multipliers, signer.shingle_words, *shape)


def run(corpus: dict[str, str], seed: int, signing: Signing, threshold: float, **how: Any) -> Done:
    dice = random.Random(seed)
    shuffle = {"partitions": dice.randint(1, 5), "rounds": dice.randint(1, 3)}
    with tempfile.TemporaryDirectory() as folder:
        units = write_units(Path(folder) / "in", grouped(corpus, dice))
        method = near_spans if signing.span_sentences else near_documents
        return method(units, Path(folder) / "out", signing, threshold, **shuffle, **how)


def texts(done: Done) -> dict[str, str]:
    table = done.tables["documents"]
    return dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))


@given(
    corpora(),
    st.integers(1, 3),
    st.sampled_from([0.5, 0.75, 1.0]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from(["hash", "longest"]),
    st.integers(),
)
@draws(60)
def test_near_spans_equal_the_oracle(
    corpus: dict[str, str], length: int, threshold: float, words: int, keep: str, seed: int
) -> None:
    signing = Signing(Signer(16, words), Bands(5, 3), length, keep)
    done = run(corpus, seed, signing, threshold, cut={"min_sentences": seed % 3})
    ranks = oracle.order_of(corpus, keep)
    best = oracle.best(oracle.repeats(corpus, setups(signing, threshold), keep), ranks)
    dropped: dict[str, list[tuple[int, str, int]]] = {name: [] for name in corpus}
    for (name, i), match in sorted(best.items()):
        dropped[name].append((i, *match.earlier))
    expected = cut_all(corpus, dropped, length, (seed % 3, 0), "span:near-repeated")
    assert texts(done) == expected.documents
    rows = [tuple(row.values()) for row in done.tables["repeats"].to_pylist()]
    by_place = lambda row: (row[0], row[1].startswith("page"), row[2])  # noqa: E731
    assert [row[:7] for row in sorted(rows, key=by_place)] == sorted(expected.repeats, key=by_place)
    assert {row[7] for row in rows} <= {"near-spans"}
    assert all(row[8] >= threshold for row in rows if row[1].startswith("span"))


@pytest.mark.slow
@given(corpora(), st.sampled_from([0.5, 0.75, 1.0]), st.sampled_from(["hash", "longest"]), st.integers())
@draws(60)
def test_documents_equal_the_oracle(corpus: dict[str, str], threshold: float, keep: str, seed: int) -> None:
    signing = Signing(Signer(16, 2), Bands(5, 3), 0, keep)
    done = run(corpus, seed, signing, threshold)
    # Whom an item is paired with depends on keys alone: groups are settled by the order of kept copies afterwards.
    setup, ranks = setups(signing, threshold), oracle.order_of(corpus, keep)
    signed = oracle.sign_items(corpus, setup)
    kept, rows = dict(corpus), []
    for members in oracle.groups(oracle.repeats(corpus, setup)):
        stays = min(members, key=ranks.__getitem__)
        for name in members:
            alike = jaccard(signed[name, 0].shingles, signed[stays, 0].shingles)
            rows.append((stays, name, len(members), pytest.approx(alike)))
            if name != stays:
                del kept[name]
    assert texts(done) == kept
    assert sorted(tuple(r.values()) for r in done.tables["clusters"].to_pylist()) == sorted(rows, key=lambda r: r[:2])
    gone = {r["document"]: (r["kept_document"], r["text"], r["reason"]) for r in done.tables["repeats"].to_pylist()}
    reason = "page:near-duplicate"
    assert gone == {name: (stays, corpus[name], reason) for stays, name, _, _ in rows if name != stays}
    lost = sum(counts["bytes"] for counts in done.tallies.values())
    assert done.statistics.get("text_bytes_in", 0) == done.statistics.get("text_bytes_out", 0) + lost


@pytest.mark.slow
@given(corpora(), st.sampled_from([0, 2]), st.integers(), st.integers())
@draws(25)
def test_nothing_depends_on_how_the_corpus_is_cut(corpus: dict[str, str], length: int, one: int, other: int) -> None:
    signing = Signing(Signer(16, 2), Bands(5, 3), length)
    how: dict[str, Any] = {"cut": {"min_sentences": 1}} if length else {}
    first, second = (run(corpus, seed, signing, 0.6, **how) for seed in (one, other))
    assert {name: digest(table) for name, table in first.tables.items()} == {
        name: digest(table) for name, table in second.tables.items()
    }
    assert (first.tallies, first.statistics) == (second.tallies, second.statistics)


def digest(table: pa.Table) -> str:
    total = ContentDigest()
    for batch in table.to_batches():
        total.add(batch)
    return total.hex()
