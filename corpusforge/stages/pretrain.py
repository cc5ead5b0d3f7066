"""The stage pretrain: instances to checkpoints and a model folder."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from corpusforge import errors, recipe, shards
from corpusforge.sections import Recipe
from corpusforge.shards import Manifest
from corpusforge.stages import stage
from corpusforge.stages.model_card import of_corpus, title
from corpusforge.stages.output_folder import RUN, claim, digest_of, finished
from corpusforge.stages.stage import Execution, Outcome

TRAINED_HOW = (
    *("checkpoint_steps", "keep_checkpoints", "evaluate_steps", "log_steps", "tensorboard"),
    *("keep_best", "wandb", "on_spike", "loader_threads"),
    *("device", "threads", "sharding", "allow_new_data", "init"),  # init: its weights are a digest of their own
)


def _data(data: str) -> tuple[Manifest, str]:
    """The manifest of finished instances and the digest of what they say."""
    manifest = Manifest.load(data)
    if manifest.stage != "build-instances":
        raise errors.StageMismatch(data, f"holds the output of {manifest.stage}", "name a build-instances folder")
    return manifest, digest_of(manifest.content)


def _settings(made: Recipe, manifest: Manifest) -> Any:
    """The trainer's settings: [pretrain] of this recipe, masks as the instances were built with."""
    from corpusforge.trainer.settings import from_sections

    return from_sections(recipe.as_dict(made.pretrain), manifest.recipe["instances"], made.seed)


def plan(made: Recipe, data: str) -> dict[str, Any]:
    """What a training run would cost; trains nothing. Of several ranks, one tells."""
    if os.environ.get("RANK", "0") != "0":
        raise SystemExit(0)
    from corpusforge.trainer.plan import plan as trainer_plan

    manifest, _ = _data(data)
    return trainer_plan(data, _settings(made, manifest), vocab_folder=shards.join(data, "vocab"))


def _digested(section: Any, seed: int, how: Sequence[str]) -> dict[str, Any]:
    """A section's settings that decide what comes out. ``how``: those that say how it is done."""
    settings = {key: value for key, value in recipe.as_dict(section).items() if key not in how}
    return {type(section).__name__.lower(): settings, "seed": seed}


def pretrain(made: Recipe, data: str, output: str, execution: Execution, *, resume: bool) -> Outcome:
    """Train an encoder: ``model/``, ``checkpoints/``, ``log.jsonl``; under torchrun, as one of its ranks."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return _pretrain(made, data, output, execution, None, resume=resume)
    from corpusforge.trainer.ranks import joined

    with joined(made.pretrain.device) as ranks:
        return _pretrain(made, data, output, execution, ranks, resume=resume)


def _pretrain(made: Recipe, data: str, output: str, execution: Execution, ranks: Any, *, resume: bool) -> Outcome:
    """``ranks``: `trainer.ranks.Ranks`, None for one process. The first holds the folder; the others follow and end."""
    began = time.perf_counter()
    manifest, fingerprint = _data(data)
    settings = _settings(made, manifest)
    check_preset(made)
    section = _digested(made.pretrain, made.seed, TRAINED_HOW)

    def train() -> dict[str, Any]:
        from corpusforge.trainer import loop

        return loop.pretrain(
            data,
            output,
            settings,
            vocab_folder=shards.join(data, "vocab"),
            manifest_digest=fingerprint,
            recipe=recipe.as_dict(made),
            card=of_corpus(title(made.name, output), data, manifest, section["pretrain"]),
            progress=execution.progress,
            resume=resume,
            ranks=ranks,
            began=began,
        )

    if ranks and not ranks.is_first:
        if ranks.from_first(None) == "train":
            train()
        raise SystemExit(0)
    with contextlib.ExitStack() as held:
        with _others_end_with(ranks):
            above = _above(made, settings, data, output, fingerprint)
            reads = [path for path in (data, made.pretrain.init) if path]
            claimed = claim(output, "pretrain", section, above, overwrite=execution.overwrite, reads=reads)
            digest = held.enter_context(claimed)
        return _train_unless_done(output, execution, ranks, digest, section, above, train, made.pretrain.allow_new_data)


@contextlib.contextmanager
def _others_end_with(ranks: Any) -> Iterator[None]:
    """Where the block fails, the other ranks, which wait for word, are told to end."""
    try:
        yield
    except errors.CorpusForgeError:
        if ranks:
            ranks.from_first("end")
        raise


def _above(made: Recipe, settings: Any, data: str, output: str, fingerprint: str) -> dict[str, str]:
    """Digests of what is read. Under --allow-new-data the folder stays what it was; its checkpoints know what they saw.

    Raises what `trainer.prepare.initial_of` raises: the weights to begin from are checked before a folder is claimed.
    """
    held = _held_data(output) if made.pretrain.allow_new_data else None
    above = {"instances": held or fingerprint}
    return above | {"init": _initial_digest(settings, data)} if made.pretrain.init else above


def _train_unless_done(
    output: str,
    execution: Execution,
    ranks: Any,
    digest: str,
    section: dict[str, Any],
    above: dict[str, str],
    train: Callable[[], dict[str, Any]],
    may_go_on: bool,
) -> Outcome:
    """The first rank's part behind the claim: the others train with it, or end. ``may_go_on``: on other data."""
    done = finished(output, digest)
    is_whole = done is not None and not may_go_on
    if ranks:
        ranks.from_first("end" if is_whole else "train")
    if done and is_whole:
        return Outcome(output, done, skipped=True)
    with stage.timed(output, "pretrain", execution) as measured:
        facts = train()
    weights = shards.file_digest(shards.join(output, "model/model.safetensors"))
    numbers = _numbers(facts, leave_out="seconds")
    result = stage.manifest_of(output, "pretrain", digest, section, above, statistics=numbers)
    return _saved(output, result, {"model": weights}, measured)


def _saved(output: str, result: Manifest, content: dict[str, str], measured: Mapping[str, float]) -> Outcome:
    """The manifest with the digests of what is no table, written."""
    result = dataclasses.replace(result, content=content)
    result.save(output)
    return Outcome(output, result, False, measured["seconds"], int(measured["peak_rss"]))


def _initial_digest(settings: Any, data: str) -> str:
    """The digest of the weights to begin from, which are checked here: before the output folder is claimed."""
    from corpusforge.trainer.prepare import initial_of

    return str(initial_of(settings, shards.join(data, "vocab")).digest)


def check_preset(made: Recipe) -> None:
    """Raise `errors.RecipeInvalid` for a preset that does not exist."""
    from corpusforge.trainer.presets import find_preset

    find_preset(made.pretrain.preset)


def _held_data(output: str) -> str | None:
    path = shards.join(output, RUN)
    if not shards.exists(path):
        return None
    held = shards.read_json(path).get("upstream", {}).get("instances")
    return str(held) if held else None


def _numbers(facts: dict[str, Any], *, leave_out: str = "") -> dict[str, Any]:
    """The numbers among nested facts, by joined names."""
    return {k: v for k, v in _flat(facts).items() if isinstance(v, int | float) and k != leave_out}


def _flat(facts: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in facts.items():
        flat |= _flat(value, f"{prefix}{key}_") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
