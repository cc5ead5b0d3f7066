"""GLUE: a head on the pretrained encoder, all weights fine-tuned on each task, the median over several seeds reported.

A task is a folder with train.tsv and dev.tsv. The nine tasks of GLUE (Wang et al. 2019, arXiv 1804.07461, table 1) are
read in the formats of their files; any other folder needs a header with columns of known names. Columns are separated
by tabs, nothing is quoted (GLUE's files contain unpaired quotation marks), and a line with another number of columns is
left out and counted. Per task the median over seeds and the lowest and highest run are reported (RoBERTa reports the
median of five: Liu et al. 2019, section 5.1), and the mean of all tasks.
"""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from pyarrow import csv

from corpusforge import errors
from corpusforge.arrays import F64, I64
from corpusforge.evaluate import metrics
from corpusforge.evaluate.finetune import Classifier, Encoded, FineTuning, Tuning, encode, fine_tune, scores
from corpusforge.evaluate.likelihood import load_tokenizer
from corpusforge.progress import Progress
from corpusforge.trainer.model import Encoder

LENGTH = 128
"""Tokens of an example (google-research/bert, `run_classifier.py`, max_seq_length)."""
TEXTS = (
    *(("sentence1", "sentence2"), ("question1", "question2"), ("premise", "hypothesis"), ("question", "sentence")),
    *(("#1 String", "#2 String"), ("sentence",), ("text",)),
)
LABELS = ("label", "gold_label", "is_duplicate", "Quality", "score")
"""Columns of a folder that is not one of GLUE's: the first of `TEXTS` and of `LABELS` that its files have."""

REGRESSION = ("pearson", "spearman")
"""Metrics of a task that predicts numbers."""


@dataclass(frozen=True)
class Task:
    """What a task's files hold. ``main``: the metrics whose mean is its score; ``columns``: if there is no header;
    ``dev``: files by the suffix of their metrics' names (MNLI has two)."""

    texts: tuple[str, ...] = ()
    label: str = ""
    main: tuple[str, ...] = ("accuracy",)
    columns: tuple[str, ...] = ()
    dev: tuple[tuple[str, str], ...] = (("", "dev.tsv"),)


_MNLI_DEV = (("", "dev_matched.tsv"), ("_mismatched", "dev_mismatched.tsv"))
GLUE = {
    "CoLA": Task(("sentence",), "label", ("matthews",), ("source", "label", "star", "sentence")),
    "SST-2": Task(("sentence",), "label"),
    "MRPC": Task(("#1 String", "#2 String"), "Quality", ("accuracy", "f1")),
    "STS-B": Task(("sentence1", "sentence2"), "score", REGRESSION),
    "QQP": Task(("question1", "question2"), "is_duplicate", ("accuracy", "f1")),
    "MNLI": Task(("sentence1", "sentence2"), "gold_label", ("accuracy", "accuracy_mismatched"), (), _MNLI_DEV),
    "QNLI": Task(("question", "sentence"), "label"),
    "RTE": Task(("sentence1", "sentence2"), "label"),
    "WNLI": Task(("sentence1", "sentence2"), "label"),
}
"""Metrics of each task as in table 1; the leaderboard's score of a task with two is their mean."""


@dataclass(frozen=True)
class Part:
    """Examples of one file. ``labels``: class numbers, or numbers to predict; ``left_out``: malformed lines."""

    texts: tuple[list[str], ...]
    labels: I64 | F64
    left_out: int

    def __len__(self) -> int:
        return len(self.labels)

    def pick(self, rows: I64) -> Part:
        """The examples ``rows``."""
        texts = tuple([column[row] for row in rows.tolist()] for column in self.texts)
        return Part(texts, self.labels[rows], self.left_out)


@dataclass(frozen=True)
class Examples:
    """A task's data. ``classes``: label names by number, empty for regression; ``dev``: by name."""

    name: str
    main: tuple[str, ...]
    classes: tuple[str, ...]
    train: Part
    dev: dict[str, Part]


