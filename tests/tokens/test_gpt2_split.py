from __future__ import annotations

import gzip
import itertools
import json
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.text import text_bytes
from corpusforge.tokens.gpt2_split import _SPACE, GPT2, LETTERS, Gpt2Segmentation, Gpt2Splitter, splitter_for
from corpusforge.tokens.splitting import Words
from tests.oracles import gpt2
from tests.tokens import gpt2_text

PREFIXED = Gpt2Segmentation(add_prefix_space=True)


def rows_of(words: Words) -> list[list[str]]:
    values = words.values.to_pylist()
    return [values[a:b] for a, b in itertools.pairwise(words.offsets.tolist())]


def split(texts: list[str], segmentation: Gpt2Segmentation = GPT2) -> list[list[str]]:
    return rows_of(splitter_for(segmentation).split(*text_bytes(pa.array(texts, pa.string()))))


@given(gpt2_text.columns, st.sampled_from([GPT2, PREFIXED]))
def test_words_are_the_librarys(texts: list[str], segmentation: Gpt2Segmentation) -> None:
    assert split(texts, segmentation) == [gpt2.words(text, segmentation) for text in texts]


@given(gpt2_text.columns, st.integers(1, 30), st.sampled_from([GPT2, PREFIXED]))
def test_chunks_change_nothing(texts: list[str], size: int, segmentation: Gpt2Segmentation) -> None:
    chunks = splitter_for(segmentation).chunks(*text_bytes(pa.array(texts, pa.string())), size)
    together = [word for chunk in chunks for word in chunk.values.to_pylist()]
    assert together == [word for text in texts for word in gpt2.words(text, segmentation)]


def test_long_rows_are_chunked_before_white_space_only(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["ab  cd \n" * 50 + "x" * 300, "", " " * 9000 + "end", "東京\u3000 \n" * 100, "'s" * 5000]
    monkeypatch.setattr(Gpt2Splitter.chunks, "__defaults__", (64,))
    assert split(texts) == [gpt2.words(text, GPT2) for text in texts]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("it's we're I'll they've I'm he'd don't", "it|'s| we|'re| I|'ll| they|'ve| I|'m| he|'d| don|'t"),
        ("IT'S a 'sword' 'll", "IT|'|S| a| '|sword|'| '|ll"),
        ("x's's !'s 'sabc", "x|'s|'s| !'|s| '|sabc"),
        ("a  b \n c\t\td  ", "a| | b| \n| c|\t|\t|d|  "),
        ("x\u3000\u3000y \u3000z", "x|\u3000|\u3000|y| |\u3000|z"),
        ("3rd ½ x², 東京で7", "3|rd| ½| x|²|,| 東京で|7"),
    ],
)
def test_examples(text: str, words: str) -> None:
    assert split([text]) == [words.split("|")]
    assert gpt2.words(text, GPT2) == words.split("|")


def test_nothing_crosses_the_end_of_a_row() -> None:
    assert split(["a'", "s", "a ", "b", "'r", "e", " ", "\n"]) == [
        ["a", "'"], ["s"], ["a", " "], ["b"], ["'", "r"], ["e"], [" "], ["\n"]
    ]  # fmt: skip


def test_the_text_is_unchanged() -> None:
    texts = ["  Zoë's\u3000東京 😀\n", "\x00 e\u0301 \u200b"]
    assert ["".join(row) for row in split(texts)] == texts


def test_a_splitter_is_pickled_as_its_settings() -> None:
    assert pickle.loads(pickle.dumps(splitter_for(PREFIXED))) is splitter_for(PREFIXED)


def test_letters_of_bytes() -> None:
    assert len(set(LETTERS)) == 256
    assert sorted(LETTERS)[0] == "!"
    assert splitter_for(GPT2)._library.pre_tokenize_str("\x00\x7f é")[0][0][0] == LETTERS[0]


def test_nasty_files(shared_data: Path) -> None:
    nasty = shared_data / "nasty"
    texts = [(nasty / name).read_bytes()[:300_000].decode("utf-8", "replace") for name in ("blns.txt", "blns.json")]
    texts.append((nasty / "ungoliant-garbage.txt").read_bytes()[:1_000_000].decode("utf-8", "replace"))
    texts += texts[0].split("\n")
    assert split(texts) == [gpt2.words(text, GPT2) for text in texts]


@pytest.mark.parametrize("name", ["text_en/enwiki2018-dev.jsonl.gz", "text_zh/zhwiki-dev.jsonl.gz"])
def test_real_text(shared_data: Path, name: str) -> None:
    with gzip.open(shared_data / name, "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line, _ in zip(file, range(300), strict=False)]
    assert split(texts) == [gpt2.words(text, GPT2) for text in texts]


POINTS = [chr(p) for p in range(0x110000) if not 0xD800 <= p < 0xE000]


@pytest.mark.slow
def test_every_character() -> None:
    # Neighbors change nothing: a class is determined between letters, digits and signs, and used everywhere.
    texts = ["".join(f"a{c}1{c}!{c} {c}" for c in POINTS[at : at + 128]) for at in range(0, len(POINTS), 128)]
    assert split(texts) == [gpt2.words(text, GPT2) for text in texts]


@pytest.mark.slow
def test_white_space_of_the_library_is_pythons() -> None:
    # What `chunk_end` relies on.
    split(["".join(POINTS)])
    spaces = np.flatnonzero(splitter_for(GPT2)._classes == _SPACE).tolist()
    assert all(chr(point).isspace() for point in spaces)
    assert {len(chr(point).encode()) for point in spaces} == {1, 2, 3}
