"""Places of sentences: equal to those of a full read, in few reads, and never from a file that was replaced."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from corpusforge import errors, schemas, shards
from corpusforge.arrays import U64
from corpusforge.dedupe import exact_spans, locate
from corpusforge.dedupe.exact_spans import CutWork, HashWork, duplicates_folder, read_duplicates, write_duplicates
from corpusforge.dedupe.locate import locate_copies
from corpusforge.dedupe.spans import SPANS, hash_documents, pack, place
from corpusforge.shards import manifests
from corpusforge.units import ShardUnit


@pytest.fixture(autouse=True)
def _forget() -> None:
    locate.forget()


def write_spans(folder: str, unit: int, batches: list[list[str]]) -> list[tuple[str, int]]:
    """A unit's SPANS, and the document and the offset of each of its sentence rows."""
    writer = shards.ShardWriter(folder, f"spans/part-{unit:05d}-00000.arrow", SPANS, "arrow")
    expected = []
    for number, texts in enumerate(batches):
        rows = [
            {"id": f"{unit}-{number}-{i}", "source": "s", "position": 0, "text": text} for i, text in enumerate(texts)
        ]
        spans = hash_documents(pa.RecordBatch.from_pylist(rows, schema=schemas.DOCUMENTS))
        writer.write(spans)
        expected += [(row["document"], start) for row in spans.to_pylist() for start in row["starts"]]
    writer.finish()
    return expected


@pytest.mark.parametrize("root", ["", "memory://places"])
def test_places_equal_those_of_a_full_read(tmp_path: Path, root: str) -> None:
    dice, folder = random.Random(4), root or str(tmp_path)
    expected = {}
    for unit in (0, 1, 7):
        texts = [["Ab c. " * dice.randrange(5) for _ in range(dice.randint(1, 6))] for _ in range(3)]
        expected |= {(unit, row): where for row, where in enumerate(write_spans(folder, unit, texts))}
    keys = [dice.choice(list(expected)) for _ in range(300)]
    places = np.concatenate([place(unit, np.array([row])) for unit, row in keys])
    documents, starts = locate_copies(places, folder)
    assert list(zip(documents.to_pylist(), starts.tolist(), strict=True)) == [expected[key] for key in keys]
    documents, starts = locate_copies(places[:0], folder)
    assert (len(documents), len(starts)) == (0, 0)


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    for text in ("One. Two.", "A longer one. Two."):
        expected = write_spans(str(tmp_path), 0, [[text]])
        _, starts = locate_copies(place(0, np.arange(2)), str(tmp_path))
        assert starts.tolist() == [start for _, start in expected]


def test_a_missing_unit_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(errors.ManifestInvalid, match="part-00003"):
        locate_copies(place(3, np.arange(2)), str(tmp_path))


def test_each_unit_is_opened_once_and_no_folder_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty units that all duplicate the first one and each other: the number of reads is not quadratic."""
    folder, units = str(tmp_path / "hashes"), []
    text = " ".join(f"Sentence {i} is here." for i in range(20))
    for number in range(20):
        row = {"id": f"d{number}", "source": "s", "position": 0, "text": text}
        batch = pa.RecordBatch.from_pylist([row], schema=schemas.DOCUMENTS)
        writer = shards.ShardWriter(str(tmp_path), f"{number}.parquet", schemas.DOCUMENTS, "parquet")
        writer.write(batch)
        writer.finish()
        units.append(ShardUnit(number, str(tmp_path / f"{number}.parquet"), 1, 100))
        HashWork(folder)(units[-1], lambda _: None)
    for number in range(20):  # sentence i of a unit is cut in favour of unit i's
        others = [place(n, np.array([row])) for row, n in enumerate(range(18)) if n != number]
        dropped = [row for row in range(18) if row != number]
        packed = pack(place(number, np.array(dropped)), np.concatenate(others))
        write_duplicates(duplicates_folder(folder, 1), 0, number, [packed])
    opened: list[str] = []
    real = locate._open

    def counted(path: str) -> Any:
        opened.append(path)
        return real(path)

    def refuse(*_: object) -> None:
        raise AssertionError("listed")

    monkeypatch.setattr(locate, "_open", counted)
    for module in (shards, manifests):
        monkeypatch.setattr(module, "list_names", refuse)
    work = CutWork(str(tmp_path / "out"), folder, min_sentences=0)
    assert sum(work(unit, lambda _: None).statistics["sentences_cut"] for unit in units) > 300
    assert len(opened) == len(set(opened)) <= 20


def test_written_rows_are_not_located_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(tmp_path)
    packed = pack(place(0, np.array([0, 10])), place(5, np.array([3, 4])))
    write_duplicates(duplicates_folder(folder, 1), 0, 0, [packed])
    located: list[U64] = []

    def noted(unit: int, places: U64, folder: str) -> tuple[pa.Array, Any]:
        located.append(places)
        return pa.array([""] * len(places)), np.zeros(len(places), np.int64)

    monkeypatch.setattr(exact_spans, "locate_for", noted)
    work = CutWork(str(tmp_path / "out"), folder)
    cuts, rows = work.cuts_from(0, 11)
    assert (cuts.rows.tolist(), rows.tolist()) == ([11, 12], [0, 10])
    assert (located[0] & np.uint64(0xFF)).tolist() == [5, 6]


def test_cuts_of_another_number_of_rounds_are_not_read(tmp_path: Path) -> None:
    folder = str(tmp_path)
    for rounds in (2, 3):
        for number in range(rounds):
            dropped = place(0, np.array([10 * rounds + number]))
            write_duplicates(duplicates_folder(folder, rounds), number, 0, [pack(dropped, dropped)])
    assert (read_duplicates(folder, 0, 2)[0]).tolist() == [20, 21]
    assert (read_duplicates(folder, 0, 3)[0]).tolist() == [30, 31, 32]
    assert not len(read_duplicates(folder, 1, 3)[0])
