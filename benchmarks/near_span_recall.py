"""Recall of near-duplicate spans of three sentences, against the theory of the bands and the true similarity.

    python benchmarks/near_span_recall.py TEXT.jsonl.gz... [--spans 40000] [--threshold 0.8] [--permutations 64]

Spans of three sentences of real text, and for each a copy with planted edits: words changed, inserted, dropped, or
neighbors swapped, one to three of them. The truth is brute force: the Jaccard similarity of the two Python sets of
word shingles. By that similarity the table gives

- ``pairs``: the number of such pairs;
- ``meet``: the share that meets in a band, and ``theory``: that of the curve 1 - (1 - s^r)^b for these pairs;
- ``signature``: the share that meets and whose signatures agree in at least the threshold;
- ``exact``: the share that meets and whose true similarity, from the hashes of shingles, is at least the threshold.

Below it: precision (the share of pairs found that are truly at least as similar as the threshold, or within 0.1 of it)
and recall (the share of pairs that similar which are found), and pairs of spans that were not planted.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import random
import time
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa

from corpusforge.dedupe.lsh import band_hashes, bands_for, similarity
from corpusforge.dedupe.minhash import Signer, jaccard
from corpusforge.sentences.splitter import sentence_spans
from corpusforge.text import Spans, byte_slices, text_bytes

LENGTH = 3
EDITS = ("change", "insert", "drop", "swap")


def read_spans(paths: list[str], count: int) -> list[list[str]]:
    """Runs of three sentences that do not overlap, from JSONL files, the same number from each."""
    runs: list[list[str]] = []
    for number, path in enumerate(paths, 1):
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
            for line in file:
                spans = sentence_spans(pa.array([json.loads(line)["text"][:200_000]], pa.string()))
                sentences = byte_slices(spans.data, spans.starts, spans.stops).to_pylist()
                runs += [sentences[i : i + LENGTH] for i in range(0, len(sentences) - LENGTH + 1, LENGTH)]
                if len(runs) >= count * number // len(paths):
                    del runs[count * number // len(paths) :]
                    break
    return runs


def edited(span: list[str], draw: random.Random, vocabulary: list[str]) -> list[str]:
    """A copy of a span with one to three edits."""
    words = [sentence.split() for sentence in span]
    for _ in range(draw.randint(1, 3)):
        edit = draw.choice(EDITS)
        row = draw.choice([w for w in words if w])
        at = draw.randrange(len(row))
        if edit == "change":
            row[at] = draw.choice(vocabulary)
        elif edit == "insert":
            row.insert(at, draw.choice(vocabulary))
        elif edit == "drop" and len(row) > 1:
            del row[at]
        elif edit == "swap" and at:
            row[at - 1], row[at] = row[at], row[at - 1]
    return [" ".join(row) for row in words]


def as_sentences(spans: list[list[str]]) -> Spans:
    """Each span a document of three sentences."""
    column = pa.array([piece for span in spans for sentence in span for piece in (sentence, " ")], pa.string())
    data, offsets = text_bytes(column)
    return Spans(data, offsets[:-1:2], offsets[1::2], np.arange(0, LENGTH * len(spans) + 1, LENGTH), offsets[:-1:6])


def words_of(span: list[str]) -> list[str]:
    """Lower-case runs of characters between separators: white space, punctuation, invisible characters."""
    separates = ("Z", "P", "Cc", "Cf")
    text = "".join(" " if unicodedata.category(c).startswith(separates) else c.lower() for c in " ".join(span))
    return text.split(" ")


def true_similarity(left: list[str], right: list[str], size: int) -> float:
    """Brute force on Python sets of shingles of ``size`` words."""
    sets = []
    for span in (left, right):
        words = [word for word in words_of(span) if word]
        sets.append({tuple(words[i : i + size]) for i in range(max(1, len(words) - size + 1))})
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


def is_plain(span: list[str]) -> bool:
    """Whether a span has a letter, and none of a script without spaces (whose words the brute force does not know)."""
    text = "".join(span)
    return any(c.isalnum() for c in text) and not any(c >= "\u0e00" and c.isalpha() for c in text)


def main() -> None:
    """Plant, sign, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="+", help="JSONL files with a text column, plain or .gz")
    parser.add_argument("--spans", type=int, default=40_000, help="spans to plant (default 40000)")
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--permutations", type=int, default=64)
    given = parser.parse_args()
    signer, bands = Signer(given.permutations), bands_for(given.threshold, given.permutations)
    draw = random.Random(1)
    originals = [span for span in read_spans(given.text, given.spans) if is_plain(span)]
    vocabulary = [word for span in originals[::10] for word in span[0].split()]
    copies = [edited(span, draw, vocabulary) for span in originals]
    print(f"{len(originals)} spans of {LENGTH} sentences, {given.permutations} permutations, threshold", end=" ")
    print(f"{given.threshold}: {bands.bands} bands of {bands.rows} rows; {platform.machine()}, {os.cpu_count()} cores,")
    print(f"Python {platform.python_version()}, NumPy {np.__version__}")
    truth = np.array([true_similarity(a, b, signer.shingle_words) for a, b in zip(originals, copies, strict=True)])
    start = time.perf_counter()
    sides = [signer.shingles(as_sentences(spans)) for spans in (originals, copies)]
    sets = [side.span_sets(LENGTH) for side in sides]
    signed = [signer.sign(side) for side in sets]
    rows = np.arange(0, LENGTH * len(originals), LENGTH)
    real = signed[0][1][rows] & signed[1][1][rows]
    rows, truth = rows[real], truth[real]
    left, right = signed[0][0][rows], signed[1][0][rows]
    met = (band_hashes(left, bands) == band_hashes(right, bands)).any(axis=1)
    by_signature = met & (similarity(left, right) >= np.float32(given.threshold))
    compared = time.perf_counter()
    exact = jaccard(*(side.take(rows) for side in sets))
    by_set = met & (exact >= np.float32(given.threshold))
    print(f"true similarities of {len(rows)} pairs in {time.perf_counter() - compared:.3f} s", end=" ")
    print(f"(signing and comparing both sides: {compared - start:.3f} s);", end=" ")
    print(f"largest difference from brute force {np.abs(exact - truth).max():.4f}")
    report(truth, met, by_signature, by_set, given.threshold, bands.recall(truth))
    unplanted(left, bands, sets[0], rows, given.threshold)


