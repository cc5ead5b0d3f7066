"""The stage pretrain: instances to checkpoints and a model folder."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Iterator
from typing import Any

from corpusforge import errors, shards
from corpusforge.recipe import as_dict, digested
from corpusforge.sections import Recipe
from corpusforge.sections.presets import find_preset
from corpusforge.stages import stage
from corpusforge.stages.model_card import of_corpus, title
from corpusforge.stages.output_folder import RUN, claim
from corpusforge.stages.stage import Execution, Outcome


def plan(recipe: Recipe, data: str) -> dict[str, Any]:
    """What a training run would cost; trains nothing. Of several ranks, the first reports."""
    if os.environ.get("RANK", "0") != "0":
        raise SystemExit(0)
    from corpusforge.trainer.cost import estimate

    stage.load_instances(data)
    return estimate(data, recipe.pretrain, vocab_folder=shards.join(data, "vocab"), seed=recipe.seed)


def pretrain(recipe: Recipe, data: str, output: str, execution: Execution, *, resume: bool) -> Outcome:
    """Train an encoder: ``model/``, ``checkpoints/``, ``log.jsonl``; under torchrun, as one of its ranks."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return _pretrain(recipe, data, output, execution, None, resume=resume)
    from corpusforge.trainer.ranks import joined

    with joined(recipe.pretrain.device) as ranks:
        return _pretrain(recipe, data, output, execution, ranks, resume=resume)


def _pretrain(recipe: Recipe, data: str, output: str, execution: Execution, ranks: Any, *, resume: bool) -> Outcome:
    """``ranks``: `trainer.ranks.Ranks`, None for one process. The first claims the folder; the others follow it."""
    began = time.perf_counter()
    manifest, fingerprint = stage.load_instances(data)
    find_preset(recipe.pretrain.preset)
    section: dict[str, Any] = {"pretrain": digested(recipe.pretrain), "seed": recipe.seed}

    def train() -> dict[str, Any]:
        from corpusforge.trainer import run

        return run.pretrain(
            data,
            output,
            recipe.pretrain,
            seed=recipe.seed,
            vocab_folder=shards.join(data, "vocab"),
            manifest_digest=fingerprint,
            recipe=as_dict(recipe),
            card=of_corpus(title(recipe.name, output), data, manifest, section["pretrain"]),
            progress=execution.progress,
            resume=resume,
            ranks=ranks,
            began=began,
        )

    if ranks and not ranks.is_first:
        if ranks.from_first(None) == "train":
            train()
        raise SystemExit(0)
    with contextlib.ExitStack() as stack:
        with _others_end_with(ranks):
            above = _above(recipe, data, output, fingerprint)
            reads = [path for path in (data, recipe.pretrain.init) if path]
            claiming = claim(output, "pretrain", section, above, overwrite=execution.overwrite, reads=reads)
            claimed = stack.enter_context(claiming)
        done = claimed.finished()
        is_finished = done is not None and not recipe.pretrain.allow_new_data
        if ranks:
            ranks.from_first("end" if is_finished else "train")
        if done and is_finished:
            return Outcome(output, done, skipped=True)
        with stage.timed(claimed, execution) as measured:
            figures = train()
        weights = shards.file_digest(shards.join(output, "model/model.safetensors"))
        result = stage.manifest_of(claimed, statistics=stage.numbers_of(figures, leave_out="seconds"))
        return stage.finish(claimed, dataclasses.replace(result, content={"model": weights}), measured)


@contextlib.contextmanager
def _others_end_with(ranks: Any) -> Iterator[None]:
    """If the block fails, end the other ranks, which wait for the first."""
    try:
        yield
    except errors.CorpusForgeError:
        if ranks:
            ranks.from_first("end")
        raise


def _above(recipe: Recipe, data: str, output: str, fingerprint: str) -> dict[str, str]:
    """Digests of what is read. Under --allow-new-data the folder keeps its identity; its checkpoints record their data.

    Raises what `trainer.prepare.init_of` raises: the weights to begin from are checked before a folder is claimed.
    """
    recorded = _recorded_data(output) if recipe.pretrain.allow_new_data else None
    above = {"instances": recorded or fingerprint}
    return above | {"init": _initial_digest(recipe, data)} if recipe.pretrain.init else above


def _initial_digest(recipe: Recipe, data: str) -> str:
    """The digest of the weights to begin from, which are checked here: before the output folder is claimed."""
    from corpusforge.trainer.prepare import init_of

    return str(init_of(recipe.pretrain, shards.join(data, "vocab")).digest)


def _recorded_data(output: str) -> str | None:
    """The digest of the instances that an output folder was begun with; None where it is new."""
    path = shards.join(output, RUN)
    if not shards.exists(path):
        return None
    digest = shards.read_json(path).get("upstream", {}).get("instances")
    return str(digest) if digest else None
