"""The figures of an evaluation as tables: for a terminal, the HTML report and the model card alike.

Comes in: the tasks of evaluation.json. Goes out: titles, columns and rows of text. Next to each figure stands what it
has to be compared with: the unigram line, chance, the most frequent class, the spread over seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from corpusforge.report.plain import number, visible, words


class Table(NamedTuple):
    """Text in columns; the first column holds names."""

    title: str
    columns: list[str]
    rows: list[list[str]]


def tables(tasks: Mapping[str, Any]) -> list[Table]:
    """Tables of every task that is known here.

    >>> for table in tables({"mlm": {"loss": 2.5, "unigram_loss": 7.0, "masked": 10}}):
    ...     print(table.title, table.rows)
    Held-out MLM [['loss', '2.5'], ['unigram loss', '7'], ['masked', '10']]
    """
    known: dict[str, Callable[[Mapping[str, Any]], list[Table]]]
    known = {"mlm": _mlm, "blimp": _blimp, "glue": _glue, "squad": _squad}
    return [
        table for task, make in known.items() if isinstance(tasks.get(task), Mapping) for table in make(tasks[task])
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
"""Figures in the order of what is looked at; those that are not named here come behind."""


def glue_place(name: str) -> int:
    """Where a task of GLUE stands in a table; tasks of one's own behind them."""
    return GLUE.index(name) if name in GLUE else len(GLUE)


def _numbers(figures: Mapping[str, Any], first: tuple[str, ...], leave_out: tuple[str, ...] = ()) -> dict[str, float]:
    names = [*(name for name in first if name in figures), *(name for name in figures if name not in first)]
    return {k: figures[k] for k in names if isinstance(figures[k], int | float) and k not in leave_out}


def _mlm(figures: Mapping[str, Any]) -> list[Table]:
    found = [Table("Held-out MLM", ["", "value"], [[words(k), number(v)] for k, v in _numbers(figures, MLM).items()])]
    groups = figures.get("by_length", [])
    if groups:
        keys = ("instances", "masked", "loss", "unigram_loss", "accuracy")
        rows = [[f"up to {g['longest']}", *(number(g[k]) if k in g else "" for k in keys)] for g in groups]
        found.append(Table("Held-out MLM by length", ["tokens", *map(words, keys)], rows))
    return found


def _blimp(figures: Mapping[str, Any]) -> list[Table]:
    forms = [figures, figures["word_l2r"]] if "word_l2r" in figures else [figures]
    if "accuracy" not in figures:
        return []
    rows = [[f"all {len(figures.get('paradigms', []))} paradigms", *(percent(form["accuracy"]) for form in forms)]]
    names = figures.get("phenomena", {})
    rows += [[visible(words(name)), *(percent(form["phenomena"][name]) for form in forms)] for name in names]
    if "ties" in figures:
        rows.append(["(pairs that tie, counted half)", *(percent(form["ties"]) for form in forms)])
    title = f"Minimal pairs (BLiMP), {number(figures.get('pairs', 0))} pairs, % right; chance is 50"
    return [Table(title, ["", "PLL", "PLL-word-l2r"][: 1 + len(forms)], rows)]


def _glue(figures: Mapping[str, Any]) -> list[Table]:
    rows = []
    tasks = figures.get("tasks", {})
    for name in sorted(tasks, key=glue_place):
        task = tasks[name]
        several = len(task["main"]) > 1  # one alone is the score
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
