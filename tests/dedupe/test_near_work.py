"""Near repeats: what is cut and what is said about it, an index, going on after a crash, hostile shapes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from corpusforge import errors, schemas, shards
from corpusforge.dedupe import documents as near_documents_work
from corpusforge.dedupe import job, signed_units
from corpusforge.dedupe.documents import KeepWork
from corpusforge.dedupe.index import read_signer, signature_matrix
from corpusforge.dedupe.lsh import Bands, bands_for
from corpusforge.dedupe.memory import mark_rounds, pair_rounds
from corpusforge.dedupe.minhash import Signer
from corpusforge.dedupe.near_spans import CutNearWork
from corpusforge.dedupe.normalize import whole_documents
from corpusforge.dedupe.signed_units import Signing
from corpusforge.seeds import document_keys
from tests.dedupe.in_process import near_documents, near_spans, write_units

WORDS = [f"word{i}" for i in range(400)]
SPANS = Signing(Signer(), bands_for(0.8, 64), 3)
WHOLE = Signing(Signer(), bands_for(0.8, 64), 0)


def passage(dice: random.Random, sentences: int = 3) -> list[str]:
    return [" ".join(dice.choices(WORDS, k=14)).capitalize() + "." for _ in range(sentences)]


def edited(sentences: list[str], word: int = 4) -> list[str]:
    """One word of the second sentence replaced."""
    words = sentences[1].split(" ")
    words[word] = "changed"
    return [sentences[0], " ".join(words), *sentences[2:]]


def ordered_ids(count: int) -> list[str]:
    names = [f"d{i}" for i in range(count)]
    keys = document_keys(names)
    return sorted(names, key=lambda name: keys[names.index(name)])


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


def test_overlapping_spans_of_one_document_are_not_repeats(tmp_path: Path) -> None:
    """A very long sentence between short ones: spans that share it are similar, and cutting one would lose it."""
    dice = random.Random(2)
    long = " ".join(dice.choices(WORDS, k=300)).capitalize() + "."
    text = f"One two. {long} Three four. Five six."
    done = near_spans(write_units(tmp_path / "in", [[("a", text)]]), tmp_path / "out", SPANS, 0.8, cut={})
    assert done.tables["documents"]["text"].to_pylist() == [text]
    assert done.tables["repeats"].num_rows == 0


def test_groups_are_listed_and_one_stays(tmp_path: Path) -> None:
    dice, names = random.Random(3), ordered_ids(5)
    page = passage(dice, 10)
    once, twice = edited(page), edited(edited(page), 9)
    texts = [once, passage(dice, 10), page, twice, []]
    groups = [[(name, " ".join(text))] for name, text in zip(names, texts, strict=True)]
    done = near_documents(write_units(tmp_path / "in", groups), tmp_path / "out", WHOLE, 0.8)
    assert sorted(done.tables["documents"]["id"].to_pylist()) == sorted([names[0], names[1], names[4]])
    clusters = sorted(done.tables["clusters"].to_pylist(), key=lambda row: names.index(row["document"]))
    assert [(row["kept"], row["document"], row["size"]) for row in clusters] == [
        (names[0], name, 3) for name in (names[0], names[2], names[3])
    ]
    assert clusters[0]["similarity"] == 1
    assert [row["similarity"] for row in clusters[1:]] == pytest.approx([131 / 141, 131 / 141])
    assert done.tallies == {"page:near-duplicate": {"rows": 2, "bytes": len(groups[2][0][1]) + len(groups[3][0][1])}}
    assert {row["kept_document"] for row in done.tables["repeats"].to_pylist()} == {names[0]}
    assert done.tables["clusters"].schema.equals(schemas.CLUSTERS)


def test_the_kept_copy_of_a_group(tmp_path: Path) -> None:
    dice = random.Random(4)
    page = passage(dice, 10)
    rows = [
        ("short", " ".join(page)),
        ("longest", " ".join([*page, "And one more."])),
        ("middle", " ".join([*page, "So."])),
    ]
    signing = Signing(Signer(), bands_for(0.8, 64), 0, "longest")
    done = near_documents(write_units(tmp_path / "in", [rows]), tmp_path / "out", signing, 0.8)
    assert done.tables["documents"]["id"].to_pylist() == ["longest"]


def signature_paths(folder: Path) -> list[Path]:
    return sorted((folder / "signatures").glob("*.arrow"))


def test_an_index_holds_what_stays_and_indexes_chain(tmp_path: Path) -> None:
    dice = random.Random(5)
    a, b, c = (passage(dice, 10) for _ in range(3))
    months = [
        [("jan-a", a), ("jan-a2", edited(a))],
        [("feb-a", edited(a, 7)), ("feb-b", b), ("feb-b2", edited(b))],
        [("mar-a", a), ("mar-b", edited(b, 2)), ("mar-c", c), ("mar-none", [])],
    ]
    index: list[Path] = []
    stayed, reasons = [], []
    for number, month in enumerate(months):
        units = write_units(tmp_path / f"in{number}", [[(name, " ".join(text))] for name, text in month])
        done = near_documents(units, tmp_path / f"out{number}", WHOLE, 0.8, index=index)
        stayed.append(set(done.tables["documents"]["id"].to_pylist()))
        reasons.append(
            sorted((r["reason"], *r["kept_document"].split(":")[::2]) for r in done.tables["repeats"].to_pylist())
        )
        index += signature_paths(tmp_path / f"out{number}")
        signed = [
            d for p in signature_paths(tmp_path / f"out{number}") for b in shards.read_shard(str(p)) for d in b[0]
        ]
        assert {d.as_py() for d in signed} == stayed[-1] - {"mar-none"}
    (january,), (february,) = stayed[:2]
    assert january.startswith("jan-a") and february.startswith("feb-b")
    assert reasons[1] == [("page:in-index", "index", january), ("page:near-duplicate", february)]
    assert stayed[2] == {"mar-c", "mar-none"}
    assert reasons[2] == sorted(("page:in-index", "index", name) for name in (january, february))
    (rows,) = shards.read_shard(str(signature_paths(tmp_path / "out0")[0] if stayed[0] else ""))
    assert read_signer(rows.schema, "") == WHOLE.signer
    assert signature_matrix(rows).shape[1] == 64


def test_an_index_of_another_signer_is_refused(tmp_path: Path) -> None:
    units = write_units(tmp_path / "in", [[("a", " ".join(passage(random.Random(6), 5)))]])
    near_documents(units, tmp_path / "out", WHOLE, 0.8)
    other = Signing(Signer(shingle_words=4), bands_for(0.8, 64), 0)
    with pytest.raises(errors.StageMismatch, match="shingle_words 5, not 4"):
        near_documents(units, tmp_path / "other", other, 0.8, index=signature_paths(tmp_path / "out"))


class Killed(Exception):
    pass


@pytest.mark.parametrize("method", ["near-spans", "documents"])
def test_killed_and_resumed_equals_straight_through(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "SLICE_BYTES", 2000)
    dice = random.Random(7)
    pages = [passage(dice, 8) for _ in range(6)]
    groups = [[(f"{g}-{i}", " ".join(edited(pages[i % 6], i % 14))) for i in range(20)] for g in (0, 1)]
    units = write_units(tmp_path / "in", groups)
    work: Any = CutNearWork if method == "near-spans" else KeepWork
    place: Any = work if method == "near-spans" else near_documents_work
    step = "cut" if method == "near-spans" else "keep_documents"
    real, calls = getattr(place, step), 0

    def run(folder: Path) -> None:
        if method == "near-spans":
            near_spans(units, folder, SPANS, 0.8, cut={"shard_bytes": 5000})
        else:
            near_documents(units, folder, WHOLE, 0.8, shard_bytes=5000)

    def sometimes(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls % 4 == 0:
            raise Killed
        return real(*arguments, **options)

    run(tmp_path / "straight")
    monkeypatch.setattr(place, step, sometimes)
    for _ in range(40):
        try:
            run(tmp_path / "killed")
        except Killed:
            continue
        break
    assert calls > 8
    assert files(tmp_path / "killed") == files(tmp_path / "straight")


def files(folder: Path) -> dict[str, bytes]:
    found = folder.rglob("*")
    return {str(p.relative_to(folder)): p.read_bytes() for p in found if p.is_file() and "scratch" not in p.parts}


def test_copies_are_settled_before_bands(tmp_path: Path) -> None:
    """Of many copies one is compared with others: no bucket holds the others."""
    page = " ".join(passage(random.Random(8), 6))
    rows = [(f"c{i}", page) for i in range(3000)]
    done = near_documents(write_units(tmp_path / "in", [rows[:1000], rows[1000:]]), tmp_path / "out", WHOLE, 0.8)
    assert done.statistics["documents_out"] == 1
    pairs = sorted((tmp_path / "out/scratch/pairs-1").glob("*.arrow"))
    assert sum(batch.num_rows for path in pairs for batch in shards.read_shard(str(path))) == 0
    done = near_spans(write_units(tmp_path / "in2", [rows]), tmp_path / "out2", SPANS, 0.8, cut={})
    assert done.statistics["documents_out"] == 1


def test_texts_without_words_are_no_repeats(tmp_path: Path) -> None:
    rows = [("a", ""), ("b", ""), ("c", "..."), ("d", "... !!! ???"), ("e", "... !!! ???"), ("f", "One."), ("g", "two")]
    for number, signing in enumerate((SPANS, WHOLE)):
        units = write_units(tmp_path / f"in{number}", [rows, []])
        output = tmp_path / f"out{number}"
        done = (
            near_documents(units, output, signing, 0.8) if number else near_spans(units, output, signing, 0.8, cut={})
        )
        assert done.tables["documents"].num_rows == 7
        assert done.tables["repeats"].num_rows == 0


def test_items_open_anew_where_the_file_is_another(tmp_path: Path) -> None:
    dice = random.Random(9)
    for text in (passage(dice, 4), passage(dice, 9)):
        units = write_units(tmp_path / "in", [[("a", " ".join(text))]])
        near_spans(units, tmp_path / "out", SPANS, 0.8, cut={})
        (part,) = signed_units.open_items(str(tmp_path / "out/scratch"), 0).parts
        assert len(part.hashes) == len(text)
        shards.remove(str(tmp_path / "out"))


def test_rounds_grow_with_the_corpus() -> None:
    assert pair_rounds(0, 0, 1 << 30) == mark_rounds(0, 1 << 30, 16) == 1
    assert mark_rounds(10**9, 1 << 30, 16) > mark_rounds(10**9, 1 << 31, 16)
    assert pair_rounds(10**8, 10**8, 1 << 30) > pair_rounds(10**8, 10**7, 1 << 30)


def test_a_bucket_with_every_item_is_linear(tmp_path: Path) -> None:
    """Bands of one value: nearly all items meet in some band, and no pair of all is listed."""
    dice = random.Random(10)
    page = passage(dice, 6)
    rows = [(f"n{i}", " ".join(edited(page, i % 14)) + f" End {i}.") for i in range(600)]
    wide = Signing(Signer(16), Bands(16, 1), 0)
    near_documents(write_units(tmp_path / "in", [rows]), tmp_path / "out", wide, 0.99)
    paths = sorted((tmp_path / "out/scratch/pairs-1").glob("*.arrow"))
    pairs = pa.concat_tables(pa.Table.from_batches(list(shards.read_shard(str(p)))) for p in paths)
    assert 0 < pairs.num_rows < 600 * 16 * 8


def test_documents_of_one_signature_are_still_compared(tmp_path: Path) -> None:
    """One word of 2,000 is another: with 16 values most such pairs have equal signatures, and are not equal."""
    dice = random.Random(11)
    words = [f"{dice.choice(WORDS)}x{i}" for i in range(2000)]
    texts = [" ".join([*words[:k], "other", *words[k + 1 :]]) for k in range(5, 1900, 100)]
    signer = Signer(16)
    signatures = signer.document_signatures(signer.shingles(whole_documents(pa.array([" ".join(words), *texts]))))[0]
    assert len(set(map(bytes, signatures))) < 20
    rows = [(f"d{i}", text) for i, text in enumerate([" ".join(words), *texts])]
    strict = Signing(signer, bands_for(0.999, 16), 0)
    done = near_documents(write_units(tmp_path / "in", [rows]), tmp_path / "out", strict, 0.999)
    assert done.statistics["documents_out"] == len(rows)
    assert done.tables["repeats"].num_rows == 0
