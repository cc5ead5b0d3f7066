"""Recall of near-duplicate documents: Wikipedia articles that occur in several dumps, against brute force.

    python benchmarks/document_recall.py enwiki-multidump-dev.jsonl.gz [OTHER.jsonl.gz...]

The truth is the Jaccard similarity of every pair of these documents, by Python sets of word 5-shingles, without
signatures or bands. For each threshold: the pairs that are at least that similar; the share of them that meets in a
band, as the mean over many seeds of the signatures, beside the share in LSH theory for the similarities of these pairs;
the pairs that belong to one group (connected components of the true pairs), those that the stage groups, those that it
misses, and those that it groups needlessly. Files after the first add documents to the stage's input.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from near_span_recall import words_of

from corpusforge import shards
from corpusforge.beam.engine import BeamEngine
from corpusforge.dedupe import methods
from corpusforge.dedupe.lsh import band_hashes, bands_for, bucket_pairs
from corpusforge.dedupe.minhash import Signer
from corpusforge.progress import Silent
from corpusforge.schemas import DOCUMENTS
from corpusforge.sections import Dedupe
from corpusforge.sentences.splitter import sentence_spans
from corpusforge.units import ShardUnit

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
OTHERS = 2000
LONGEST = 100_000


def read(paths: list[str]) -> tuple[list[str], int]:
    """Texts of all files, and the number of those of the first."""
    texts: list[str] = []
    first = 0
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows = [json.loads(line)["text"] for line in file]
        texts += rows if not first else [row[:LONGEST] for row in rows[:OTHERS]]
        first = first or len(rows)
    return texts, first


def brute_force(texts: list[str], words: int = 5) -> dict[tuple[int, int], float]:
    """Similarity of every pair of documents that share a shingle."""
    sets = []
    for text in texts:
        row = [word for word in words_of([text]) if word]
        sets.append({tuple(row[i : i + words]) for i in range(max(1, len(row) - words + 1))})
    pairs = {}
    for i, j in combinations(range(len(sets)), 2):
        shared = len(sets[i] & sets[j])
        if shared:
            pairs[i, j] = shared / len(sets[i] | sets[j])
    return pairs


def candidates(texts: list[str], threshold: float, seed: int) -> set[tuple[int, int]]:
    """Pairs that meet in a band, as the stage lists them, and pairs of equal signatures."""
    signer = Signer(seed=seed)
    signatures, real = signer.sign(signer.shingles(sentence_spans(pa.array(texts))).document_sets())
    rows = np.flatnonzero(real)
    hashes = band_hashes(signatures[rows], bands_for(threshold, signer.permutations))
    owners = np.repeat(rows, hashes.shape[1])
    pairs = owners[bucket_pairs(hashes.ravel(), (owners,))]
    return {(min(a, b), max(a, b)) for a, b in pairs.tolist()}


def run_stage(texts: list[str], threshold: float) -> list[dict[str, Any]]:
    """The method's own steps: rows of clusters/."""
    records = [{"id": str(n), "source": "benchmark", "position": n, "text": text} for n, text in enumerate(texts)]
    with tempfile.TemporaryDirectory(prefix="recall-") as folder:
        writer = shards.ShardWriter(folder, "in.parquet", DOCUMENTS, "parquet")
        writer.write(pa.RecordBatch.from_pylist(records, schema=DOCUMENTS))
        shard = writer.finish()
        unit = ShardUnit(0, shards.join(folder, shard.name), shard.rows, shard.bytes)
        settings = Dedupe(method=("documents",), threshold=threshold)
        methods.run(BeamEngine(1), settings, [unit], shards.join(folder, "out"), Silent())
        paths = Path(folder, "out/clusters").glob("*.parquet")
        return [row for path in paths for batch in shards.read_shard(str(path)) for row in batch.to_pylist()]


def joined(pairs: set[tuple[int, int]], count: int) -> set[tuple[int, int]]:
    """All pairs of documents in one connected component of these."""
    label = list(range(count))
    for a, b in sorted(pairs):
        old, new = label[b], label[a]
        label = [new if other == old else other for other in label]
    return {(i, j) for i, j in combinations(range(count), 2) if label[i] == label[j]}


def main() -> None:
    """Print one row per threshold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", help="JSONL files with a text column, .gz")
    parser.add_argument("--seeds", type=int, default=100, help="seeds of signatures for the mean (default 100)")
    given = parser.parse_args()
    texts, first = read(given.texts)
    truth = brute_force(texts[:first])
    versions = f"python {platform.python_version()}, numpy {np.__version__}, pyarrow {pa.__version__}"
    print(f"{first} documents of {Path(given.texts[0]).name} and {len(texts) - first} others; {versions};", end=" ")
    print(f"{platform.machine()}, {os.cpu_count()} cores; {given.seeds} seeds")
    print("threshold | bands | pairs | theory | in a band | to group | grouped | missed | needless")
    for threshold in THRESHOLDS:
        bands = bands_for(threshold, Signer().permutations)
        similar = {pair for pair, similarity in truth.items() if similarity >= threshold}
        theory = float(np.mean(bands.recall(np.array([truth[pair] for pair in similar]))))
        shares = [
            len(similar & candidates(texts[:first], threshold, seed)) / len(similar) for seed in range(given.seeds)
        ]
        grouped = {pair for pair in _members(run_stage(texts, threshold)) if min(pair) < first}
        wanted = joined(similar, first)
        shown = f"{threshold} | {bands.bands} x {bands.rows} | {len(similar)} | {theory:.3f} | {np.mean(shares):.3f}"
        missed, needless = len(wanted - grouped), len(grouped - wanted)
        print(f"{shown} | {len(wanted)} | {len(wanted & grouped)} | {missed} | {needless}", flush=True)


def _members(clusters: list[dict[str, Any]]) -> set[tuple[int, int]]:
    by_kept: dict[str, list[int]] = {}
    for row in clusters:
        by_kept.setdefault(row["kept"], []).append(int(row["document"]))
    return {pair for members in by_kept.values() for pair in combinations(sorted(members), 2)}


if __name__ == "__main__":
    main()
