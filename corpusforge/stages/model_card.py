"""What stages contribute to the model card: the corpus and its settings, and the results of evaluations.

The stages before the training are those whose folders are beside the instances, whatever their names, and whose content
is what the next one read; so a card never describes another corpus. Of paths only the last part is shown, as a
card is published.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from corpusforge import errors, shards
from corpusforge.report.evaluation import Table, tables
from corpusforge.report.gather import funnel
from corpusforge.sections import READS, Recipe
from corpusforge.shards import Manifest

SECTIONS = {stage: READS[stage][0] for stage in ("clean", "dedupe", "train-vocab", "build-instances")}
"""The section of each stage before the training, in their order."""


def of_corpus(name: str, data: str, manifest: Manifest, training: Mapping[str, Any]) -> dict[str, Any]:
    """What a card says of the corpus: the recipe's ``name``, ``funnel``, ``tallies``, ``rows`` of the instances, and
    ``settings`` by section. ``training``: the settings of [pretrain]."""
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
    """The title of a card: the recipe's name, or that of the output folder where the recipe has none.

    >>> title("news", "models/small"), title(Recipe().name, "models/small/")
    ('news', 'small')
    """
    return name if name != Recipe().name else Path(output).resolve().name or name


def origin(data: str, manifest: Manifest) -> dict[str, Manifest]:
    """Manifests of the stages that made the instances of ``data``, as far as their folders are beside it."""
    beside = list(_beside(data))
    manifests = {"build-instances": manifest}
    vocab, documents = manifest.upstream.get("vocab"), manifest.upstream.get("documents")
    for other in beside:
        if other.stage == "train-vocab" and vocab and other.content.get("vocab") == vocab:
            manifests["train-vocab"] = other
    for stage in ("dedupe", "clean"):
        for other in beside:
            if other.stage == stage and documents and other.content.get("documents") == documents:
                manifests[stage] = other
        if stage in manifests:
            documents = manifests[stage].upstream.get("documents")
    return {stage: manifests[stage] for stage in SECTIONS if stage in manifests}


def _beside(data: str) -> Iterator[Manifest]:
    if "://" in data:
        return
    for path in sorted(Path(data).resolve().parent.glob(f"*/{shards.MANIFEST}")):
        try:
            yield Manifest.load(str(path.parent))
        except (errors.CorpusForgeError, OSError):
            continue  # another program's file of that name


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


BEGIN, END = "<!-- evaluation -->", "<!-- /evaluation -->"
OUR_CARD = "pretrained with CorpusForge"
"""A sentence of the model cards that pretrain writes; cards of others are left alone."""


def update_card(model: str, results: Mapping[str, Any]) -> None:
    """Put the results into the model card beside the weights, in place of those of the same tasks.

    The card of a checkpoint stays as it is (its digest is recorded), and so does one that pretrain did not write.
    """
    path = Path(model) / "README.md"
    if "://" in model or not path.is_file() or (path.parent / "digests.json").exists():
        return
    card = path.read_text("utf-8")
    if OUR_CARD not in card:
        return
    before, _, rest = card.partition(BEGIN)
    inner, _, after = rest.partition(END)
    parts = [*inner.split("### ")[1:], *(markdown(table) for table in tables(results["tasks"]))]
    kept = {re.split("[,\n]", part)[0]: part for part in parts}  # by the title, as far as it never changes
    section = "\n".join(["", "## Evaluation", "", *(f"### {part.strip()}\n" for part in kept.values())])
    text = f"{before.rstrip()}\n\n{BEGIN}{section}{END}\n{after.lstrip()}"
    shards.write_bytes(str(path), text.encode())


def markdown(table: Table) -> str:
    """A table as Markdown, its title in front."""
    rows = [table.columns, ["---", *("---:" for _ in table.columns[1:])], *table.rows]
    lines = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    return "\n".join([table.title, "", *lines])
