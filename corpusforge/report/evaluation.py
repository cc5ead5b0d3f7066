"""The figures of evaluations as tables: for a terminal, the HTML report and the model card.

Each figure is shown with its reference: the unigram loss, chance, the most frequent class, the spread over seeds. A
comparison of checkpoints merges the folders of a checkpoint (for a task that is in several, the last one counts); a
missing figure stays empty.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from corpusforge import errors
from corpusforge.report.gather import Run, gather
from corpusforge.report.plain import number, visible, words
from corpusforge.report.tables import columns


class Table(NamedTuple):
    """Text in columns; the first column holds names."""

    title: str
    columns: list[str]
    rows: list[list[str]]


def tables(tasks: Mapping[str, Any]) -> list[Table]:
    """The tables of all known tasks.

    >>> for table in tables({"mlm": {"loss": 2.5, "unigram_loss": 7.0, "masked": 10}}):
    ...     print(table.title, table.rows)
    Held-out MLM [['loss', '2.5'], ['unigram loss', '7'], ['masked', '10']]
    """
    makers: dict[str, Callable[[Mapping[str, Any]], list[Table]]]
    makers = {"mlm": _mlm, "blimp": _blimp, "glue": _glue, "squad": _squad}
    return [
        table for task, make in makers.items() if isinstance(tasks.get(task), Mapping) for table in make(tasks[task])
    ]


def percent(share: float) -> str:
    """A share as papers print it.

    >>> percent(0.6954)
    '69.5'
    """
    return f"{100 * share:.1f}"


GLUE = ("CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI", "QNLI", "RTE", "WNLI")
MLM = ("loss", "unigram_loss", "below_unigram", "accuracy", "perplexity", "masked", "instances")
SQUAD = ("f1", "lowest", "highest", "exact", "f1_answerable", "exact_answerable", "no_answer")
"""Figures in order of importance; figures not listed here follow."""


def _glue_position(name: str) -> int:
    """The position of a GLUE task in a table; tasks of other names follow."""
    return GLUE.index(name) if name in GLUE else len(GLUE)


def _numbers(figures: Mapping[str, Any], first: tuple[str, ...], leave_out: tuple[str, ...] = ()) -> dict[str, float]:
    names = [*(name for name in first if name in figures), *(name for name in figures if name not in first)]
    return {k: figures[k] for k in names if isinstance(figures[k], int | float) and k not in leave_out}


def _mlm(figures: Mapping[str, Any]) -> list[Table]:
    shown = [Table("Held-out MLM", ["", "value"], [[words(k), number(v)] for k, v in _numbers(figures, MLM).items()])]
    groups = figures.get("by_length", [])
    if groups:
        keys = ("instances", "masked", "loss", "unigram_loss", "accuracy")
        rows = [[f"up to {g['longest']}", *(number(g[k]) if k in g else "" for k in keys)] for g in groups]
        shown.append(Table("Held-out MLM by length", ["tokens", *map(words, keys)], rows))
    return shown


def _blimp(figures: Mapping[str, Any]) -> list[Table]:
    forms = [figures, figures["word_l2r"]] if "word_l2r" in figures else [figures]
    if "accuracy" not in figures:
        return []
    rows = [[f"all {len(figures.get('paradigms', []))} paradigms", *(percent(form["accuracy"]) for form in forms)]]
    names = figures.get("phenomena", {})
    rows += [[visible(words(name)), *(percent(form["phenomena"][name]) for form in forms)] for name in names]
    if "ties" in figures:
        rows.append(["(ties, each counted as half)", *(percent(form["ties"]) for form in forms)])
    title = f"Minimal pairs (BLiMP), {number(figures.get('pairs', 0))} pairs, % correct; chance is 50"
    return [Table(title, ["", "PLL", "PLL-word-l2r"][: 1 + len(forms)], rows)]


def _glue(figures: Mapping[str, Any]) -> list[Table]:
    rows = []
    tasks = figures.get("tasks", {})
    for name in sorted(tasks, key=_glue_position):
        task = tasks[name]
        several = len(task["main"]) > 1  # a single one is the score
        main = ", ".join(words(figure) + (f" {percent(task[figure])}" if several else "") for figure in task["main"])
        spread = [percent(task[key]) for key in ("score", "lowest", "highest")]
        majority = percent(task["majority"]) if "majority" in task else ""
        counts = [number(task["examples"]["train"]), str(len(task["runs"]))]
        rows.append([visible(name), *spread, main, majority, *counts])
    rows.append(["average", percent(figures["average"]), *[""] * 6])
    columns = ["task", "median", "lowest", "highest", "figures", "majority", "trained on", "seeds"]
    return [Table("Fine-tuning (GLUE format), median over seeds", columns, rows)]


def _squad(figures: Mapping[str, Any]) -> list[Table]:
    hidden = ("version", "misplaced", "score")
    rows = [
        [words(k), number(v) if k.endswith("threshold") else percent(v)]
        for k, v in _numbers(figures, SQUAD, hidden).items()
    ]
    runs = len(figures.get("runs", []))
    title = f"Questions (SQuAD {figures.get('version', 1)} format), median of {runs} seed{'s' if runs != 1 else ''}"
    return [Table(title, ["", "value"], rows)]


FINE_TUNING = ("epochs", "batch", "learning_rate", "layer_decay", "seeds", "max_length", "train_examples")
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "mlm": (),
    "blimp": ("blimp_pairs",),
    "glue": FINE_TUNING,
    "squad": (*FINE_TUNING, "squad_threshold"),
}
"""Settings of [evaluate] on which the figures of a task depend."""

UPSTREAM = {"mlm": "instances", "blimp": "blimp", "glue": "glue", "squad": "squad"}
"""The name of a task's data in ``upstream`` of a manifest."""


