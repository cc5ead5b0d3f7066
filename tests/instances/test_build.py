"""build-instances, unit by unit, on real files: resume, shards, held-out documents, and what `datasets` reads."""

from __future__ import annotations

import dataclasses
import itertools
import pickle
import types
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from corpusforge import schemas, seeds, shards
from corpusforge.content import combine
from corpusforge.instances import build as work
from corpusforge.instances import negatives, splits
from corpusforge.instances.dataset_card import write_dataset_card, write_dataset_info
from corpusforge.instances.measure import judge
from corpusforge.instances.splits import is_heldout
from corpusforge.shards import Shard, ShardWriter
from corpusforge.tokens.vocab import Specials, Vocab
from corpusforge.tokens.wordpiece import WordPiece
from corpusforge.units import ShardUnit

WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in ("n", "r", "st", "lo", "mi")]
VOCAB = Vocab(
    ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *WORDS, *(f"[unused{i}]" for i in range(61))),
    Specials(0, 1, 2, 3, 4),
    tuple(range(131, 192)),
    WordPiece(),
)
SECTION = types.SimpleNamespace(
    format="segment-pair",
    length=48,
    masking="static",
    copies_redraw="pairs",
    pair_sampling="balanced",
    short_probability=0.1,
    mask_rate=0.15,
    mask_share=0.8,
    random_share=0.1,
    max_predictions=20,
    mask_unit="token",
    mask_lexicon="",
    mask_segmenter="",
)
SETTINGS = work.settings_of(VOCAB, SECTION, seed=4)
HELDOUT = 0.1
NEGATIVES = negatives.NegativeSettings(seed=4, heldout=HELDOUT, budget=1 << 20)


def nothing(_: int) -> None:
    """Ignores progress."""


def documents(count: int) -> list[dict]:
    rng = np.random.default_rng(1)
    rows = []
    for i in range(count):
        sentences = (" ".join(rng.choice(WORDS, rng.integers(2, 30))) for _ in range(rng.integers(0, 20)))
        text = " ".join(f"{s.capitalize()}." for s in sentences)
        rows.append({"id": f"{i:032x}", "source": "a", "position": i, "text": text})
    return rows


ROWS = documents(400)


def write_documents(folder: Path, cuts: list[int]) -> list[ShardUnit]:
    """Document shards of the corpus, cut at these rows."""
    units = []
    for number, (first, stop) in enumerate(itertools.pairwise(cuts)):
        writer = ShardWriter(str(folder), f"documents/part-{number:05d}-00000.parquet", schemas.DOCUMENTS, "parquet")
        writer.write(pa.RecordBatch.from_pylist(ROWS[first:stop], schemas.DOCUMENTS))
        shard = writer.finish()
        units.append(ShardUnit(number, str(folder / shard.name), shard.rows, shard.bytes))
    return units


def encode(folder: Path, cuts: list[int]) -> list[ShardUnit]:
    """Token units of the corpus."""
    encoder = pickle.loads(pickle.dumps(work.EncodeWork(str(folder / "encoded"), VOCAB)))
    for unit in write_documents(folder, cuts):
        assert encoder(unit, nothing).statistics.get("documents", 0) == unit.rows
    return work.token_units(str(folder / "encoded"))


def build(folder: Path, cuts: list[int], **changes) -> dict[str, list[Shard]]:
    """The whole stage in one process; returns the shards of each table."""
    units = encode(folder, cuts)
    drawn = negatives.write_negatives(str(folder), [unit.path for unit in units], VOCAB.size, NEGATIVES)
    maker = work.BuildWork(str(folder / "out"), SETTINGS, heldout=HELDOUT, negatives=drawn)
    maker = pickle.loads(pickle.dumps(dataclasses.replace(maker, **changes)))
    for unit in units:
        maker(unit, nothing)
    return shards.gather(shards.load_entries(str(folder / "out")))[0]


def table(folder: Path, name: str, tables: dict[str, list[Shard]]) -> pa.Table:
    batches = [b for shard in tables[name] for b in shards.read_shard(str(folder / "out" / shard.name))]
    return pa.Table.from_batches(batches)


