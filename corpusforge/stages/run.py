"""Run all stages of a recipe: finished ones are skipped, one that was killed resumes."""

from __future__ import annotations

import dataclasses
import importlib.util
import os

from corpusforge import errors, shards
from corpusforge.report.gather import FOLDERS
from corpusforge.sections import LINE, Recipe
from corpusforge.sections.presets import find_preset
from corpusforge.stages import build_instances, clean, dedupe, evaluate, pretrain, train_vocab
from corpusforge.stages.stage import Execution, Outcome


def run(
    made: Recipe, output: str, execution: Execution, *, until: str | None = None
) -> tuple[list[tuple[str, Outcome]], str | None]:
    """Run a recipe's stages; returns their outcomes in order and the path of the report, if one was requested."""
    _check_alone()
    wanted = [name for name in LINE if name in made.stages]
    if until and until not in wanted:
        what = f"the recipe {made.name} has no stage {until}"
        raise errors.RecipeInvalid("--until", what, f"its stages: {', '.join(wanted)}")
    if until:
        wanted = [name for name in wanted if LINE.index(name) <= LINE.index(until)]
    _check(made, wanted)
    outcomes: list[tuple[str, Outcome]] = []
    for name in wanted:
        if name == "report":
            continue
        if name == "evaluate":
            made = _testable(made, shards.join(output, FOLDERS["build-instances"]), execution)
            if not made.evaluate.tasks:
                continue
        execution.progress.say(f"{name}: {shards.join(output, FOLDERS[name])}")
        outcome = _one(name, made, output, execution)
        if outcome.skipped:
            execution.progress.say("  up to date, skipped")
        outcomes.append((name, outcome))
    report = _report(output) if "report" in wanted else None
    return outcomes, report


def _check_alone() -> None:
    """Refuse to be one of several ranks: all would write the same folders. The first rank reports it."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        return
    if os.environ.get("RANK", "0") != "0":
        raise SystemExit(1)
    what = f"torchrun started {count} processes of it, and only pretrain can share its work among them"
    mend = "run it alone with --until build-instances, then torchrun ... -m corpusforge pretrain on its instances/"
    raise errors.RecipeInvalid("run", what, mend)


def _testable(made: Recipe, data: str, execution: Execution) -> Recipe:
    """The recipe without the task mlm where nothing is held out, as in a corpus of a few documents."""
    if "mlm" not in made.evaluate.tasks or shards.Manifest.load(data).rows.get("heldout"):
        return made
    execution.progress.say("evaluate: no document is held out, so mlm is left out; raise instances.heldout to have it")
    tasks = tuple(task for task in made.evaluate.tasks if task != "mlm")
    return dataclasses.replace(made, evaluate=dataclasses.replace(made.evaluate, tasks=tasks))


def _check(made: Recipe, wanted: list[str]) -> None:
    """Check now what would otherwise stop the run hours later."""
    if "train-vocab" in wanted:
        from corpusforge.tokens.families import check_sizes

        check_sizes(made.vocab)
    if "pretrain" in wanted:
        find_preset(made.pretrain.preset)
    if "evaluate" in wanted:
        evaluate.check_inputs(made)
    if "report" in wanted:
        _demand("plotly")  # a missing extra shows before the work, not after it


def _demand(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise ModuleNotFoundError(module, name=module)


def _one(name: str, made: Recipe, output: str, execution: Execution) -> Outcome:
    folder = {stage_name: shards.join(output, below) for stage_name, below in FOLDERS.items()}
    documents = folder["dedupe"] if "dedupe" in made.stages else folder["clean"]
    target = folder[name]
    if name == "clean":
        return clean.clean(made, target, execution)
    if name == "dedupe":
        return dedupe.dedupe(made, folder["clean"], target, execution)
    if name == "train-vocab":
        return train_vocab.train_vocab(made, documents, target, execution)
    if name == "build-instances":
        return build_instances.build_instances(made, documents, folder["train-vocab"], target, execution)
    if name == "pretrain":
        return pretrain.pretrain(made, folder["build-instances"], target, execution, resume=True)
    return evaluate.evaluate(made, folder["pretrain"], folder["build-instances"], target, execution)


def _report(output: str) -> str:
    from corpusforge.report import run_report

    return run_report.write_report(output, shards.join(output, "report.html"))
