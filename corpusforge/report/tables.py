"""The rows of a table in a terminal, one below the other; instances and rows of token ids decoded to text.

Text is made visible and truncated (`plain`), and never interpreted as rich markup. Instances are decoded with the
vocabulary of their stage. If the loader draws the masks, those of the first epoch are drawn here with the same
function, from the settings in the stage's manifest.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from corpusforge import errors, seeds, shards
from corpusforge.instances.masking import Ids, Masker, MaskSettings, Specials
from corpusforge.report.plain import truncate, visible
from corpusforge.schemas import CLUSTERS
from corpusforge.tokens.families import load_vocab
from corpusforge.tokens.vocab import Vocab

TEXT_SHOWN = 1200
"""Characters of a text that are shown; ``--document`` shows all of it."""

STYLES = {"record": "magenta", "page": "yellow", "line": "cyan", "span": "red"}
"""Colors of reasons by what was dropped."""


def show(table: pa.Table) -> list[RenderableType]:
    """Every row: its short columns on one line, its text below."""
    shown: list[RenderableType] = []
    for row in table.to_pylist():
        head = Text()
        for name, value in row.items():
            if name != "text" and value is not None:
                head.append(f"{name} ", "dim")
                head.append(f"{truncate(visible(str(value)), 200)}  ", _style(name, value))
        shown.append(head)
        if "text" in row:
            shown.append(Padding(Text(truncate(visible(str(row["text"])), TEXT_SHOWN)), (0, 0, 1, 4)))
    return shown


def _style(name: str, value: Any) -> str:
    return reason_style(str(value)) if name == "reason" else ""


def reason_style(reason: str) -> str:
    """The color of a reason.

    >>> reason_style("line:few-words")
    'cyan'
    """
    return STYLES.get(reason.split(":")[0], "white")


def columns(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table of values; columns after the first are right-aligned."""
    table = Table(title=Text(title, "bold"), title_justify="left", header_style="bold")
    for at, name in enumerate(header):
        table.add_column(name, justify="left" if at == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(value if isinstance(value, Text) else Text(visible(str(value))) for value in row))
    return table


def pairs(title: str, values: Mapping[str, object]) -> Table:
    """A table of names and values."""
    table = Table(title=Text(title, "bold"), title_justify="left", show_header=False)
    for name, value in values.items():
        table.add_row(Text(name), Text(truncate(visible(str(value)), 400)))
    return table


LABELS = {0: "B continues A", 1: "B is from another document"}
ORDER_LABELS = {0: "B continues A", 1: "A continues B: swapped"}
MARKS = {"red": "", "magenta": "~", "green": "="}
"""Marks around a masked token, so that a pipe shows what colors show; [MASK] needs none."""

LEGEND = (("[MASK]", "red"), ("another token", "magenta"), ("left unchanged", "green"))
"""What a masked position shows (BERT's 80, 10 and 10 %); the token to predict follows the first two."""


def show_instances(path: str, table: pa.Table) -> list[RenderableType]:
    """What the model sees of each row: masked tokens colored, with the original after them; segment B underlined."""
    folder, manifest = _stage_of(path)
    vocab = _vocab_of(folder)
    stored = "masked_positions" in table.schema.names
    masker = None if stored or vocab is None else _masker(vocab, manifest)
    labels = ORDER_LABELS if manifest.get("instances", {}).get("format") == "sop" else LABELS
    words = "word_starts" in table.schema.names
    shown: list[RenderableType] = [_legend(stored, masker is not None, words)]
    for row in table.to_pylist():
        if masker is not None:
            row |= _draw(row, masker)
        shown += [_head(row, labels), Padding(_sentence(row, vocab), (0, 0, 1, 4))]
    return shown


def show_tokens(path: str, table: pa.Table) -> list[RenderableType]:
    """The sentences of each row, one per line."""
    vocab = _vocab_of(_stage_of(path)[0])
    shown: list[RenderableType] = []
    for row in table.to_pylist():
        shown.append(Text(f"document {row['document']}, {len(row['sentences'])} sentences", "bold"))
        ends = np.cumsum([0, *row["sentences"]]).tolist()
        for begin, end in itertools.pairwise(ends):
            shown.append(Text("    " + " ".join(_token(vocab, i) for i in row["ids"][begin:end])))
    return shown


def _stage_of(path: str) -> tuple[str, dict[str, Any]]:
    """Folder and recipe of the stage of a shard: two levels up, where a manifest or run.json is."""
    parent = path.rsplit("/", 1)[0] if "/" in path else "."
    folder = parent.rsplit("/", 1)[0] if "/" in parent else (".." if parent == "." else ".")
    for name in (shards.MANIFEST, "run.json"):
        if shards.exists(shards.join(folder, name)):
            return folder, shards.read_json(shards.join(folder, name)).get("recipe", {})
    return folder, {}


def _vocab_of(folder: str) -> Vocab | None:
    try:
        return load_vocab(shards.join(folder, "vocab"))
    except (errors.CorpusForgeError, OSError):
        return None


def _masker(vocab: Vocab, recipe: dict[str, Any]) -> Masker | None:
    section = recipe.get("instances")
    if not isinstance(section, dict):
        return None
    return Masker(Specials.of(vocab), MaskSettings.of(section), int(recipe.get("seed", 0)))


