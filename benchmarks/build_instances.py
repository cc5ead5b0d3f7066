"""build-instances against google's BERT procedure: text on disk in, shards on disk out, one core each.

    python -m venv PEER && PEER/bin/pip install -r benchmarks/requirements-google-bert.txt
    PEER/bin/pip install --no-deps tf-models-official==2.20.0
    python benchmarks/build_instances.py --peer-python PEER/bin/python TEXT.jsonl.gz... [--copies 10]

The peer is ``create_pretraining_data`` of tf-models-official, google's maintained copy of the BERT repository's. Both
sides get the same documents, sentences and vocabulary (learned from the first tenth), and make segment pairs of 128
with stored masks; the peer writes TFRecord, ours Arrow. Ours also makes doc-sentences. Each side runs in a process of
its own, pinned to one core; imports are not counted. Shares and mean lengths are printed, so that one can see that
both made the same thing. At the end: the mask function alone against the one of `transformers`' collator.
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

LENGTH, PREDICTIONS, PIECE, SHARDS = 128, 20, 100_000, 4


@dataclasses.dataclass(frozen=True)
class Run:
    """One side's figures. ``seconds``: by step."""

    seconds: dict[str, float]
    instances: int
    random_share: float
    mean_a: float
    mean_b: float
    versions: dict[str, str]


def read_texts(paths: Iterable[str], limit: int) -> Iterator[str]:
    """Texts of JSONL files, plain or .gz, up to ``limit`` bytes; long ones in pieces."""
    for path in paths:
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
            for line in file:
                text = json.loads(line)["text"]
                for start in range(0, len(text), PIECE):
                    limit -= len(text[start : start + PIECE].encode())
                    if limit < 0:
                        return
                    yield text[start : start + PIECE]


def write_corpus(folder: Path, texts: list[str]) -> None:
    """Write DOCUMENTS shards, the peer's text file (a sentence a line), and the vocabulary."""
    import pyarrow as pa

    from corpusforge import shards, text
    from corpusforge.schemas import DOCUMENTS
    from corpusforge.tokens.counts import count_words, pack_counts, select_counts
    from corpusforge.tokens.learn_wordpiece import learn_wordpiece

    column = pa.array(texts)
    counted = pack_counts(count_words(column.slice(0, len(texts) // 10 + 1)), 1)
    counts, _ = select_counts([block for _, block in counted], min_count=2, max_words=4_000_000)
    for name, data in learn_wordpiece(counts, 30_528, allow_any_size=True).save_files().items():
        shards.write_bytes(str(folder / "vocab" / name), data)
    rows = [{"id": f"{i:032x}", "source": "benchmark", "position": i, "text": t} for i, t in enumerate(texts)]
    for number in range(SHARDS):
        name = f"documents/part-{number:05d}-00000.parquet"
        writer = shards.ShardWriter(str(folder), name, DOCUMENTS, "parquet")
        writer.write(pa.RecordBatch.from_pylist(rows[number::SHARDS], schema=DOCUMENTS))
        writer.finish()
    spans = text.sentence_spans(column)
    data, lines = spans.data.tobytes(), []
    for first, behind in zip(spans.offsets[:-1].tolist(), spans.offsets[1:].tolist(), strict=True):
        lines += [data[spans.starts[i] : spans.stops[i]].replace(b"\n", b" ") for i in range(first, behind)]
        lines.append(b"")
    (folder / "sentences.txt").write_bytes(b"\n".join(lines))


def run_ours(source: Path, output: Path, copies: int, form: str) -> Run:
    """CorpusForge's own steps in a plain loop."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    from corpusforge import sections, shards
    from corpusforge.tokens.vocab import Vocab
    from corpusforge.units import ShardUnit
    from corpusforge.work import instances as work

    vocab = Vocab.load(str(source / "vocab"))
    section = sections.Instances(format=form, length=LENGTH, masking="duplicated", max_predictions=PREDICTIONS)
    section = dataclasses.replace(section, pair_sampling="original", heldout=0.0)
    settings = work.settings_of(vocab, section, 0)
    paths = sorted((source / "documents").glob("*.parquet"))
    units = [ShardUnit(n, str(p), pq.ParquetFile(p).metadata.num_rows, p.stat().st_size) for n, p in enumerate(paths)]
    clock = [time.perf_counter()]
    for unit in units:
        work.EncodeWork(str(output / "encoded"), vocab)(unit, lambda _: None)
    clock.append(time.perf_counter())
    tokens = work.token_units(str(output / "encoded"))
    donors = work.DonorSettings(0, 0.0, 256 << 20)
    folder = work.write_donors(str(output), [unit.path for unit in tokens], vocab.size, donors)
    clock.append(time.perf_counter())
    for unit in tokens:
        work.BuildWork(str(output), settings, copies, donors=folder)(unit, lambda _: None)
    clock.append(time.perf_counter())
    names = ("encode", "donors", "build")
    found = shards.gather(shards.load_entries(str(output)))[0]["train"]
    share, a, b = _means([str(output / shard.name) for shard in found])
    seconds = {n: y - x for n, x, y in zip(names, clock[:-1], clock[1:], strict=True)}
    return Run(seconds, sum(s.rows for s in found), share, a - 2, b - 1, _versions("numpy", "pyarrow"))


def _means(paths: list[str]) -> tuple[float, float, float]:
    """The share of random pairs, and how long both segments are, specials counted; all are read."""
    import numpy as np

    from corpusforge import shards
    from corpusforge.instances.source import list_column

    segments, labels = [np.zeros((0, 2))], [np.zeros(0)]
    for batch in (b for path in paths for b in shards.read_shard(path)):
        segments.append(batch.column("segment_lengths").flatten().to_numpy().reshape(-1, 2))
        labels.append(batch.column("pair_label").to_numpy(zero_copy_only=False))
        assert len(list_column(batch.column("masked_labels"))[0])
    a, b = np.concatenate(segments).mean(0)
    return float(np.nan_to_num(np.concatenate(labels).astype(float)).mean()), float(a), float(b)


def run_google(source: Path, output: Path, copies: int) -> Run:
    """google's procedure as its own main runs it, with its defaults."""
    import random

    from official.nlp.data import create_pretraining_data as peer  # type: ignore[import-not-found]
    from official.nlp.tools import tokenization  # type: ignore[import-not-found]

    tokenizer = tokenization.FullTokenizer(str(source / "vocab/vocab.txt"), do_lower_case=True)
    clock = [time.perf_counter()]
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
    clock.append(time.perf_counter())
    files = [str(output / "out.tfrecord")]
    peer.write_instance_to_example_files(made, tokenizer, LENGTH, PREDICTIONS, files, False, False)
    clock.append(time.perf_counter())
    b = [sum(i.segment_ids) - 1 for i in made]
    a = [len(i.tokens) - n - 3 for i, n in zip(made, b, strict=True)]
    seconds = {"create": clock[1] - clock[0], "write": clock[2] - clock[1]}
    share = sum(i.is_random_next for i in made) / len(made)
    versions = _versions("tf-models-official", "tensorflow-cpu")
    return Run(seconds, len(made), share, statistics.mean(a), statistics.mean(b), versions)


def _versions(*names: str) -> dict[str, str]:
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in names}}


def measure_masks(rounds: int) -> None:
    """The mask function alone, on 2,000 instances of 128 at a time, against `transformers`' collator."""
    import numpy as np
    import torch
    from transformers import BertTokenizerFast, DataCollatorForLanguageModeling

    from corpusforge.instances.masking import Masker, MaskSettings, Specials

    torch.set_num_threads(1)
    rows, words = 2000, [f"w{i}" for i in range(30_523)]
    specials = Specials(30_528, pad=0, unk=1, cls=2, sep=3, mask=4)
    vocab = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])}
    collator = DataCollatorForLanguageModeling(BertTokenizerFast(vocab=vocab))
    ids = np.random.default_rng(0).integers(5, 30_528, (rows, LENGTH)).astype(np.uint16)
    ids[:, 0], ids[:, -1] = specials.cls, specials.sep
    flat, offsets, keys = ids.ravel(), np.arange(rows + 1) * LENGTH, np.arange(rows, dtype=np.uint64)
    frame = torch.tensor((ids == specials.cls) | (ids == specials.sep))
    masker = Masker(specials, MaskSettings(), 0)
    works = {
        "ours": lambda: masker(flat, offsets, keys),
        "transformers": lambda: collator.torch_mask_tokens(torch.tensor(ids.astype(np.int64)), frame),
    }
    for name, work in works.items():
        taken = []
        for _ in range(10 * rounds):
            begin = time.perf_counter()
            work()
            taken.append(time.perf_counter() - begin)
        print(f"mask function, {name:12} {flat.size / statistics.median(taken) / 1e6:8.1f} M tokens/s")


