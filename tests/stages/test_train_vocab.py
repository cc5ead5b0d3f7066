"""The stage train-vocab: adopted vocabularies, the figures that are printed and stored, and their text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corpusforge import errors, recipe, schemas
from corpusforge.report import run_report
from corpusforge.report.gather import gather
from corpusforge.sections.vocab import FAMILIES
from corpusforge.stages import summary, train_vocab
from corpusforge.stages.stage import Execution, Outcome, upstream_units
from tests.report.handmade_run import write_stage
from tests.tokens.small_vocabularies import made_up_text, of_family
from tests.tokens.transformers_folders import write


def corpus(folder: Path, languages: tuple[str | None, ...] = ("en", "de", None)) -> str:
    rows = [
        {"id": f"{n:032x}", "url": None, "source": "s", "position": n, "timestamp": None,
         "language": languages[n % len(languages)], "text": text}
        for n, text in enumerate(made_up_text().to_pylist())
    ]  # fmt: skip
    write_stage(folder, "clean", {"documents": (schemas.DOCUMENTS, rows)})
    return str(folder)


def train(documents: str, output: Path, **settings: Any) -> Outcome:
    built = recipe.build({"vocab": settings}, where="the test")
    return train_vocab.train_vocab(built, documents, str(output), Execution(workers=1))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_folder_is_adopted_and_described(family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    adopted = write(of_family(family), tmp_path / "theirs")
    outcome = train(corpus(tmp_path / "clean"), tmp_path / "vocab", adopt=str(adopted))
    statistics = outcome.manifest.statistics
    assert outcome.manifest.content == {"vocab": of_family(family).digest}
    assert set(statistics["languages"]) == {"en", "de", "unknown"}
    assert statistics["sample"] == "not learned from"
    summary.show_outcome(outcome)
    shown = capsys.readouterr().out
    assert "By language" in shown
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("│ en")] == ["en"]
    page = run_report.page(gather(str(tmp_path)))
    for title in ("By language", "Tokens per word, by language", "Characters per token", "by rank"):
        assert title in page


def test_figures_on_text_held_out(tmp_path: Path) -> None:
    adopted = write(of_family("bpe"), tmp_path / "theirs")
    documents, apart = corpus(tmp_path / "clean"), corpus(tmp_path / "apart", ("fr",))
    outcome = train(documents, tmp_path / "vocab", adopt=str(adopted), sample=apart)
    assert set(outcome.manifest.statistics["languages"]) == {"fr"}
    assert train(documents, tmp_path / "vocab", adopt=str(adopted), sample=apart).skipped
    with pytest.raises(errors.OutputTaken, match=r"vocab\.sample"):
        train(documents, tmp_path / "vocab", adopt=str(adopted))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_size_too_small_for_any_text_is_refused_before_anything_is_written(family: str, tmp_path: Path) -> None:
    documents = corpus(tmp_path / "clean")
    with pytest.raises(errors.RecipeInvalid, match=r"64 is less than the \d+ of .*raise --size"):
        train(documents, tmp_path / "vocab", model=family, size=64)
    assert not (tmp_path / "vocab").exists()


@pytest.mark.slow
@pytest.mark.parametrize("family", ["wordpiece", "unigram"])
def test_a_size_that_a_learner_refuses_does_not_bind(family: str, tmp_path: Path) -> None:
    """The words are counted by then; the second attempt replaces what the first left."""
    documents = corpus(tmp_path / "clean")
    with pytest.raises(errors.RecipeInvalid, match=r"64 is less than the \d+ of characters"):
        train(documents, tmp_path / "vocab", model=family, size=64, unused=55)
    assert (tmp_path / "vocab/words").exists()
    outcome = train(documents, tmp_path / "vocab", model=family, size=256, unused=55)
    assert outcome.manifest.statistics["size"] == 256
    with pytest.raises(errors.OutputTaken, match=r"vocab\.size"):
        train(documents, tmp_path / "vocab", model=family, size=320, unused=55)


def test_an_unknown_family_is_named(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/tokenizer_config.json").write_text('{"tokenizer_class": "XLMTokenizer"}', "utf-8")
    with pytest.raises(errors.ManifestInvalid, match="XLMTokenizer"):
        train(corpus(tmp_path / "clean"), tmp_path / "vocab", adopt=str(tmp_path / "theirs"))


def test_the_sample_follows_hashes_and_not_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    units = upstream_units(corpus(tmp_path / "clean"), "documents")[1]
    text, languages = train_vocab.draw(units)
    assert sorted(text.to_pylist()) == sorted(made_up_text().to_pylist())
    assert len(languages) == len(text)
    monkeypatch.setattr(train_vocab, "SAMPLE_BYTES", 1000)
    some = train_vocab.draw(units)[0].to_pylist()
    assert some == text.to_pylist()[: len(some)]
    assert 1000 <= sum(len(each.encode()) for each in some) < 1400
    assert len(train_vocab.draw([])[0]) == 0