def find_tasks(folder: str, only: Sequence[str] = ()) -> dict[str, Path]:
    """Folders of tasks by name, in GLUE's order. ``only``: these names, ignoring case and hyphens; empty: all.

    Raises `errors.InputMissing`, `errors.RecipeInvalid` for a task that is not there.
    """
    root = Path(folder)
    if not folder or not root.is_dir():
        what = f"no such folder: {folder}" if folder else "no folder is named"
        raise errors.InputMissing("GLUE data", what, "name a folder of task folders, or one of them")
    known = {_plain(name): name for name in GLUE}
    folders = [root] if (root / "train.tsv").is_file() else sorted(p for p in root.iterdir() if p.is_dir())
    tasks = {known.get(_plain(path.name), path.name): path for path in folders if (path / "train.tsv").is_file()}
    if not tasks:
        raise errors.InputMissing(folder, "no train.tsv in it or in a folder of it", "name a folder in GLUE's format")
    ordered = {name: tasks[name] for name in (*(n for n in GLUE if n in tasks), *(n for n in tasks if n not in GLUE))}
    by_plain = {_plain(name): name for name in ordered}
    unknown = [name for name in only if _plain(name) not in by_plain]
    if unknown:
        raise errors.RecipeInvalid(
            "evaluate.glue_tasks", f"no task {unknown[0]!r} in {folder}", f"tasks in it: {', '.join(ordered)}"
        )
    wanted = {by_plain[_plain(name)] for name in only} or set(ordered)
    return {name: path for name, path in ordered.items() if name in wanted}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def read_task(name: str, folder: Path) -> Examples:
    """The examples of one task.

    Raises `errors.InputMissing` for a missing file, `errors.InputUnreadable` for one that is not in the format.
    """
    task = GLUE.get(name, Task())
    tables = {file: _read(folder / file, task.columns) for file in ("train.tsv", *(file for _, file in task.dev))}
    first = tables["train.tsv"][0]
    texts = task.texts or _choose(TEXTS, first, folder / "train.tsv", "text")
    label = task.label or _choose([(one,) for one in LABELS], first, folder / "train.tsv", "label")[0]
    main, classes = task.main, tuple[str, ...]()
    if task.main == REGRESSION or (not task.label and label == "score"):
        main = REGRESSION
    else:
        classes = _classes(_column(first, label, folder / "train.tsv"))
        if len(classes) < 2:
            what = f"all examples have the label {classes[0]!r}"
            raise errors.InputUnreadable(str(folder / "train.tsv"), what, "name a file with two labels or more")
    parts = {
        file: _part(table, left_out, texts, label, classes, folder / file) for file, (table, left_out) in tables.items()
    }
    return Examples(name, main, classes, parts["train.tsv"], {dev: parts[file] for dev, file in task.dev})


def _read(path: Path, columns: tuple[str, ...]) -> tuple[pa.Table, int]:
    if not path.is_file():
        raise errors.InputMissing(
            str(path), "no such file", "a task needs train.tsv and dev.tsv (MNLI: dev_matched.tsv too)"
        )
    left_out = 0

    def skip(_: object) -> str:
        nonlocal left_out
        left_out += 1
        return "skip"

    names = columns or tuple(path.open(encoding="utf-8-sig", errors="replace").readline().rstrip("\r\n").split("\t"))
    try:
        table = csv.read_csv(
            path,
            csv.ReadOptions(
                column_names=list(names), skip_rows=0 if columns else 1, block_size=1 << 26, use_threads=False
            ),
            csv.ParseOptions(delimiter="\t", quote_char=False, invalid_row_handler=skip, ignore_empty_lines=True),
            csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
        )
    except (pa.ArrowInvalid, OSError) as error:
        what = str(error).splitlines()[0]
        raise errors.InputUnreadable(str(path), f"no table ({what})", "columns separated by tabs, in UTF-8") from None
    if not table.num_rows:
        raise errors.InputUnreadable(str(path), "no example in it", "one example per line, columns separated by tabs")
    return table, left_out


def _choose(candidates: Sequence[tuple[str, ...]], table: pa.Table, path: Path, kind: str) -> tuple[str, ...]:
    for names in candidates:
        if set(names) <= set(table.column_names):
            return names
    wanted = "; ".join(" and ".join(names) for names in candidates)
    what = f"no {kind} column among {', '.join(table.column_names)}"
    raise errors.InputUnreadable(str(path), what, f"give the file a header with one of: {wanted}")


def _column(table: pa.Table, name: str, path: Path) -> pa.ChunkedArray:
    if name not in table.column_names:
        mend = "a file without labels cannot be evaluated on" if name in LABELS else "give the file this column"
        raise errors.InputUnreadable(str(path), f"no column '{name}' among {', '.join(table.column_names)}", mend)
    return table[name]


def _classes(labels: pa.ChunkedArray) -> tuple[str, ...]:
    """Label names in order of their class numbers: numerically if they are numbers, else alphabetically."""
    names = pc.unique(labels).to_pylist()
    are_integers = all(re.fullmatch(r"-?\d+", name) for name in names)
    return tuple(sorted(names, key=int) if are_integers else sorted(names))