def show_side_by_side(paths: Sequence[str]) -> list[RenderableType]:
    """A table of checkpoints, and a line for everything that was not the same for all.

    Raises `errors.InputMissing` if a folder holds no evaluation.
    """
    tasks: dict[str, dict[str, Any]] = {}
    conditions: dict[str, dict[str, None]] = {}
    for path in paths:
        run = gather(path)
        if "tasks" not in run.evaluation:
            mend = "name folders written by corpusforge evaluate, or evaluated runs"
            raise errors.InputMissing(path, "holds no evaluation", mend)
        tasks.setdefault(str(run.evaluation.get("checkpoint", path)), {}).update(run.evaluation["tasks"])
        for key, value in _conditions(run).items():
            conditions.setdefault(key, {})[value] = None
    shown: list[RenderableType] = [_table(short(list(tasks)), [figures(results) for results in tasks.values()])]
    for key, values in conditions.items():
        if len(values) > 1:
            difference = "other data" if key.endswith(" data") else ", ".join(values)
            shown.append(Text(f"not the same for all: {key.removesuffix(' data')}: {difference}", "bold red"))
    return shown


def _table(checkpoints: Sequence[str], results: Sequence[Mapping[str, str]]) -> RenderableType:
    """A row per checkpoint; if there are more figures than checkpoints a row per figure, so that it fits a terminal."""
    names = sorted(dict.fromkeys(name for row in results for name in row), key=_position)
    rows = [[row.get(name, "") for name in names] for row in results]
    if len(names) <= len(checkpoints):
        return columns("Evaluations", ["", *names], [[name, *row] for name, row in zip(checkpoints, rows, strict=True)])
    transposed = [[name, *(row[at] for row in rows)] for at, name in enumerate(names)]
    return columns("Evaluations", ["", *checkpoints], transposed)


def figures(tasks: Mapping[str, Any]) -> dict[str, str]:
    """The main figures of each task as text; shares in percent.

    >>> figures({"mlm": {"loss": 2.5, "below_unigram": 4.5}, "squad": {"f1": 0.5, "exact": 0.25}})
    {'held-out loss': '2.5', 'below unigram': '4.5', 'SQuAD F1': '50.0', 'SQuAD exact': '25.0'}
    """
    shown: dict[str, str] = {}
    mlm, blimp, glue, squad = (tasks.get(name, {}) for name in ("mlm", "blimp", "glue", "squad"))
    for key, name in (("loss", "held-out loss"), ("below_unigram", "below unigram")):
        if key in mlm:
            shown[name] = number(mlm[key])
    for form, name in ((blimp, "BLiMP PLL"), (blimp.get("word_l2r", {}), "BLiMP PLL-word-l2r")):
        if "accuracy" in form:
            shown[name] = percent(form["accuracy"])
    if glue.get("tasks"):
        shown["GLUE average"] = percent(glue["average"])
        shown |= {f"GLUE {name}": percent(glue["tasks"][name]["score"]) for name in glue["tasks"]}
    for key, name in (("f1", "SQuAD F1"), ("exact", "SQuAD exact")):
        if key in squad:
            shown[name] = percent(squad[key])
    return shown


FIRST = ("held-out loss", "below unigram", "BLiMP PLL", "BLiMP PLL-word-l2r", "GLUE average")


def _position(figure: str) -> tuple[int, int, str]:
    """The position of a figure: losses, minimal pairs, the GLUE average, its tasks, questions."""
    if figure in FIRST:
        return FIRST.index(figure), 0, ""
    if figure.startswith("GLUE "):
        return len(FIRST), _glue_position(figure.removeprefix("GLUE ")), figure
    return len(FIRST) + 1, 0, ""  # in the order of `figures`, as sorting is stable


def _conditions(run: Run) -> dict[str, str]:
    """What the figures of a folder depend on besides the checkpoint: digests of data, and settings."""
    manifest = run.manifests.get("evaluate")
    if manifest is None:
        return {}
    settings, values = manifest.recipe.get("evaluate", {}), {}
    for task in run.evaluation["tasks"]:
        values[f"{task} data"] = manifest.upstream.get(UPSTREAM.get(task, ""), "")
        values |= {f"{task} {key}": str(settings[key]) for key in SETTINGS.get(task, ()) if key in settings}
    return values


def short(checkpoints: Sequence[str]) -> list[str]:
    """Paths without their common parent and without the trailing model/ of a run.

    >>> short(["/a/b/first/model", "/a/b/second/checkpoints/step-000010"])
    ['first', 'second/checkpoints/step-000010']
    >>> short(["/a/b/first/model"])
    ['first']
    """
    parts = [path.rstrip("/").removesuffix("/model").split("/") for path in checkpoints]
    shared = len(posixpath.commonprefix([part[:-1] for part in parts]))  # of lists: whole names
    return ["/".join(part[shared:]) for part in parts]
