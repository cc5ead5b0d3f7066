"""The small files that make a folder of instances a Hugging Face dataset, and its dataset card.

``state.json`` and ``dataset_info.json`` beside the shards let ``datasets.load_from_disk(folder/train)`` open (and
memory-map) them unchanged; the header of README.md tells ``datasets.load_dataset(folder)`` which files are which
split. Features are read from the Arrow schema, so that the files suit every version of `datasets` (checked with 5.2).
Everything in the card is in the manifest too; the card is for a person who was given the folder alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from corpusforge import content, shards
from corpusforge.shards import Manifest, Shard

_COUNTS = {
    "documents": "documents",
    "documents_empty": "of these, empty",
    "documents_too_short": "of these, too short for the format",
    "instances": "instances",
    "tokens": "tokens, special ones counted",
    "source_tokens": "tokens of text",
    "masked": "masked tokens",
}
_SHARES = {
    "fill": "of the longest possible instance filled",
    "unknown_share": "of the tokens of text unknown",
    "masked": "of all tokens masked",
    "masked_as_mask": "of these, [MASK]",
    "masked_as_random": "of these, another token",
    "masked_as_kept": "of these, kept",
    "pairs_next": "of pairs: B continues A (label 0)",
    "pairs_random": "of pairs: B is of another document (label 1)",
    "pairs_swapped": "of pairs: swapped (label 1)",
}
"""Names of statistics and of ratios in the manifest (`instances.measure`), and what they mean."""

_LINES = 16  # of the length histogram; the manifest has 64


def card_title(run: str, format_name: str) -> str:
    """The title of the card. ``run``: the name of the recipe; the default name, "run", is left out.

    >>> card_title("run", "sop"), card_title("quickstart", "sop")
    ('Training instances (sop)', 'Training instances of quickstart (sop)')
    """
    return f"Training instances{f' of {run}' if run != 'run' else ''} ({format_name})"


def card_body(manifest: Manifest, fingerprint: str) -> str:
    """Provenance, settings and numbers. ``fingerprint``: of the content of all instances (checkpoints hold it too)."""
    settings = manifest.recipe["instances"]
    splits = [split for split in manifest.rows if manifest.rows[split]]
    counted = {split: manifest.statistics.get(split, {}) for split in splits}
    dynamic = settings["masking"] == "dynamic"
    drawn = "Masks of `train` are not stored: the loader draws them. " if dynamic else "Masks are stored. "
    return "\n\n".join(
        (
            f"## Where it is from\n\n{_table(('what', 'digest or version'), _sources(manifest, fingerprint))}",
            f"## How it was made\n\nSeed {manifest.recipe['seed']}, recipe section `[instances]`:\n\n"
            + _table(
                ("setting", "value"),
                ((f"`{key}`", f"`{value}`" if value != "" else "") for key, value in sorted(settings.items())),
            ),
            f"## Numbers\n\n{drawn}Digests of shards and all statistics: `manifest.json`.\n\n"
            + _table(("", *splits), _numbers(counted)),
            "## Lengths\n\n"
            + _table(("tokens, special ones counted", *splits), _lengths(counted, int(settings["length"]))),
        )
    )


def _sources(manifest: Manifest, fingerprint: str) -> Iterable[tuple[str, ...]]:
    yield "fingerprint of the instances", f"`{fingerprint}`"
    yield from ((f"`{split}`, content", f"`{digest}`") for split, digest in manifest.content.items())
    yield from ((f"read: {name}", f"`{digest}`") for name, digest in manifest.upstream.items())
    yield from ((name, version) for name, version in manifest.versions.items())


def _numbers(counted: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, ...]]:
    for key, name in _COUNTS.items():
        if any(counts.get(key) for counts in counted.values()):
            yield name, *(f"{counts.get(key, 0):,}" for counts in counted.values())
    ratios = [counts.get("ratios", {}) for counts in counted.values()]
    for key, name in _SHARES.items():
        if any(key in shares for shares in ratios):
            yield name, *(f"{shares[key]:.2%}" if key in shares else "" for shares in ratios)


def _lengths(counted: Mapping[str, Mapping[str, Any]], longest: int) -> Iterable[tuple[str, ...]]:
    """Bin k of the manifest holds lengths in (k * longest / bins, (k + 1) * longest / bins]."""
    histograms = [counts.get("lengths", []) for counts in counted.values()]
    bins = max(map(len, histograms), default=0)
    each = -(-bins // _LINES)
    for first in range(0, bins, each or 1):
        counts = [sum(histogram[first : first + each]) for histogram in histograms]
        low, high = first * longest // bins + 1, min(first + each, bins) * longest // bins
        if low <= high and any(counts):
            yield f"{low} to {high}", *(f"{count:,}" for count in counts)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head)]
    lines += [["---"] * len(lines[0]), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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

    ``body``: Markdown after that, of `card_body`.
    """
    rows = {table: sum(shard.rows for shard in counted) for table, counted in finished.items()}
    splits = "".join(
        f"  - split: {table}\n    path: {table}/*.arrow\n" for table in finished if rows[table]
    )  # fmt: skip
    lines = "\n".join(f"| {table} | {count:,} |" for table, count in rows.items())
    text = (
        f"---\nconfigs:\n- config_name: default\n  data_files:\n{splits}---\n\n# {title}\n\n"
        f"Training instances built by CorpusForge. `manifest.json` says how; `vocab/` is the tokenizer.\n\n"
        f"| split | instances |\n|---|---|\n{lines}\n\n"
        "```python\nimport datasets\n\n"
        'train = datasets.load_from_disk("train")  # or datasets.load_dataset(".") in this folder\n```\n'
    )
    text += f"\n{body}\n" if body else ""
    shards.write_bytes(shards.join(folder, "README.md"), text.encode())
