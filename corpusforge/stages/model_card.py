"""What the model card says of the corpus: where the instances came from, and what every stage was told.

Comes in: the folder of the instances and its manifest. Goes out: plain values for `trainer.export.model_card`.
Decision: a stage counts where its folder lies beside the instances, whatever its name, and its content is what the next
one says it read; so a card never tells of another corpus. Of paths only names are told: a card goes out into the world.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from corpusforge import errors, shards
from corpusforge.report.gather import funnel
from corpusforge.sections import Recipe
from corpusforge.shards import Manifest

SECTIONS = {"clean": "clean", "dedupe": "dedupe", "train-vocab": "vocab", "build-instances": "instances"}
"""Sections of a recipe by stage, in the order of the line."""


def of_corpus(name: str, data: str, manifest: Manifest, training: Mapping[str, Any]) -> dict[str, Any]:
    """``training``: the settings of [pretrain]. Gives the recipe's ``name``, ``funnel``, ``tallies``, ``rows`` of the
    instances, and ``settings`` by section."""
    stages = origin(data, manifest)
    tallies = {
        stage: {reason: count for reason, count in stages[stage].tallies.items() if reason != "kept"}
        for stage in ("clean", "dedupe")
        if stage in stages
    }
    settings = {
        section: _plain(stages[stage].recipe[section])
        for stage, section in SECTIONS.items()
        if stage in stages and section in stages[stage].recipe
    }
    return {
        "name": name,
        "funnel": [(step.label, step.documents, step.text_bytes) for step in funnel(stages)],
        "tallies": tallies,
        "rows": manifest.rows,
        "settings": settings | {"pretrain": _plain(training)},
    }


def title(name: str, output: str) -> str:
    """What a card is headed with: the recipe's name, or that of the output folder where nobody gave one.

    >>> title("mine", "models/small"), title(Recipe().name, "models/small/")
    ('mine', 'small')
    """
    return name if name != Recipe().name else Path(output).resolve().name or name


def origin(data: str, manifest: Manifest) -> dict[str, Manifest]:
    """Manifests of the stages that made the instances of ``data``, as far as their folders lie beside it."""
    beside = list(_beside(data))
    found = {"build-instances": manifest}
    vocab, documents = manifest.upstream.get("vocab"), manifest.upstream.get("documents")
    for other in beside:
        if other.stage == "train-vocab" and vocab and other.content.get("vocab") == vocab:
            found["train-vocab"] = other
    for stage in ("dedupe", "clean"):
        for other in beside:
            if other.stage == stage and documents and other.content.get("documents") == documents:
                found[stage] = other
        if stage in found:
            documents = found[stage].upstream.get("documents")
    return {stage: found[stage] for stage in SECTIONS if stage in found}


def _beside(data: str) -> Iterator[Manifest]:
    if "://" in data:
        return
    for path in sorted(Path(data).resolve().parent.glob(f"*/{shards.MANIFEST}")):
        try:
            yield Manifest.load(str(path.parent))
        except (errors.CorpusForgeError, OSError):
            continue  # somebody else's file of that name


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without the folders of paths, and without those that are not set."""
    return {key: _without_folders(value) for key, value in settings.items() if value not in ("", [], (), None)}


def _without_folders(value: Any) -> Any:
    """A setting as it may be published.

    >>> _without_folders(["c4-en", "/home/me/my.toml"]), _without_folders(0.5)
    (['c4-en', 'my.toml'], 0.5)
    """
    if isinstance(value, str):
        return value.rstrip("/").rsplit("/", 1)[-1] if value.startswith(("/", "@/")) or "://" in value else value
    return [_without_folders(part) for part in value] if isinstance(value, list | tuple) else value
