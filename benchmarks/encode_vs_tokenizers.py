"""Encoding and word counting against the `tokenizers` library, on the same text, one core each.

    python benchmarks/encode_vs_tokenizers.py TEXT.jsonl.gz... [--megabytes 50] [--rounds 5] [--size 30528] [--cased]
        [--model bpe]

The vocabulary is learned from the first tenth of the text. Both sides get the same sentences; every id is compared
before a figure is printed. ``cold``: the encoder has seen nothing yet, as at the start of a shard;
``warm``: it has seen this text. Seconds are those of the processor, so that other work on the machine counts little.
The library's side of counting is its normalizer and pre-tokenizer with a Counter.
With ``--model bpe`` (byte-level, as in GPT-2 and RoBERTa) `tiktoken` encodes too if it is installed, with the same
merges; the number of sentences with other ids is printed.
"""

from __future__ import annotations

import os

os.environ["RAYON_NUM_THREADS"] = "1"  # both read when the library is first imported
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import argparse
import importlib
import platform
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import tokenizers
from signatures_vs_datasketch import read_texts
from tokenizers import pre_tokenizers

from corpusforge import sections
from corpusforge.sentences import splitter
from corpusforge.tokens import byte_bpe, wordpiece
from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.byte_bpe import ByteBpe
from corpusforge.tokens.counts import count_words, pack_counts, select_counts
from corpusforge.tokens.encode import Encoder
from corpusforge.tokens.gpt2_split import BYTES, GPT2, Gpt2Segmentation
from corpusforge.tokens.vocab import Vocab


def median_seconds(rounds: int, *works: Callable[[], Any]) -> list[float]:
    """Median processor seconds of each function; every round runs each once, one after the other."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for times, work in zip(taken, works, strict=True):
            begin = time.process_time()
            work()
            times.append(time.process_time() - begin)
    return [statistics.median(times) for times in taken]


def assert_same(vocab: Vocab, documents: pa.RecordBatch, sentences: list[str]) -> int:
    """Check that every id of ours equals the library's; returns their number."""
    ours = Encoder(vocab).encode(documents)["ids"].flatten().to_numpy()
    library = vocab.library_tokenizer(added=False)
    expected = library.encode_batch_fast(sentences, add_special_tokens=False)
    same = np.array_equal(ours, np.concatenate([np.array(e.ids, ours.dtype) for e in expected]))
    if not same:
        sys.exit("ids differ: the figures would mean nothing")
    return len(ours)


def count_by_library(vocab: Vocab, texts: list[str]) -> Counter[str]:
    """As `count_words`, document by document."""
    counts: Counter[str] = Counter()
    if isinstance(vocab.segmentation, Gpt2Segmentation):
        splitter = vocab.segmentation.pre_tokenizer()
        for document in texts:
            counts.update(word for word, _ in splitter.pre_tokenize_str(document))
        return counts
    assert isinstance(vocab.segmentation, BertSegmentation)
    normalizer, splitter = vocab.segmentation.normalizer(), pre_tokenizers.BertPreTokenizer()
    for document in texts:
        counts.update(word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(document)))
    return counts


