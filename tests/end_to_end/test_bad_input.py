"""Bad input is one clear line and exit code 1, with nothing half-written."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
QUICK = ("--language", "", "--sentences", "builtin", "--badwords", "off", "--quiet")


def _one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 1, (done.stdout, done.stderr)
    lines = [line for line in done.stderr.splitlines() if line.startswith("corpusforge: ")]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in lines[0], lines[0]


def test_a_missing_file(corpusforge: Run, tmp_path: Path) -> None:
    done = corpusforge("clean", str(tmp_path / "none.warc.gz"), "--output", str(tmp_path / "out"), *QUICK)
    _one_line(done, "none.warc.gz")
    assert not (tmp_path / "out").exists()


def test_an_empty_folder(corpusforge: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    _one_line(corpusforge("clean", str(tmp_path / "in"), "--output", str(tmp_path / "out"), *QUICK), "in")


def test_a_column_that_is_not_there(corpusforge: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"body": "hello"}\n')
    done = corpusforge("clean", str(path), "--output", str(tmp_path / "out"), *QUICK)
    _one_line(done, "a.jsonl", "text", "body")


def test_an_archive_cut_short_and_garbage_pass_with_reasons(
    corpusforge: Run, tmp_path: Path, sample_data: Path
) -> None:
    whole = (sample_data / "raw/crawl.warc.gz").read_bytes()
    (tmp_path / "in").mkdir()
    (tmp_path / "in/cut.warc.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "in/garbage.warc.gz").write_bytes(bytes(range(256)) * 50)
    (tmp_path / "in/empty.jsonl").write_bytes(b"")
    (tmp_path / "in/bad.jsonl.gz").write_bytes(gzip.compress(b'{"text": "A line. Another line."}\n{"text": \n'))
    done = corpusforge("clean", str(tmp_path / "in"), "--output", str(tmp_path / "out"), *QUICK)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    dropped = sum(v["rows"] for k, v in manifest["tallies"].items() if k.startswith(("page:", "record:")))
    assert manifest["statistics"]["records_in"] == manifest["rows"]["documents"] + dropped
    assert manifest["tallies"]["record:bad-json"]["rows"] == 1


def test_an_output_that_holds_another_run(corpusforge: Run, tmp_path: Path, sample_data: Path) -> None:
    path, out = str(sample_data / "raw/articles.jsonl"), str(tmp_path / "out")
    assert corpusforge("clean", path, "--output", out, *QUICK).returncode == 0
    before = (tmp_path / "out/manifest.json").read_bytes()
    again = corpusforge("clean", path, "--output", out, *QUICK, "--html", "all")
    _one_line(again, "out", "input.html 'main' -> 'all'", "--overwrite")
    assert (tmp_path / "out/manifest.json").read_bytes() == before
    assert corpusforge("clean", path, "--output", out, *QUICK, "--html", "all", "--overwrite").returncode == 0


def test_an_output_that_holds_foreign_files(corpusforge: Run, tmp_path: Path, sample_data: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear reader")
    path = str(sample_data / "raw/articles.jsonl")
    for more in ((), ("--overwrite",)):
        _one_line(corpusforge("clean", path, "--output", str(tmp_path), *QUICK, *more), "no stage wrote")
    assert (tmp_path / "letter.txt").read_text() == "dear reader"


def test_an_unknown_recipe_key(corpusforge: Run, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text("[clean]\nlanguages = 'en'\n")
    _one_line(corpusforge("run", str(recipe)), "mine.toml", "clean.languages", "did you mean 'clean.language'")


def test_an_unknown_recipe_and_setting(corpusforge: Run) -> None:
    _one_line(corpusforge("run", "quickstrt"), "did you mean 'quickstart'")
    _one_line(corpusforge("run", "quickstart", "--set", "vocab.sise=3"), "did you mean 'vocab.size'")
    _one_line(corpusforge("run", "quickstart", "--set", "vocab.size"), "section.field=value")


def test_a_stage_on_an_unfinished_folder(corpusforge: Run, tmp_path: Path) -> None:
    _one_line(corpusforge("dedupe", str(tmp_path), "--output", str(tmp_path / "out")), "manifest.json")


def test_a_runner_that_loses_data(corpusforge: Run, tmp_path: Path, sample_data: Path) -> None:
    path = str(sample_data / "raw/articles.jsonl")
    done = corpusforge("clean", path, "--output", str(tmp_path / "out"), *QUICK, "--runner", "DaskRunner")
    _one_line(done, "DaskRunner", "loses")


@pytest.mark.slow
def test_a_vocabulary_of_a_wrong_size(corpusforge: Run, finished_run: Path, tmp_path: Path) -> None:
    done = corpusforge("train-vocab", str(finished_run / "clean"), "--output", str(tmp_path / "v"), "--size", "4100")
    _one_line(done, "4,100", "4,096", "4,160")


@pytest.mark.slow
def test_a_vocabulary_that_does_not_fit_the_instances(corpusforge: Run, finished_run: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "instances"
    shutil.copytree(finished_run / "instances", wrong)
    settings = ("--size", "1024", "--unused", "16", "--set", "vocab.alphabet=200", "--quiet")
    made = corpusforge("train-vocab", str(finished_run / "dedupe"), "--output", str(tmp_path / "v"), *settings)
    assert made.returncode == 0, made.stderr
    for path in (tmp_path / "v").glob("*"):
        if path.is_file():
            shutil.copy(path, wrong / "vocab" / path.name)
    done = corpusforge("pretrain", str(wrong), "--output", str(tmp_path / "m"), "--preset", "bert-tiny", "--steps", "2")
    _one_line(done, "vocab")
    other = str(tmp_path / "other")
    built = corpusforge(
        "build-instances", str(finished_run / "dedupe"), "--vocab", str(tmp_path / "v"), "--output", other
    )
    assert built.returncode == 0, built.stderr
    tested = corpusforge("evaluate", str(finished_run / "pretrain"), "--data", other, "--output", str(tmp_path / "e"))
    _one_line(tested, "another vocabulary")


@pytest.mark.slow
def test_a_checkpoint_of_another_dataset(corpusforge: Run, finished_run: Path, tmp_path: Path) -> None:
    quick = ("--preset", "bert-tiny", "--steps", "2", "--batch-tokens", "512", "--micro-batch-tokens", "512", "--quiet")
    out = str(tmp_path / "m")
    first = corpusforge("pretrain", str(finished_run / "instances"), "--output", out, *quick)
    assert first.returncode == 0, first.stderr
    other = str(tmp_path / "other")
    vocab = str(finished_run / "vocab")
    made = corpusforge(
        "build-instances", str(finished_run / "dedupe"), "--vocab", vocab, "--output", other, "--length", "64"
    )
    assert made.returncode == 0, made.stderr
    _one_line(corpusforge("pretrain", other, "--output", out, *quick), "m")


def test_no_input_at_all(corpusforge: Run, tmp_path: Path) -> None:
    _one_line(corpusforge("run", "bert-base", "--output", str(tmp_path)), "input.paths")
