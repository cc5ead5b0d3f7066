from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusforge.errors import ManifestInvalid
from corpusforge.schemas import DOCUMENTS
from corpusforge.shards import load_entries, read_shard
from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.counts import COUNTS, CountWork, count_words, merge_counts, pack_counts, shard_blocks
from corpusforge.units import ShardUnit

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


def test_the_cut_of_batches_and_merges_changes_nothing(tmp_path: Path) -> None:
    digests = set()
    for rows, merge in [(1, 1), (7, 64), (40, 1 << 20)]:
        out = tmp_path / f"out-{rows}"
        CountWork(str(out), BertSegmentation(), merge)(shard(tmp_path, TEXTS, rows), lambda _: None)
        digests.add(load_entries(str(out))[0].tables["counts"].digest)
    assert len(digests) == 1


def test_done_is_not_done_again(tmp_path: Path) -> None:
    unit, work = shard(tmp_path, TEXTS), CountWork(str(tmp_path / "out"), BertSegmentation())
    first = work(unit, lambda _: None)
    Path(unit.path).unlink()
    again = work(unit, lambda _: None)
    assert again.resumed
    assert again.statistics == first.statistics


def test_blocks_of_shards_merge_to_the_whole(tmp_path: Path) -> None:
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
