"""A small handmade run: manifests, shards and logs as the stages write them, with hostile text in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpusforge import schemas, shards
from corpusforge.content import combine
from corpusforge.shards import Manifest, ShardWriter
from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.report import describe
from corpusforge.tokens.wordpiece import arrange

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \x1b[31m\u202e & \"quoted\" 'text'."
KEPT = f"The first line of the page stays.\nAnd so does this one: {HOSTILE}\nThe last line stays too."


def write_stage(
    folder: Path,
    stage: str,
    tables: dict[str, tuple[pa.Schema, list[dict[str, Any]]]],
    *,
    tallies: shards.Tallies | None = None,
    statistics: dict[str, Any] | None = None,
    kind: str = "parquet",
) -> Manifest:
    """Write the folder of a finished stage with one shard per table."""
    written = {}
    for table, (schema, rows) in tables.items():
        writer = ShardWriter(str(folder), f"{table}/part-00000-00000{shards.SUFFIX[kind]}", schema, kind)
        writer.write(pa.RecordBatch.from_pylist(rows, schema))
        written[table] = [writer.finish()]
    manifest = Manifest(
        stage=stage,
        digest="0" * 32,
        content={t: combine(s.content for s in parts) for t, parts in written.items()},
        rows={t: parts[0].rows for t, parts in written.items()},
        bytes={t: parts[0].bytes for t, parts in written.items()},
        shards=written,
        tallies=tallies or {},
        statistics=statistics or {},
        recipe={"section": {"value": 1, "many": ["a", "b"]}, "seed": 0},
        upstream={"input": "1" * 32},
        versions={"corpusforge": "0.1.0", "pyarrow": "25.0.0"},
    )
    manifest.save(str(folder))
    timing = {"stage": stage, "workers": 2, "runner": "local", "seconds": 61.5, "peak_rss": 3e8}
    shards.write_json(str(folder / "timing.json"), timing)
    return manifest


def document(number: int, text: str) -> dict[str, Any]:
    return {"id": f"{number:032x}", "url": f"http://a.example/{number}", "source": "a.warc.gz", "position": number,
            "timestamp": None, "language": "en", "text": text}  # fmt: skip


def reject(number: int, line: int | None, reason: str, text: str, detail: str | None = None) -> dict[str, Any]:
    return {"document": f"{number:032x}", "url": None, "source": "a.warc.gz", "position": number,
            "line": line, "reason": reason, "detail": detail, "text": text}  # fmt: skip


def make_run(folder: Path) -> Path:
    """A run of all stages."""
    documents = [document(0, KEPT), document(1, "One more page. It is short. It stays.")]
    _cleaned(folder / "clean", documents)
    _deduplicated(folder / "dedupe", documents)
    _built(folder)
    _trained(folder)
    return folder


def _cleaned(folder: Path, documents: list[dict[str, Any]]) -> None:
    rejects = [
        reject(0, 1, "line:few-words", HOSTILE, "2 words"),
        reject(0, 3, "line:no-end-mark", "Menu"),
        reject(2, None, "page:bad-words", "A foul page.\nOf two lines.", HOSTILE),
    ]
    write_stage(
        folder,
        "clean",
        {"documents": (schemas.DOCUMENTS, documents), "rejects": (schemas.REJECTS, rejects)},
        tallies={
            "line:few-words": {"rows": 1, "bytes": 90},
            "line:no-end-mark": {"rows": 1, "bytes": 4},
            "page:bad-words": {"rows": 1, "bytes": 26},
            "text:email": {"rows": 5, "bytes": 60},
            "kept": {"rows": 2, "bytes": 200},
        },
        statistics={
            "records_in": 4,
            "raw_bytes_in": 900,
            "documents_in": 3,
            "documents_out": 2,
            "text_bytes_in": 400,
            "text_bytes_out": 200,
        },
    )


def _deduplicated(folder: Path, documents: list[dict[str, Any]]) -> None:
    repeat = {"document": documents[1]["id"], "reason": "span:repeated", "start": 0, "stop": 10,
              "text": "The first line", "kept_document": documents[0]["id"], "kept_start": 0,
              "method": "exact-spans"}  # fmt: skip
    write_stage(
        folder,
        "dedupe",
        {"documents": (schemas.DOCUMENTS, documents[:1]), "repeats": (schemas.REPEATS, [repeat])},
        tallies={"span:repeated": {"rows": 1, "bytes": 14}},
        statistics={"documents_in": 2, "documents_out": 1, "text_bytes_in": 200, "text_bytes_out": 150},
    )


def _built(folder: Path) -> None:
    """The vocabulary and the instances."""
    vocab = arrange(["the", "river", "runs", "##ing", "."], 128, 4, BertSegmentation())
    figures = describe(vocab, pa.array(["The river runs.", HOSTILE]), pa.array(["en", "</script><b>x"]))
    write_stage(folder / "vocab", "train-vocab", {}, statistics={**figures, "sample": "held out"})
    for below in ("vocab", "instances/vocab"):
        for name, data in vocab.save_files().items():
            shards.write_bytes(str(folder / below / name), data)
    the, river, runs = (vocab.tokens.index(word) for word in ("the", "river", "runs"))
    special = vocab.specials
    row = {"input_ids": [special.cls, the, special.mask, runs, special.sep], "segment_lengths": [5, 0],
           "pair_label": None, "document": 7, "index": 0,
           "copy": 0, "length": 5, "masked_positions": [2], "masked_labels": [river]}  # fmt: skip
    schema = schemas.instances_schema(128, masks=True)
    counts = {"instances": 8, "documents": 3, "tokens": 700, "lengths": [0, 0, 1, 5, 2], "source_tokens": 650,
              "unknown_tokens": 13, "instances_per_document": [0, 1, 2, 0], "masked": 105, "masked_as_mask": 84,
              "masked_as_random": 10, "masked_as_kept": 11, "pairs_next": 4, "pairs_random": 4}  # fmt: skip
    statistics = {"train": counts, "heldout": {"instances": 0, "lengths": []}, "seconds": [1.0, 2.0]}
    write_stage(
        folder / "instances", "build-instances", {"train": (schema, [row])}, statistics=statistics, kind="arrow"
    )


def _trained(folder: Path) -> None:
    """The log of training, and the evaluation."""
    write_stage(folder / "pretrain", "pretrain", {})
    lines = [{"step": k, "loss": 9 / k, "mlm_loss": 9 / k, "mlm_accuracy": 0.1 * k, "pair_loss": None, "memory": 4e8}
             for k in (1, 2)]  # fmt: skip
    lines.append({"step": 2, "heldout_loss": 5.5, "heldout_unigram": 6.5, "heldout_accuracy": 0.15})
    (folder / "pretrain/log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    write_stage(folder / "evaluate", "evaluate", {})
    blimp = {"accuracy": 0.6, "pairs": 60, "phenomena": {"word_order": 0.7, "npi": 0.5},
             "paradigms": {"word_order": 0.7, "npi_licensing": 0.5}}  # fmt: skip
    evaluation = {
        "checkpoint": "model",
        "tasks": {"mlm": {"below_unigram": 0.75, "loss": 5.5, "unigram_loss": 6.25}, "blimp": blimp},
    }
    shards.write_json(str(folder / "evaluate/evaluation.json"), evaluation)
