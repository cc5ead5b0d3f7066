"""Real and broken archives from other projects: whatever they hold, every record is a document or a reject."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.documents.raw_inputs import Outcome, read_all

SHARED = Path(__file__).resolve().parents[2] / "../shared/data"
ARCHIVES = sorted(p for p in [*SHARED.glob("warc/*"), *SHARED.glob("warc_wrapped/*"), *SHARED.glob("nasty/*/*")])
SMALL = [p for p in ARCHIVES if p.stat().st_size < 100_000]
OTHERS = [*sorted(SHARED.glob("nasty/blns*")), SHARED / "nasty/ungoliant-garbage.txt"]


def _name(path: Path) -> str:
    return path.name


def test_there_is_something_to_read(shared_data: Path) -> None:
    assert len(ARCHIVES) > 45


@pytest.mark.slow
@pytest.mark.parametrize("path", [*SMALL, *OTHERS], ids=_name)
def test_every_record_is_a_row(shared_data: Path, path: Path) -> None:
    out = read_all(path)  # which checks read + rejected = total for every batch
    assert out.records == len(out.documents) + len(out.rejects) > 0
    assert all(reason.startswith("record:") for reason in out.reasons)
    ids = [r["id"] for r in out.documents] + [r["document"] for r in out.rejects]
    assert len(set(ids)) == len(ids)
    skip = out.records // 2
    assert (rest := read_all(path, skip=skip)).records == out.records - skip
    assert out.documents[len(out.documents) - len(rest.documents) :] == rest.documents


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in ARCHIVES if p not in SMALL], ids=_name)
def test_every_record_of_large_archives_is_a_row(shared_data: Path, path: Path) -> None:
    test_every_record_is_a_row(shared_data, path)


@pytest.mark.parametrize("path", SMALL, ids=_name)
def test_archives_cut_anywhere(shared_data: Path, path: Path, tmp_path: Path) -> None:
    data, whole = path.read_bytes(), read_all(path)
    for share in (0.05, 0.3, 0.7, 0.97):
        out = _read(tmp_path / path.name, data[: int(len(data) * share)])
        assert out.records <= whole.records + 1
        assert out.documents == whole.documents[: len(out.documents)]


@pytest.mark.parametrize("path", SMALL, ids=_name)
def test_archives_with_flipped_bits(shared_data: Path, path: Path, tmp_path: Path) -> None:
    data, noise = path.read_bytes(), random.Random(path.name)
    for _ in range(4):
        broken = bytearray(data)
        for _ in range(3):
            broken[noise.randrange(len(broken))] ^= 1 << noise.randrange(8)
        out = _read(tmp_path / path.name, bytes(broken))
        skip = noise.randint(0, out.records)
        rest = read_all(tmp_path / path.name, skip=skip)
        assert rest.records == out.records - skip
        assert rest.documents == out.documents[len(out.documents) - len(rest.documents) :]


def _read(path: Path, data: bytes) -> Outcome:
    path.write_bytes(data)
    return read_all(path, format="warc")


@pytest.mark.slow
def test_arc_and_warc_of_one_crawl_give_the_same_texts(shared_data: Path) -> None:
    arc = read_all(shared_data / "warc/aut-IAH-blackbook.arc.gz")
    warc = read_all(shared_data / "warc/aut-IAH-blackbook.warc.gz")
    assert sorted((r["url"], r["text"]) for r in arc.documents) == sorted((r["url"], r["text"]) for r in warc.documents)


def test_records_agree_with_warcio(shared_data: Path) -> None:
    """Another reader counts the same records and finds the same pages."""
    warcio = pytest.importorskip("warcio.archiveiterator")
    for path in (p for p in SMALL if p.name.startswith("cc-") or p.name in ("example.warc.gz", "example.arc")):
        with path.open("rb") as file:
            kinds = [record.rec_type for record in warcio.ArchiveIterator(file, arc2warc=True)]
        assert read_all(path).records == len(kinds)


def test_a_folder_of_them_in_units_of_any_size(shared_data: Path, tmp_path: Path) -> None:
    for path in SMALL:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    whole = read_all(tmp_path)
    assert read_all(tmp_path, unit_bytes=20_000) == whole
    assert read_all(tmp_path, unit_bytes=1, batch_bytes=1) == whole
