"""Labelled examples in GLUE's format: a folder a task, with train.tsv and dev.tsv.

Comes in: a folder of such folders, or one of them. Goes out: `Examples`, columns of texts and labels. The nine tasks of
GLUE (Wang et al. 2019, arXiv 1804.07461, table 1) are read as their files are; any other folder needs a header with
columns of known names. Tabs separate, nothing is quoted (GLUE's files hold single quote marks), and a line with
another number of columns is left out and counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from corpusforge import errors
from corpusforge.arrays import F64, I64

TEXTS = (
    *(("sentence1", "sentence2"), ("question1", "question2"), ("premise", "hypothesis"), ("question", "sentence")),
    *(("#1 String", "#2 String"), ("sentence",), ("text",)),
)
LABELS = ("label", "gold_label", "is_duplicate", "Quality", "score")
"""Columns looked for in a folder that is none of GLUE's, the first pair and the first label that are there."""


REGRESSION = ("pearson", "spearman")
"""Figures of a task where numbers are predicted."""


@dataclass(frozen=True)
class Task:
    """What a task's files hold. ``main``: the figures whose mean is its score; ``columns``: where there is no header;
    ``dev``: more than one file for MNLI, by what is added to the figures' names."""

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
"""Figures of each task as in table 1; where there are two, the leaderboard's score is their mean."""


@dataclass(frozen=True)
class Part:
    """Examples of one file. ``labels``: class numbers, or numbers to predict; ``left_out``: lines of another shape."""

    texts: tuple[list[str], ...]
    labels: I64 | F64
    left_out: int

    def __len__(self) -> int:
        return len(self.labels)

    def pick(self, rows: I64) -> Part:
        """Some of the examples."""
        texts = tuple([column[row] for row in rows.tolist()] for column in self.texts)
        return Part(texts, self.labels[rows], self.left_out)


@dataclass(frozen=True)
class Examples:
    """A task's data. ``classes``: label names by number, empty where numbers are predicted; ``dev``: by name."""

    name: str
    main: tuple[str, ...]
    classes: tuple[str, ...]
    train: Part
    dev: dict[str, Part]


def find_tasks(folder: str, only: Sequence[str] = ()) -> dict[str, Path]:
    """Folders of tasks by name, in GLUE's order. ``only``: these; upper case and hyphens do not matter.

    Raises `errors.InputMissing`, `errors.RecipeInvalid` for a task that is not there.
    """
    root = Path(folder)
    if not folder or not root.is_dir():
        what = f"no such folder: {folder}" if folder else "no folder is named"
        raise errors.InputMissing("GLUE data", what, "name a folder of task folders, or one of them")
    known = {_plain(name): name for name in GLUE}
    folders = [root] if (root / "train.tsv").is_file() else sorted(p for p in root.iterdir() if p.is_dir())
    found = {known.get(_plain(path.name), path.name): path for path in folders if (path / "train.tsv").is_file()}
    if not found:
        raise errors.InputMissing(folder, "no train.tsv in it or in a folder of it", "name a folder in GLUE's format")
    ordered = {name: found[name] for name in (*(n for n in GLUE if n in found), *(n for n in found if n not in GLUE))}
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
    parts = {file: _part(table, lost, texts, label, classes, folder / file) for file, (table, lost) in tables.items()}
    return Examples(name, main, classes, parts["train.tsv"], {dev: parts[file] for dev, file in task.dev})


def _read(path: Path, columns: tuple[str, ...]) -> tuple[pa.Table, int]:
    if not path.is_file():
        raise errors.InputMissing(
            str(path), "no such file", "a task needs train.tsv and dev.tsv (MNLI: dev_matched.tsv too)"
        )
    lost = 0

    def leave_out(_: object) -> str:
        nonlocal lost
        lost += 1
        return "skip"

    names = columns or tuple(path.open(encoding="utf-8-sig", errors="replace").readline().rstrip("\r\n").split("\t"))
    try:
        table = csv.read_csv(
            path,
            csv.ReadOptions(
                column_names=list(names), skip_rows=0 if columns else 1, block_size=1 << 26, use_threads=False
            ),
            csv.ParseOptions(delimiter="\t", quote_char=False, invalid_row_handler=leave_out, ignore_empty_lines=True),
            csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
        )
    except (pa.ArrowInvalid, OSError) as error:
        what = str(error).splitlines()[0]
        raise errors.InputUnreadable(str(path), f"no table ({what})", "columns separated by tabs, in UTF-8") from None
    if not table.num_rows:
        raise errors.InputUnreadable(str(path), "no example in it", "one example a line, columns separated by tabs")
    return table, lost


def _choose(candidates: Sequence[tuple[str, ...]], table: pa.Table, path: Path, kind: str) -> tuple[str, ...]:
    for names in candidates:
        if set(names) <= set(table.column_names):
            return names
    wanted = "; ".join(" and ".join(names) for names in candidates)
    what = f"no {kind} column among {', '.join(table.column_names)}"
    raise errors.InputUnreadable(str(path), what, f"give the file a header with one of: {wanted}")


def _column(table: pa.Table, name: str, path: Path) -> pa.ChunkedArray:
    if name not in table.column_names:
        mend = "a file without labels cannot be tested on" if name in LABELS else "give the file this column"
        raise errors.InputUnreadable(str(path), f"no column '{name}' among {', '.join(table.column_names)}", mend)
    return table[name]


def _classes(labels: pa.ChunkedArray) -> tuple[str, ...]:
    """Label names in the order of their numbers: as numbers where they are numbers, else by the alphabet."""
    names = pc.unique(labels).to_pylist()
    whole = all(re.fullmatch(r"-?\d+", name) for name in names)
    return tuple(sorted(names, key=int) if whole else sorted(names))


def _part(
    table: pa.Table, left_out: int, texts: tuple[str, ...], label: str, classes: tuple[str, ...], path: Path
) -> Part:
    given = _column(table, label, path).combine_chunks()
    if classes:
        numbers = pc.index_in(given, pa.array(classes))
        wrong = pc.is_null(numbers)
    else:
        wrong = pc.invert(pc.match_substring_regex(given, r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"))
        numbers = None if pc.any(wrong).as_py() else pc.cast(pc.utf8_trim_whitespace(given), pa.float64())
    if numbers is None or pc.any(wrong).as_py():
        row = wrong.to_pylist().index(True)
        what = f"example {row + 1}: label {given[row].as_py()!r} is " + (
            "none of train.tsv's" if classes else "no number"
        )
        raise errors.InputUnreadable(str(path), what, "name a file with labels")
    columns = tuple(_column(table, name, path).to_pylist() for name in texts)
    return Part(columns, numbers.to_numpy(zero_copy_only=False).astype(np.int64 if classes else np.float64), left_out)
