"""Batches with dynamic masks: the loader against the collator of transformers, on the same rows.

    python benchmarks/collate.py TEXT.jsonl.gz... --megabytes 20 --length 128 --tokens 16384

Instances are built from the texts first (doc-sentences, WordPiece, with word starts). Then one thread makes batches of
the same rows on both sides, in turn, medians of ``--rounds``, CPU time. The collator gets rows that lie in memory as
lists, with ``pad_to_multiple_of=8``, and gives PyTorch or NumPy; ours reads them from the shards. "as the collator":
ids, attention mask and dense labels as it gives them; "compact": ids, and labels of masked positions only. Padding
shares are printed, of rows in random order too, and of packed rows.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
from build_instances import read_texts, write_vocab

from corpusforge import shards
from corpusforge.instances.builder import Builder, BuildSettings
from corpusforge.instances.masking import MaskSettings, Specials
from corpusforge.loader import Batch, Batcher, BatchSettings
from corpusforge.schemas import DOCUMENTS
from corpusforge.sections.instances import MASK_UNITS
from corpusforge.tokens.encode import Encoder


def build(folder: Path, texts: list[str], length: int) -> None:
    """A folder as build-instances leaves it, with word starts, masks not drawn."""
    vocab = write_vocab(folder / "vocab", texts)
    settings = BuildSettings(Specials.of(vocab), length=length, mask=MaskSettings(unit="span"))
    encoder, builder = Encoder(vocab, word_starts=True), Builder(settings)
    rows = [{"id": f"{i:032x}", "source": "benchmark", "position": i, "text": t} for i, t in enumerate(texts)]
    writer = shards.ShardWriter(str(folder), "train/part-00000-00000.arrow", builder.schema, "arrow")
    for begin in range(0, len(rows), 1000):
        documents = pa.RecordBatch.from_pylist(rows[begin : begin + 1000], schema=DOCUMENTS)
        for built in builder.copies(encoder.encode_counted(documents).tokens, 1):
            writer.write(built.instances)
    tables = {"train": [writer.finish()]}
    count = {"train": tables["train"][0].rows}
    recipe = {"seed": 0, "instances": {"length": length}}
    shards.Manifest("build-instances", "benchmark", {}, count, {}, tables, {}, {}, recipe, {}, {}).save(str(folder))


def collators(folder: Path, batcher: Batcher, count: int) -> dict[str, tuple[int, Callable[[], Any]]]:
    """The peer on the rows of the first steps of ours, handed over as lists; {} where it is not installed."""
    try:
        import torch
        import transformers
    except ImportError:
        return {}
    torch.set_num_threads(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder / "vocab"))
    given, tokens = [], 0
    for batch in itertools.chain(*itertools.islice(batcher.iterate(threads=0), count)):
        flat = batch.input_ids.ravel().copy()
        flat[batch.masked] = batch.labels
        pairs = zip(batch.begins.tolist(), batch.lengths.tolist(), strict=True)
        given.append([{"input_ids": flat[a : a + n].tolist()} for a, n in pairs])
        tokens += batch.tokens

    def made(kind: str) -> Callable[[], Any]:
        collate = transformers.DataCollatorForLanguageModeling(
            tokenizer, mlm_probability=0.15, pad_to_multiple_of=8, return_tensors=kind
        )
        return lambda: [collate([dict(row) for row in rows]) for rows in given]

    return {f"transformers, {kind}": (tokens, made(kind)) for kind in ("pt", "np")}


def ours(batcher: Batcher, count: int, *, dense: bool) -> tuple[int, Callable[[], Any]]:
    """Tokens of the first ``count`` steps, and what makes them."""

    def run() -> Iterator[Batch]:
        for batch in itertools.chain(*itertools.islice(batcher.iterate(threads=0), count)):
            if dense:
                batch.is_real(), batch.dense_labels()
            yield batch

    return sum(batch.tokens for batch in run()), lambda: [batch.tokens for batch in run()]


def padding(folder: str, batcher: Batcher) -> str:
    """What is padding in our batches, in those of a shuffled order, and in packed rows."""
    settings, lengths = batcher.settings, batcher.corpus.lengths
    rows = settings.micro_batch_tokens // settings.length
    shuffled = np.random.default_rng(0).permutation(lengths)[: len(lengths) // rows * rows].reshape(-1, rows)
    widths = -(-shuffled.max(1) // settings.multiple) * settings.multiple if len(shuffled) else shuffled
    random = 1 - shuffled.sum() / (widths.sum() * rows) if len(shuffled) else 0.0
    row = Batcher(folder, dataclasses.replace(settings, packing=True, row_length=settings.length)).epoch_size()
    return (
        f"padding: {batcher.epoch_size().padding:.2%} by length within a step, {random:.2%} in random order; packed "
        f"none, {row.padding:.2%} in rows of {settings.length}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--megabytes", type=int, default=20)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=16_384, help="of a micro-batch")
    parser.add_argument("--step-tokens", type=int, default=131_072)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    versions = ", ".join(f"{p} {metadata.version(p)}" for p in ("numpy", "pyarrow", "transformers", "torch") if _has(p))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder, list(read_texts(given.texts, given.megabytes * 10**6)), given.length)
        settings = BatchSettings(given.step_tokens, given.tokens)
        batcher, packed = Batcher(name, settings), Batcher(name, dataclasses.replace(settings, packing=True))
        epoch = batcher.epoch_size()
        print(f"{epoch.instances:,} instances, {epoch.tokens:,} tokens, steps of {given.step_tokens:,} tokens")
        print(padding(name, batcher))
        runs = {"as the collator": ours(batcher, epoch.steps, dense=True)}
        runs["compact"] = ours(batcher, epoch.steps, dense=False)
        runs["packed, compact"] = ours(packed, epoch.steps, dense=False)
        for unit in list(MASK_UNITS)[1:]:
            other = Batcher(name, settings, masking=MaskSettings(unit=unit))
            runs[f"{unit}, compact"] = ours(other, epoch.steps, dense=False)
        runs |= collators(folder, batcher, max(1, epoch.steps // 10))
        report(runs, given.rounds)


def report(runs: dict[str, tuple[int, Callable[[], Any]]], rounds: int) -> None:
    """Run all in turn and print medians, and how many times the faster collator each is."""
    speeds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, (tokens, run) in runs.items():
            begin = time.process_time()
            run()
            speeds[name].append(tokens / (time.process_time() - begin) / 1e6)
    medians = {name: statistics.median(measured) for name, measured in speeds.items()}
    peer = max((speed for name, speed in medians.items() if name.startswith("transformers")), default=0.0)
    print(f"one thread, CPU time, median of {rounds}")
    for name, speed in medians.items():
        print(f"{name:24} {speed:8.2f} M tokens/s" + (f"  x {speed / peer:6.1f}" if peer else ""))


def _has(package: str) -> bool:
    try:
        return bool(metadata.version(package))
    except metadata.PackageNotFoundError:
        return False


if __name__ == "__main__":
    main()
