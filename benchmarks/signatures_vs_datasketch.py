"""MinHash signatures of documents: ours against datasketch and rensa, from text in memory, one core each.

    python -m venv PEER && PEER/bin/pip install -r benchmarks/requirements-signatures.txt
    python benchmarks/signatures_vs_datasketch.py --peer-python PEER/bin/python TEXT.jsonl.gz...

All sign the same documents with the same number of permutations. ``from text`` starts with the text: ours finds words
(and sentences for ``ours: spans``, which signs every span of three), lower-cases them and hashes shingles of five
words; the peers get lower-case words split at white space and joined to shingles in Python, as in their examples.
``shingles ready`` leaves that out: only the library is measured, with the hashing of shingles for the peers and without
it for ours.

Every side also signs pairs of a document and an edited copy. ``error`` is the root mean square difference of its
estimates from the true Jaccard similarity, in units of the error of a binomial of that many permutations (1.00 is
perfect).

Every round runs all sides one after the other, each in a process of its own pinned to one core; figures are medians,
by processor seconds.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.metadata
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHINGLE = 5
PAIRS = 1000
SIDES = ("ours: documents", "ours: spans", "datasketch", "rensa")


def read_texts(paths: list[str], limit: int) -> list[str]:
    """Texts of JSONL files, plain or .gz, in turn, until there are ``limit`` bytes."""
    texts, size = [], 0
    for path in paths:
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
            for line in file:
                texts.append(json.loads(line)["text"])
                size += len(texts[-1].encode())
                if size >= limit:
                    return texts
    return texts


def edited_pairs(texts: list[str]) -> list[str]:
    """Documents of 300 words, each followed by a copy with up to 40 words replaced."""
    draw = random.Random(1)
    pairs: list[str] = []
    for text in texts:
        words = "".join(c if c.isalnum() or c == " " else " " for c in text.lower()).split()[:300]
        if len(words) == 300 and len(pairs) < 2 * PAIRS:
            copy = list(words)
            for _ in range(draw.randint(0, 40)):
                copy[draw.randrange(300)] = "replaced"
            pairs += [" ".join(words), " ".join(copy)]
    return pairs


def shingles(text: str) -> list[bytes]:
    """Runs of five words of a text, or all of it."""
    words = text.lower().split()
    return [" ".join(words[i : i + SHINGLE]).encode() for i in range(max(1, len(words) - SHINGLE + 1))]


def sign_ours(
    texts: list[str], permutations: int, spans: bool
) -> tuple[dict[str, Callable[[], Any]], Callable[..., Any]]:
    """The functions to time, and one that signs texts."""
    import pyarrow as pa

    from corpusforge.dedupe.minhash import Signer
    from corpusforge.dedupe.normalize import whole_documents
    from corpusforge.sentences.splitter import sentence_spans

    signer = Signer(permutations, SHINGLE)
    batches = [pa.array(texts[i : i + 500], pa.string()) for i in range(0, len(texts), 500)]

    def sets(column: Any) -> Any:
        if spans:
            return signer.shingles(sentence_spans(column)).span_sets()
        return signer.shingles(whole_documents(column)).document_sets()

    def rows(texts: list[str]) -> Any:
        return signer.sign(signer.shingles(whole_documents(pa.array(texts, pa.string()))).document_sets())[0]

    ready = [sets(batch) for batch in batches]
    runs = {
        "from text": lambda: [signer.sign(sets(batch))[0] for batch in batches],
        "shingles ready": lambda: [signer.sign(batch)[0] for batch in ready],
    }
    return runs, rows


def sign_datasketch(texts: list[str], permutations: int) -> tuple[dict[str, Callable[[], Any]], Callable[..., Any]]:
    """datasketch: MinHash.generator, which runs update_batch per document."""
    from datasketch import MinHash

    def sign(sets: Any) -> list[Any]:
        return [minhash.hashvalues for minhash in MinHash.generator(sets, num_perm=permutations)]

    ready = [shingles(text) for text in texts]
    runs = {"from text": lambda: sign(map(shingles, texts)), "shingles ready": lambda: sign(ready)}
    return runs, lambda pairs: sign(map(shingles, pairs))


def sign_rensa(texts: list[str], permutations: int) -> tuple[dict[str, Callable[[], Any]], Callable[..., Any]]:
    """rensa: RMinHash digests of all documents in one matrix."""
    from rensa import RMinHash

    def sign(sets: list[list[bytes]]) -> Any:
        return RMinHash.digest_matrix_from_token_byte_sets(sets, permutations, 42)

    ready = [shingles(text) for text in texts]
    runs = {"from text": lambda: sign([shingles(text) for text in texts]), "shingles ready": lambda: sign(ready)}
    return runs, lambda pairs: sign([shingles(text) for text in pairs]).to_rows()


def estimate_error(signatures: Any, pairs: list[str]) -> float:
    """Root mean square error of estimates, over that of a binomial."""
    squares, expected = 0.0, 0.0
    for i in range(0, len(pairs), 2):
        left, right = set(shingles(pairs[i])), set(shingles(pairs[i + 1]))
        truth = len(left & right) / len(left | right)
        equal = [int(a) == int(b) for a, b in zip(signatures[i], signatures[i + 1], strict=True)]
        squares += (sum(equal) / len(equal) - truth) ** 2
        expected += truth * (1 - truth) / len(equal)
    return (squares / expected) ** 0.5 if expected else 0.0


def be_side(side: str, source: Path, permutations: int) -> None:
    """Run in the process of one side: print seconds by way, and the error."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    given = json.loads(source.read_text())
    texts, pairs = given["texts"], given["pairs"]
    if side.startswith("ours"):
        runs, rows = sign_ours(texts, permutations, side.endswith("spans"))
    else:
        runs, rows = {"datasketch": sign_datasketch, "rensa": sign_rensa}[side](texts, permutations)
    error = estimate_error(rows(pairs), pairs)  # also warms up
    seconds = {}
    for name, run in runs.items():
        start = time.process_time()
        run()
        seconds[name] = time.process_time() - start
    names = ("numpy", "pyarrow") if side.startswith("ours") else (side, "numpy")
    versions = {name: importlib.metadata.version(name) for name in names}
    print(json.dumps({"seconds": seconds, "error": error, "versions": versions}))