def run_side(python: str, side: str, given: argparse.Namespace, folder: Path) -> Run:
    """Run one side in a process of its own and read its figures."""
    output = folder / side
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir()
    quiet = {"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    path = str(Path(__file__).parent.parent)
    options = ["--side", side, "--copies", str(given.copies), str(folder / "in"), str(output)]
    command = [python, __file__, *options]
    done = subprocess.run(command, env={**os.environ, **quiet, "PYTHONPATH": path}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{side} failed:\n{done.stderr[-4000:]}")
    return Run(**json.loads((output / "figures.json").read_text()))


def be_side(side: str, source: Path, output: Path, copies: int) -> None:
    """What the process of one side does."""
    pin()
    made = run_google(source, output, copies) if side == "google" else run_ours(source, output, copies, side)
    (output / "figures.json").write_text(json.dumps(dataclasses.asdict(made)))


def pin() -> None:
    """Use one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def show(side: str, runs: list[Run], size: int) -> float:
    """Print one side's medians; returns its MB/s."""
    total = statistics.median(sum(run.seconds.values()) for run in runs)
    steps = ", ".join(f"{n} {statistics.median(r.seconds[n] for r in runs):.2f}" for n in runs[0].seconds)
    last, versions = runs[-1], " ".join(f"{n} {v}" for n, v in runs[0].versions.items())
    print(
        f"{side:13} {size / total / 1e6:8.2f} MB/s {last.instances / total:10,.0f} instances/s {total:8.2f} s ({steps})"
    )
    shape = f"random B {last.random_share:.3f}, mean A {last.mean_a:.1f}, mean B {last.mean_b:.1f}"
    print(f"{'':13} {last.instances:,} instances, {shape} [{versions}]")
    return size / total


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
        print(f"segment-pair / google: {speeds['segment-pair'] / speeds['google']:.1f}")
    pin()
    measure_masks(given.rounds)


if __name__ == "__main__":
    main()
