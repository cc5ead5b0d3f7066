"""Around an evaluation: what its tasks read, and where its figures go besides evaluation.json.

Comes in: settings of [evaluate], a folder named by ``--data``; or the figures. Goes out: inputs and digests of the
tasks, the section of the model card, tables for a terminal.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpusforge import errors, shards
from corpusforge.report.evaluation import Table, tables
from corpusforge.sections import Evaluate
from corpusforge.stages import stage

if TYPE_CHECKING:
    from corpusforge.evaluate.finetune import Wanted
    from corpusforge.evaluate.run import Inputs

BEGIN, END = "<!-- evaluation -->", "<!-- /evaluation -->"
OURS = "pretrained with CorpusForge"
"""A sentence of the model cards that pretrain writes; cards of others are left alone."""


def inputs(settings: Evaluate, data: str | None) -> Inputs:
    """What the tasks read. ``data`` is the folder of the only task that has none of its own."""
    from corpusforge.evaluate.run import Inputs

    return Inputs(
        instances=data,
        blimp=settings.blimp_data,
        blimp_pairs=settings.blimp_pairs,
        glue=_folder(settings, "glue", data),
        glue_tasks=settings.glue_tasks,
        squad=_folder(settings, "squad", data),
        squad_threshold=settings.squad_threshold,
    )


def wanted(settings: Evaluate, seed: int) -> Wanted:
    """What is asked of fine-tuning."""
    from corpusforge.evaluate.finetune import Wanted

    return Wanted(
        epochs=settings.epochs,
        batch=settings.batch,
        learning_rate=settings.learning_rate,
        layer_decay=settings.layer_decay,
        seeds=settings.seeds,
        longest=settings.max_length,
        examples=settings.train_examples,
        first_seed=seed,
    )


def _folder(settings: Evaluate, task: str, data: str | None) -> str:
    """The folder of a task that fine-tunes. Raises `errors.InputMissing` where it is not clear which."""
    if task not in settings.tasks:
        return ""
    named = str(getattr(settings, f"{task}_data"))
    if named:
        return named
    others = [t for t in settings.tasks if t in ("mlm", "glue", "squad") and t != task]
    if not data or others:
        what = f"the task {task} needs a folder" + (f" of its own beside that of {', '.join(others)}" if data else "")
        raise errors.InputMissing(f"--{task}-data", what, "name it")
    return data


def fingerprints(settings: Evaluate, data: str | None) -> dict[str, str]:
    """Digests of what the tasks read that fine-tune. Raises what `glue_tasks.find_tasks` and `find_files` raise."""
    found = {}
    if "glue" in settings.tasks:
        from corpusforge.evaluate.glue_tasks import find_tasks

        folders = find_tasks(_folder(settings, "glue", data), settings.glue_tasks)
        files = [(file, f"{name}/{file.name}") for name, folder in folders.items() for file in folder.glob("*.tsv")]
        found["glue"] = stage.fingerprint([(str(file), name) for file, name in sorted(files)])
    if "squad" in settings.tasks:
        from corpusforge.evaluate.squad_data import find_files

        pair = find_files(_folder(settings, "squad", data))
        found["squad"] = stage.fingerprint([(str(file), file.name) for file in pair])
    return found


def update_card(model: str, found: dict[str, Any]) -> None:
    """Put the figures into the model card beside the weights, in place of those of the same tasks.

    The card of a checkpoint stays as it is (its digest is noted), and so does one that pretrain did not write.
    """
    path = Path(model) / "README.md"
    if "://" in model or not path.is_file() or (path.parent / "digests.json").exists():
        return
    card = path.read_text("utf-8")
    if OURS not in card:
        return
    before, _, rest = card.partition(BEGIN)
    inner, _, behind = rest.partition(END)
    parts = [*inner.split("### ")[1:], *(markdown(table) for table in tables(found["tasks"]))]
    kept = {re.split("[,\n]", part)[0]: part for part in parts}  # by the title, as far as it never changes
    section = "\n".join(["", "## Evaluation", "", *(f"### {part.strip()}\n" for part in kept.values())])
    text = f"{before.rstrip()}\n\n{BEGIN}{section}{END}\n{behind.lstrip()}"
    shards.write_bytes(str(path), text.encode())


def markdown(table: Table) -> str:
    """A table as Markdown, its title in front."""
    rows = [table.columns, ["---", *("---:" for _ in table.columns[1:])], *table.rows]
    lines = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    return "\n".join([table.title, "", *lines])
