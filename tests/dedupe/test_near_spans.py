"""Near-duplicate spans: what is cut, and hostile shapes."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from corpusforge import shards
from corpusforge.dedupe.lsh import Bands
from corpusforge.dedupe.minhash import Signer
from corpusforge.dedupe.signed_units import Signing
from tests.dedupe.in_process import near_documents, near_spans, write_units
from tests.dedupe.near_texts import SPANS, WHOLE, WORDS, edited, ordered_ids, passage


def test_an_edited_passage_is_cut_from_the_later_document(tmp_path: Path) -> None:
    dice, (first, second) = random.Random(1), ordered_ids(2)
    shared, own = passage(dice), passage(dice, 8)
    rows = [(first, " ".join([*own[:4], *shared])), (second, " ".join([*own[4:6], *edited(shared), *own[6:]]))]
    done = near_spans(write_units(tmp_path / "in", [rows[:1], rows[1:]]), tmp_path / "out", SPANS, 0.75, cut={})
    texts = dict(zip(*(done.tables["documents"][name].to_pylist() for name in ("id", "text")), strict=True))
    assert texts == {first: rows[0][1], second: " ".join(own[4:])}
    (row,) = done.tables["repeats"].to_pylist()
    assert row["text"] == " ".join(edited(shared)) and row["reason"] == "span:near-repeated"
    assert (row["kept_document"], row["kept_start"]) == (first, len(" ".join(own[:4])) + 1)
    assert row["method"] == "near-spans"
    assert row["similarity"] == pytest.approx((38 - 5) / (38 + 5))
    assert rows[1][1].encode()[row["start"] : row["stop"]].decode() == row["text"]


def test_overlapping_spans_of_one_document_are_not_duplicates(tmp_path: Path) -> None:
    """A very long sentence between short ones: spans that share it are similar, and cutting one would lose it."""
    dice = random.Random(2)
    long = " ".join(dice.choices(WORDS, k=300)).capitalize() + "."
    text = f"One two. {long} Three four. Five six."
    done = near_spans(write_units(tmp_path / "in", [[("a", text)]]), tmp_path / "out", SPANS, 0.8, cut={})
    assert done.tables["documents"]["text"].to_pylist() == [text]
    assert done.tables["repeats"].num_rows == 0


def test_copies_are_settled_before_bands(tmp_path: Path) -> None:
    """Only one of many copies is compared with others: no bucket holds the others."""
    page = " ".join(passage(random.Random(8), 6))
    rows = [(f"c{i}", page) for i in range(3000)]
    done = near_documents(write_units(tmp_path / "in", [rows[:1000], rows[1000:]]), tmp_path / "out", WHOLE, 0.8)
    assert done.statistics["documents_out"] == 1
    pairs = sorted((tmp_path / "out/scratch/pairs-1").glob("*.arrow"))
    assert sum(batch.num_rows for path in pairs for batch in shards.read_shard(str(path))) == 0
    done = near_spans(write_units(tmp_path / "in2", [rows]), tmp_path / "out2", SPANS, 0.8, cut={})
    assert done.statistics["documents_out"] == 1


def test_texts_without_words_are_not_duplicates(tmp_path: Path) -> None:
    rows = [("a", ""), ("b", ""), ("c", "..."), ("d", "... !!! ???"), ("e", "... !!! ???"), ("f", "One."), ("g", "two")]
    for number, signing in enumerate((SPANS, WHOLE)):
        units = write_units(tmp_path / f"in{number}", [rows, []])
        output = tmp_path / f"out{number}"
        done = (
            near_documents(units, output, signing, 0.8) if number else near_spans(units, output, signing, 0.8, cut={})
        )
        assert done.tables["documents"].num_rows == 7
        assert done.tables["repeats"].num_rows == 0


def test_a_bucket_with_every_item_is_linear(tmp_path: Path) -> None:
    """Bands of one value: nearly all items meet in a band, and yet few pairs are listed."""
    dice = random.Random(10)
    page = passage(dice, 6)
    rows = [(f"n{i}", " ".join(edited(page, i % 14)) + f" End {i}.") for i in range(600)]
    wide = Signing(Signer(16), Bands(16, 1), 0)
    near_documents(write_units(tmp_path / "in", [rows]), tmp_path / "out", wide, 0.99)
    paths = sorted((tmp_path / "out/scratch/pairs-1").glob("*.arrow"))
    pairs = pa.concat_tables(pa.Table.from_batches(list(shards.read_shard(str(p)))) for p in paths)
    assert 0 < pairs.num_rows < 600 * 16 * 8