def report(truth, met, by_signature, by_set, threshold, theory) -> None:  # type: ignore[no-untyped-def]
    """The table by true similarity, then precision and recall."""
    print("| similarity | pairs | meet | theory | signature | exact |\n|---|---|---|---|---|---|")
    for low in (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95):
        high = low + (0.05 if low >= 0.7 else 0.1)
        chosen = (truth >= low) & ((truth < high) | (low == 0.95))
        if chosen.sum():
            shares = [column[chosen].mean() for column in (met, theory, by_signature, by_set)]
            print(f"| {low:.2f} - {high:.2f} | {chosen.sum()} |", " | ".join(f"{share:.3f}" for share in shares), "|")
    similar = truth >= threshold
    for name, matches in (("signature", by_signature), ("exact", by_set)):
        print(f"{name}: precision {similar[matches].mean():.4f}, within 0.1 of the threshold", end=" ")
        print(f"{(truth[matches] >= threshold - 0.1).mean():.4f}; recall {matches[similar].mean():.4f}", end=" ")
        print(f"(theory of the bands {theory[similar].mean():.4f})")


def unplanted(signatures, bands, sets, rows, threshold) -> None:  # type: ignore[no-untyped-def]
    """Pairs of originals that meet, those whose signatures are similar, and those that are similar."""
    hashes = band_hashes(signatures, bands)
    order = np.argsort(hashes, axis=0)
    pairs = set()
    for band in range(bands.bands):  # neighbors in each bucket
        a, b = order[:-1, band], order[1:, band]
        equal = hashes[a, band] == hashes[b, band]
        pairs |= {(min(x, y), max(x, y)) for x, y in zip(a[equal].tolist(), b[equal].tolist(), strict=True)}
    if pairs:
        first, second = (np.array(side) for side in zip(*sorted(pairs), strict=True))
        truth = jaccard(sets.take(rows[first]), sets.take(rows[second]))
        by_signature = similarity(signatures[first], signatures[second]) >= np.float32(threshold)
        print(
            f"not planted: {len(pairs)} pairs meet, {by_signature.sum()} have similar signatures,",
            f"{(truth >= threshold).sum()} are similar (both: {(by_signature & (truth >= threshold)).sum()})",
        )


if __name__ == "__main__":
    main()
