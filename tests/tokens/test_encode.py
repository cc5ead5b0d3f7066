from __future__ import annotations

import gzip
import itertools
import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import sections
from corpusforge.schemas import DOCUMENTS, tokens_schema
from corpusforge.sentences import splitter
from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.counts import count_words
from corpusforge.tokens.encode import Encoder
from corpusforge.tokens.vocab import Vocab
from corpusforge.tokens.wordpiece import learn
from tests.oracles import wordpiece
from tests.tokens import hard_text

SENTENCES = [
    "The quick brown fox jumps over the lazy dog. ",
    "Zoë mag Käse! ",
    "東京で会う。",
    "mask cls unused sep pad ",
]


def vocabulary(lowercase: bool, size: int = 512) -> Vocab:
    counts = count_words(
        pa.array([s * 3 for s in SENTENCES] + ["[ ] ' 3 # a b c . ! x é e 한국어"]), BertSegmentation(lowercase)
    )
    return learn(counts, sections.Vocab(size=size, lowercase=lowercase)).vocab


UNCASED, CASED = vocabulary(True), vocabulary(False)


def documents(texts: list[str]) -> pa.RecordBatch:
    empty = {"url": None, "source": "s", "position": 0, "timestamp": None, "language": None}
    return pa.RecordBatch.from_pylist([{"id": str(i), "text": t, **empty} for i, t in enumerate(texts)], DOCUMENTS)


def sentences_of(texts: list[str]) -> list[list[str]]:
    spans = splitter.sentence_spans(pa.array(texts, pa.string()))
    whole = [bytes(spans.data[a:b]).decode() for a, b in zip(spans.starts, spans.stops, strict=True)]
    return [whole[a:b] for a, b in zip(spans.offsets[:-1], spans.offsets[1:], strict=True)]


def expected(texts: list[str], vocab: Vocab) -> list[dict[str, object]]:
    found = []
    for i, sentences in enumerate(sentences_of(texts)):
        ids = [row for row in wordpiece.encode(sentences, vocab) if row]
        found.append({"document": str(i), "ids": list(itertools.chain(*ids)), "sentences": [len(row) for row in ids]})
    return found


@given(hard_text.columns, st.sampled_from([UNCASED, CASED]))
def test_ids_are_the_librarys(texts: list[str], vocab: Vocab) -> None:
    assert Encoder(vocab).encode(documents(texts)).to_pylist() == expected(texts, vocab)


@given(st.lists(st.sampled_from([*SENTENCES, *hard_text.TRAPS]), max_size=20).map("".join))
def test_a_full_cache_changes_nothing(document: str) -> None:
    batch = documents([document, document])
    tight = Encoder(UNCASED, cache_bytes=300)
    assert [tight.encode(batch) for _ in range(3)] == [Encoder(UNCASED).encode(batch)] * 3


@given(
    st.lists(
        st.sampled_from(["[MASK]", "[CLS]", "[unused3]", "[PAD]", "[SEP]", "[", "]", " ", "mask", "é"]), max_size=9
    )
)
def test_text_never_becomes_special(parts: list[str]) -> None:
    ids = set(Encoder(UNCASED).encode(documents(["".join(parts)]))["ids"].flatten().to_pylist())
    specials = UNCASED.specials
    assert not ids & {specials.pad, specials.cls, specials.sep, specials.mask, *UNCASED.unused}


def test_literal_specials_are_ordinary_pieces() -> None:
    batch = Encoder(UNCASED).encode(documents(["the [MASK] of [unused3]"]))
    tokens = [UNCASED.tokens[i] for i in batch["ids"][0].as_py()]
    assert tokens[:5] == ["the", "[", "mask", "]", "o"]


@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=9), st.integers(1, 60))
def test_batch_cuts_change_nothing(texts: list[str], size: int) -> None:
    batch = documents(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("corpusforge.tokens.encode.BATCH_BYTES", size)
        small = Encoder(UNCASED).encode_counted(batch)
    whole = Encoder(UNCASED).encode_counted(batch)
    assert small.tokens == whole.tokens
    assert small.statistics == whole.statistics
    rows = [Encoder(UNCASED).encode(batch.slice(i, 1)).to_pylist()[0] for i in range(len(texts))]
    assert rows == whole.tokens.to_pylist()


def test_statistics() -> None:
    encoded = Encoder(UNCASED).encode_counted(documents(["The dog. \u200b \u2603", "", "a\u302e\U0001d165"]))
    assert encoded.statistics["documents"] == 3
    assert encoded.statistics["sentences_by_library"] == 1
    assert encoded.statistics["unknown_tokens"] == 2
    assert encoded.tokens["sentences"].to_pylist()[1] == []


def test_sentences_without_tokens_are_counted_and_left_out() -> None:
    encoded = Encoder(UNCASED).encode_counted(documents(["\u200b\u200b"]))
    assert encoded.statistics["sentences_empty"] == 1
    assert encoded.tokens.to_pylist() == [{"document": "0", "ids": [], "sentences": []}]


def test_no_documents() -> None:
    encoded = Encoder(UNCASED).encode_counted(documents([]))
    assert encoded.tokens.num_rows == 0
    assert encoded.tokens.schema == tokens_schema(UNCASED.size)


def test_large_vocabularies_have_wide_ids() -> None:
    vocab = UNCASED.padded(70_016)
    batch = Encoder(vocab).encode(documents(SENTENCES))
    assert batch.schema == tokens_schema(70_016)
    assert batch["ids"].to_pylist() == Encoder(UNCASED).encode(documents(SENTENCES))["ids"].to_pylist()


def test_an_encoder_travels() -> None:
    batch = documents(SENTENCES)
    encoder = Encoder(UNCASED)
    first = encoder.encode(batch)
    assert pickle.loads(pickle.dumps(encoder)).encode(batch) == first


def test_words_too_long_are_unknown() -> None:
    batch = Encoder(UNCASED).encode(documents(["x" * 101, "x" * 100]))
    assert batch["ids"][0].as_py() == [UNCASED.specials.unk]
    assert len(batch["ids"][1]) == 100


def test_nasty_files(shared_data: Path) -> None:
    lines = (shared_data / "nasty" / "blns.txt").read_text("utf-8").split("\n")
    lines += (
        (shared_data / "nasty" / "ungoliant-garbage.txt").read_bytes()[:100_000].decode(errors="replace").split("\n")
    )
    assert Encoder(UNCASED).encode(documents(lines)).to_pylist() == expected(lines, UNCASED)


@pytest.mark.parametrize("name", ["text_en/enwiki2018-dev.jsonl.gz", "text_zh/zhwiki-dev.jsonl.gz"])
@pytest.mark.parametrize("lowercase", [True, False])
def test_real_text(shared_data: Path, name: str, lowercase: bool) -> None:
    with gzip.open(shared_data / name, "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line, _ in zip(file, range(120), strict=False)]
    vocab = learn(
        count_words(pa.array(texts[:60]), BertSegmentation(lowercase)),
        sections.Vocab(size=4096, alphabet=1500, lowercase=lowercase),
    ).vocab
    assert Encoder(vocab).encode(documents(texts)).to_pylist() == expected(texts, vocab)
