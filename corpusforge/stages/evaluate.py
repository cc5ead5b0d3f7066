"""The stage evaluate: test a checkpoint, and write its figures to evaluation.json and the model card."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpusforge import errors, recipe, shards
from corpusforge.sections import Recipe
from corpusforge.stages import evaluation_output, pretrain, stage
from corpusforge.stages.output_folder import claim, digest_of
from corpusforge.stages.stage import Execution, Outcome


def evaluate(made: Recipe, checkpoint: str, data: str | None, output: str | None, execution: Execution) -> Outcome:
    """Test a checkpoint: ``evaluation.json`` with one part a task."""
    model = _model_folder(checkpoint)
    target = output or "-".join([checkpoint.rstrip("/"), "evaluation", *made.evaluate.tasks])
    settings = made.evaluate
    section = {"evaluate": recipe.digested(settings), "seed": made.seed}
    above = _tested(made, model, data)
    reads = [model, data or model]
    with claim(target, "evaluate", section, above, overwrite=execution.overwrite, reads=reads) as claimed:
        if manifest := claimed.finished():
            return Outcome(target, manifest, skipped=True)
        from corpusforge.evaluate.run import evaluate as run_tasks

        with stage.timed(claimed, execution) as measured:
            found = run_tasks(
                model,
                settings.tasks,
                evaluation_output.inputs(settings, data),
                wanted=evaluation_output.wanted(settings, made.seed),
                device=made.pretrain.device,
                batch_tokens=settings.batch_tokens,
                threads=made.pretrain.threads,
                progress=execution.progress,
            )
            shards.write_json(shards.join(target, "evaluation.json"), found)
            evaluation_output.update_card(model, found)
        numbers = _figures(found["tasks"])
        manifest = stage.manifest_of(claimed, statistics=numbers)
        manifest = dataclasses.replace(manifest, content={"evaluation": digest_of(found["tasks"])})
        return stage.saved(claimed, manifest, measured)


def _tested(made: Recipe, model: str, data: str | None) -> dict[str, str]:
    """Digests of the weights and of what each task reads, checked: a task that cannot be done is refused here."""
    above = {"model": _weights_digest(model)}
    if "mlm" in made.evaluate.tasks:
        if not data:
            what = "the task mlm needs instances with a held-out part"
            raise errors.InputMissing("--data", what, "name their folder")
        above["instances"] = check_heldout(data)
        _check_same_vocabulary(model, data)
    if "blimp" in made.evaluate.tasks:
        above["blimp"] = blimp_fingerprint(made.evaluate.blimp_data)
    return above | evaluation_output.fingerprints(made.evaluate, data)


def _figures(tasks: dict[str, Any]) -> dict[str, Any]:
    """The numbers of all tasks, without those of each paradigm, of which there are 67, and of how it was done."""
    return {
        k: v
        for k, v in pretrain.numbers_of(_without(tasks, ("paradigms", "tuning"))).items()
        if not isinstance(v, bool)
    }


def _without(facts: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {k: _without(v, names) if isinstance(v, dict) else v for k, v in facts.items() if k not in names}


def _check_same_vocabulary(model: str, data: str) -> None:
    from corpusforge.tokens.families import load_vocab

    if load_vocab(model).digest != load_vocab(shards.join(data, "vocab")).digest:
        what = f"was built with another vocabulary than {model}"
        raise errors.StageMismatch(data, what, "name instances of the vocabulary that the model was trained with")


def check_heldout(data: str) -> str:
    """The digest of instances that have a held-out part. Raises `errors.StageMismatch` where nothing is held out."""
    manifest, fingerprint = pretrain._data(data)
    if not manifest.rows.get("heldout"):
        mend = "build instances with a larger instances.heldout, or leave out the task mlm"
        raise errors.StageMismatch(data, "no document of it is held out for evaluation", mend)
    return fingerprint


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
    """The digest of a model's weights, in whatever files they lie."""
    path = shards.join(model, "model.safetensors")
    if shards.exists(path):
        return shards.file_digest(path)
    from corpusforge.trainer.stored import weight_files

    return digest_of([shards.file_digest(str(file)) for file in weight_files(Path(model))])


def blimp_fingerprint(path: str) -> str:
    if not path or not Path(path).exists():
        what = "no BLiMP data is named" if not path else f"no such file or folder: {path}"
        raise errors.InputMissing("evaluate.blimp_data", what, "name its folder of .jsonl or its .tar.gz")
    files = sorted(Path(path).rglob("*.jsonl")) if Path(path).is_dir() else [Path(path)]
    return stage.fingerprint([(str(f), f.name) for f in files])
