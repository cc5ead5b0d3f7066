from __future__ import annotations

import functools
import pickle
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.errors import ManifestInvalid
from corpusforge.schemas import DOCUMENTS
from corpusforge.shards import load_entries, read_shard
from corpusforge.tokens import counts
from corpusforge.tokens.bert_split import BertSegmentation, BertSplitter
from corpusforge.tokens.counts import (
    COUNTS,
    CountWork,
    count_words,
    merge_counts,
    pack_counts,
    read_counts,
    scale_counts,
    select_counts,
    shard_blocks,
)
from corpusforge.units import ShardUnit
from tests.oracles import wordpiece
from tests.tokens import hard_text


def as_dict(table: pa.Table) -> dict[str, int]:
    return dict(zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True))


def table(**words: int) -> pa.Table:
    return pa.table([list(words), list(words.values())], COUNTS)


@given(hard_text.columns, st.booleans())
def test_counts_are_the_librarys(texts: list[str], lowercase: bool) -> None:
    counts = count_words(pa.array(texts, pa.string()), BertSegmentation(lowercase))
    assert list(as_dict(counts).items()) == list(wordpiece.count(texts, BertSegmentation(lowercase)).items())


def test_merging_early_changes_nothing(monkeypatch) -> None:
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


@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=40), st.integers(1, 5000))
def test_scaling_keeps_proportions_and_the_bound(counts: list[int], bound: int) -> None:
    scaled, factor = scale_counts(np.array(counts, np.uint64), bound)
    if sum(counts) <= bound:
        assert scaled.tolist() == counts
        return
    assert bound - 1 <= scaled.sum() <= bound
    assert all(abs(s - c * factor) <= 1 + 1e-6 for s, c in zip(scaled.tolist(), counts, strict=True))
    assert scaled.min() >= 0


def test_rare_words_share_occurrences() -> None:
    scaled, _ = scale_counts(np.full(1000, 2, np.uint64), 100)
    assert (scaled.sum(), scaled.max()) == (100, 1)


TEXTS = [f"The cat number {n} sat. 東京 {n % 7}" for n in range(40)]


def shard(folder: Path, texts: list[str], rows_a_group: int = 9, number: int = 0) -> ShardUnit:
    empty = {"url": None, "source": "s", "position": 0, "timestamp": None, "language": None}
    rows = [{"id": str(i), "text": t, **empty} for i, t in enumerate(texts)]
    path = folder / f"documents-{number}-{rows_a_group}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, DOCUMENTS), path, row_group_size=rows_a_group)
    return ShardUnit(number, str(path), len(texts), path.stat().st_size)


def counted(folder: Path) -> pa.Table:
    return pa.Table.from_batches(list(read_shard(str(folder / "counts/part-00000-00000.arrow"))), COUNTS)


def test_counts_of_a_shard(tmp_path: Path) -> None:
    unit, reported = shard(tmp_path, TEXTS), []
    result = pickle.loads(pickle.dumps(CountWork(str(tmp_path / "out"), BertSegmentation())))(unit, reported.append)
    expected = count_words(pa.array(TEXTS))
    assert counted(tmp_path / "out").equals(expected)
    assert result.statistics["documents"] == 40
    assert result.statistics["text_bytes"] == sum(len(t.encode()) for t in TEXTS)
    assert result.statistics["words"] == sum(expected["count"].to_pylist())
    assert sum(reported) == unit.bytes


def test_batches_and_merges_change_nothing(tmp_path: Path) -> None:
    digests = set()
    for rows, merge in [(1, 1), (7, 64), (40, 1 << 20)]:
        out = tmp_path / f"out-{rows}"
        CountWork(str(out), BertSegmentation(), merge)(shard(tmp_path, TEXTS, rows), lambda _: None)
        digests.add(load_entries(str(out))[0].tables["counts"].digest)
    assert len(digests) == 1


def test_a_counted_shard_is_not_counted_again(tmp_path: Path) -> None:
    unit, work = shard(tmp_path, TEXTS), CountWork(str(tmp_path / "out"), BertSegmentation())
    first = work(unit, lambda _: None)
    Path(unit.path).unlink()
    again = work(unit, lambda _: None)
    assert again.resumed
    assert again.statistics == first.statistics


def test_blocks_of_shards_merge_to_the_counts_of_all(tmp_path: Path) -> None:
    blocks: dict[int, list[bytes]] = {}
    for number, texts in enumerate([TEXTS[:11], TEXTS[11:]]):
        out = tmp_path / f"out-{number}"
        CountWork(str(out), BertSegmentation())(shard(tmp_path, texts), lambda _: None)
        for partition, block in shard_blocks(str(out / "counts/part-00000-00000.arrow"), 5):
            blocks.setdefault(partition, []).append(block)
    whole = pack_counts(count_words(pa.array(TEXTS)), 5)
    assert [(p, merge_counts(blocks[p])) for p in sorted(blocks)] == whole


def test_an_empty_shard(tmp_path: Path) -> None:
    CountWork(str(tmp_path / "out"), BertSegmentation(False))(shard(tmp_path, []), lambda _: None)
    assert shard_blocks(str(tmp_path / "out/counts/part-00000-00000.arrow"), 4) == []


def test_a_truncated_shard_is_named(tmp_path: Path) -> None:
    unit = shard(tmp_path, TEXTS)
    Path(unit.path).write_bytes(Path(unit.path).read_bytes()[:200])
    with pytest.raises(ManifestInvalid, match="unreadable shard"):
        CountWork(str(tmp_path / "out"), BertSegmentation())(unit, lambda _: None)
    assert not list((tmp_path / "out").rglob("*.arrow"))
