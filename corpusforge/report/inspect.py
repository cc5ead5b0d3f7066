"""`corpusforge inspect`: show a run, stage, shard, vocabulary, checkpoint, training log or recipe in a terminal.

The kind of a path is recognized by its contents (names of files and columns), never by its location. Weights are never
loaded: the header of the safetensors file has what is shown, so no PyTorch is needed. A list of checkpoints shows what
their ``state.json`` contain; only a single checkpoint is read as a whole, to verify its digests.
"""

from __future__ import annotations

import json
import math
import operator
import re
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.columns import Columns
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from corpusforge import errors, recipe, sections, shards
from corpusforge.report import document_view, evaluation, tables
from corpusforge.report.gather import FOLDERS, Run, funnel, gather, read_log, share
from corpusforge.report.plain import memory, number, seconds, size, visible, words
from corpusforge.report.tables import columns, pairs, reason_style
from corpusforge.shards import Manifest

SHARDS = (".parquet", ".arrow")
LOG = "log.jsonl"
STATE = "state.json"
TRAINING_COLUMNS = ("step", "tokens", "mlm_loss", "unigram", "mlm_accuracy", "lr", "tokens_per_second")
HELDOUT_COLUMNS = ("step", "heldout_loss", "heldout_unigram", "heldout_accuracy")
"""Columns of the tables of a training log."""


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
    if path.rpartition("/")[2] == LOG and shards.exists(path):
        return _show_log(path, rows, skip)
    if path.endswith(".toml") or not shards.exists(path):
        return _recipe(path)
    for what, show in (
        ("model.safetensors", _show_checkpoint),
        (shards.MANIFEST, _show_stage),
        ("tokenizer.json", _show_vocabulary),
        ("vocab.txt", _show_vocabulary),
    ):
        if shards.exists(shards.join(path, what)):
            return show(path)
    return _folder(path, rows, skip)


def _folder(path: str, count: int, skip: int) -> list[RenderableType]:
    """A run, an unfinished training, its checkpoints, or a folder of shards."""
    if any(shards.exists(shards.join(path, name)) for name in FOLDERS.values()):
        return _show_run(gather(path))
    if _checkpoint_folders(path):
        return _show_checkpoints(path)
    if shards.exists(log := shards.join(path, LOG)):
        inner = shards.join(path, "checkpoints")
        known = _show_checkpoints(inner) if _checkpoint_folders(inner) else []
        return [*known, *_show_log(log, count, skip)]
    names = [name for suffix in SHARDS for name in shards.list_names(path, suffix)]
    if not names:
        mend = "name a run, a stage's folder, a .parquet or .arrow shard, a vocabulary, a checkpoint, a log or a recipe"
        raise errors.InputMissing(path, "nothing to show here", mend)
    for name in names:  # a unit may write a shard without rows: show the first one that has rows
        batch = next((b for b in shards.read_shard(shards.join(path, name)) if b.num_rows), None)
        if batch is not None and tables.is_clusters(batch.schema):
            return tables.show_clusters(path, names, count, skip)
        if batch is not None:
            return [_listing(names, name), *_shard(shards.join(path, name), count, skip)]
    return [Text(f"{path}: no rows in {len(names)} {'shards' if len(names) > 1 else 'shard'}")]


def _listing(names: list[str], shown: str) -> Text:
    """The number of shards, and which one is shown."""
    skipped = f"; those before {shown} have no rows" if shown != names[0] else ""
    if len(names) == 1:
        return Text(f"1 shard, {shown}")
    return Text(f"{len(names)} shards, {names[0]} to {names[-1]}{skipped}")


def _shard(path: str, count: int, skip: int) -> list[RenderableType]:
    if not shards.exists(path):
        raise errors.InputMissing(path, "no such file", "check the path")
    batches = list(shards.read_shard(path))
    total = sum(batch.num_rows for batch in batches)
    if not total:
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
    loaded = recipe.load(path)
    table = Table(title=f"Recipe {loaded.name}", title_justify="left", title_style="bold")
    for column in ("setting", "value", "meaning"):
        table.add_column(column, overflow="fold")
    for key, spec in sections.settings().items():
        value = operator.attrgetter(key)(loaded)
        style = "dim" if value == spec.default else "bold green"
        shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        unit = f" {spec.unit}" if spec.unit else ""
        table.add_row(Text(key), Text(f"{shown}{unit}", style), Text(spec.help, "dim"))
    return [table, Text(f"{recipe.find(path)}; values that are not the default are bold", "dim")]


def _check_name(name: str) -> None:
    """Raise `errors.InputMissing` if no recipe has this name; suggest recipes only for a plain name."""
    try:
        recipe.find(name)
    except errors.InputMissing as error:
        mend = f"check the path; for a recipe: {error.mend}" if re.fullmatch("[a-z0-9-]+", name) else "check the path"
        raise errors.InputMissing(name, "no such file or folder", mend) from None


