"""Warnings after real and dry runs, about vocabularies that do not fit, and the error of a run that read nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from corpusforge import errors, schemas, shards
from corpusforge.cli import cli
from corpusforge.documents.plan import Unit
from corpusforge.documents.records import FilePart
from corpusforge.schemas import REJECTS
from corpusforge.shards import Manifest
from corpusforge.stages import summary, warnings
from corpusforge.stages.stage import Outcome
from tests.report.handmade_run import write_stage
from tests.tokens.small_vocabularies import made_up_text, of_family

OFF = ["--badwords", "off", "--sentences", "builtin"]
CHINESE = "今天天气很好，我们去公园散步。公园里有很多花和树，孩子们在草地上玩。晚上我们回家吃饭，然后看书。"
GOOD = "This is a whole sentence of the page number {0}. Here comes another one, which is number {0}. And a third one."


def call(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


def text_of(result: Result) -> str:
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


def test_one_document_among_garbage_is_enough(tmp_path: Path) -> None:
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
        assert "warning: 97% of documents" in text_of(done)


def test_a_corpus_without_duplicates_gives_no_warning(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": GOOD.format(1)}) + "\n")
    clean, out = str(tmp_path / "clean"), str(tmp_path / "out")
    call("clean", str(tmp_path / "in.jsonl"), "--output", clean, "--language", "", "--workers", "1", *OFF)
    for more in (["--dry-run"], []):
        done = call("dedupe", clean, "--output", out, "--workers", "1", *more)
        assert done.exit_code == 0 and "warning" not in done.output


def test_a_deduplication_of_no_documents_is_a_warning(tmp_path: Path) -> None:
    clean = corpus(tmp_path / "clean", [])
    for more in (["--dry-run"], []):
        done = call("dedupe", clean, "--output", str(tmp_path / "out"), "--workers", "1", *more)
        assert done.exit_code == 0 and "warning: there are no documents in the input" in text_of(done)


def test_chinese_read_as_english_is_warned_about_with_its_flag(tmp_path: Path) -> None:
    rows = [json.dumps({"text": "\n".join([f"第{n}页。" + CHINESE] * 3)}) + "\n" for n in range(12)]
    (tmp_path / "in.jsonl").write_text("".join(rows))
    words = ["clean", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out"), "--rules", "c4-zh", *OFF]
    for more in (["--dry-run"], ["--workers", "1"]):
        done = call(*words, *more)
        assert done.exit_code == 0, done.output
        assert "warning: language drops 100%" in text_of(done)
        assert "most often they are zh (12 of 12): --language zh keeps these" in text_of(done)


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
def test_fewer_units_than_workers_are_reported_where_that_helps(
    units: list[Unit], workers: int, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in {part.path for unit in units for part in unit.parts}:
        Path(path).write_bytes(b"\x1f\x8b" if path.endswith(".gz") else b"{}")
    warning = warnings.of_units(units, workers)
    assert line in warning and bool(warning) == bool(line)


CHARACTERS = [chr(0x4E00 + n) for n in range(300)]


def chinese() -> list[str]:
    """Forty documents of sentences of ten to forty characters, all of them frequent."""
    rng = random.Random(3)
    return [
        "".join("".join(rng.choices(CHARACTERS, k=rng.randint(10, 40))) + "。" for _ in range(6)) for _ in range(40)
    ]


def corpus(folder: Path, texts: list[str]) -> str:
    rows = [
        {
            "id": f"{n:032x}",
            "url": None,
            "source": "s",
            "position": n,
            "timestamp": None,
            "language": None,
            "text": text,
        }
        for n, text in enumerate(texts)
    ]
    write_stage(folder, "clean", {"documents": (schemas.DOCUMENTS, rows)})
    return str(folder)


def vocabulary(folder: Path, family: str) -> str:
    for name, data in of_family(family).save_files().items():
        shards.write_bytes(str(folder / name), data)
    return str(folder)


def printed(*words: str) -> str:
    done = CliRunner().invoke(cli, [*words, "--workers", "1", "--quiet"])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_a_vocabulary_of_another_language_is_a_warning(tmp_path: Path) -> None:
    vocab, options = vocabulary(tmp_path / "vocab", "wordpiece"), ("--mask-unit", "whole-word")
    words = ("build-instances", corpus(tmp_path / "zh", chinese()), "--vocab", vocab, "--output", str(tmp_path / "out"))
    assert "warning: 100.0% of tokens are unknown: the vocabulary does not fit the text" in printed(*words, *options)
    words = ("build-instances", corpus(tmp_path / "en", made_up_text().to_pylist()), "--vocab", vocab, "--output")
    assert "warning" not in printed(*words, str(tmp_path / "fits"), *options)


def test_words_too_long_to_mask_are_a_warning(tmp_path: Path) -> None:
    words = ("build-instances", corpus(tmp_path / "zh", chinese()), "--vocab", vocabulary(tmp_path / "vocab", "bpe"))
    settings = ("--mask-unit", "whole-word", "--masking", "static", "--length", "64")
    shown = printed(*words, "--output", str(tmp_path / "out"), *settings)
    assert "warning: only" in shown and "take --mask-unit token" in shown
    assert "unknown" not in shown.split("warning", 1)[1]
    assert "warning" not in printed(
        *words, "--output", str(tmp_path / "tokens"), "--masking", "static", "--length", "64"
    )


def test_a_lexicon_that_joins_nothing_is_a_warning(tmp_path: Path) -> None:
    texts = made_up_text().to_pylist()
    lexicon = tmp_path / "phrases.txt"
    words = ("build-instances", corpus(tmp_path / "in", texts), "--vocab", vocabulary(tmp_path / "vocab", "wordpiece"))
    more = ("--mask-unit", "whole-word", "--mask-lexicon", str(lexicon))
    lexicon.write_text("nowhere to be found\n")
    shown = printed(*words, "--output", str(tmp_path / "none"), *more)
    assert "warning: --mask-lexicon joins no words" in shown and "; 0 phrases joined, of 0 words" in shown
    lexicon.write_text(" ".join(texts[0].split()[:2]) + "\n")
    shown = printed(*words, "--output", str(tmp_path / "one"), *more)
    assert "; 1 phrases joined, of 2 words" in shown and "warning" not in shown


def test_an_alphabet_too_small_is_a_warning_with_its_flag(tmp_path: Path) -> None:
    words = ("train-vocab", corpus(tmp_path / "zh", chinese()), "--size", "512", "--unused", "8", "--output")
    shown = printed(*words, str(tmp_path / "small"), "--alphabet", "200")
    assert "of characters have a token: raise --alphabet, as 200 characters are kept, and --size with it" in shown
    assert "warning" not in printed(*words, str(tmp_path / "vocab"))


@pytest.mark.parametrize("skipped", [False, True])
def test_a_run_shows_the_warnings_of_its_stages(skipped: bool, capsys: pytest.CaptureFixture[str]) -> None:
    encoded = {"encoded": {"tokens": 100, "unknown_tokens": 92}}
    built = Manifest("build-instances", "", {}, {}, {}, {}, {}, encoded, {"instances": {}}, {}, {})
    summary.show_run([("build-instances", Outcome("there", built, skipped))], None)
    shown = capsys.readouterr()
    assert "build-instances: warning: 92.0% of tokens are unknown" in " ".join((shown.out + shown.err).split())


@pytest.mark.parametrize(
    ("section", "statistics", "line"),
    [
        ({"model": "wordpiece", "alphabet": 1000}, {"unknown_rate": 0.01, "character_coverage": 0.99}, ""),
        ({"adopt": "x", "model": "wordpiece", "alphabet": 9}, {"unknown_rate": 0.02}, "the adopted vocabulary"),
        ({"model": "unigram"}, {"character_coverage": 0.98}, "raise --coverage"),
        ({"model": "wordpiece", "alphabet": 1000}, {"unknown_rate": 0.02, "characters": 40}, "lower --min-count"),
        (
            {"model": "wordpiece", "alphabet": 1000},
            {"unknown_rate": 0.02, "characters": 40, "sample": "not learned from"},
            "does not fit the text of --sample",
        ),
    ],
)
def test_the_advice_for_a_vocabulary(section: dict[str, object], statistics: dict[str, object], line: str) -> None:
    figures = {"sample_tokens": 9, **statistics}
    manifest = Manifest("train-vocab", "", {}, {}, {}, {}, {}, figures, {"vocab": section}, {}, {})
    lines = warnings.of_vocabulary(manifest)
    assert len(lines) == bool(line) and line in "".join(lines)


def test_a_plan_of_many_epochs_and_a_loss_above_the_line_are_warnings(tmp_path: Path) -> None:
    plan = {"preset": "bert-tiny", "steps": 1_000_000, "instances": 5339, "epochs": 99_919.8}
    (line,) = warnings.of_plan(plan)
    assert "1,000,000 steps would read the 5,339 instances 99,920 times" in line and "--budget" in line
    assert not warnings.of_plan(plan | {"epochs": 40.0})
    trained = write_stage(tmp_path, "pretrain", {}, statistics={"mlm_loss": 7.1, "unigram": 6.9})
    (line,) = warnings.of_training(trained)
    assert "(7.10)" in line and "(6.90)" in line
    assert not warnings.of_training(write_stage(tmp_path, "pretrain", {}, statistics={"mlm_loss": 6.8, "unigram": 6.9}))
    assert not warnings.of_training(write_stage(tmp_path, "pretrain", {}, statistics={}))
    both = {"mlm_loss": 6.8, "unigram": 6.9, "heldout_loss": 7.0, "heldout_unigram": 7.1}
    assert not warnings.of_training(write_stage(tmp_path, "pretrain", {}, statistics=both))
    above = both | {"heldout_loss": 7.25}
    (line,) = warnings.of_training(write_stage(tmp_path, "pretrain", {}, statistics=above))
    assert "held-out MLM loss (7.25)" in line and "same tokens (7.10)" in line
