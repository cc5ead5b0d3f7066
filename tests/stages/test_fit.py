"""Alarms of a vocabulary that does not fit its text, and of masks that its words are too long for."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from corpusforge import schemas, shards
from corpusforge.cli import cli
from corpusforge.shards import Manifest
from corpusforge.stages import summary, warnings
from corpusforge.stages.stage import Outcome
from tests.report.handmade_run import write_stage
from tests.tokens.small_vocabularies import made_up_text, of_family

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


def said(*words: str) -> str:
    done = CliRunner().invoke(cli, [*words, "--workers", "1", "--quiet"])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_a_vocabulary_of_another_language_is_an_alarm(tmp_path: Path) -> None:
    vocab, options = vocabulary(tmp_path / "vocab", "wordpiece"), ("--mask-unit", "whole-word")
    words = ("build-instances", corpus(tmp_path / "zh", chinese()), "--vocab", vocab, "--output", str(tmp_path / "out"))
    assert "alarm: 100.0% of tokens are unknown: the vocabulary does not fit the text" in said(*words, *options)
    words = ("build-instances", corpus(tmp_path / "en", made_up_text().to_pylist()), "--vocab", vocab, "--output")
    assert "alarm" not in said(*words, str(tmp_path / "fits"), *options)


def test_words_too_long_to_mask_are_an_alarm(tmp_path: Path) -> None:
    words = ("build-instances", corpus(tmp_path / "zh", chinese()), "--vocab", vocabulary(tmp_path / "vocab", "bpe"))
    settings = ("--mask-unit", "whole-word", "--masking", "static", "--length", "64")
    shown = said(*words, "--output", str(tmp_path / "out"), *settings)
    assert "alarm: only" in shown and "take --mask-unit token" in shown
    assert "unknown" not in shown.split("alarm", 1)[1]
    assert "alarm" not in said(*words, "--output", str(tmp_path / "tokens"), "--masking", "static", "--length", "64")


def test_a_lexicon_that_joins_nothing_is_an_alarm(tmp_path: Path) -> None:
    texts = made_up_text().to_pylist()
    lexicon = tmp_path / "phrases.txt"
    words = ("build-instances", corpus(tmp_path / "in", texts), "--vocab", vocabulary(tmp_path / "vocab", "wordpiece"))
    more = ("--mask-unit", "whole-word", "--mask-lexicon", str(lexicon))
    lexicon.write_text("nowhere to be found\n")
    shown = said(*words, "--output", str(tmp_path / "none"), *more)
    assert "alarm: --mask-lexicon joins no words" in shown and "; 0 phrases joined, of 0 words" in shown
    lexicon.write_text(" ".join(texts[0].split()[:2]) + "\n")
    shown = said(*words, "--output", str(tmp_path / "one"), *more)
    assert "; 1 phrases joined, of 2 words" in shown and "alarm" not in shown


def test_an_alphabet_too_small_is_an_alarm_with_its_flag(tmp_path: Path) -> None:
    words = ("train-vocab", corpus(tmp_path / "zh", chinese()), "--size", "512", "--unused", "8", "--output")
    shown = said(*words, str(tmp_path / "small"), "--alphabet", "200")
    assert "of characters have a token: raise --alphabet, as 200 characters are kept, and --size with it" in shown
    assert "alarm" not in said(*words, str(tmp_path / "vocab"))


@pytest.mark.parametrize("skipped", [False, True])
def test_the_whole_line_has_the_alarms_of_its_stages(skipped: bool, capsys: pytest.CaptureFixture[str]) -> None:
    encoded = {"encoded": {"tokens": 100, "unknown_tokens": 92}}
    built = Manifest("build-instances", "", {}, {}, {}, {}, {}, encoded, {"instances": {}}, {}, {})
    summary.show_run([("build-instances", Outcome("there", built, skipped))], None)
    shown = capsys.readouterr()
    assert "build-instances: alarm: 92.0% of tokens are unknown" in " ".join((shown.out + shown.err).split())


@pytest.mark.parametrize(
    ("section", "statistics", "line"),
    [
        ({"model": "wordpiece", "alphabet": 1000}, {"unknown_rate": 0.01, "character_coverage": 0.99}, ""),
        ({"adopt": "x", "model": "wordpiece", "alphabet": 9}, {"unknown_rate": 0.02}, "the vocabulary taken over"),
        ({"model": "unigram"}, {"character_coverage": 0.98}, "raise --coverage"),
        ({"model": "wordpiece", "alphabet": 1000}, {"unknown_rate": 0.02, "characters": 40}, "lower --min-count"),
        (
            {"model": "wordpiece", "alphabet": 1000},
            {"unknown_rate": 0.02, "characters": 40, "sample": "not learned from"},
            "does not fit the text of --sample",
        ),
    ],
)
def test_what_would_mend_a_vocabulary(section: dict[str, object], statistics: dict[str, object], line: str) -> None:
    found = {"sample_tokens": 9, **statistics}
    manifest = Manifest("train-vocab", "", {}, {}, {}, {}, {}, found, {"vocab": section}, {}, {})
    lines = warnings.of_vocabulary(manifest)
    assert len(lines) == bool(line) and line in "".join(lines)


def test_a_plan_of_many_epochs_and_a_loss_above_the_line_are_alarms(tmp_path: Path) -> None:
    plan = {"preset": "bert-tiny", "steps": 1_000_000, "instances": 5339, "epochs": 99_919.8}
    (said,) = warnings.of_plan(plan)
    assert "1,000,000 steps would read the 5,339 instances 99,920 times" in said and "--budget" in said
    assert not warnings.of_plan(plan | {"epochs": 40.0})
    trained = write_stage(tmp_path, "pretrain", {}, statistics={"mlm_loss": 7.1, "unigram": 6.9})
    (said,) = warnings.of_training(trained)
    assert "(7.10)" in said and "(6.90)" in said
    assert not warnings.of_training(write_stage(tmp_path, "pretrain", {}, statistics={"mlm_loss": 6.8, "unigram": 6.9}))
    assert not warnings.of_training(write_stage(tmp_path, "pretrain", {}, statistics={}))
    both = {"mlm_loss": 6.8, "unigram": 6.9, "heldout_loss": 7.0, "heldout_unigram": 7.1}
    assert not warnings.of_training(write_stage(tmp_path, "pretrain", {}, statistics=both))
    above = both | {"heldout_loss": 7.25}
    (said,) = warnings.of_training(write_stage(tmp_path, "pretrain", {}, statistics=above))
    assert "held-out MLM loss (7.25)" in said and "same tokens (7.10)" in said
