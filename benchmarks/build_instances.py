"""build-instances against google's BERT procedure: text on disk in, shards on disk out, one core each.

    python -m venv PEER && PEER/bin/pip install -r benchmarks/requirements-google-bert.txt
    PEER/bin/pip install --no-deps tf-models-official==2.20.0
    python benchmarks/build_instances.py --peer-python PEER/bin/python TEXT.jsonl.gz... [--copies 10]

The peer is ``create_pretraining_data`` of tf-models-official, google's maintained copy of the BERT repository's. Both
sides get the same documents, sentences and vocabulary (learned from the first tenth), and make segment pairs of 128
with stored masks; the peer writes TFRecord, ours Arrow. Ours also makes doc-sentences. Each side runs in a process of
its own, pinned to one core; imports are not counted. Shares and mean lengths show that both made the same thing.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import importlib.metadata
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

LENGTH, PREDICTIONS, PIECE, SHARDS = 128, 20, 100_000, 4


@dataclasses.dataclass(frozen=True)
class Run:
    """One side's figures. ``seconds``: by step; ``cpu``: processor seconds of all steps."""

    seconds: dict[str, float]
    cpu: float
    instances: int
    random_share: float
    mean_a: float
    mean_b: float
    versions: dict[str, str]


def now() -> tuple[float, float]:
    """Seconds, and processor seconds of this process."""
    return time.perf_counter(), time.process_time()


def steps(clock: list[tuple[float, float]], *names: str) -> tuple[dict[str, float], float]:
    """Seconds by step, and processor seconds of all; ``clock``: `now` at the beginning and after each step."""
    wall = [at for at, _ in clock]
    return {n: b - a for n, a, b in zip(names, wall[:-1], wall[1:], strict=True)}, clock[-1][1] - clock[0][1]


def read_texts(paths: Iterable[str], limit: int) -> Iterator[str]:
    """Texts of JSONL files, plain or .gz, up to ``limit`` bytes; long ones in parts."""
    for path in paths:
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
            for line in file:
                text = json.loads(line)["text"]
                for start in range(0, len(text), PIECE):
                    limit -= len(text[start : start + PIECE].encode())
                    if limit < 0:
                        return
                    yield text[start : start + PIECE]