def _part(
    table: pa.Table, left_out: int, texts: tuple[str, ...], label: str, classes: tuple[str, ...], path: Path
) -> Part:
    values = _column(table, label, path).combine_chunks()
    if classes:
        numbers = pc.index_in(values, pa.array(classes))
        wrong = pc.is_null(numbers)
    else:
        wrong = pc.invert(pc.match_substring_regex(values, r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"))
        numbers = None if pc.any(wrong).as_py() else pc.cast(pc.utf8_trim_whitespace(values), pa.float64())
    if numbers is None or pc.any(wrong).as_py():
        row = wrong.to_pylist().index(True)
        what = f"example {row + 1}: label {values[row].as_py()!r} is " + (
            "none of train.tsv's" if classes else "not a number"
        )
        raise errors.InputUnreadable(str(path), what, "name a file with labels")
    columns = tuple(_column(table, name, path).to_pylist() for name in texts)
    return Part(columns, numbers.to_numpy(zero_copy_only=False).astype(np.int64 if classes else np.float64), left_out)


def glue(
    model: Encoder,
    model_folder: Path,
    folders: dict[str, Path],
    how: FineTuning,
    *,
    batch_tokens: int,
    device: torch.device,
    dtype: torch.dtype | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Metrics of each task of ``folders`` (see `find_tasks`) and the ``average`` score."""
    tokenizer = load_tokenizer(model_folder)
    longest = min(how.settings.max_length or LENGTH, model.shape.longest)
    tuning = how.tuning(model.shape.family, "glue")
    results = {}
    for name, folder in folders.items():
        examples = read_task(name, folder)
        rows = how.sample(len(examples.train), name)
        examples = dataclasses.replace(examples, train=examples.train.pick(rows))
        inputs = {"train": encode(tokenizer, examples.train.texts, longest)}
        inputs |= {f"dev{suffix}": encode(tokenizer, part.texts, longest) for suffix, part in examples.dev.items()}
        runs = []
        for seed in how.run_seeds():
            tuned = Classifier(copy.deepcopy(model), max(len(examples.classes), 1))
            targets = torch.from_numpy(
                examples.train.labels if examples.classes else examples.train.labels.astype("f4")
            )
            label = f"{name}, seed {seed}"
            fine_tune(
                tuned, inputs["train"], targets, tuning, seed=seed, name=label,
                micro_tokens=batch_tokens, device=device, dtype=dtype, progress=progress,
            )  # fmt: skip
            runs.append({"seed": seed, **_test(tuned, examples, inputs, batch_tokens, dtype)})
        results[name] = _summary(examples, inputs, runs, tuning)
    return {"average": float(np.mean([task["score"] for task in results.values()])), "tasks": results}


def _test(
    tuned: Classifier, examples: Examples, inputs: dict[str, Encoded], batch_tokens: int, dtype: torch.dtype | None
) -> dict[str, float]:
    """The metrics of one run on the dev files, and ``score``, the mean of the task's main metrics."""
    values: dict[str, float] = {}
    for suffix, part in examples.dev.items():
        predicted = np.empty((len(part), max(len(examples.classes), 1)), np.float64)
        for rows, batch_scores in scores(tuned, inputs[f"dev{suffix}"], batch_tokens, dtype):
            predicted[rows] = batch_scores.numpy()
        if examples.classes:
            figures = metrics.classification(predicted.argmax(1), part.labels.astype(np.int64), len(examples.classes))
        else:
            figures = metrics.regression(predicted[:, 0], part.labels.astype(np.float64))
        values |= {f"{figure}{suffix}": value for figure, value in figures.items()}
    return {"score": float(np.mean([values[name] for name in examples.main]))} | values


def _summary(
    examples: Examples, inputs: dict[str, Encoded], runs: list[dict[str, float]], how: Tuning
) -> dict[str, Any]:
    """Medians over runs, the spread of the score, and the data and settings they are based on."""
    baseline: dict[str, Any] = {"majority": majority(examples)} if examples.classes else {}
    parts = {"train": examples.train, **{f"dev{suffix}": part for suffix, part in examples.dev.items()}}
    return (
        metrics.medians(runs)
        | baseline
        | {
            "main": list(examples.main),
            "classes": list(examples.classes),
            "examples": {name: len(part) for name, part in parts.items()},
            "truncated": {name: encoded.truncated for name, encoded in inputs.items()},
            "left_out": sum(part.left_out for part in parts.values()),
            "runs": runs,
            "tuning": dataclasses.asdict(how),
        }
    )


def majority(examples: Examples) -> float:
    """Accuracy on the first dev file of always predicting the most frequent class of the training examples."""
    most = np.bincount(examples.train.labels.astype(np.int64)).argmax()
    return float((next(iter(examples.dev.values())).labels == most).mean())