def run_side(python: str, side: str, source: Path, permutations: int) -> dict[str, Any]:
    """Run one side in a process of its own and read its figures."""
    root = str(Path(__file__).parent.parent)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "PYTHONPATH": root}
    command = [python, __file__, "--side", side, "--permutations", str(permutations), str(source)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{side} failed:\n{done.stderr[-4000:]}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def main() -> None:
    """Parse arguments, run all sides in turn, print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="+", help="JSONL files with a text column, plain or .gz")
    parser.add_argument("--peer-python", help="Python of the environment that has datasketch and rensa")
    parser.add_argument("--megabytes", type=float, default=20, help="text to use (default 20)")
    parser.add_argument("--permutations", type=int, default=64, help="positions of a signature (default 64)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median counts (default 3)")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        be_side(given.side, Path(given.text[0]), given.permutations)
        return
    texts = read_texts(given.text, int(given.megabytes * 1e6))
    size = sum(len(text.encode()) for text in texts)
    print(
        f"{size / 1e6:.1f} MB, {len(texts)} documents, {given.permutations} permutations, shingles of {SHINGLE} words;"
    )
    print(f"{platform.machine()}, {os.cpu_count()} cores, one used; Python {platform.python_version()};", end=" ")
    print(f"load {os.getloadavg()[0]:.1f}; median of {given.rounds}")
    with tempfile.TemporaryDirectory(prefix="signatures-benchmark-") as name:
        source = Path(name) / "texts.json"
        source.write_text(json.dumps({"texts": texts, "pairs": edited_pairs(texts)}))
        sides = SIDES if given.peer_python else SIDES[:2]
        runs: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
        for _ in range(given.rounds):
            for side in sides:
                python = sys.executable if side.startswith("ours") else given.peer_python
                runs[side].append(run_side(python, side, source, given.permutations))
    speeds = {}
    for side, (first, *others) in runs.items():
        for way in first["seconds"]:
            speeds[side, way] = size / 1e6 / statistics.median(run["seconds"][way] for run in (first, *others))
            versions = " ".join(f"{n} {v}" for n, v in first["versions"].items())
            print(f"{side:16} {way:15} {speeds[side, way]:8.2f} MB/s  error {first['error']:.2f}  [{versions}]")
    for (side, way), speed in speeds.items():
        if not side.startswith("ours"):
            print(f"ours: documents / {side}, {way}: {speeds['ours: documents', way] / speed:.1f}")


if __name__ == "__main__":
    main()
