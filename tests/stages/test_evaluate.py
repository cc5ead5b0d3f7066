"""The command: figures in evaluation.json, tables on the terminal and in the model card, errors of one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file

from corpusforge import errors
from corpusforge.cli import cli
from corpusforge.report.evaluation import tables
from corpusforge.stages.model_card import BEGIN, END, update_card
from tests.evaluate.tiny_models import write_checkpoint

QUICK = ["--epochs", "1", "--batch", "8", "--seeds", "2", "--max-length", "16", "--quiet"]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "made", deviation=0.1)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """GLUE's format in ``glue/``, SQuAD's in ``squad/``."""
    rng = np.random.default_rng(0)
    lines = "".join(f"{k % 2}\tw{rng.integers(9, 99)}\tw{k % 2} w7\n" for k in range(20))
    for name, header in (("RTE", "label\tsentence1\tsentence2\n"), ("mine", "score\tpremise\thypothesis\n")):
        (tmp_path / "glue" / name).mkdir(parents=True)
        for part in ("train", "dev"):
            (tmp_path / "glue" / name / f"{part}.tsv").write_text(header + lines)
    asked = [{"id": "1", "question": "w1?", "answers": [{"text": "w5", "answer_start": 3}]}]
    passages = {"data": [{"paragraphs": [{"context": "w3 w5 w9.", "qas": asked}]}]}
    (tmp_path / "squad").mkdir()
    for part in ("train", "dev"):
        (tmp_path / "squad" / f"{part}.json").write_text(json.dumps(passages))
    return tmp_path


def run(*words: object) -> str:
    done = CliRunner().invoke(cli, ["evaluate", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def figures(folder: Path) -> Any:
    return json.loads((folder / "evaluation.json").read_text())["tasks"]


def test_tasks_run_together_and_fill_the_card(checkpoint: Path, data: Path, tmp_path: Path) -> None:
    words = ["--task", "glue,squad", "--glue-data", data / "glue", "--squad-data", data / "squad"]
    shown = run(checkpoint, *words, "--output", tmp_path / "out", *QUICK)
    for part in ("Fine-tuning (GLUE format)", "RTE", "mine", "average", "Questions", "exact"):
        assert part in shown
    results = figures(tmp_path / "out")
    assert list(results) == ["glue", "squad"]
    assert results["glue"]["average"] == np.mean([task["score"] for task in results["glue"]["tasks"].values()])
    assert [len(task["runs"]) for task in results["glue"]["tasks"].values()] == [2, 2]
    card = (checkpoint / "README.md").read_text()
    assert card.count(BEGIN) == card.count(END) == 1
    assert "| RTE |" in card
    assert "up to date" in run(checkpoint, *words, "--output", tmp_path / "out", *QUICK)
    again = run(checkpoint, *words, "--output", tmp_path / "again", *QUICK)
    assert "RTE" in again
    assert figures(tmp_path / "again") == results  # to the bit
    assert (checkpoint / "README.md").read_text() == card


def test_the_folder_of_a_single_task_is_data(checkpoint: Path, data: Path, tmp_path: Path) -> None:
    only = ["--glue-tasks", "rte", "--train-examples", "10", "--layer-decay", "0.8", "--seed", "5"]
    run(checkpoint, "--task", "glue", "--data", data / "glue", "--output", tmp_path / "out", *only, *QUICK)
    task = figures(tmp_path / "out")["glue"]["tasks"]["RTE"]
    assert task["examples"]["train"] == 10
    assert [run["seed"] for run in task["runs"]] == [5, 6]
    assert (task["tuning"]["layer_decay"], task["tuning"]["learning_rate"]) == (0.8, 3e-5)


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["--task", "glue"], errors.InputMissing, "--glue-data: the task glue needs a folder; name it"),
        (["--task", "glue,squad", "--data", "squad"], errors.InputMissing, "of its own beside that of squad"),
        (["--task", "glue", "--data", "glue", "--glue-tasks", "QQP"], errors.RecipeInvalid, "no task 'QQP' in"),
        (["--task", "squad", "--data", "glue"], errors.InputMissing, "0 files train"),
        (["--task", "cloze"], errors.RecipeInvalid, "'cloze', which is none of mlm, blimp, glue, squad"),
        (["--task", "blimp"], errors.InputMissing, "no BLiMP data is named"),
        (["--task", "mlm"], errors.InputMissing, "needs instances with a held-out part"),
    ],
)
def test_mistakes_are_one_line(
    checkpoint: Path, data: Path, tmp_path: Path, words: list[str], error: type[Exception], message: str
) -> None:
    given = [str(data / word) if word in ("glue", "squad") and before == "--data" else word
             for before, word in zip(["", *words], words, strict=False)]  # fmt: skip
    with pytest.raises(error, match="(?s)" + message.replace("(", r"\(")) as raised:
        run(checkpoint, *given, "--output", tmp_path / "out")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.InputMissing, match=r"^[^\n]*nope: no such folder; check the path$"):
        run(tmp_path / "nope", "--task", "squad")
    with pytest.raises(errors.InputMissing, match="no model in it"):
        run(tmp_path, "--task", "squad")


def test_weights_may_be_in_a_pickle_or_in_shards(checkpoint: Path, data: Path, tmp_path: Path) -> None:
    words = ["--task", "squad", "--data", data / "squad", *QUICK]
    run(checkpoint, *words, "--output", tmp_path / "safe")
    stored = load_file(checkpoint / "model.safetensors")
    (checkpoint / "model.safetensors").unlink()
    with pytest.raises(errors.InputMissing, match=r"no model\.safetensors and no pytorch_model.bin"):
        run(checkpoint, *words, "--output", tmp_path / "none")
    torch.save(stored, checkpoint / "pytorch_model.bin")
    run(checkpoint, *words, "--output", tmp_path / "pickled")
    (checkpoint / "pytorch_model.bin").unlink()
    names, parts = sorted(stored), {}
    for number in range(2):
        save_file({name: stored[name] for name in names[number::2]}, checkpoint / f"part-{number}.safetensors")
        parts |= dict.fromkeys(names[number::2], f"part-{number}.safetensors")
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps({"weight_map": parts}))
    run(checkpoint, *words, "--output", tmp_path / "parts")
    assert figures(tmp_path / "safe") == figures(tmp_path / "pickled") == figures(tmp_path / "parts")


def test_help_shows_examples(checkpoint: Path) -> None:
    shown = run("--help")
    for part in ("--task glue", "--layer-decay", "RoBERTa", "--pairs 0", "evaluation.json"):
        assert part in shown


def test_a_card_keeps_other_tasks_and_the_text_around(tmp_path: Path, checkpoint: Path) -> None:
    card = checkpoint / "README.md"
    before = card.read_text()
    update_card(str(checkpoint), {"tasks": {"mlm": {"loss": 2.5, "unigram_loss": 7.0}}})
    card.write_text(card.read_text() + "\n## Added by hand\n")
    blimp = {"pairs": 60, "accuracy": 0.6, "ties": 0.0, "phenomena": {"binding": 0.6}, "paradigms": {"a": 0.6}}
    for accuracy in (0.5, 0.75):
        update_card(str(checkpoint), {"tasks": {"blimp": blimp | {"accuracy": accuracy, "word_l2r": blimp}}})
    text = card.read_text()
    assert text.startswith(before.rstrip())
    assert (text.count("### Held-out MLM"), text.count("### Minimal pairs"), text.count("75.0")) == (1, 1, 1)
    assert "50.0" not in text
    assert text.rstrip().endswith("## Added by hand")
    (checkpoint / "digests.json").write_text("{}")
    update_card(str(checkpoint), {"tasks": {"mlm": {"loss": 1.0}}})
    assert card.read_text() == text


def test_the_loss_is_shown_beside_the_unigram_loss() -> None:
    group = {"longest": 16, "instances": 2, "masked": 5, "loss": 3.0, "unigram_loss": 6.5, "accuracy": 0.1}
    total = {"below_unigram": 4.5, "loss": 2.5, "masked": 5, "unigram_loss": 7.0}  # sorted, as in the file
    first, second = tables({"mlm": total | {"by_length": [group]}})
    assert [row[0] for row in first.rows][:3] == ["loss", "unigram loss", "below unigram"]
    assert second.rows == [["up to 16", "2", "5", "3", "6.5", "0.1"]]
