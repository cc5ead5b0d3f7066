from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge import sections
from corpusforge.errors import RecipeInvalid
from corpusforge.tokens import wordpiece
from corpusforge.tokens.counts import COUNTS, count_words
from corpusforge.tokens.likelihood import learn, merge
from corpusforge.tokens.wordpiece import Prepared, prepare
from tests.oracles import likelihood as oracle
from tests.tokens.test_wordpiece import full_of_ties, table


def prepared_of(words: dict[str, int], room: int) -> Prepared:
    ready = prepare(table(words), sections.Vocab(size=1024, unused=0, alphabet=64))
    return ready._replace(room=len(ready.first) + room)


few_letters = st.dictionaries(st.text("ab", min_size=1, max_size=9), st.integers(1, 4), max_size=8)
many_letters = st.dictionaries(st.text("abcde!", min_size=1, max_size=6), st.integers(1, 2**40), max_size=25)


@given(few_letters | many_letters, st.integers(0, 60), st.integers(0, 4))
@example({"aaaaaaa": 1, "abab": 1, "baba": 2}, 60, 1)
@example({"aaaaaaa": 1, "abab": 1, "baba": 2}, 60, 0)
@example({"abc": 3, "abcabc": 2, "bcbc": 1, "cabca": 2}, 60, 1)  # pieces of the same text from other halves
def test_the_same_as_counting_everything_again(words: dict[str, int], room: int, min_pair: int) -> None:
    ready = prepared_of(words, room)
    assert merge(ready, min_pair) == oracle.learn(words, ready.first, ready.room, min_pair)


def test_scores_that_rise_are_seen() -> None:
    # Once "ab" is merged, what is left of "a" stands mostly before "c".
    words = {"ab": 90, "ac": 10, "zc": 30, "yb": 10, "q": 1}
    ready = prepared_of(words, 3)
    assert merge(ready, 1) == oracle.learn(words, ready.first, ready.room, 1)


def test_a_small_text_by_hand() -> None:
    # The example of Hugging Face's course, chapter 6.6. ("##g", "##s") is 5 / (20 * 5). Then every pair before "##u" is
    # 1 / 36, and ("p", "##u") the most frequent of them; the course takes ("h", "##u") there.
    words = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    ready = prepared_of(words, 5)
    assert merge(ready, 1)[len(ready.first) :] == ["##gs", "pu", "hu", "bu", "hugs"]


@pytest.mark.slow
def test_the_same_for_any_order_of_rows() -> None:
    counts = full_of_ties()
    whole = learn(counts, sections.Vocab(size=1024, alphabet=64))
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(counts))
        assert learn(counts.take(order), sections.Vocab(size=1024, alphabet=64)) == whole


def test_the_same_in_every_process() -> None:
    settings = sections.Vocab(size=1024, alphabet=64, min_pair=2)
    assert len({learn(full_of_ties(), settings).vocab.digest for _ in range(2)}) == 1


def test_layout_and_statistics_are_those_of_wordpiece() -> None:
    counts = full_of_ties()
    learned = learn(counts, sections.Vocab(size=1024, min_pair=2))
    other = wordpiece.learn(counts, sections.Vocab(size=1024))
    assert learned.vocab.family == other.vocab.family
    assert learned.vocab.specials == other.vocab.specials
    first = learned.statistics["characters"]
    assert learned.vocab.tokens[: 104 + 29 + first] == other.vocab.tokens[: 104 + 29 + first]
    shared = ("characters", "words_too_long", "words_outside_alphabet")
    assert [learned.statistics[k] for k in shared] == [other.statistics[k] for k in shared]


def test_pairs_below_the_minimum_are_never_merged() -> None:
    words = {"the": 50, "cat": 9, "xylem": 3}
    learned = learn(table(words), sections.Vocab(size=64, unused=0, min_pair=9))
    assert {"the", "cat"} <= set(learned.vocab.tokens)
    assert not {"xylem", "xy", "##em"} & set(learned.vocab.tokens)
    assert len(learned.vocab.unused) > 0
    assert learned.vocab.size == 64


def test_counts_of_64_bits() -> None:
    words = {"ab": 2**52, "cd": 2**40, "ad": 3}
    assert merge(prepared_of(words, 2), 1)[-2:] == ["cd", "ad"]
    assert merge(prepared_of(words, 2), 4)[-2:] == ["cd", "ab"]
    assert merge(prepared_of(words, 2), 0)[-2:] == ["ab", "cd"]


def test_words_that_no_splitter_produces_are_not_learned_from() -> None:
    assert merge(prepared_of({"a!b": 10, "cd": 2}, 5), 1)[-1:] == ["cd"]


def test_no_words_at_all() -> None:
    assert learn(COUNTS.empty_table(), sections.Vocab(size=64, unused=0)).vocab.size == 64


@pytest.mark.parametrize(("size", "options"), [(30_522, {}), (64, {"alphabet": 1000})])
def test_sizes_are_checked(size: int, options: dict[str, int]) -> None:
    with pytest.raises(RecipeInvalid, match=r"vocab\.size"):
        learn(full_of_ties(), sections.Vocab(size=size, **options))


GOLDEN = """
It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness. The river
wound past the mill, and the miller counted sacks of flour; the miller's daughter counted the miles to the sea. Nothing
in the valley moved but the river, nothing in the mill but the wheel, and the wheel turned as it had always turned.
"""


def test_the_pieces_of_a_made_up_text_are_frozen() -> None:
    counts = count_words(pa.array([GOLDEN]))
    settings = sections.Vocab(size=128, unused=0, alphabet=64, min_pair=3)
    ready = prepare(counts, settings)
    learned = learn(counts, settings).vocab
    pieces = learned.tokens[5 + len(ready.first) : learned.size - len(learned.unused)]
    assert " ".join(pieces) == "of mi mil mill it wa was ##ou ##oun th the ##ve ##st ##te ##es"
    halved = merge(ready, 0)[len(ready.first) :]
    assert " ".join(halved[:12]) == "##he the of mi mil mill it wa was ##ou ##er ##ed"
