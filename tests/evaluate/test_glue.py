"""GLUE's files: each in its own format, other folders, errors of bad files; a task end to end."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from corpusforge import errors
from corpusforge.evaluate.finetune import FineTuning
from corpusforge.evaluate.glue import GLUE, Examples, Part, find_tasks, glue, read_task
from corpusforge.sections import Evaluate
from corpusforge.trainer.hf_folder import load_model
from tests.evaluate.tiny_models import write_checkpoint

FILES = {
    "CoLA": ("", 'gj04\t1\t\tShe said "yes.\ngj04\t0\t*\tYes "she said.\n'),
    "SST-2": ("sentence\tlabel\n", "good film \t1\nbad film \t0\n"),
    "MRPC": ("\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n", "1\t7\t8\tone\tother\n0\t7\t8\ta\tb\n"),
    "STS-B": ("index\tgenre\tsentence1\tsentence2\tscore\n", "0\tx\ta\tb\t5.000\n1\tx\tc\td\t0.25\n"),
    "QQP": ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n", "1\t2\t3\ta?\tb?\t1\n4\t5\n6\t7\t8\tc\td\t0\n"),
    "QNLI": ("index\tquestion\tsentence\tlabel\n", "0\tq?\ta\tentailment\n1\tr?\tb\tnot_entailment\n"),
    "RTE": ("index\tsentence1\tsentence2\tlabel\r\n", "0\ta\tb\tnot_entailment\r\n1\tc\td\tentailment\r\n"),
    "MNLI": (
        "index\tsentence1\tsentence2\tlabel1\tgold_label\n",
        "0\ta\tb\tneutral\tneutral\n1\tc\td\tx\tentailment\n2\te\tf\tx\tcontradiction\n",
    ),
}


def write(folder: Path, header: str, lines: str, dev: str = "dev.tsv") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train.tsv", dev):
        (folder / name).write_text(header + lines, "utf-8", newline="")
    return folder


@pytest.mark.parametrize("name", FILES)
def test_each_task_of_glue_is_read_as_its_files_are(tmp_path: Path, name: str) -> None:
    header, lines = FILES[name]
    folder = write(tmp_path / name, header, lines, "dev_matched.tsv" if name == "MNLI" else "dev.tsv")
    if name == "MNLI":
        write(folder, header, lines, "dev_mismatched.tsv")
    found = read_task(name, folder)
    texts = [column[0] for column in found.train.texts]
    expected = {"CoLA": ['She said "yes.'], "SST-2": ["good film "], "MRPC": ["one", "other"], "QQP": ["a?", "b?"]}
    assert texts == expected.get(name, ["q?", "a"] if name == "QNLI" else ["a", "b"])
    labels = {"STS-B": [5.0, 0.25], "QNLI": [0, 1], "MNLI": [2, 1, 0]}
    assert found.train.labels.tolist() == labels.get(name, [1, 0])
    assert found.train.left_out == (1 if name == "QQP" else 0)
    assert list(found.dev) == (["", "_mismatched"] if name == "MNLI" else [""])
    main = {"CoLA": ("matthews",), "MRPC": ("accuracy", "f1"), "QQP": ("accuracy", "f1")}
    main |= {"STS-B": ("pearson", "spearman"), "MNLI": ("accuracy", "accuracy_mismatched")}
    assert found.main == main.get(name, ("accuracy",))  # Wang et al. 2019, table 1
    assert found.classes == {"STS-B": (), "MNLI": ("contradiction", "entailment", "neutral")}.get(name, found.classes)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("STS-B", {"pearson": np.corrcoef([1, 2, 4, 3], [0, 2.5, 5, 1])[0, 1], "spearman": 0.8}),
        ("MRPC", {"accuracy": 0.5, "f1": 0.5, "matthews": 0.0}),
        ("CoLA", {"accuracy": 0.5, "f1": 0.5, "matthews": 0.0}),
    ],
)
def test_figures_are_of_the_scores_of_each_example(
    monkeypatch: pytest.MonkeyPatch, name: str, expected: dict[str, float]
) -> None:
    """Scores come in batches of any order; a task's score is the mean of its main figures."""
    module = importlib.import_module("corpusforge.evaluate.glue")
    is_regression = name == "STS-B"
    labels = np.array([0.0, 2.5, 5.0, 1.0]) if is_regression else np.array([0, 1, 1, 0])
    said = torch.tensor([[1.0], [2.0], [4.0], [3.0]]) if is_regression else torch.eye(2)[[0, 1, 0, 1]]
    batches = [(rows, said[torch.from_numpy(rows)]) for rows in (np.array([2, 0]), np.array([3, 1]))]
    monkeypatch.setattr(module, "scores", lambda *_: batches)
    part = Part((["a"] * 4,), labels, 0)
    examples = Examples(name, GLUE[name].main, () if is_regression else ("0", "1"), part, {"": part})
    found = module._test(None, examples, {"dev": None}, 99, None)
    assert {key: found[key] for key in expected} == pytest.approx(expected)
    assert found["score"] == pytest.approx(np.mean([expected[key] for key in GLUE[name].main]))


def test_a_folder_of_ones_own_is_read_by_its_header(tmp_path: Path) -> None:
    topics = read_task("topics", write(tmp_path / "topics", "id\tlabel\ttext\n", "1\tsport\ta b\n2\tart\tc\n"))
    assert (topics.classes, topics.train.texts[0]) == (("art", "sport"), ["a b", "c"])
    alike = read_task("alike", write(tmp_path / "alike", "premise\thypothesis\tscore\n", "a\tb\t1\nc\td\t2.5\n"))
    assert (alike.main, alike.train.labels.tolist()) == (("pearson", "spearman"), [1.0, 2.5])
    grades = read_task("grades", write(tmp_path / "grades", "text\tlabel\n", "a\t10\nb\t9\n"))
    assert grades.classes == ("9", "10")