def _show_run(run: Run) -> list[RenderableType]:
    """The funnel, the stages, and the last losses of a run."""
    shown: list[RenderableType] = [Text(problem, "bold red") for problem in run.problems]
    steps = funnel(run.manifests)
    if steps:
        rows = [
            [s.label, number(s.documents), size(s.text_bytes) if s.text_bytes else "", f"{share(s, steps[0]):.1%}"]
            for s in steps
        ]
        shown.append(columns("Funnel", ["", "documents", "bytes", "left"], rows))
    stages = []
    for stage, manifest in run.manifests.items():
        timing = run.timings.get(stage, {})
        counts = ", ".join(f"{table} {rows:,}" for table, rows in manifest.rows.items())
        duration, peak = seconds(float(timing.get("seconds", 0))), memory(float(timing.get("peak_rss", 0)))
        stages.append([stage, counts, duration, peak, run.path(stage)])
    shown.append(columns("Stages", ["", "rows", "time", "peak memory", "folder"], stages))
    if run.log:
        last = run.last_figures()
        if isinstance(last.get("memory"), int | float):
            last["memory"] = memory(last["memory"])
        shown.append(_numbers("Training, last figures", last))
    return shown


def _show_stage(folder: str) -> list[RenderableType]:
    """Tables, tallies, statistics, recipe and digests of a finished stage."""
    manifest = Manifest.load(folder)
    rows = [
        [table, number(count), number(len(manifest.shards.get(table, []))), size(manifest.bytes.get(table, 0)), content]
        for table, count in manifest.rows.items()
        for content in [manifest.content.get(table, "")]
    ]
    shown: list[RenderableType] = [Text(f"{manifest.stage}: {folder}", "bold")]
    if rows:  # a vocabulary and a model have none
        shown.append(columns("Tables", ["", "rows", "shards", "on disk", "content digest"], rows))
    if manifest.tallies:
        ordered = sorted(manifest.tallies.items(), key=lambda item: (-item[1]["rows"], item[0]))
        tallies = [[Text(reason, reason_style(reason)), number(c["rows"]), size(c["bytes"])] for reason, c in ordered]
        shown.append(columns("What happened, by reason", ["", "rows", "text"], tallies))
    tasks = _json(folder, "evaluation.json").get("tasks") if manifest.stage == "evaluate" else None
    if tasks:
        shown += [columns(table.title, table.columns, table.rows) for table in evaluation.tables(tasks)]
    elif manifest.statistics:
        shown.append(_numbers("Statistics", manifest.statistics))
    about = {"digest": manifest.digest, **{f"from {name}": digest for name, digest in manifest.upstream.items()}}
    shown.append(_numbers("Recipe", manifest.recipe))
    shown.append(pairs("Made by", {**about, **manifest.versions}))
    if shards.exists(shards.join(folder, "tokenizer.json")):
        shown += _show_vocabulary(folder)
    return shown


def _numbers(title: str, values: dict[str, Any]) -> RenderableType:
    flat: dict[str, object] = {}
    _flatten(values, "", flat)
    return pairs(title, flat)


