"""Similar documents: groups, the copy that is kept, an index, and resuming after a crash."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from corpusforge import errors, schemas, shards
from corpusforge.dedupe import documents as near_documents_work
from corpusforge.dedupe import job
from corpusforge.dedupe.documents import KeepWork
from corpusforge.dedupe.index import read_signer, signature_matrix
from corpusforge.dedupe.lsh import bands_for
from corpusforge.dedupe.minhash import Signer
from corpusforge.dedupe.near_spans import CutNearWork
from corpusforge.dedupe.normalize import whole_documents
from corpusforge.dedupe.signed_units import Signing
from tests.dedupe.in_process import near_documents, near_spans, write_units
from tests.dedupe.near_texts import SPANS, WHOLE, WORDS, edited, files, ordered_ids, passage


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


def test_the_longest_copy_of_a_group_is_kept(tmp_path: Path) -> None:
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


def test_an_index_holds_the_kept_documents_and_indexes_chain(tmp_path: Path) -> None:
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


def test_documents_of_one_signature_are_still_compared(tmp_path: Path) -> None:
    """One word of 2,000 is another: with 16 values most such pairs have equal signatures, and are not equal."""
    dice = random.Random(11)
    words = [f"{dice.choice(WORDS)}x{i}" for i in range(2000)]
    texts = [" ".join([*words[:k], "other", *words[k + 1 :]]) for k in range(5, 1900, 100)]
    signer = Signer(16)
    signatures = signer.sign(signer.shingles(whole_documents(pa.array([" ".join(words), *texts]))).document_sets())[0]
    assert len(set(map(bytes, signatures))) < 20
    rows = [(f"d{i}", text) for i, text in enumerate([" ".join(words), *texts])]
    strict = Signing(signer, bands_for(0.999, 16), 0)
    done = near_documents(write_units(tmp_path / "in", [rows]), tmp_path / "out", strict, 0.999)
    assert done.statistics["documents_out"] == len(rows)
    assert done.tables["repeats"].num_rows == 0
