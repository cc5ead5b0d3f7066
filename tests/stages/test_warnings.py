"""Alarms behind real runs and dry ones, and the end of a run that read nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from corpusforge import errors
from corpusforge.cli import cli
from corpusforge.documents.plan import Unit
from corpusforge.documents.records import FilePart
from corpusforge.schemas import REJECTS
from corpusforge.stages import warnings

OFF = ["--badwords", "off", "--sentences", "builtin"]
CHINESE = "今天天气很好，我们去公园散步。公园里有很多花和树，孩子们在草地上玩。晚上我们回家吃饭，然后看书。"
GOOD = "This is a whole sentence of the page number {0}. Here comes another one, which is number {0}. And a third one."


def call(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


def said(result: Result) -> str:
    return " ".join(result.output.split())


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("no json\n" * 7, r"no document could be read \(7 record:bad-json\)"),
        ('{"text": 3}\nno\n', r"no document could be read \(1 record:bad-json, 1 record:no-text\)"),
        ("", "no document in the input"),
    ],
)
def test_an_input_that_holds_no_document_is_an_error(content: str, match: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(content)
    words = ["clean", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out"), "--language", "", *OFF]
    for more in (["--dry-run"], ["--workers", "1", "--quiet"], ["--workers", "1", "--quiet"]):  # and skipped, as done
        done = call(*words, *more)
        assert isinstance(done.exception, errors.InputUnreadable)
        with pytest.raises(errors.InputUnreadable, match=match):
            raise done.exception
        assert "nothing is dropped" not in done.output
    assert (tmp_path / "out/manifest.json").exists()
    assert not content or list((tmp_path / "out/rejects").glob("*.parquet"))


def test_one_document_among_garbage_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("no json\n" * 7 + json.dumps({"text": "menu"}) + "\n")
    done = call("clean", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out"), "--language", "", *OFF)
    assert done.exit_code == 0, done.output


def test_a_deduplication_that_drops_all_says_so_dry_and_real(tmp_path: Path) -> None:
    text = GOOD.format(1)
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for _ in range(30)))
    clean, out = str(tmp_path / "clean"), str(tmp_path / "out")
    call("clean", str(tmp_path / "in.jsonl"), "--output", clean, "--language", "", "--workers", "1", *OFF)
    words = ["dedupe", clean, "--output", out, "--workers", "1"]
    for more in (["--dry-run"], []):
        done = call(*words, *more)
        assert done.exit_code == 0, done.output
        assert "alarm: 97% of documents" in said(done)


def test_a_corpus_without_repeats_is_no_alarm(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": GOOD.format(1)}) + "\n")
    clean, out = str(tmp_path / "clean"), str(tmp_path / "out")
    call("clean", str(tmp_path / "in.jsonl"), "--output", clean, "--language", "", "--workers", "1", *OFF)
    for more in (["--dry-run"], []):
        done = call("dedupe", clean, "--output", out, "--workers", "1", *more)
        assert done.exit_code == 0 and "alarm" not in done.output


def test_chinese_read_as_english_is_told_its_flag(tmp_path: Path) -> None:
    rows = [json.dumps({"text": "\n".join([f"第{n}页。" + CHINESE] * 3)}) + "\n" for n in range(12)]
    (tmp_path / "in.jsonl").write_text("".join(rows))
    words = ["clean", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out"), "--rules", "c4-zh", *OFF]
    for more in (["--dry-run"], ["--workers", "1"]):
        done = call(*words, *more)
        assert done.exit_code == 0, done.output
        assert "alarm: language drops 100%" in said(done)
        assert "most often they are zh (12 of 12): --language zh keeps these" in said(done)


def test_languages_are_counted_without_regions_and_without_no_answers() -> None:
    details = ["zh-cn 0.99", "zh-tw 0.87", "ja 873", "no answer", "zh-cn 1.00"]
    reasons = ["page:language"] * 4 + ["page:pattern"]
    columns = {"reason": pa.array(reasons).dictionary_encode(), "detail": pa.array(details)}
    empty = {field.name: pa.nulls(5, field.type) for field in REJECTS if field.name not in columns}
    assert warnings.count_languages(pa.record_batch({**empty, **columns})) == {"zh": 2, "ja": 1}


def test_a_language_that_is_not_sure_enough_has_another_flag() -> None:
    assert "--min-language-probability" in warnings._of_language("en", {"en": 9, "nl": 1})


def unit(number: int, *files: tuple[str, str, int]) -> Unit:
    return Unit(number, tuple(FilePart(path, path, 0, -1, kind, size << 20) for path, kind, size in files))


@pytest.mark.parametrize(
    ("units", "workers", "line"),
    [
        ([unit(0, ("a.jsonl", "jsonl", 20))], 2, "the input makes 1 work unit for 2 workers; to use more of them: "),
        ([unit(0, ("a.jsonl.gz", "jsonl", 20))], 2, ""),
        ([unit(0, ("a.warc.gz", "warc", 20), ("b.warc.gz", "warc", 20))], 4, "input.unit_megabytes=10"),
        ([unit(0, ("a.parquet", "parquet", 60)), unit(1, ("b.parquet", "parquet", 60))], 8, "makes 2 work units for 8"),
        ([unit(0, ("a.jsonl", "jsonl", 1))], 2, ""),
        ([unit(0, ("a.jsonl", "jsonl", 60)), unit(1, ("b.jsonl", "jsonl", 60))], 2, ""),
        ([], 2, ""),
    ],
)
def test_fewer_units_than_workers_are_said_where_that_helps(units: list[Unit], workers: int, line: str) -> None:
    said = warnings.of_units(units, workers)
    assert line in said and bool(said) == bool(line)