def write_vocab(folder: Path, texts: list[str]) -> Any:
    """Learn a vocabulary from the first tenth of the texts, write it to ``folder`` and return it."""
    import pyarrow as pa

    from corpusforge import sections, shards
    from corpusforge.tokens.counts import count_words, pack_counts, select_counts
    from corpusforge.tokens.wordpiece import learn

    counted = pack_counts(count_words(pa.array(texts[: len(texts) // 10 + 1])), 1)
    counts, _ = select_counts([block for _, block in counted], min_count=2, max_words=4_000_000)
    vocab = learn(counts, sections.Vocab(size=30_528, allow_any_size=True)).vocab
    for name, data in vocab.save_files().items():
        shards.write_bytes(str(folder / name), data)
    return vocab


def write_corpus(folder: Path, texts: list[str]) -> None:
    """Write DOCUMENTS shards, the peer's text file (a sentence a line), and the vocabulary."""
    import pyarrow as pa

    from corpusforge import shards
    from corpusforge.schemas import DOCUMENTS
    from corpusforge.sentences import splitter

    write_vocab(folder / "vocab", texts)
    column = pa.array(texts)
    rows = [{"id": f"{i:032x}", "source": "benchmark", "position": i, "text": t} for i, t in enumerate(texts)]
    for number in range(SHARDS):
        name = f"documents/part-{number:05d}-00000.parquet"
        writer = shards.ShardWriter(str(folder), name, DOCUMENTS, "parquet")
        writer.write(pa.RecordBatch.from_pylist(rows[number::SHARDS], schema=DOCUMENTS))
        writer.finish()
    spans = splitter.sentence_spans(column)
    data, lines = spans.data.tobytes(), []
    for first, stop in zip(spans.offsets[:-1].tolist(), spans.offsets[1:].tolist(), strict=True):
        lines += [data[spans.starts[i] : spans.stops[i]].replace(b"\n", b" ") for i in range(first, stop)]
        lines.append(b"")
    (folder / "sentences.txt").write_bytes(b"\n".join(lines))


def as_google(form: str, copies: int) -> Any:
    """The settings of google's defaults, in one of our formats."""
    from corpusforge import sections

    section = sections.Instances(format=form, length=LENGTH, masking="duplicated", max_predictions=PREDICTIONS)
    return dataclasses.replace(section, copies=copies, pair_sampling="original", heldout=0.0)


def run_ours(source: Path, output: Path, section: Any) -> Run:
    """CorpusForge's own work units in a plain loop. ``section``: the recipe's section [instances]."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    pa.array(np.zeros(1))  # imports pandas where it is installed
    from corpusforge import shards
    from corpusforge.instances import build as work
    from corpusforge.instances import negatives
    from corpusforge.instances.formats import find_format
    from corpusforge.tokens import encode  # noqa: F401  (imported here, as the other side's modules are)
    from corpusforge.tokens.families import load_vocab
    from corpusforge.units import ShardUnit

    vocab = load_vocab(str(source / "vocab"))
    settings, copies = work.settings_of(vocab, section, 0), work.copies_of(section)
    paths = sorted((source / "documents").glob("*.parquet"))
    units = [ShardUnit(n, str(p), pq.ParquetFile(p).metadata.num_rows, p.stat().st_size) for n, p in enumerate(paths)]
    clock = [now()]
    for unit in units:
        work.EncodeWork(str(output / "encoded"), vocab, word_starts=settings.word_starts)(unit, lambda _: None)
    clock.append(now())
    tokens = work.token_units(str(output / "encoded"))
    folder = ""
    if find_format(section.format).needs_negatives:
        drawn = negatives.NegativeSettings.of(section, 0)
        folder = negatives.write_negatives(str(output), [unit.path for unit in tokens], vocab.size, drawn)
    clock.append(now())
    for unit in tokens:
        work.BuildWork(str(output), settings, copies, negatives=folder)(unit, lambda _: None)
    clock.append(now())
    written = shards.gather(shards.load_entries(str(output)))[0]["train"]
    share, a, b = _means([str(output / shard.name) for shard in written])
    taken = steps(clock, "encode", "negatives", "build")
    return Run(*taken, sum(s.rows for s in written), share, a - 2, b - 1, versions_of("numpy", "pyarrow"))


def _means(paths: list[str]) -> tuple[float, float, float]:
    """The share of random pairs, and how long both segments are, specials counted; all are read."""
    import numpy as np

    from corpusforge import shards

    segments, labels = [np.zeros((0, 2))], [np.zeros(0)]
    for batch in (b for path in paths for b in shards.read_shard(path)):
        segments.append(batch.column("segment_lengths").flatten().to_numpy().reshape(-1, 2))
        labels.append(batch.column("pair_label").to_numpy(zero_copy_only=False))
    a, b = np.concatenate(segments).mean(0)
    return float(np.nan_to_num(np.concatenate(labels).astype(float)).mean()), float(a), float(b)


def run_google(source: Path, output: Path, copies: int) -> Run:
    """google's procedure as its own main runs it, with its defaults."""
    import random

    from official.nlp.data import create_pretraining_data as peer  # type: ignore[import-not-found]
    from official.nlp.tools import tokenization  # type: ignore[import-not-found]

    tokenizer = tokenization.FullTokenizer(str(source / "vocab/vocab.txt"), do_lower_case=True)
    clock = [now()]
    made = peer.create_training_instances(
        [str(source / "sentences.txt")],
        tokenizer,
        peer.get_processor_text_fn(False, True),
        LENGTH,
        copies,
        0.1,
        0.15,
        PREDICTIONS,
        random.Random(12345),
    )
    clock.append(now())
    files = [str(output / "out.tfrecord")]
    peer.write_instance_to_example_files(made, tokenizer, LENGTH, PREDICTIONS, files, False, False)
    clock.append(now())
    b = [sum(i.segment_ids) - 1 for i in made]
    a = [len(i.tokens) - n - 3 for i, n in zip(made, b, strict=True)]
    share = sum(i.is_random_next for i in made) / len(made)
    versions = versions_of("tf-models-official", "tensorflow-cpu")
    return Run(*steps(clock, "create", "write"), len(made), share, statistics.mean(a), statistics.mean(b), versions)


def versions_of(*names: str) -> dict[str, str]:
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in names}}


def run_side(python: str, side: str, given: argparse.Namespace, folder: Path, script: str = __file__) -> Run:
    """Run one side in a process of its own and read its figures. ``script``: the benchmark that has the side."""
    output = folder / side
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir()
    quiet = {"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    path = str(Path(__file__).parent.parent)
    options = ["--side", side, "--copies", str(given.copies), str(folder / "in"), str(output)]
    command = [python, script, *options]
    done = subprocess.run(command, env={**os.environ, **quiet, "PYTHONPATH": path}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{side} failed:\n{done.stderr[-4000:]}")
    return Run(**json.loads((output / "figures.json").read_text()))


def be_side(side: str, source: Path, output: Path, copies: int) -> None:
    """What the process of one side does."""
    pin()
    own = side != "google"
    made = run_ours(source, output, as_google(side, copies)) if own else run_google(source, output, copies)
    (output / "figures.json").write_text(json.dumps(dataclasses.asdict(made)))


def pin() -> None:
    """Use one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def show(side: str, runs: list[Run], size: int) -> tuple[float, float]:
    """Print one side's medians; returns its MB/s, by the clock and by processor seconds."""
    total = statistics.median(sum(run.seconds.values()) for run in runs)
    cpu = statistics.median(run.cpu for run in runs)
    parts = ", ".join(f"{n} {statistics.median(r.seconds[n] for r in runs):.2f}" for n in runs[0].seconds)
    last, versions = runs[-1], " ".join(f"{n} {v}" for n, v in runs[0].versions.items())
    rates = f"{size / total / 1e6:8.2f} MB/s {last.instances / total:10,.0f} instances/s {total:8.2f} s ({parts})"
    print(f"{side:14}{rates}; by processor seconds {size / cpu / 1e6:.2f} MB/s")
    shape = f"random B {last.random_share:.3f}, mean A {last.mean_a:.1f}, mean B {last.mean_b:.1f}"
    print(f"{'':14}{last.instances:,} instances, {shape} [{versions}]")
    return size / total, size / cpu


def compare(ours: str, peer: str, speeds: dict[str, tuple[float, float]]) -> None:
    """Print how many times as fast one side is as another."""
    wall, cpu = (a / b for a, b in zip(speeds[ours], speeds[peer], strict=True))
    print(f"{ours} / {peer}: {wall:.1f}; by processor seconds {cpu:.1f}")


def main() -> None:
    """Parse arguments, write the corpus, run the sides in turn, print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="+", help="JSONL files with a text column, plain or .gz")
    parser.add_argument("--peer-python", help="Python of the environment that has the peer; without it, only ours")
    parser.add_argument("--megabytes", type=float, default=10, help="text to use (default 10)")
    parser.add_argument("--copies", type=int, default=1, help="copies with masks and pairs of their own (default 1)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median counts (default 3)")
    parser.add_argument("--side", choices=("segment-pair", "doc-sentences", "google"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        be_side(given.side, Path(given.text[0]), Path(given.text[1]), given.copies)
        return
    with tempfile.TemporaryDirectory(prefix="instances-benchmark-") as name:
        folder = Path(name)
        texts = list(read_texts(given.text, int(given.megabytes * 1e6)))
        size = sum(len(t.encode()) for t in texts)
        write_corpus(folder / "in", texts)
        print(f"{size / 1e6:.1f} MB of text, {len(texts):,} documents, {given.copies} copies;", end=" ")
        print(f"{os.cpu_count()} cores, one used; load {os.getloadavg()[0]:.1f}; median of {given.rounds}")
        sides = {"segment-pair": sys.executable, "doc-sentences": sys.executable}
        if given.peer_python:
            sides["google"] = given.peer_python
        runs: dict[str, list[Run]] = {side: [] for side in sides}
        for _ in range(given.rounds):
            for side, python in sides.items():
                runs[side].append(run_side(python, side, given, folder))
        speeds = {side: show(side, found, size) for side, found in runs.items()}
    if "google" in speeds:
        compare("segment-pair", "google", speeds)


if __name__ == "__main__":
    main()