def _flatten(value: Any, prefix: str, into: dict[str, object]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(inner, f"{prefix} {key}".strip(), into)
    elif isinstance(value, list) and value and all(isinstance(inner, dict) for inner in value):
        for position, inner in enumerate(value, 1):  # for example the steps of cleaning
            _flatten(inner, f"{prefix} {position}", into)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        into[prefix] = ", ".join(map(str, value)) if isinstance(value, list) else value
    else:
        into[prefix] = number(value)


def _show_vocabulary(folder: str) -> list[RenderableType]:
    """Size, specials and samples of a vocabulary's tokens."""
    from corpusforge.tokens.families import load_vocab
    from corpusforge.tokens.report import longest_tokens, shown

    vocab = load_vocab(folder)
    unused = set(vocab.unused)
    used = [token for at, token in enumerate(vocab.tokens) if at not in unused]
    inside = vocab.size - int(vocab.family.starts_word(vocab).sum())
    about = {
        "size": f"{vocab.size:,}",
        "unused slots": f"{len(vocab.unused):,}",
        "pieces inside words": f"{inside:,}",
        "single characters": f"{sum(len(vocab.family.text_of(token)) == 1 for token in used):,}",
        "family": vocab.family.name,
        **vocab.family.about(),
        "digest": vocab.digest,
        **{name: f"{at}  {vocab.tokens[at]}" for name, at in vars(vocab.specials).items()},
    }
    samples = [shown(vocab, token) for token in used[:: max(1, len(used) // 72)]]
    parts: list[RenderableType] = [pairs(f"Vocabulary {folder}", about)]
    for title, tokens in (("Sample of tokens", samples), ("Longest tokens", longest_tokens(vocab, used)[:24])):
        parts += [Text(title, "bold"), Columns([Text(visible(token)) for token in tokens], padding=(0, 2))]
    return parts


def _show_checkpoint(folder: str) -> list[RenderableType]:
    """Configuration, step and integrity of a checkpoint or an exported model."""
    shown: list[RenderableType] = [Text(f"Checkpoint {folder}", "bold")]
    state = _json(folder, STATE)
    if state:
        settings = {f"setting {name}": value for name, value in state.get("settings", {}).items()}
        about = {"step": f"{state['step']:,}", "tokens read": f"{state['tokens']:,}", "data": state["fingerprint"]}
        shown.append(pairs("Training", {**about, **settings}))
    weights = _weights(folder)
    count = sum(math.prod(entry["shape"]) for entry in weights.values())
    kinds = ", ".join(sorted({entry["dtype"] for entry in weights.values()}))
    shown.append(pairs("Weights", {"parameters": f"{count:,}", "tensors": len(weights), "type": kinds}))
    shown.append(pairs("Configuration", _json(folder, "config.json")))
    shown.append(_integrity(folder))
    return shown


def _json(folder: str, name: str) -> dict[str, Any]:
    path = shards.join(folder, name)
    if not shards.exists(path):
        return {}
    try:
        value = shards.read_json(path)
    except ValueError as error:
        raise errors.ManifestInvalid(path, f"unreadable ({error})", "name another checkpoint") from None
    return value if isinstance(value, dict) else {}


def _weights(folder: str) -> dict[str, Any]:
    """Names, types and shapes from the header of the safetensors file: 8 bytes of length, then JSON."""
    path = shards.join(folder, "model.safetensors")
    try:
        with shards.open_binary(path) as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(length, 1 << 27)))
        return {name: entry for name, entry in header.items() if name != "__metadata__"}
    except (ValueError, struct.error) as error:
        raise errors.ManifestInvalid(path, f"no weights ({error})", "name another checkpoint") from None


def _integrity(folder: str) -> RenderableType:
    digests = _json(folder, "digests.json")
    if not digests:
        return Text("no digests.json: an exported model, not a checkpoint to resume from", "dim")
    paths = {name: shards.join(folder, name) for name in digests}
    damaged = [n for n, path in paths.items() if not shards.exists(path) or shards.file_digest(path) != digests[n]]
    if damaged:
        return Text(f"damaged: {', '.join(damaged)} differ from digests.json", "bold red")
    return Text(f"all {len(digests)} files agree with digests.json", "green")


def _show_checkpoints(path: str) -> list[RenderableType]:
    """A row per checkpoint, the newest last: step, tokens read, held-out loss if it was measured, size on disk."""
    rows = []
    for folder in _checkpoint_folders(path):
        state = _state(folder)
        on_disk = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
        values = [_shown(state.get(key)) for key in ("step", "tokens", "heldout_length", "heldout")]
        rows.append([folder.name, *values, size(on_disk)])
    header = ["", "step", "tokens read", "length", "held-out loss", "on disk"]
    hint = f"corpusforge inspect {path}/{rows[-1][0]}: its settings, and whether its files are intact"
    return [columns(f"Checkpoints {path}", header, rows), Text(hint, "dim")]


def _checkpoint_folders(path: str) -> list[Path]:
    """Folders of checkpoints by step; local ones only, as pretrain writes no others."""
    folders = [] if shards.is_remote(path) else [p for p in Path(path).glob("step-*") if p.name[5:].isdigit()]
    return sorted(folders, key=lambda folder: int(folder.name[5:]))


def _state(folder: Path) -> Mapping[str, Any]:
    try:
        state = shards.read_json(str(folder / STATE))
    except (OSError, ValueError):
        return {}  # a broken checkpoint is listed with an empty row
    return state if isinstance(state, dict) else {}


def _shown(value: object) -> str:
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _show_log(path: str, count: int, skip: int) -> list[RenderableType]:
    """``count`` lines of a training log before the last ``skip`` ones, and the same of its held-out losses.

    Raises `errors.InputMissing` if it has no line of a training.
    """
    folder = str(Path(path).parent) if not shards.is_remote(path) else path.rpartition("/")[0]
    run = Run(folder)
    log = read_log(run, path)
    if not log:
        what = "; ".join(run.problems) or "it has no lines yet"
        raise errors.InputMissing(path, what, "name the log.jsonl of a training, after its first --log-steps")
    shown: list[RenderableType] = [Text(problem, "bold red") for problem in run.problems]
    for title, keys, mark in (
        ("Training", TRAINING_COLUMNS, "mlm_loss"),
        ("Held-out", HELDOUT_COLUMNS, "heldout_loss"),
    ):
        lines = [line for line in log if mark in line]
        if last := lines[max(0, len(lines) - skip - count) : max(0, len(lines) - skip)]:
            shown.append(_lines(f"{title}, the last {len(last)} of {len(lines):,} lines", keys, last))
    shown += [Text(f"step {line['step']:,}: {line['warning']}", "bold red") for line in log if "warning" in line]
    if skipped := [int(line["step"]) for line in log if "skipped" in line]:
        shown.append(Text(f"steps skipped: {len(skipped):,}, the last of them {max(skipped):,}"))
    return [*shown, Text(f"corpusforge report {folder}: the curves as a page, also during training", "dim")]


def _lines(title: str, keys: Sequence[str], lines: Sequence[Mapping[str, Any]]) -> RenderableType:
    known = [key for key in keys if any(key in line for line in lines)]
    return columns(title, [*map(words, known)], [[_shown(line.get(key)) for key in known] for line in lines])
