from __future__ import annotations

import base64
import functools
import gzip
import itertools
import json
import pickle
import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.text import text_bytes
from corpusforge.tokens.sentencepiece_family import charsmap_of
from corpusforge.tokens.sentencepiece_split import SentencePieceSegmentation, SentencePieceSplitter
from corpusforge.tokens.splitting import Words
from tests.tokens import hard_text

ALBERT, CASED = SentencePieceSegmentation(), SentencePieceSegmentation(strip_accents=False, lowercase=False)
NMT = SentencePieceSegmentation(False, False, False, charsmap_of("nmt_nfkc"))
XLNET = SentencePieceSegmentation(True, True, False, NMT.charsmap)
ALL = [ALBERT, CASED, NMT, XLNET]
MORE = ["▁", "▁a", "a▁", "``", "''", "'", "`", "\r\n", "\r", "<pad>", "각", "ᄀ", "ｶﾞ", "กำ", "<unk>", "a\u0308"]

columns = st.lists(
    hard_text.texts | st.lists(st.sampled_from(hard_text.TRAPS + MORE), max_size=20).map("".join), max_size=6
)


@functools.cache
def library(segmentation: SentencePieceSegmentation) -> tuple[object, object]:
    return segmentation.normalizer(), segmentation.pre_tokenizer()


def oracle(text: str, segmentation: SentencePieceSegmentation) -> list[str]:
    """The library, one text at a time."""
    normalizer, pre_tokenizer = library(segmentation)
    return [word for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text))]  # type: ignore[attr-defined]


def rows_of(words: Words) -> list[list[str]]:
    values = [f"▁{word}" for word in words.values.to_pylist()]
    return [values[a:b] for a, b in itertools.pairwise(words.offsets.tolist())]


def split(texts: list[str], segmentation: SentencePieceSegmentation) -> Words:
    return segmentation.splitter().split(*text_bytes(pa.array(texts, pa.string())))


@given(columns, st.sampled_from(ALL))
def test_words_are_the_librarys(texts: list[str], segmentation: SentencePieceSegmentation) -> None:
    assert rows_of(split(texts, segmentation)) == [oracle(text, segmentation) for text in texts]


@given(columns, st.integers(1, 40), st.sampled_from(ALL))
def test_chunks_change_nothing(texts: list[str], size: int, segmentation: SentencePieceSegmentation) -> None:
    data, rows = text_bytes(pa.array(texts, pa.string()))
    together = [word for chunk in segmentation.splitter().chunks(data, rows, size) for word in chunk.values.to_pylist()]
    assert [f"▁{word}" for word in together] == [word for text in texts for word in oracle(text, segmentation)]


def test_rows_for_the_library_are_counted() -> None:
    texts = ["plain é", "``quoted''", "more ▁", "a\u0308"]
    assert split(texts, ALBERT).by_library == 2
    assert split(texts, NMT).by_library == 1
    assert split(["a\r\nb\r", "\r"], NMT).by_library == 0


def test_a_splitter_is_pickled_as_its_settings() -> None:
    assert pickle.loads(pickle.dumps(NMT.splitter())) is NMT.splitter()


def test_the_character_map_is_the_librarys() -> None:
    assert len(base64.b64decode(NMT.charsmap)) > 100_000


@pytest.mark.parametrize("segmentation", [ALBERT, NMT])
def test_nasty_text(shared_data: Path, segmentation: SentencePieceSegmentation) -> None:
    texts: list[str] = []
    for name in ("blns.txt", "ungoliant-garbage.txt"):
        raw = (shared_data / "nasty" / name).read_bytes()[:200_000]
        texts += raw.decode("utf-8", "replace").replace("\x00", "").split("\n")
    texts += json.loads((shared_data / "nasty" / "blns.json").read_text("utf-8"))
    assert rows_of(split(texts, segmentation)) == [oracle(text, segmentation) for text in texts]


@pytest.mark.parametrize("segmentation", [ALBERT, NMT])
@pytest.mark.parametrize("name", ["text_en/enwiki2018-dev.jsonl.gz", "text_zh/zhwiki-dev.jsonl.gz"])
def test_real_text(shared_data: Path, name: str, segmentation: SentencePieceSegmentation) -> None:
    with gzip.open(shared_data / name, "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line, _ in zip(file, range(100), strict=False)]
    assert rows_of(split(texts, segmentation)) == [oracle(text, segmentation) for text in texts]


@pytest.mark.slow
@pytest.mark.parametrize("segmentation", ALL)
def test_every_character_among_others(segmentation: SentencePieceSegmentation) -> None:
    every = [chr(p) for p in range(1, 0x110000) if not 0xD800 <= p < 0xE000]
    # What is not assigned or for private use is treated alike: one in fifty.
    points = [c for i, c in enumerate(every) if i % 50 == 0 or unicodedata.category(c) not in ("Cn", "Co")]
    splitter = SentencePieceSplitter(segmentation)
    for begin in range(0, len(points), 1 << 16):
        texts = [f"Σ{c}ΑΣ 각{c}{c}e字{c} {c}" for c in points[begin : begin + (1 << 16)]]
        expected = [oracle(text, segmentation) for text in texts]
        assert rows_of(splitter.split(*text_bytes(pa.array(texts)))) == expected