def _draw(row: dict[str, Any], masker: Masker) -> dict[str, Any]:
    wide = masker.specials.size > 1 << 16
    ids: Ids = np.array(row["input_ids"], np.uint32) if wide else np.array(row["input_ids"], np.uint16)
    keys = seeds.instance_keys(np.array([row["document"]], np.uint64), np.array([row["index"]], np.uint32))
    starts = np.array(row["word_starts"], bool) if "word_starts" in row else None
    drawn = masker(ids, np.array([0, len(ids)], np.int64), keys, 0, starts)
    return {
        "input_ids": drawn.input_ids.tolist(),
        "masked_positions": drawn.positions.tolist(),
        "masked_labels": drawn.labels.tolist(),
    }


def _continuations(row: dict[str, Any]) -> set[int]:
    """Positions of an instance that continue the word before, if word starts are known."""
    return {position for position, starts in enumerate(row.get("word_starts") or []) if not starts}


def _legend(stored: bool, drawn: bool, words: bool) -> Text:
    legend = Text("masked: ")
    for name, color in LEGEND:
        legend.append(f"{MARKS[color]}{name}{MARKS[color]}", f"bold {color}")
        legend.append(", ")
    origin = "stored with the row" if stored else "as the loader draws them in epoch 0" if drawn else "not stored"
    legend.append(f"followed by (the token to predict) if it differs; masks {origin}; segment B is underlined")
    if words:
        legend.append("; a dot joins tokens that are masked together")
    return legend


def _head(row: dict[str, Any], labels: dict[int, str]) -> Text:
    a, b = row["segment_lengths"]
    label = row.get("pair_label")
    pair = "" if label is None else f", {labels.get(label, label)}"
    masked = len(row.get("masked_positions") or [])
    return Text(
        f"document {row['document']:016x}, instance {row['index']}, copy {row['copy']}: {row['length']} tokens"
        f" (A {a}, B {b}), {masked} masked{pair}",
        "bold",
    )


def _sentence(row: dict[str, Any], vocab: Vocab | None) -> Text:
    masked = dict(zip(row.get("masked_positions") or [], row.get("masked_labels") or [], strict=True))
    mask = vocab.specials.mask if vocab else -1
    first_b, continuations = row["segment_lengths"][0], _continuations(row)
    text = Text()
    for position, token in enumerate(row["input_ids"]):  # the tokens of one instance
        style = "underline" if position >= first_b else ""
        shown = _token(vocab, token)
        if position in masked:
            original = masked[position]
            color = "red" if token == mask else "green" if token == original else "magenta"
            text.append(f"{MARKS[color]}{shown}{MARKS[color]}", f"bold {color} {style}".strip())
            if token != original:
                text.append(f"({_token(vocab, original)})", f"{color} {style}".strip())
        else:
            text.append(shown, f"dim {style}".strip() if _is_special(vocab, token) else style)
        inside = position in masked or not _is_special(vocab, token)  # special tokens are not joined
        text.append("\u00b7" if inside and position + 1 in continuations else " ")
    return text


def _is_special(vocab: Vocab | None, token: int) -> bool:
    return vocab is not None and token in dataclasses.astuple(vocab.specials)


def _token(vocab: Vocab | None, token: int) -> str:
    return visible(vocab.tokens[token]) if vocab and token < vocab.size else str(token)


MEMBERS = 3
"""Members named for each cluster."""

_OLD_NAMES = {"survivor": "kept"}
"""Columns of CLUSTERS in folders of older versions."""


def is_clusters(schema: pa.Schema) -> bool:
    """Whether a table of this schema is CLUSTERS."""
    return bool(set(CLUSTERS.names) == {_OLD_NAMES.get(name, name) for name in schema.names})


def show_clusters(folder: str, names: list[str], count: int, skip: int) -> list[RenderableType]:
    """``count`` clusters after the first ``skip``. ``names``: the shards in the folder."""
    batches = [batch for name in names for batch in shards.read_shard(shards.join(folder, name))]
    table = pa.Table.from_batches(batches)
    table = table.rename_columns([_OLD_NAMES.get(name, name) for name in table.column_names])
    is_kept = pc.equal(table["document"], table["kept"])  # its similarity to itself says nothing
    similarity = pc.if_else(is_kept, pa.scalar(None, table["similarity"].type), table["similarity"])
    table = table.set_column(table.schema.get_field_index("similarity"), "similarity", similarity)
    aggregates = [("size", "max"), ("similarity", "min"), ("similarity", "mean")]
    clusters = table.group_by("kept").aggregate(aggregates)
    clusters = clusters.sort_by([("size_max", "descending"), ("kept", "ascending")])
    chosen = clusters.slice(skip, count)
    members = table.filter(pc.is_in(table["kept"], chosen["kept"].combine_chunks())).sort_by("similarity").to_pylist()
    if not chosen.num_rows:
        return [Text(f"{folder}: no clusters after the first {skip}")]
    last = skip + chosen.num_rows
    title = f"{clusters.num_rows:,} clusters of {table.num_rows:,} documents; {skip + 1} to {last}, the largest first"
    shown: list[RenderableType] = [Text(title, "bold")]
    for row in chosen.to_pylist():
        line = Text(visible(row["kept"]), "green")
        line.append(f"  {row['size_max']:,} documents", "")
        if row["similarity_mean"] is not None:  # None: the table has only the kept document of this cluster
            lowest, mean = row["similarity_min"], row["similarity_mean"]
            line.append(f", similarity to it at least {lowest:.2f}, {mean:.2f} on average", "")
        shown.append(line)
        similar = [m for m in members if m["kept"] == row["kept"] != m["document"]]
        shown += [Text(f"    {m['similarity']:.2f}  {visible(m['document'])}") for m in similar[:MEMBERS]]
    return [*shown, Text("inspect STAGE --document ID shows one of them", "dim")]