def digests(tables: dict[str, list[Shard]]) -> dict[str, str]:
    return {name: combine(shard.content for shard in written) for name, written in tables.items()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder, build(folder, [0, 400])


def test_any_cut_into_units_gives_the_same_content(built, tmp_path):
    assert digests(build(tmp_path, [0, 1, 70, 70, 280, 400])) == digests(built[1])


def test_copies_and_masks_per_format(built, tmp_path):
    changes = {"settings": dataclasses.replace(SETTINGS, copies_redraw="masks"), "copies": 3}
    tables = build(tmp_path, [0, 200, 400], **changes)
    train, once = table(tmp_path, "train", tables), table(built[0], "train", built[1])
    assert train.num_rows == 3 * once.num_rows
    assert sorted(set(train.column("copy").to_pylist())) == [0, 1, 2]
    # Held-out instances are masked once, and the same under any masking.
    assert digests(tables)["heldout"] == digests(built[1])["heldout"]
    dynamic = build(tmp_path / "dynamic", [0, 400], settings=dataclasses.replace(SETTINGS, stored_masks=False))
    assert digests(dynamic)["heldout"] == digests(built[1])["heldout"]
    assert "masked_positions" not in table(tmp_path / "dynamic", "train", dynamic).schema.names


def test_documents_are_in_one_split_and_none_is_lost(built):
    folder, tables = built
    keys = seeds.document_keys([row["id"] for row in ROWS])
    heldout = is_heldout(keys, 4, HELDOUT)
    filled = np.array([bool(row["text"]) for row in ROWS])
    for name, rows in (("train", ~heldout), ("heldout", heldout)):
        assert set(table(folder, name, tables).column("document").to_pylist()) == set(keys[rows & filled].tolist())
    _, _, statistics = shards.gather(shards.load_entries(str(folder / "out")))
    for name in ("train", "heldout"):
        judged = judge(statistics[name], where=name, length=48, mask=SETTINGS.mask, words=len(WORDS) + 1)
        assert 0.1 < judged["masked"] < 0.2
    assert statistics["train"]["documents"] + statistics["heldout"]["documents"] == 400


def test_random_segments_never_cross_between_train_and_heldout(built):
    folder, _ = built
    keys = seeds.document_keys([row["id"] for row in ROWS])
    heldout = set(keys[is_heldout(keys, 4, HELDOUT)].tolist())
    for split in splits.SPLITS:
        keys = set(negatives.load_negatives(str(folder / "negatives"), split).keys.tolist())
        assert keys and (keys <= heldout if split == "heldout" else not keys & heldout)


def test_negatives_from_candidates_of_shards(built, tmp_path):
    units = encode(tmp_path, [0, 100, 400])
    paths = [unit.path for unit in units]
    merge = negatives.MergeCandidates(NEGATIVES)
    candidates = [negatives.pack_candidates(shards.read_shard(path), NEGATIVES) for path in reversed(paths)]
    merged = merge([merge(candidates[:1]), candidates[1]])
    folder = negatives.write_negatives(str(tmp_path / "a"), paths, VOCAB.size, NEGATIVES, [merged])
    for split in splits.SPLITS:
        mine = (Path(folder) / f"{split}.arrow").read_bytes()
        assert mine == (built[0] / "negatives" / f"{split}.arrow").read_bytes()


def test_a_heldout_part_of_one_document_borrows_negatives(tmp_path):
    units = encode(tmp_path, [0, 30])
    few = negatives.NegativeSettings(seed=4, heldout=0.0, budget=1 << 20)
    folder = negatives.write_negatives(str(tmp_path), [units[0].path], VOCAB.size, few)
    train, heldout = (negatives.load_negatives(folder, split).keys.tolist() for split in splits.SPLITS)
    assert heldout == train != []


@pytest.mark.parametrize("copies", [1, 2])
def test_a_killed_unit_resumes_and_ends_with_the_same_bytes(tmp_path, copies, monkeypatch):
    monkeypatch.setattr(work, "TOKENS", 4000)
    changes = {"shard_bytes": 20_000, "copies": copies}
    straight = build(tmp_path / "straight", [0, 400], **changes)
    assert len(straight["train"]) > 3
    units = encode(tmp_path / "killed", [0, 400])
    drawn = negatives.write_negatives(str(tmp_path / "killed"), [units[0].path], VOCAB.size, NEGATIVES)
    maker = work.BuildWork(str(tmp_path / "killed/out"), SETTINGS, heldout=HELDOUT, negatives=drawn, **changes)
    for calls in (1, 3, 4, 6):  # dies after so many progress reports
        with pytest.raises(KeyboardInterrupt):
            maker(units[0], dying(calls))
    result = maker(units[0], nothing)
    assert not result.resumed
    assert shards.gather(shards.load_entries(str(tmp_path / "killed/out")))[0] == straight
    assert maker(units[0], nothing).resumed
    assert not list((tmp_path / "killed").rglob(".unfinished*"))


def dying(calls):
    left = [calls]

    def advance(_):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt

    return advance


def test_progress_reaches_the_size_of_the_unit(tmp_path, monkeypatch):
    monkeypatch.setattr(work, "TEXT_BYTES", 7000)
    unit = write_documents(tmp_path, [0, 400])[0]
    done = []
    work.EncodeWork(str(tmp_path / "encoded"), VOCAB)(unit, done.append)
    assert sum(done) == unit.bytes
    work.EncodeWork(str(tmp_path / "encoded"), VOCAB)(unit, done.append)  # now it is there already
    assert sum(done) == 2 * unit.bytes


def test_datasets_opens_the_folders(built, tmp_path):
    datasets = pytest.importorskip("datasets")
    folder, tables = built
    out = folder / "out"
    for split in splits.SPLITS:
        write_dataset_info(str(out), split, tables[split])
    write_dataset_card(str(out), "A corpus", tables)
    for split in splits.SPLITS:
        expected = table(folder, split, tables)
        loaded = datasets.load_from_disk(str(out / split))
        assert loaded.cache_files[0]["filename"].endswith(".arrow")  # memory-mapped, not copied
        assert loaded.to_list() == expected.to_pylist()
        files = [str(out / shard.name) for shard in tables[split]]
        cached = datasets.load_dataset("arrow", data_files=files, split="train", cache_dir=str(tmp_path / split))
        assert cached.to_list() == expected.to_pylist()
        assert cached.features["input_ids"].feature.dtype == "uint16"
    both = datasets.load_dataset(str(out), cache_dir=str(tmp_path / "card"))
    assert {name: part.num_rows for name, part in both.items()} == {
        name: sum(shard.rows for shard in written) for name, written in tables.items()
    }


def test_parts_without_rows_are_no_datasets(tmp_path):
    datasets = pytest.importorskip("datasets")
    tables = build(tmp_path, [0, 5, 5, 20], heldout=0.0)
    out = tmp_path / "out"
    for split in splits.SPLITS:
        write_dataset_info(str(out), split, tables[split])
    assert sum(shard.rows for shard in tables["heldout"]) == 0
    assert not (out / "heldout/state.json").exists()
    assert datasets.load_from_disk(str(out / "train")).num_rows == sum(shard.rows for shard in tables["train"])
    write_dataset_card(str(out), "A corpus", tables)
    assert set(datasets.load_dataset(str(out), cache_dir=str(tmp_path / "card"))) == {"train"}
