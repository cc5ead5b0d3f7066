"""The stage evaluate: test a checkpoint, and write the results to evaluation.json and the model card."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpusforge import errors, shards
from corpusforge.recipe import digested
from corpusforge.sections import Evaluate, Recipe
from corpusforge.stages import stage
from corpusforge.stages.model_card import update_card
from corpusforge.stages.output_folder import claim, digest_of
from corpusforge.stages.stage import Execution, Outcome


def evaluate(recipe: Recipe, checkpoint: str, data: str | None, output: str | None, execution: Execution) -> Outcome:
    """Test a checkpoint: ``evaluation.json`` with one part a task."""
    model = _model_folder(checkpoint)
    target = output or "-".join([checkpoint.rstrip("/"), "evaluation", *recipe.evaluate.tasks])
    settings = _with_folders(recipe.evaluate, data)
    section = {"evaluate": digested(settings), "seed": recipe.seed}
    above = {"model": _weights_digest(model)} | inputs_of(settings, data, model)
    reads = [model, data or model]
    with claim(target, "evaluate", section, above, overwrite=execution.overwrite, reads=reads) as claimed:
        if manifest := claimed.finished():
            return Outcome(target, manifest, skipped=True)
        from corpusforge.evaluate.run import evaluate as run_tasks

        how: dict[str, Any] = {"device": recipe.pretrain.device, "threads": recipe.pretrain.threads}
        with stage.timed(claimed, execution) as measured:
            results = run_tasks(model, settings, data, seed=recipe.seed, progress=execution.progress, **how)
            shards.write_json(shards.join(target, "evaluation.json"), results)
            update_card(model, results)
        # Without the figures of BLiMP's 67 paradigms, and without hyper-parameters.
        numbers = stage.numbers_of(_without(results["tasks"], ("paradigms", "tuning")))
        numbers = {name: value for name, value in numbers.items() if not isinstance(value, bool)}
        manifest = stage.manifest_of(claimed, statistics=numbers)
        manifest = dataclasses.replace(manifest, content={"evaluation": digest_of(results["tasks"])})
        return stage.finish(claimed, manifest, measured)


def check_inputs(recipe: Recipe) -> None:
    """Raise what a task would raise whose input is missing; of mlm nothing, as `run` builds its instances."""
    settings = dataclasses.replace(recipe.evaluate, tasks=tuple(t for t in recipe.evaluate.tasks if t != "mlm"))
    inputs_of(_with_folders(settings, None), None)


def inputs_of(settings: Evaluate, data: str | None, model: str = "") -> dict[str, str]:
    """Digests of what each task reads. A task that cannot be run is refused here."""
    digests = {}
    if "mlm" in settings.tasks:
        if not data:
            what = "the task mlm needs instances with a held-out part"
            mend = "name the folder that build-instances wrote, or another task with --task"
            raise errors.InputMissing("--data", what, mend)
        digests["instances"] = _check_heldout(data)
        _check_same_vocabulary(model, data)
    if "blimp" in settings.tasks:
        path = settings.blimp_data
        if not path or not Path(path).exists():
            what = "no BLiMP data is named" if not path else f"no such file or folder: {path}"
            raise errors.InputMissing("evaluate.blimp_data", what, "name its folder of .jsonl or its .tar.gz")
        files = sorted(Path(path).rglob("*.jsonl")) if Path(path).is_dir() else [Path(path)]
        digests["blimp"] = stage.fingerprint([(str(file), file.name) for file in files])
    if "glue" in settings.tasks:
        from corpusforge.evaluate.glue import find_tasks

        folders = find_tasks(settings.glue_data, settings.glue_tasks)
        named = [(file, f"{name}/{file.name}") for name, folder in folders.items() for file in folder.glob("*.tsv")]
        digests["glue"] = stage.fingerprint([(str(file), name) for file, name in sorted(named)])
    if "squad" in settings.tasks:
        from corpusforge.evaluate.squad_data import find_files

        digests["squad"] = stage.fingerprint([(str(file), file.name) for file in find_files(settings.squad_data)])
    return digests


def _with_folders(settings: Evaluate, data: str | None) -> Evaluate:
    """The settings with the folder of each fine-tuned task: ``data`` for the only task that names none.

    Raises `errors.InputMissing` if it is not clear which folder a task reads.
    """
    folders: dict[str, Any] = {}
    for task in ("glue", "squad"):
        named = getattr(settings, f"{task}_data")
        others = [t for t in settings.tasks if t in ("mlm", "glue", "squad") and t != task]
        if task in settings.tasks and not named and (not data or others):
            what = f"the task {task} needs a folder"
            what += f" of its own beside that of {', '.join(others)}" if data else ""
            raise errors.InputMissing(f"--{task}-data", what, "name it" if others else "name it, or use --data")
        folders[f"{task}_data"] = named or data or ""
    return dataclasses.replace(settings, **folders)


def _check_heldout(data: str) -> str:
    """The digest of instances that have a held-out part. Raises `errors.StageMismatch` if nothing is held out."""
    manifest, digest = stage.load_instances(data)
    if not manifest.rows.get("heldout"):
        mend = "build instances with a larger instances.heldout, or leave out the task mlm"
        raise errors.StageMismatch(data, "no document of it is held out for evaluation", mend)
    return digest


def _check_same_vocabulary(model: str, data: str) -> None:
    from corpusforge.tokens.families import load_vocab

    if load_vocab(model).digest != load_vocab(shards.join(data, "vocab")).digest:
        what = f"was built with another vocabulary than {model}"
        raise errors.StageMismatch(data, what, "name instances of the vocabulary that the model was trained with")


def _model_folder(checkpoint: str) -> str:
    """The Hugging Face directory meant by a pretrain folder, one of its checkpoints, or itself."""
    for folder in (checkpoint, shards.join(checkpoint, "model")):
        if shards.exists(shards.join(folder, "config.json")):
            return folder
    if not shards.exists(checkpoint):
        raise errors.InputMissing(checkpoint, "no such folder", "check the path")
    mend = "name a folder that pretrain wrote, or one of its checkpoints/"
    raise errors.InputMissing(checkpoint, "no model in it (no config.json, no model/)", mend)


def _weights_digest(model: str) -> str:
    """The digest of a model's weights, in whatever files they are."""
    path = shards.join(model, "model.safetensors")
    if shards.exists(path):
        return shards.file_digest(path)
    from corpusforge.trainer.hf_folder import weight_files

    return digest_of([shards.file_digest(str(file)) for file in weight_files(Path(model))])


def _without(values: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {k: _without(v, names) if isinstance(v, dict) else v for k, v in values.items() if k not in names}
