"""Real English text as TOKENS with word starts, for tests of distributions; made once a process."""

from __future__ import annotations

import functools
import gzip
import json
from pathlib import Path

import pyarrow as pa

from corpusforge import sections
from corpusforge.instances.masking import Specials
from corpusforge.schemas import DOCUMENTS
from corpusforge.tokens.counts import count_words
from corpusforge.tokens.encode import Encoder
from corpusforge.tokens.wordpiece import learn


@functools.lru_cache(maxsize=1)
def wikipedia(data: Path, size: int = 9_000_000) -> tuple[pa.RecordBatch, Specials]:
    """About ``size`` characters of Wikipedia in a vocabulary of 4,096, learned from a tenth of it."""
    texts, left = [], size
    with gzip.open(data / "text_en/enwiki2018-dev.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            texts.append(json.loads(line)["text"])
            left -= len(texts[-1])
            if left < 0:
                break
    rows = [{"id": f"{n:032x}", "source": "real", "position": n, "text": text} for n, text in enumerate(texts)]
    documents = pa.RecordBatch.from_pylist(rows, schema=DOCUMENTS)
    vocab = learn(
        count_words(documents.slice(0, len(texts) // 10).column("text")), sections.Vocab(size=4096, unused=32)
    ).vocab
    special = vocab.specials
    specials = Specials(
        vocab.size, special.pad, special.unk, special.cls, special.sep, special.mask, tuple(vocab.unused)
    )
    return Encoder(vocab, word_starts=True).encode(documents), specials
