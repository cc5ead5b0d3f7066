"""A run, stage, vocabulary, training or checkpoint as tables for a terminal.

Weights are never loaded: the header of the safetensors file has what is shown, so this room needs no PyTorch. A row of
a list of checkpoints shows what ``state.json`` states; only `show_checkpoint` reads all files of one to check them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.columns import Columns
from rich.console import RenderableType
from rich.text import Text

from corpusforge import errors, shards
from corpusforge.report import evaluation
from corpusforge.report.gather import Found, funnel, read_log, share
from corpusforge.report.plain import memory, number, seconds, size, visible, words
from corpusforge.report.tables import columns, pairs, reason_style
from corpusforge.shards import Manifest


def show_run(found: Found) -> list[RenderableType]:
    """The funnel, the stages, and the last losses of a run."""
    shown: list[RenderableType] = [Text(problem, "bold red") for problem in found.problems]
    steps = funnel(found.manifests)
    if steps:
        rows = [
            [s.label, number(s.documents), size(s.text_bytes) if s.text_bytes else "", f"{share(s, steps[0]):.1%}"]
            for s in steps
        ]
        shown.append(columns("Funnel", ["", "documents", "bytes", "left"], rows))
    stages = []
    for stage, manifest in found.manifests.items():
        timing = found.timings.get(stage, {})
        tables = ", ".join(f"{table} {rows:,}" for table, rows in manifest.rows.items())
        took = seconds(float(timing.get("seconds", 0)))
        stages.append([stage, tables, took, memory(float(timing.get("peak_rss", 0))), found.path(stage)])
    shown.append(columns("Stages", ["", "rows", "time", "peak memory", "folder"], stages))
    if found.log:
        last: dict[str, Any] = {}
        for line in found.log:
            last |= {name: value for name, value in line.items() if value is not None}
        if isinstance(last.get("memory"), int | float):
            last["memory"] = memory(last["memory"])
        shown.append(_numbers("Training, last figures", last))
    return shown


def show_stage(folder: str) -> list[RenderableType]:
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
    tested = _json(folder, "evaluation.json").get("tasks") if manifest.stage == "evaluate" else None
    if tested:
        shown += [columns(table.title, table.columns, table.rows) for table in evaluation.tables(tested)]
    elif manifest.statistics:
        shown.append(_numbers("Statistics", manifest.statistics))
    about = {"digest": manifest.digest, **{f"from {name}": digest for name, digest in manifest.upstream.items()}}
    shown.append(_numbers("Recipe", manifest.recipe))
    shown.append(pairs("Made by", {**about, **manifest.versions}))
    if shards.exists(shards.join(folder, "tokenizer.json")):
        shown += show_vocabulary(folder)
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
        for place, inner in enumerate(value, 1):  # steps of cleaning, say
            _flatten(inner, f"{prefix} {place}", into)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        into[prefix] = ", ".join(map(str, value)) if isinstance(value, list) else value
    else:
        into[prefix] = number(value)


def show_vocabulary(folder: str) -> list[RenderableType]:
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
    some = [shown(vocab, token) for token in used[:: max(1, len(used) // 72)]]
    found: list[RenderableType] = [pairs(f"Vocabulary {folder}", about)]
    for title, tokens in (("Some tokens", some), ("Longest tokens", longest_tokens(vocab, used)[:24])):
        found += [Text(title, "bold"), Columns([Text(visible(token)) for token in tokens], padding=(0, 2))]
    return found


def show_checkpoint(folder: str) -> list[RenderableType]:
    """Configuration, step and integrity of a checkpoint or an exported model."""
    shown: list[RenderableType] = [Text(f"Checkpoint {folder}", "bold")]
    state = _json(folder, "state.json")
    if state:
        settings = {f"setting {name}": value for name, value in state.get("settings", {}).items()}
        about = {"step": f"{state['step']:,}", "tokens read": f"{state['tokens']:,}", "data": state["fingerprint"]}
        shown.append(pairs("Training", {**about, **settings}))
    weights = _weights(folder)
    count = sum(_elements(entry["shape"]) for entry in weights.values())
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


def _elements(shape: list[int]) -> int:
    total = 1
    for axis in shape:
        total *= axis
    return total


def _integrity(folder: str) -> RenderableType:
    digests = _json(folder, "digests.json")
    if not digests:
        return Text("no digests.json: an exported model, not a checkpoint to resume from", "dim")
    paths = {name: shards.join(folder, name) for name in digests}
    bad = [n for n, path in paths.items() if not shards.exists(path) or shards.file_digest(path) != digests[n]]
    if bad:
        return Text(f"damaged: {', '.join(bad)} differ from digests.json", "bold red")
    return Text(f"all {len(digests)} files agree with digests.json", "green")


LOG = "log.jsonl"
STATE = "state.json"
OF_TRAINING = ("step", "tokens", "mlm_loss", "unigram", "mlm_accuracy", "lr", "tokens_per_second")
OF_HELDOUT = ("step", "heldout_loss", "heldout_unigram", "heldout_accuracy")


def are_checkpoints(path: str) -> bool:
    """Whether a folder holds checkpoints."""
    return bool(_folders(path))


def show_checkpoints(path: str) -> list[RenderableType]:
    """A row for each, the newest last: its step, what it had read, its held-out loss if it was measured, its size."""
    rows = []
    for folder in _folders(path):
        state = _state(folder)
        on_disk = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
        values = [_shown(state.get(key)) for key in ("step", "tokens", "heldout_length", "heldout")]
        rows.append([folder.name, *values, size(on_disk)])
    header = ["", "step", "tokens read", "length", "held-out loss", "on disk"]
    mend = f"corpusforge inspect {path}/{rows[-1][0]}: its settings, and whether its files are whole"
    return [columns(f"Checkpoints {path}", header, rows), Text(mend, "dim")]


def _folders(path: str) -> list[Path]:
    """Folders of checkpoints by step; of those that lie on this machine only, as pretrain writes no others."""
    found = [] if shards.is_remote(path) else [p for p in Path(path).glob("step-*") if p.name[5:].isdigit()]
    return sorted(found, key=lambda folder: int(folder.name[5:]))


def _state(folder: Path) -> Mapping[str, Any]:
    try:
        found = shards.read_json(str(folder / STATE))
    except (OSError, ValueError):
        found = {}  # a broken one is listed too: its row is empty
    return found if isinstance(found, dict) else {}


def _shown(value: object) -> str:
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def show_log(path: str, count: int, skip: int) -> list[RenderableType]:
    """The last lines of a log of training, all but the ``skip`` last of them, and its last held-out losses.

    Raises `errors.InputMissing` if no line of a training is in it.
    """
    folder = str(Path(path).parent) if not shards.is_remote(path) else path.rpartition("/")[0]
    found = Found(folder)
    log = read_log(found, path)
    if not log:
        what = "; ".join(found.problems) or "no line in it yet"
        raise errors.InputMissing(path, what, "name the log.jsonl of a training, after its first --log-steps")
    shown: list[RenderableType] = [Text(problem, "bold red") for problem in found.problems]
    for title, keys, mark in (("Training", OF_TRAINING, "mlm_loss"), ("Held-out", OF_HELDOUT, "heldout_loss")):
        lines = [line for line in log if mark in line]
        if some := lines[max(0, len(lines) - skip - count) : max(0, len(lines) - skip)]:
            shown.append(_lines(f"{title}, the last {len(some)} of {len(lines):,} lines", keys, some))
    shown += [Text(f"step {line['step']:,}: {line['warning']}", "bold red") for line in log if "warning" in line]
    skipped = sum("skipped" in line for line in log)
    if skipped:
        shown.append(Text(f"steps skipped: {skipped:,}, the last of them {_last_skipped(log):,}"))
    return [
        *shown,
        Text(f"corpusforge report {folder}: the curves as a page, also while the run is in progress", "dim"),
    ]


def _lines(title: str, keys: Sequence[str], lines: Sequence[Mapping[str, Any]]) -> RenderableType:
    known = [key for key in keys if any(key in line for line in lines)]
    return columns(title, [*map(words, known)], [[_shown(line.get(key)) for key in known] for line in lines])


def _last_skipped(log: Sequence[Mapping[str, Any]]) -> int:
    return max(int(line["step"]) for line in log if "skipped" in line)
