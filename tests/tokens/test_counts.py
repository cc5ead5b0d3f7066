from __future__ import annotations

import functools
import random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.tokens import counts
from corpusforge.tokens.bert_split import BertSegmentation, BertSplitter
from corpusforge.tokens.counts import COUNTS, count_words, merge_counts, pack_counts, read_counts, select_counts
from tests.oracles import wordpiece
from tests.tokens import hard_text


def as_dict(table: pa.Table) -> dict[str, int]:
    return dict(zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True))


def table(**words: int) -> pa.Table:
    return pa.table([list(words), list(words.values())], COUNTS)


@given(hard_text.columns, st.booleans())
def test_counts_are_the_librarys(texts: list[str], lowercase: bool) -> None:
    found = count_words(pa.array(texts, pa.string()), BertSegmentation(lowercase))
    assert list(as_dict(found).items()) == list(wordpiece.count(texts, BertSegmentation(lowercase)).items())


def test_merging_on_the_way_changes_nothing(monkeypatch) -> None:
    texts = pa.array(["the cat sat on the mat " * 9, "the end"] * 5)
    expected = count_words(texts)
    monkeypatch.setattr(counts, "_MERGE_ROWS", 3)
    assert count_words(texts, SmallChunks()).equals(expected)


class SmallChunks(BertSegmentation):
    def splitter(self) -> BertSplitter:
        real = BertSplitter(BertSegmentation())
        real.chunks = functools.partial(real.chunks, size=16)
        return real


@given(st.lists(hard_text.columns, min_size=1, max_size=5), st.integers(1, 7), st.randoms(use_true_random=False))
def test_merging_is_associative_and_commutative(parts: list[list[str]], partitions: int, rng: random.Random) -> None:
    packed = [dict(pack_counts(count_words(pa.array(texts, pa.string())), partitions)) for texts in parts]
    whole = count_words(pa.array([text for texts in parts for text in texts], pa.string()))
    for partition, expected in pack_counts(whole, partitions):
        blocks = [blocks[partition] for blocks in packed if partition in blocks]
        rng.shuffle(blocks)
        while len(blocks) > 1:
            k = rng.randint(2, len(blocks))
            blocks = [*blocks[k:], merge_counts(blocks[:k])]
        assert merge_counts(blocks) == expected


def test_partitions_hold_every_word_once() -> None:
    whole = count_words(pa.array([" ".join(f"w{n}" for n in range(500))]))
    blocks = pack_counts(whole, 16)
    assert [p for p, _ in blocks] == sorted({p for p, _ in blocks})
    words = [word for _, block in blocks for word in read_counts(block)["word"].to_pylist()]
    assert sorted(words) == sorted(whole["word"].to_pylist())


def test_a_partition_is_stable() -> None:
    # Frozen: a mixed fleet of workers must agree, today and after an upgrade.
    where = {
        w: p for p, block in pack_counts(table(a=1, b=1, the=1), 1000) for w in read_counts(block)["word"].to_pylist()
    }
    assert where == {"a": 719, "b": 615, "the": 813}


def test_counts_are_64_bit() -> None:
    block = pack_counts(table(the=3_000_000_000), 1)[0][1]
    assert as_dict(read_counts(merge_counts([block, block, block]))) == {"the": 9_000_000_000}


def test_nothing_to_merge() -> None:
    assert len(read_counts(merge_counts([]))) == 0
    assert pack_counts(count_words(pa.array([], pa.string())), 4) == []
    assert len(select_counts([], min_count=1, max_words=10)[0]) == 0


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 5)), st.integers(1, 4), st.integers(1, 9))
def test_selection_keeps_the_most_frequent(words: dict[str, int], min_count: int, max_words: int) -> None:
    blocks = [block for _, block in pack_counts(table(**words), 3)]
    selected, statistics = select_counts(blocks, min_count=min_count, max_words=max_words)
    ranked = sorted((w for w in words if words[w] >= min_count), key=lambda w: (-words[w], w))[:max_words]
    assert list(as_dict(selected).items()) == [(w, words[w]) for w in sorted(ranked)]
    assert statistics["words"] == sum(words.values())
    assert statistics["words_selected"] == sum(words[w] for w in ranked)
