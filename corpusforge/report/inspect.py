"""`corpusforge inspect`: show a run, stage, shard, vocabulary, checkpoint, training log or recipe in a terminal.

The kind of a path is recognized by its contents (names of files and columns), never by its location.
"""

from __future__ import annotations

import re

import pyarrow as pa
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from corpusforge import errors, recipe, sections, shards
from corpusforge.report import document_view, folders, tables
from corpusforge.report.gather import FOLDERS, gather

SHARDS = (".parquet", ".arrow")


def inspect(path: str, *, document: str | None = None, rows: int = 5, skip: int = 0) -> list[RenderableType]:
    """The contents of a path, as rich renderables.

    ``document``: only this document (its id or the first characters of it), a page marked line by line, or its
    instances; ``rows``, ``skip``: which rows of a shard, of a stage's tables or of those instances to show.
    Raises `errors.InputMissing` if the path holds nothing that can be shown.
    """
    path = str(path).rstrip("/") or "/"
    if path.endswith(f"/{shards.MANIFEST}") or path == shards.MANIFEST:
        path = path.removesuffix(shards.MANIFEST).rstrip("/") or "."
    if document is not None:
        return document_view.show_document(path, document, rows, skip)
    if path.endswith(SHARDS):
        return _shard(path, rows, skip)
    if path.rpartition("/")[2] == folders.LOG and shards.exists(path):
        return folders.show_log(path, rows, skip)
    if path.endswith(".toml") or not shards.exists(path):
        return _recipe(path)
    for what, show in (
        ("model.safetensors", folders.show_checkpoint),
        (shards.MANIFEST, folders.show_stage),
        ("tokenizer.json", folders.show_vocabulary),
        ("vocab.txt", folders.show_vocabulary),
    ):
        if shards.exists(shards.join(path, what)):
            return show(path)
    return _folder(path, rows, skip)


def _folder(path: str, count: int, skip: int) -> list[RenderableType]:
    """A run, an unfinished training, its checkpoints, or a folder of shards."""
    if any(shards.exists(shards.join(path, name)) for name in FOLDERS.values()):
        return folders.show_run(gather(path))
    if folders.are_checkpoints(path):
        return folders.show_checkpoints(path)
    if shards.exists(log := shards.join(path, folders.LOG)):
        inner = shards.join(path, "checkpoints")
        known = folders.show_checkpoints(inner) if folders.are_checkpoints(inner) else []
        return [*known, *folders.show_log(log, count, skip)]
    names = [name for suffix in SHARDS for name in shards.list_names(path, suffix)]
    if not names:
        mend = "name a run, a stage's folder, a .parquet or .arrow shard, a vocabulary, a checkpoint, a log or a recipe"
        raise errors.InputMissing(path, "nothing to show here", mend)
    for name in names:  # a unit that lost nothing leaves a shard without rows: show the first with some
        batch = next((b for b in shards.read_shard(shards.join(path, name)) if b.num_rows), None)
        if batch is not None and tables.is_clusters(batch.schema):
            return tables.show_clusters(path, names, count, skip)
        if batch is not None:
            return [_listing(names, name), *_shard(shards.join(path, name), count, skip)]
    return [Text(f"{path}: no rows in {len(names)} {'shards' if len(names) > 1 else 'shard'}")]


def _listing(names: list[str], shown: str) -> Text:
    """The number of shards, and which one is shown."""
    passed = f"; those before {shown} have no rows" if shown != names[0] else ""
    if len(names) == 1:
        return Text(f"1 shard, {shown}")
    return Text(f"{len(names)} shards, {names[0]} to {names[-1]}{passed}")


def _shard(path: str, count: int, skip: int) -> list[RenderableType]:
    batches = list(shards.read_shard(path)) if shards.exists(path) else None
    if batches is None:
        raise errors.InputMissing(path, "no such file", "check the path")
    total = sum(batch.num_rows for batch in batches)
    if not batches or not total:
        return [Text(f"{path}: no rows")]
    if skip >= total:
        return [Text(f"{path}: no rows after the first {total:,}")]
    table = pa.Table.from_batches(batches).slice(skip, count)
    names = set(table.schema.names)
    title = Text(f"{path}: rows {skip} to {skip + table.num_rows - 1} of {total:,}", style="bold")
    if {"input_ids", "segment_lengths"} <= names:
        return [title, *tables.show_instances(path, table)]
    if {"ids", "sentences"} <= names:
        return [title, *tables.show_tokens(path, table)]
    return [title, *tables.show(table)]


def _recipe(path: str) -> list[RenderableType]:
    """Every setting of a recipe: its value, whether that is the default, and what it means."""
    if not (path.endswith(".toml") or "/" not in path):
        raise errors.InputMissing(path, "no such file or folder", "check the path")
    if not path.endswith(".toml"):
        _check_name(path)
    made, settings = recipe.load(path), sections.settings()
    table = Table(title=f"Recipe {made.name}", title_justify="left", title_style="bold")
    for column in ("setting", "value", "meaning"):
        table.add_column(column, overflow="fold")
    for key, spec in settings.items():
        value = _value(made, key)
        style = "dim" if value == spec.default else "bold green"
        shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        unit = f" {spec.unit}" if spec.unit else ""
        table.add_row(Text(key), Text(f"{shown}{unit}", style), Text(spec.help, "dim"))
    where = Text(f"{recipe.find(path)}; values that are not the default are bold", "dim")
    return [table, where]


def _check_name(name: str) -> None:
    """Raise `errors.InputMissing` if no recipe has this name; suggest recipes only for a plain name."""
    try:
        recipe.find(name)
    except errors.InputMissing as error:
        mend = f"check the path; for a recipe: {error.mend}" if re.fullmatch("[a-z0-9-]+", name) else "check the path"
        raise errors.InputMissing(name, "no such file or folder", mend) from None


def _value(made: sections.Recipe, key: str) -> object:
    value: object = made
    for name in key.split("."):
        value = getattr(value, name)
    return value