def assert_same_counts(vocab: Vocab, column: pa.StringArray) -> None:
    """Every count of ours equals the library's."""
    words, counts = count_words(column, vocab.segmentation).to_pydict().values()
    library: dict[str, int] = count_by_library(vocab, column.to_pylist())
    if isinstance(vocab.segmentation, Gpt2Segmentation):  # the library writes bytes as letters
        library = {bytes(BYTES[letter] for letter in word).decode(): count for word, count in library.items()}
    if dict(zip(words, counts, strict=True)) != library:
        sys.exit("counts differ: the figures would mean nothing")


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=30_528)
    parser.add_argument("--cased", action="store_true")
    parser.add_argument("--model", choices=["wordpiece", "bpe"], default="wordpiece")
    settings = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    texts = read_texts(settings.paths, int(settings.megabytes * 1e6))
    vocab = learn_from(
        texts[: len(texts) // 10 + 1], settings.size, None if settings.model == "bpe" else not settings.cased
    )
    measure(texts, vocab, settings.rounds)


def learn_from(texts: list[str], size: int, lowercase: bool | None) -> Vocab:
    """A vocabulary of these texts: WordPiece, or where ``lowercase`` is None byte-level BPE."""
    segmentation = GPT2 if lowercase is None else BertSegmentation(lowercase)
    blocks = pack_counts(count_words(pa.array(texts), segmentation), 1)
    counts, _ = select_counts([block for _, block in blocks], min_count=2, max_words=4_000_000)
    if lowercase is None:
        return byte_bpe.learn(counts, sections.Vocab(size=size, unused=0)).vocab
    return wordpiece.learn(counts, sections.Vocab(size=size, lowercase=lowercase, alphabet=4000)).vocab


def sentences_of(column: pa.StringArray, keeps_space: bool) -> list[str]:
    """The sentences of documents, with the white space between two at the head of the second if ``keeps_space``."""
    spans = splitter.sentence_spans(column)
    begins = spans.starts
    if keeps_space:
        begins = np.append(spans.starts[:1], spans.stops[:-1])
        first = spans.offsets[:-1][np.diff(spans.offsets) > 0]
        begins[first] = spans.starts[first]
    data = spans.data.tobytes()
    return [data[a:b].decode() for a, b in zip(begins.tolist(), spans.stops.tolist(), strict=True)]


def left_to_library(vocab: Vocab, column: pa.StringArray) -> str:
    """The number of distinct words that are not encoded by columns, as a sentence."""
    words = count_words(column, vocab.segmentation)["word"].combine_chunks()
    left = int(vocab.family.column_encoder(vocab).encode(words).left.sum())
    return f"{left:,} of {len(words):,} distinct words are encoded by the library"


def tiktoken_work(vocab: Vocab, sentences: list[str]) -> dict[str, Callable[[], Any]]:
    """Encoding by tiktoken with the same merges; nothing for other families, or where it is not installed."""
    if not isinstance(vocab.family, ByteBpe):
        return {}
    try:
        tiktoken = importlib.import_module("tiktoken")
    except ModuleNotFoundError:
        print("tiktoken is not installed: left out\n")
        return {}
    reachable = set(BYTES) | {left + right for left, right in vocab.family.merges}
    ranks = {bytes(BYTES[c] for c in token): i for i, token in enumerate(vocab.tokens) if token in reachable}
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    encoding = tiktoken.Encoding("corpusforge", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    library = vocab.library_tokenizer(added=False)
    expected = [e.ids for e in library.encode_batch_fast(sentences, add_special_tokens=False)]
    other = sum(encoding.encode_ordinary(s) != ids for s, ids in zip(sentences, expected, strict=True))
    print(f"tiktoken {tiktoken.__version__}: {other:,} of {len(sentences):,} sentences have other ids\n")
    return {"encode, tiktoken": lambda: [encoding.encode_ordinary(sentence) for sentence in sentences]}


def measure(texts: list[str], vocab: Vocab, rounds: int) -> None:
    """Compare results, then times."""
    column = pa.array(texts)
    megabytes = sum(len(t.encode()) for t in texts) / 1e6
    documents = pa.record_batch([pa.array([str(i) for i in range(len(texts))]), column], names=["id", "text"])
    sentences = sentences_of(column, vocab.segmentation.splitter().keeps_space)
    tokens = assert_same(vocab, documents, sentences)
    assert_same_counts(vocab, column)
    library, warm = vocab.library_tokenizer(added=False), Encoder(vocab)
    warm.encode(documents)
    works: dict[str, Callable[[], Any]] = {
        "encode, library": lambda: [e.ids for e in library.encode_batch_fast(sentences, add_special_tokens=False)],
        **tiktoken_work(vocab, sentences),
        "encode, cold": lambda: Encoder(vocab).encode(documents),
        "encode, warm": lambda: warm.encode(documents),
        "count, library": lambda: count_by_library(vocab, texts),
        "count, ours": lambda: count_words(column, vocab.segmentation),
    }
    seconds = dict(zip(works, median_seconds(rounds, *works.values()), strict=True))
    print(f"{megabytes:.1f} MB, {len(sentences):,} sentences, {tokens:,} tokens, ids identical, {rounds} rounds")
    print(left_to_library(vocab, column))
    print(
        f"python {platform.python_version()}, tokenizers {tokenizers.__version__}, pyarrow {pa.__version__}, one core\n"
    )
    print("| work | MB/s | times the library |\n|---|---|---|")
    for name, taken in seconds.items():
        base = seconds[name.split(",")[0] + ", library"]
        print(f"| {name} | {megabytes / taken:.1f} | {base / taken:.1f} |")


if __name__ == "__main__":
    main()
