from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from corpusforge import sections
from corpusforge.schemas import DOCUMENTS
from corpusforge.sentences import splitter
from corpusforge.tokens.byte_bpe import learn
from corpusforge.tokens.counts import count_words
from corpusforge.tokens.encode import Encoder
from corpusforge.tokens.gpt2_split import GPT2
from corpusforge.tokens.vocab import Vocab
from tests.oracles import gpt2
from tests.tokens import gpt2_text

SENTENCES = ["The quick brown fox isn't lazy. ", "Zoë's naïve,  they're not.\n\n", "東京で会う。", " <s> mask <mask> "]
VOCAB = learn(count_words(pa.array([s * 3 for s in SENTENCES]), GPT2), sections.Vocab(size=384, unused=4)).vocab


def documents(texts: list[str]) -> pa.RecordBatch:
    empty = {"url": None, "source": "s", "position": 0, "timestamp": None, "language": None}
    return pa.RecordBatch.from_pylist([{"id": str(i), "text": t, **empty} for i, t in enumerate(texts)], DOCUMENTS)


def rows_of(texts: list[str]) -> list[list[str]]:
    """Sentences of each document, each with the white space before it, but for the first."""
    spans = splitter.sentence_spans(pa.array(texts, pa.string()))
    found = []
    for a, b in itertools.pairwise(spans.offsets.tolist()):
        begins = [*spans.starts[a : min(a + 1, b)].tolist(), *spans.stops[a : max(a, b - 1)].tolist()]
        found.append([bytes(spans.data[x:y]).decode() for x, y in zip(begins, spans.stops[a:b], strict=True)])
    return found


def expected(texts: list[str], vocab: Vocab) -> list[dict[str, object]]:
    found = []
    for i, rows in enumerate(rows_of(texts)):
        ids = gpt2.encode(rows, vocab)
        found.append({"document": str(i), "ids": list(itertools.chain(*ids)), "sentences": [len(row) for row in ids]})
    return found


@given(gpt2_text.columns)
def test_ids_are_the_librarys(texts: list[str]) -> None:
    assert Encoder(VOCAB).encode(documents(texts)).to_pylist() == expected(texts, VOCAB)


@given(gpt2_text.columns)
def test_text_never_produces_specials_and_is_kept(texts: list[str]) -> None:
    library = VOCAB.library_tokenizer(added=False)
    rows = [row for rows in rows_of(texts) for row in rows]
    batch = Encoder(VOCAB).encode(documents(texts))
    assert not set(batch["ids"].flatten().to_pylist()) & {*VOCAB.reserved}
    kept = "".join(library.decode(ids, skip_special_tokens=False) for ids in batch["ids"].to_pylist())
    assert kept == "".join(rows)


def test_a_document_of_sentences_has_the_ids_of_its_text() -> None:
    whole = "The quick fox isn't lazy. Zoë's naïve,  they're not.\n\nIt (still) is 42 % fun!  東京で会う。That's all."
    batch = Encoder(VOCAB).encode(documents([f"\n {whole} \n", whole]))
    assert batch["ids"].to_pylist() == gpt2.encode([whole], VOCAB) * 2
    assert len(batch["sentences"][0]) >= 4


def test_literal_specials_are_plain_text() -> None:
    texts = ["<s> a <pad></s> <unk> <mask> [unused0] <mask>", "<mask>", "</s>"]
    batch = Encoder(VOCAB).encode(documents(texts))
    assert batch.to_pylist() == expected(texts, VOCAB)
    assert not set(batch["ids"].flatten().to_pylist()) & {*VOCAB.reserved}


def test_very_long_words_and_lines() -> None:
    texts = ["x" * 100_000, "東" * 50_000, " " * 30_000 + "a", "'s" * 20_000, "a b\n" * 300_000, "a\u3000" * 50_000]
    batch = Encoder(VOCAB).encode(documents(texts))
    assert batch.to_pylist() == expected(texts, VOCAB)


def test_a_full_cache_changes_nothing() -> None:
    batch = documents(["".join(SENTENCES), "and others"])
    tight = Encoder(VOCAB, cache_bytes=300)
    assert [tight.encode(batch) for _ in range(3)] == [Encoder(VOCAB).encode(batch)] * 3


def test_words_start_at_white_space_and_sentences() -> None:
    batch = Encoder(VOCAB, word_starts=True).encode(documents(["xq isn't  zw."]))
    tokens = [VOCAB.tokens[i] for i in batch["ids"][0].as_py()]
    starts = [token for token, begins in zip(tokens, batch["word_starts"][0].as_py(), strict=True) if begins]
    assert starts == ["x", *[token for token in tokens if token.startswith("Ġ")]]


@pytest.mark.parametrize("name", ["text_en/enwiki2018-dev.jsonl.gz", "text_zh/zhwiki-dev.jsonl.gz"])
def test_real_text(shared_data: Path, name: str) -> None:
    with gzip.open(shared_data / name, "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line, _ in zip(file, range(120), strict=False)]
    vocab = learn(count_words(pa.array(texts[:60]), GPT2), sections.Vocab(size=4096, unused=0)).vocab
    assert Encoder(vocab).encode(documents(texts)).to_pylist() == expected(texts, vocab)


def test_nasty_files(shared_data: Path) -> None:
    nasty = shared_data / "nasty"
    lines = (nasty / "blns.txt").read_text("utf-8").split("\n")
    lines += (nasty / "ungoliant-garbage.txt").read_bytes()[:200_000].decode(errors="replace").split("\n")
    assert Encoder(VOCAB).encode(documents(lines)).to_pylist() == expected(lines, VOCAB)


def _texts(path: Path, limit: int = 1_000_000) -> list[str]:
    """The first million characters or so of a file."""
    if path.suffix != ".gz":
        return [path.read_bytes()[:limit].decode("utf-8", "replace")]
    texts: list[str] = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        while sum(map(len, texts)) < limit and (line := file.readline()):
            texts.append(json.loads(line)["text"])
    return texts


FILES = [
    "text_en/*.jsonl.gz",
    "text_en/*.txt",
    "text_zh/*.jsonl.gz",
    "text_zh/*.txt",
    "text_zh/*.json",
    "nasty/*.txt",
    "nasty/*.json",
]


@pytest.mark.slow
@pytest.mark.parametrize("pattern", FILES)
def test_all_shared_text(shared_data: Path, pattern: str) -> None:
    library, encoder = VOCAB.library_tokenizer(added=False), Encoder(VOCAB)
    for path in sorted(p for p in shared_data.glob(pattern) if p.is_file()):
        texts = _texts(path)
        rows = [row for rows in rows_of(texts) for row in rows]
        theirs = [np.array(e.ids) for e in library.encode_batch_fast(rows, add_special_tokens=False)]
        ours = encoder.encode(documents(texts))
        assert np.array_equal(ours["ids"].flatten(), np.concatenate([*theirs, []])), path
        assert ours["sentences"].flatten().to_pylist() == [len(ids) for ids in theirs]
