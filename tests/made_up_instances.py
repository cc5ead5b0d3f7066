"""A small synthetic corpus of instances, with a vocabulary, as the stages before pretrain write them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from corpusforge import schemas, seeds, shards
from corpusforge.instances.masking import Masker, MaskSettings
from corpusforge.instances.masking import Specials as MaskSpecials
from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.wordpiece import arrange

VOCABULARY = 192
UNUSED = 4


@dataclasses.dataclass(frozen=True)
class Data:
    """Folders of a synthetic corpus."""

    instances: str
    vocabulary: str


def write_vocabulary(folder: Path, unused: int = UNUSED) -> MaskSpecials:
    """A vocabulary of 192 entries: specials, unused slots, words."""
    vocab = arrange([f"w{k}" for k in range(VOCABULARY - 5 - unused)], VOCABULARY, unused, BertSegmentation())
    folder.mkdir(parents=True)
    for name, content in vocab.save_files().items():
        (folder / name).write_bytes(content)
    ids = vocab.specials
    return MaskSpecials(vocab.size, ids.pad, ids.unk, ids.cls, ids.sep, ids.mask, vocab.unused)


def instance_rows(specials: MaskSpecials, count: int, longest: int, *, pairs: bool, seed: int) -> list[dict[str, Any]]:
    """Rows of INSTANCES whose ids follow a rule that a model can learn: the steps between them are equal."""
    rows = []
    for number in range(count):
        rng = seeds.rng_for(seed, "rows", number)
        words, stride = specials.words().astype(np.int64), int(rng.integers(1, 3))
        n = int(rng.integers(4, longest - 3)) if number else longest - 3  # the first has the greatest length
        text = words[(int(rng.integers(len(words))) + stride * np.arange(n)) % len(words)].tolist()
        cut = int(rng.integers(1, n)) if pairs else n
        ids = [specials.cls, *text[:cut], specials.sep]
        if pairs:
            ids += [*text[cut:], specials.sep]
        rows.append(
            {
                "input_ids": ids,
                "segment_lengths": [cut + 2, n - cut + 1 if pairs else 0],
                "pair_label": number % 2 if pairs else None,
                "document": number // 2 + 1,
                "index": number % 2,
                "copy": 0,
                "length": len(ids),
            }
        )
    return rows


def with_masks(rows: list[dict[str, Any]], specials: MaskSpecials, seed: int, copies: int) -> list[dict[str, Any]]:
    """Each row ``copies`` times, with masks stored as build-instances stores them."""
    masker, masked = Masker(specials, MaskSettings(), seed), []
    for copy in range(copies):
        for row in rows:
            ids = np.array(row["input_ids"], np.uint16)
            key = seeds.instance_keys(np.array([row["document"]], np.uint64), np.array([row["index"]], np.uint32))
            drawn = masker(ids, np.array([0, len(ids)]), key, copy)
            masks = {"masked_positions": drawn.positions.tolist(), "masked_labels": drawn.labels.tolist()}
            masked.append(row | masks | {"input_ids": drawn.input_ids.tolist(), "copy": copy})
    return masked


def write_table(
    folder: Path, table: str, rows: list[dict[str, Any]], files: int, *, masks: bool, words: bool = False
) -> list[shards.Shard]:
    """Write rows to ``files`` shards of several record batches each."""
    schema = schemas.instances_schema(VOCABULARY, masks=masks, word_starts=words)
    written = []
    for number in range(files):
        part = rows[len(rows) * number // files : len(rows) * (number + 1) // files]
        writer = shards.ShardWriter(str(folder), f"{table}/part-{number:05d}-00000.arrow", schema, "arrow")
        for begin in range(0, len(part), 7):
            writer.write(pa.RecordBatch.from_pylist(part[begin : begin + 7], schema))
        written.append(writer.finish())
    return written
