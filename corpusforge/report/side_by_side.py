"""Evaluations side by side: which checkpoint is better, in one table.

Comes in: folders that evaluate wrote, or runs that hold one. Goes out: a table of checkpoints and figures, and what was
not the same for all. Decision: figures of one checkpoint lie in as many folders as tasks were asked for, so folders of
the same checkpoint are put together, of a task that is in several the last; a figure that is not there stays empty.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from corpusforge import errors
from corpusforge.report.evaluation import glue_place, percent
from corpusforge.report.gather import Found, gather
from corpusforge.report.plain import number
from corpusforge.report.tables import columns

TUNED = ("epochs", "batch", "learning_rate", "layer_decay", "seeds", "max_length", "train_examples")
ASKED: Mapping[str, tuple[str, ...]] = {
    "mlm": (),
    "blimp": ("blimp_pairs",),
    "glue": TUNED,
    "squad": (*TUNED, "squad_threshold"),
}
"""Settings of [evaluate] that figures of a task depend on."""
READ = {"mlm": "instances", "blimp": "blimp", "glue": "glue", "squad": "squad"}
"""Under which name the digest of a task's data stands in a manifest."""


def show_side_by_side(paths: Sequence[str]) -> list[RenderableType]:
    """The table. Raises `errors.InputMissing` where a folder holds no evaluation."""
    tasks: dict[str, dict[str, Any]] = {}
    asked: dict[str, dict[str, None]] = {}
    for path in paths:
        found = gather(path)
        if "tasks" not in found.evaluation:
            mend = "name folders that corpusforge evaluate wrote, or runs that were evaluated"
            raise errors.InputMissing(path, "holds no evaluation", mend)
        tasks.setdefault(str(found.evaluation.get("checkpoint", path)), {}).update(found.evaluation["tasks"])
        for key, value in _asked(found).items():
            asked.setdefault(key, {})[value] = None
    shown: list[RenderableType] = [_table(short(list(tasks)), [figures(each) for each in tasks.values()])]
    for key, values in asked.items():
        if len(values) > 1:
            said = "other data" if key.endswith(" data") else ", ".join(values)
            shown.append(Text(f"not the same for all: {key.removesuffix(' data')}: {said}", "bold red"))
    return shown


def _table(checkpoints: Sequence[str], found: Sequence[Mapping[str, str]]) -> RenderableType:
    """A row a checkpoint; where there are more figures than checkpoints a row a figure, so that a terminal holds it."""
    names = sorted(dict.fromkeys(name for row in found for name in row), key=_place)
    rows = [[row.get(name, "") for name in names] for row in found]
    if len(names) <= len(checkpoints):
        return columns("Evaluations", ["", *names], [[name, *row] for name, row in zip(checkpoints, rows, strict=True)])
    turned = [[name, *(row[at] for row in rows)] for at, name in enumerate(names)]
    return columns("Evaluations", ["", *checkpoints], turned)


def figures(tasks: Mapping[str, Any]) -> dict[str, str]:
    """What a task is judged by, as text; shares in percent.

    >>> figures({"mlm": {"loss": 2.5, "below_unigram": 4.5}, "squad": {"f1": 0.5, "exact": 0.25}})
    {'held-out loss': '2.5', 'below unigram': '4.5', 'SQuAD F1': '50.0', 'SQuAD exact': '25.0'}
    """
    found: dict[str, str] = {}
    mlm, blimp, glue, squad = (tasks.get(name, {}) for name in ("mlm", "blimp", "glue", "squad"))
    for key, name in (("loss", "held-out loss"), ("below_unigram", "below unigram")):
        if key in mlm:
            found[name] = number(mlm[key])
    for form, name in ((blimp, "BLiMP PLL"), (blimp.get("word_l2r", {}), "BLiMP PLL-word-l2r")):
        if "accuracy" in form:
            found[name] = percent(form["accuracy"])
    if glue.get("tasks"):
        found["GLUE average"] = percent(glue["average"])
        found |= {f"GLUE {name}": percent(glue["tasks"][name]["score"]) for name in glue["tasks"]}
    for key, name in (("f1", "SQuAD F1"), ("exact", "SQuAD exact")):
        if key in squad:
            found[name] = percent(squad[key])
    return found


FIRST = ("held-out loss", "below unigram", "BLiMP PLL", "BLiMP PLL-word-l2r", "GLUE average")


def _place(figure: str) -> tuple[int, int, str]:
    """Where a figure stands: losses, minimal pairs, the average, its tasks, questions."""
    if figure in FIRST:
        return FIRST.index(figure), 0, ""
    if figure.startswith("GLUE "):
        return len(FIRST), glue_place(figure.removeprefix("GLUE ")), figure
    return len(FIRST) + 1, 0, ""  # in the order they come in: sorting keeps it


def _asked(found: Found) -> dict[str, str]:
    """What the figures of a folder depend on besides the checkpoint: digests of data, and settings."""
    manifest = found.manifests.get("evaluate")
    if manifest is None:
        return {}
    settings, told = manifest.recipe.get("evaluate", {}), {}
    for task in found.evaluation["tasks"]:
        told[f"{task} data"] = manifest.upstream.get(READ.get(task, ""), "")
        told |= {f"{task} {key}": str(settings[key]) for key in ASKED.get(task, ()) if key in settings}
    return told


def short(checkpoints: Sequence[str]) -> list[str]:
    """Paths without what all have in common, and without the model/ behind a run.

    >>> short(["/a/b/first/model", "/a/b/second/checkpoints/step-000010"])
    ['first', 'second/checkpoints/step-000010']
    >>> short(["/a/b/first/model"])
    ['first']
    """
    parts = [path.rstrip("/").removesuffix("/model").split("/") for path in checkpoints]
    shared = len(posixpath.commonprefix([part[:-1] for part in parts]))  # of lists: whole names
    return ["/".join(part[shared:]) for part in parts]
