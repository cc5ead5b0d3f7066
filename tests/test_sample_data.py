"""The sample: built from its texts alone, small, and with all the oddities that it is documented to have."""

from __future__ import annotations

import gzip
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest


def unpacked(path: Path) -> bytes:
    """Contents without the compression, which differs between versions of zlib."""
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


@pytest.fixture(scope="module")
def rebuilt(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    subprocess.run([sys.executable, str(sample_data / "build.py"), str(folder)], check=True, capture_output=True)
    return folder


def test_rebuilding_gives_the_same_files(sample_data: Path, rebuilt: Path) -> None:
    for part in ("raw", "minimal_pairs"):
        names = sorted(str(p.relative_to(rebuilt)) for p in (rebuilt / part).rglob("*") if p.is_file())
        assert names == sorted(str(p.relative_to(sample_data)) for p in (sample_data / part).rglob("*") if p.is_file())
        for name in names:
            assert unpacked(rebuilt / name) == unpacked(sample_data / name), name


def test_building_twice_gives_the_same_bytes(sample_data: Path, rebuilt: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(sample_data / "build.py"), str(tmp_path)], check=True, capture_output=True)
    for path in rebuilt.rglob("*.gz"):
        assert path.read_bytes() == (tmp_path / path.relative_to(rebuilt)).read_bytes()
        assert path.read_bytes()[4:8] == b"\0\0\0\0"  # gzip's time field


def test_the_sample_is_under_two_megabytes(sample_data: Path) -> None:
    files = [p for p in sample_data.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    assert sum(p.stat().st_size for p in files) < 2_000_000


def test_texts_are_well_formed(sample_data: Path) -> None:
    spec = importlib.util.spec_from_file_location("sample_dressing", sample_data / "dressing.py")
    assert spec and spec.loader
    dressing = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = dressing
    spec.loader.exec_module(dressing)
    articles = dressing.load(sample_data / "texts")
    assert len({a.url for a in articles}) == len({a.title for a in articles}) == len(articles)
    for article in articles:
        assert len(article.paragraphs) >= 3, article.title
        assert all(p[-1] in '.?!"。？！”' for p in article.paragraphs), article.title
        assert article.url.split("/")[2].endswith(".example"), article.url


def test_minimal_pairs_have_blimp_fields_and_differ(sample_data: Path) -> None:
    for path in (sample_data / "minimal_pairs").glob("*.jsonl"):
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        assert len(rows) == 30
        assert len({row["sentence_good"] for row in rows}) == 30, path.name
        for row in rows:
            assert row["sentence_good"] != row["sentence_bad"]
            assert row["UID"] == path.stem
            assert {"field", "linguistics_term", "pairID"} <= row.keys()


@pytest.fixture(scope="module")
def cleaned(sample_data: Path) -> tuple[set[str], int, int, int]:
    """All of the raw sample read and cleaned: reasons, records, documents, and documents that stayed."""
    pytest.importorskip("fastwarc")
    from corpusforge.clean.cleaner import cleaner_of
    from corpusforge.documents.plan import plan_units
    from corpusforge.documents.read import read_unit
    from corpusforge.documents.records import ReadOptions
    from corpusforge.sections import Clean

    cleaner = cleaner_of(Clean(sentences="builtin", badwords=str(sample_data / "badwords")))
    reasons: set[str] = set()
    records = documents = kept = 0
    for unit in plan_units([str(sample_data / "raw")]):
        for batch in read_unit(unit, ReadOptions()):
            assert batch.records == batch.documents.num_rows + batch.rejects.num_rows
            result = cleaner.clean(batch.documents)
            reasons |= set(batch.rejects["reason"].to_pylist()) | set(result.tallies)
            records, documents = records + batch.records, documents + batch.documents.num_rows
            kept += result.documents.num_rows
    return reasons, records, documents, kept


def test_every_rule_of_c4_has_something_to_find(cleaned: tuple[set[str], int, int, int]) -> None:
    from corpusforge.clean import c4, c4_lines

    rules = {reason for module in (c4_lines, c4) for reason in module.REASONS if ":" in reason}
    rules -= {"line:few-characters", "page:few-paragraphs"}  # of packs for other languages
    missing = (rules | {"page:language"}) - cleaned[0]
    assert not missing, missing


def test_most_articles_stay_and_records_of_many_kinds_do_not(
    cleaned: tuple[set[str], int, int, int], sample_data: Path
) -> None:
    reasons, records, documents, kept = cleaned
    text = "".join(p.read_text("utf-8") for p in (sample_data / "texts").glob("*.txt"))
    english = sum(line.startswith("# ") and line.endswith("| en") for line in text.splitlines())
    assert kept >= 0.95 * english
    assert kept < documents < records
    assert sum(reason.startswith("record:") for reason in reasons) >= 5
