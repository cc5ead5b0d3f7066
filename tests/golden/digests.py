"""The figures of a golden run: two digests a table, with ids and places and without, and losses step by step."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from corpusforge import shards
from corpusforge.content import ContentDigest

PLACES = {"id", "document", "source", "position", "kept_document", "survivor", "order", "key"}
"""Columns that hold the origin of a row, or name a document by its place."""

RENAMED = {"kept": "survivor"}
"""Columns that have another name than when the digests were frozen: new name to old. A digest covers names, so this
shows that the values of ``clusters/`` did not change with the name of their column."""

LEARNED = ("vocab.txt", "vocab.json", "merges.txt", "tokenizer.json", "spiece.model")
"""Files of a vocabulary whose bytes are frozen."""


def digests(folder: Path) -> dict[str, Any]:
    """``{table: [rows, with places, without]}`` of a finished stage; ``{file: sha256}`` of a vocabulary."""
    manifest = shards.Manifest.load(str(folder))
    found: dict[str, Any] = {}
    for table in sorted(manifest.shards):
        whole, free, rows = ContentDigest(), ContentDigest(), 0
        for path in manifest.paths(str(folder), table):
            for batch in shards.read_shard(path):
                batch = batch.rename_columns([RENAMED.get(name, name) for name in batch.schema.names])
                rows += batch.num_rows
                whole.add(batch)
                free.add(batch.select([name for name in batch.schema.names if name not in PLACES]))
        found[table] = [rows, whole.hex(), free.hex()]
    for name in LEARNED:
        if (folder / name).is_file():
            found[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    return found


def losses(folder: Path) -> list[dict[str, float]]:
    """The losses of every log line of a training, as written: a float's shortest form is exact."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text("utf-8").splitlines()]
    return [{key: value for key, value in line.items() if key == "step" or key.endswith("loss")} for line in lines]
