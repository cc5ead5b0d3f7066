"""Run all stages of a recipe: finished ones are skipped, one that was killed resumes."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from collections.abc import Sequence

from corpusforge import errors, shards
from corpusforge.clean.filters import Filter
from corpusforge.report.gather import FOLDERS
from corpusforge.sections import LINE, Recipe
from corpusforge.sections.presets import find_preset
from corpusforge.stages import build_instances, clean, dedupe, evaluate, pretrain, train_vocab
from corpusforge.stages.stage import Execution, Outcome


def run(
    recipe: Recipe,
    output: str,
    execution: Execution,
    *,
    until: str | None = None,
    filters: Sequence[Filter] = (),
) -> tuple[list[tuple[str, Outcome]], str | None]:
    """Run a recipe's stages; returns their outcomes in order and the path of the report, if one was requested.

    ``filters``: the user's own, for the stage clean.
    """
    _check_alone()
    wanted = [name for name in LINE if name in recipe.stages]
    if until and until not in wanted:
        what = f"the recipe {recipe.name} has no stage {until}"
        raise errors.RecipeInvalid("--until", what, f"its stages: {', '.join(wanted)}")
    if until:
        wanted = [name for name in wanted if LINE.index(name) <= LINE.index(until)]
    _check(recipe, wanted)
    outcomes: list[tuple[str, Outcome]] = []
    for name in wanted:
        if name == "report":
            continue
        if name == "evaluate":
            recipe = _without_mlm(recipe, shards.join(output, FOLDERS["build-instances"]), execution)
            if not recipe.evaluate.tasks:
                continue
        execution.progress.say(f"{name}: {shards.join(output, FOLDERS[name])}")
        outcome = _one(name, recipe, output, execution, filters)
        if outcome.skipped:
            execution.progress.say("  up to date, skipped")
        outcomes.append((name, outcome))
    if "report" not in wanted:
        return outcomes, None
    from corpusforge.report import run_report

    return outcomes, run_report.write_report(output, shards.join(output, "report.html"))


def _check_alone() -> None:
    """Refuse to be one of several ranks: all would write the same folders. The first rank reports it."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        return
    if os.environ.get("RANK", "0") != "0":
        raise SystemExit(1)
    what = f"torchrun started {count} processes of it, and only pretrain shares its work among processes"
    mend = "run it alone with --until build-instances, then torchrun ... -m corpusforge pretrain on its instances/"
    raise errors.RecipeInvalid("run", what, mend)


def _without_mlm(recipe: Recipe, data: str, execution: Execution) -> Recipe:
    """The recipe, without the task mlm where nothing is held out, as in a corpus of a few documents."""
    if "mlm" not in recipe.evaluate.tasks or shards.Manifest.load(data).rows.get("heldout"):
        return recipe
    execution.progress.say("evaluate: the task mlm is left out: no document is held out; raise instances.heldout")
    tasks = tuple(task for task in recipe.evaluate.tasks if task != "mlm")
    return dataclasses.replace(recipe, evaluate=dataclasses.replace(recipe.evaluate, tasks=tasks))


def _check(recipe: Recipe, wanted: list[str]) -> None:
    """Check now what would otherwise stop the run hours later."""
    if "train-vocab" in wanted:
        from corpusforge.tokens.families import check_sizes

        check_sizes(recipe.vocab)
    if "pretrain" in wanted:
        find_preset(recipe.pretrain.preset)
    if "evaluate" in wanted:
        evaluate.check_inputs(recipe)
    if "report" in wanted and importlib.util.find_spec("plotly") is None:
        raise ModuleNotFoundError("plotly", name="plotly")


def _one(name: str, recipe: Recipe, output: str, execution: Execution, filters: Sequence[Filter]) -> Outcome:
    folder = {stage_name: shards.join(output, below) for stage_name, below in FOLDERS.items()}
    documents = folder["dedupe"] if "dedupe" in recipe.stages else folder["clean"]
    target = folder[name]
    if name == "clean":
        return clean.clean(recipe, target, execution, filters)
    if name == "dedupe":
        return dedupe.dedupe(recipe, folder["clean"], target, execution)
    if name == "train-vocab":
        return train_vocab.train_vocab(recipe, documents, target, execution)
    if name == "build-instances":
        return build_instances.build_instances(recipe, documents, folder["train-vocab"], target, execution)
    if name == "pretrain":
        return pretrain.pretrain(recipe, folder["build-instances"], target, execution, resume=True)
    return evaluate.evaluate(recipe, folder["pretrain"], folder["build-instances"], target, execution)
