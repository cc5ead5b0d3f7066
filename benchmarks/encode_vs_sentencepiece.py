"""Encoding and learning against the `sentencepiece` package, on the same text, one core each.

    python benchmarks/encode_vs_sentencepiece.py TEXT.jsonl.gz... [--megabytes 50] [--rounds 5] [--size 30016]
        [--model unigram] [--normalization albert] [--learn]

The vocabulary is learned from the first tenth of the text. Both sides get the same sentences; the package encodes them
with the spiece.model in our folder, which holds the same normalization. Every id is compared with `tokenizers` (which
must agree) and with the package (sentences that differ are counted: ties of scores are broken by rounding). ``cold``:
the encoder has seen nothing yet; ``warm``: it has seen this text. Seconds are those of the processor. ``--learn`` also
measures learning: the package reading the text, and ours counting words first, its rules included.
"""

from __future__ import annotations

import os

os.environ["RAYON_NUM_THREADS"] = "1"  # both read when the library is first imported
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import argparse
import io
import platform
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import sentencepiece
import tokenizers
from encode_vs_tokenizers import left_to_library, median_seconds, read_texts

from corpusforge import sections
from corpusforge.sentences import splitter
from corpusforge.tokens.counts import count_words, pack_counts
from corpusforge.tokens.encode import Encoder
from corpusforge.tokens.families import learn, segmentation_of, select
from corpusforge.tokens.vocab import Vocab


def learn_from(texts: list[str], settings: argparse.Namespace) -> Vocab:
    """A vocabulary of these texts, by word counts."""
    chosen = sections.Vocab(model=settings.model, size=settings.size, normalization=settings.normalization)
    blocks = [block for _, block in pack_counts(count_words(pa.array(texts), segmentation_of(chosen)), 16)]
    return learn(select(blocks, chosen)[0], chosen).vocab


def learn_by_package(texts: list[str], settings: argparse.Namespace) -> bytes:
    """A model of the package, with its defaults, of the same size."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line for document in texts for line in document.split("\n") if line),
        model_writer=written,
        model_type=settings.model.removeprefix("sentencepiece-"),
        vocab_size=settings.size,
        hard_vocab_limit=False,
        normalization_rule_name="nmt_nfkc_cf" if settings.normalization == "albert" else settings.normalization,
        max_sentence_length=1 << 20,
        minloglevel=2,
    )
    return written.getvalue()


def differing(vocab: Vocab, documents: pa.RecordBatch, sentences: list[str], peer: Any) -> tuple[int, int]:
    """Tokens, and sentences that the package encodes differently; exits if `tokenizers` differs."""
    ours = Encoder(vocab).encode(documents)["ids"].flatten().to_numpy()
    library = vocab.library_tokenizer(added=False)
    expected = [e.ids for e in library.encode_batch_fast(sentences, add_special_tokens=False)]
    if not np.array_equal(ours, np.concatenate([np.array(ids, ours.dtype) for ids in expected])):
        sys.exit("ids differ from the library's: the figures would mean nothing")
    return len(ours), sum(a != b for a, b in zip(expected, peer.encode(sentences, num_threads=1), strict=True))


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=30_016)
    parser.add_argument("--model", choices=("sentencepiece-bpe", "unigram"), default="unigram")
    parser.add_argument("--normalization", choices=("albert", "nmt_nfkc"), default="albert")
    parser.add_argument("--learn", action="store_true")
    settings = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    texts = read_texts(settings.paths, int(settings.megabytes * 1e6))
    measure(texts, learn_from(texts[: len(texts) // 10 + 1], settings), settings)


def measure(texts: list[str], vocab: Vocab, settings: argparse.Namespace) -> None:
    """Compare results, then times."""
    column = pa.array(texts)
    megabytes = sum(len(t.encode()) for t in texts) / 1e6
    documents = pa.record_batch([pa.array([str(i) for i in range(len(texts))]), column], names=["id", "text"])
    spans = splitter.sentence_spans(column)
    data = spans.data.tobytes()
    sentences = [data[a:b].decode() for a, b in zip(spans.starts.tolist(), spans.stops.tolist(), strict=True)]
    peer = sentencepiece.SentencePieceProcessor(model_proto=vocab.save_files()["spiece.model"])
    library, warm = vocab.library_tokenizer(added=False), Encoder(vocab)
    tokens, other = differing(vocab, documents, sentences, peer)
    warm.encode(documents)
    works: dict[str, Callable[[], Any]] = {
        "encode, sentencepiece": lambda: peer.encode(sentences, num_threads=1),
        "encode, tokenizers": lambda: [e.ids for e in library.encode_batch_fast(sentences, add_special_tokens=False)],
        "encode, cold": lambda: Encoder(vocab).encode(documents),
        "encode, warm": lambda: warm.encode(documents),
    }
    if settings.learn:
        works["learn, sentencepiece"] = lambda: learn_by_package(texts, settings)
        works["learn, ours"] = lambda: learn_from(texts, settings)
    seconds = dict(zip(works, median_seconds(settings.rounds, *works.values()), strict=True))
    print(f"{settings.model}, {settings.normalization}: {megabytes:.1f} MB, {len(sentences):,} sentences, ", end="")
    print(f"{tokens:,} tokens, ids as those of tokenizers; sentencepiece's in all but {other:,} sentences")
    print(left_to_library(vocab, column))
    versions = f"tokenizers {tokenizers.__version__}, sentencepiece {sentencepiece.__version__}"
    print(f"python {platform.python_version()}, {versions}, one core, {settings.rounds} rounds\n")
    print("| work | MB/s | times sentencepiece |\n|---|---|---|")
    for name, taken in seconds.items():
        base = seconds[name.split(",")[0] + ", sentencepiece"]
        print(f"| {name} | {megabytes / taken:.1f} | {base / taken:.1f} |")


if __name__ == "__main__":
    main()
