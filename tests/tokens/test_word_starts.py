"""Word starts: BERT's rule for ``##``, the rule of ids for other families, and the first token of every sentence."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.schemas import tokens_schema
from corpusforge.tokens.encode import Encoder
from corpusforge.tokens.splitting import Words
from corpusforge.tokens.vocab import Vocab
from corpusforge.tokens.wordpiece import WordPiece
from tests.draws import draws
from tests.tokens.test_encode import SENTENCES, UNCASED, documents, sentences_of


@dataclasses.dataclass(frozen=True)
class Marked(WordPiece):
    """A family whose words are glued: a word begins at tokens with an even id only."""

    def starts_word(self, vocab: Vocab) -> np.ndarray:
        return np.arange(vocab.size) % 2 == 0


class Pairs:
    """Joins each word of odd place in its row to the one before it."""

    def joined(self, words: Words) -> np.ndarray:
        places = np.arange(len(words.values)) - np.repeat(words.offsets[:-1], np.diff(words.offsets))
        return places % 2 == 1


def starts_of(batch: pa.RecordBatch) -> list[list[bool]]:
    return batch["word_starts"].to_pylist()


@draws(50)
@given(st.lists(st.lists(st.sampled_from([*SENTENCES, "x", "\u2603 ", "\u200b"]), max_size=4).map("".join), max_size=4))
def test_berts_rule(texts: list[str]) -> None:
    batch = Encoder(UNCASED, word_starts=True).encode(documents(texts))
    assert batch.schema == tokens_schema(UNCASED.size, word_starts=True)
    assert batch.drop_columns(["word_starts"]) == Encoder(UNCASED).encode(documents(texts))
    for row in batch.to_pylist():
        assert row["word_starts"] == [not UNCASED.tokens[i].startswith("##") for i in row["ids"]]


def test_the_rule_of_ids_counts_inside_sentences() -> None:
    vocab = dataclasses.replace(UNCASED, family=Marked(UNCASED.segmentation))
    row = Encoder(vocab, word_starts=True).encode(documents([*SENTENCES[:2], "".join(SENTENCES)])).to_pylist()[2]
    firsts = set(np.cumsum([0, *row["sentences"]]).tolist())
    assert len(firsts) > 2
    assert row["word_starts"] == [i % 2 == 0 or at in firsts for at, i in enumerate(row["ids"])]


def test_words_that_are_joined_do_not_begin_one() -> None:
    encoder = Encoder(UNCASED, word_starts=True, joiner=Pairs())
    text = "The dog. The quick brown fox."
    row = pickle.loads(pickle.dumps(encoder)).encode(documents([text])).to_pylist()[0]
    words, at = [], 0
    for sentence in sentences_of([text])[0]:
        for place, word in enumerate(UNCASED.segmentation.splitter().words_of(sentence)):
            pieces = Encoder(UNCASED).encode_words(pa.array([word]))[1][0]
            words += [place % 2 == 0] + [False] * (pieces - 1)
            at += pieces
    assert row["word_starts"] == words