def test_folders_are_found_in_any_spelling(tmp_path: Path) -> None:
    for name in ("rte", "sst2", "own"):
        write(tmp_path / name, "sentence\tlabel\n", "a\t1\nb\t0\n")
    assert list(find_tasks(str(tmp_path))) == ["SST-2", "RTE", "own"]
    assert list(find_tasks(str(tmp_path), ["SST2"])) == ["SST-2"]
    assert list(find_tasks(str(tmp_path / "own"))) == ["own"]


def test_bad_folders_are_one_clear_error(tmp_path: Path) -> None:
    header = "sentence\tlabel\n"
    with pytest.raises(errors.InputMissing, match="no folder is named"):
        find_tasks("")
    with pytest.raises(errors.InputMissing, match=r"no train\.tsv"):
        find_tasks(str(tmp_path))
    write(tmp_path / "RTE", header, "a\t1\nb\t0\n")
    with pytest.raises(errors.RecipeInvalid, match=r"no task 'ColA' in .*; tasks in it: RTE"):
        find_tasks(str(tmp_path), ["ColA"])
    with pytest.raises(errors.InputUnreadable, match=r"train\.tsv: no column 'sentence1' among sentence, label"):
        read_task("RTE", tmp_path / "RTE")
    with pytest.raises(errors.InputUnreadable, match="no text column among words, label"):
        read_task("own", write(tmp_path / "own", "words\tlabel\n", "a\t1\n"))
    with pytest.raises(errors.InputUnreadable, match="no label column among index, sentence"):
        read_task("own", write(tmp_path / "test", "index\tsentence\n", "1\ta\n"))
    with pytest.raises(errors.InputMissing, match=r"dev\.tsv: no such file"):
        (tmp_path / "RTE/dev.tsv").unlink()
        read_task("own", tmp_path / "RTE")
    with pytest.raises(errors.InputUnreadable, match="no example"):
        read_task("own", write(tmp_path / "empty", header, ""))
    with pytest.raises(errors.InputUnreadable, match=r"train\.tsv: all examples have the label '1'"):
        read_task("own", write(tmp_path / "one", header, "a\t1\nb\t1\n"))
    folder = write(tmp_path / "labels", header, "a\t1\nb\t0\n")
    (folder / "dev.tsv").write_text(header + "a\t1\nb\tmaybe\n")
    with pytest.raises(errors.InputUnreadable, match=r"dev\.tsv: example 2: label 'maybe' is none of train\.tsv's"):
        read_task("own", folder)
    with pytest.raises(errors.InputUnreadable, match="example 1: label 'high' is not a number"):
        read_task("own", write(tmp_path / "numbers", "text\tscore\n", "a\thigh\n"))
    (folder / "dev.tsv").write_bytes(b"\xff\xfe\x00\x80\tlabel\n\xff\t1\n")
    with pytest.raises(errors.InputUnreadable, match=r"dev\.tsv"):
        read_task("own", folder)


@pytest.mark.slow
def test_a_task_end_to_end(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [f"w{1 + y} w{rng.integers(9, 99)}\t{'no' if y else 'yes'}" for y in rng.integers(0, 2, 48)]
    folders = {"own": write(tmp_path / "own", "sentence\tlabel\n", "\n".join(lines) + "\n")}
    folder = write_checkpoint(tmp_path / "made", deviation=0.1)
    wanted = FineTuning(Evaluate(epochs=16, batch=8, learning_rate=5e-3, seeds=3))
    arguments = {"batch_tokens": 4096, "device": torch.device("cpu")}
    model = load_model(folder)
    found = glue(model, folder, folders, wanted, **arguments)  # type: ignore[arg-type]
    again = glue(model, folder, folders, wanted, **arguments)  # type: ignore[arg-type]
    assert json.loads(json.dumps(found)) == again
    own = found["tasks"]["own"]
    assert found["average"] == own["score"] == own["accuracy"] > 0.9
    assert own["score"] == np.median([run["score"] for run in own["runs"]])
    assert own["lowest"] <= own["score"] <= own["highest"]
    assert [run["seed"] for run in own["runs"]] == [0, 1, 2]
    assert own["classes"] == ["no", "yes"]
    assert own["majority"] == max(np.mean([line.endswith(c) for line in lines]) for c in ("no", "yes"))
    assert own["examples"] == {"train": 48, "dev": 48}
    sample = FineTuning(Evaluate(epochs=1, batch=8, seeds=1, train_examples=10))
    small = glue(model, folder, folders, sample, **arguments)  # type: ignore[arg-type]
    assert small["tasks"]["own"]["examples"] == {"train": 10, "dev": 48}


def test_real_files_read_whole(shared_data: Path) -> None:
    found = {name: read_task(name, path) for name, path in find_tasks(str(shared_data / "eval/glue")).items()}
    sizes = {name: (len(task.train), len(task.dev[""]), len(task.classes)) for name, task in found.items()}
    assert sizes == {"CoLA": (8551, 1043, 2), "SST-2": (67349, 872, 2), "MRPC": (3667, 408, 2), "RTE": (2490, 277, 2)}
    assert sum(task.train.left_out + task.dev[""].left_out for task in found.values()) == 0
