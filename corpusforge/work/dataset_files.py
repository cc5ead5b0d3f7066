"""The small files that make a folder of Arrow shards a Hugging Face dataset, without the library.

Comes in: the finished shards of a table. Goes out: ``state.json`` and ``dataset_info.json`` beside them, so that
``datasets.load_from_disk(folder/train)`` opens (and memory-maps) them as they stand; and a README.md whose header
tells ``datasets.load_dataset(folder)`` which files are which split. Features are left to be read from the Arrow
schema, so that the files suit every version of `datasets` (checked with 5.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corpusforge import content, shards
from corpusforge.shards import Shard


def write_dataset_info(folder: str, table: str, finished: Sequence[Shard]) -> None:
    """Write ``<folder>/<table>/state.json`` and ``dataset_info.json`` for the table's shards, in their order.

    Shards without rows are not named, and nothing is written for a table without rows: `datasets` opens neither.
    """
    files = [{"filename": shard.name.removeprefix(f"{table}/")} for shard in finished if shard.rows]
    if not files:
        return
    state: dict[str, Any] = {
        "_data_files": files,
        "_fingerprint": content.combine(shard.content for shard in finished)[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": table,
    }
    shards.write_json(shards.join(folder, f"{table}/state.json"), state)
    info = {"description": "", "citation": "", "homepage": "", "license": "", "builder_name": "arrow"}
    shards.write_json(shards.join(folder, f"{table}/dataset_info.json"), info)


def write_dataset_card(folder: str, title: str, finished: Mapping[str, Sequence[Shard]], body: str = "") -> None:
    """Write ``README.md``: a dataset card that names the splits. Splits without rows are left out.

    ``body``: more Markdown behind that (`dataset_card.card_body`).
    """
    rows = {table: sum(shard.rows for shard in found) for table, found in finished.items()}
    splits = "".join(
        f"  - split: {table}\n    path: {table}/*.arrow\n" for table in finished if rows[table]
    )  # fmt: skip
    lines = "\n".join(f"| {table} | {count:,} |" for table, count in rows.items())
    text = (
        f"---\nconfigs:\n- config_name: default\n  data_files:\n{splits}---\n\n# {title}\n\n"
        f"Training instances built by CorpusForge. `manifest.json` tells how; `vocab/` is the tokenizer.\n\n"
        f"| split | instances |\n|---|---|\n{lines}\n\n"
        "```python\nimport datasets\n\n"
        'train = datasets.load_from_disk("train")  # or datasets.load_dataset(".") in this folder\n```\n'
    )
    text += f"\n{body}\n" if body else ""
    shards.write_bytes(shards.join(folder, "README.md"), text.encode())
