from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from corpusforge import sections
from corpusforge.errors import RecipeInvalid
from corpusforge.tokens.counts import COUNTS
from corpusforge.tokens.wordpiece import learn


def table(words: dict[str, int]) -> pa.Table:
    return pa.table([sorted(words), [words[w] for w in sorted(words)]], COUNTS)


def full_of_ties(n: int = 3000) -> pa.Table:
    rng = random.Random(3)
    letters = "abcdefghijklmnopqrstuvwxyzäöüßéàñçøåабвгдежз"
    return table({"".join(rng.choices(letters, k=rng.randint(2, 9))): rng.randint(2, 4) for _ in range(n)})


def test_the_same_in_every_run_and_for_any_order() -> None:
    counts = full_of_ties()
    digests = {learn(counts, sections.Vocab(size=1024, alphabet=64)).vocab.digest for _ in range(4)}
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(counts))
        digests.add(learn(counts.take(order), sections.Vocab(size=1024, alphabet=64)).vocab.digest)
    assert len(digests) == 1


def test_ties_at_the_alphabet_limit_are_settled_by_code_point() -> None:
    words = dict.fromkeys("zyxwvutsrqponmlkjihgfedcba", 5) | {"the": 9}
    kept = [t for t in learn(table(words), sections.Vocab(size=64, unused=0, alphabet=8)).vocab.tokens if len(t) == 1]
    assert kept == ["a", "b", "c", "d", "e", "f", "h", "t"]  # t, h, e are the most frequent; then the first five


def test_layout_is_berts_with_enough_slots() -> None:
    vocab = learn(full_of_ties(), sections.Vocab(size=1024)).vocab
    assert [vocab.tokens[i] for i in (0, 1, 99, 100, 101, 102, 103, 104)] == [
        "[PAD]", "[unused0]", "[unused98]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused99]"
    ]  # fmt: skip
    assert (vocab.specials.pad, vocab.specials.unk, vocab.specials.mask) == (0, 100, 103)
    assert vocab.size == 1024
    assert len(vocab.unused) == 128


def test_layout_is_compact_with_few_slots() -> None:
    vocab = learn(full_of_ties(), sections.Vocab(size=512, unused=7)).vocab
    assert vocab.tokens[:6] == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]")
    assert len(vocab.unused) == 7


def test_a_small_corpus_is_filled_with_slots() -> None:
    learned = learn(table({"the": 10, "cat": 4}), sections.Vocab(size=256, unused=3))
    assert learned.vocab.size == 256
    assert len(learned.vocab.unused) > 200
    assert learned.vocab.tokens[-1].startswith("[unused")
    assert {"the", "cat"} <= set(learned.vocab.tokens)


def test_no_words_at_all() -> None:
    assert learn(COUNTS.empty_table(), sections.Vocab(size=64, unused=0)).vocab.size == 64


def test_frequent_words_become_pieces_and_the_alphabet_is_covered() -> None:
    vocab = learn(table({"lower": 50, "lowest": 40, "newer": 30, "q": 2}), sections.Vocab(size=64, unused=0)).vocab
    assert {"lower", "lowest", "newer", "q"} <= set(vocab.tokens)
    assert {f"##{c}" for c in "lowernstq"} <= set(vocab.tokens)


def test_characters_that_are_words_have_no_inner_piece() -> None:
    vocab = learn(table({"東": 5, "!": 5, "ab": 5}), sections.Vocab(size=64, unused=0)).vocab
    assert {"東", "!", "##a"} <= set(vocab.tokens)
    assert not {"##東", "##!"} & set(vocab.tokens)


def test_words_outside_the_alphabet_are_not_learned_from() -> None:
    words = {"ab": 100, "aéb": 3}
    learned = learn(table(words), sections.Vocab(size=64, unused=0, alphabet=2))
    assert learned.statistics["words_outside_alphabet"] == 1
    assert learned.statistics["characters"] == 2


@pytest.mark.parametrize(("size", "nearest"), [(30_522, "30,464 or 30,528"), (10, "64")])
def test_size_must_be_a_multiple_of_64(size: int, nearest: str) -> None:
    with pytest.raises(RecipeInvalid, match=nearest):
        learn(full_of_ties(10), sections.Vocab(size=size))


def test_any_size_on_request() -> None:
    assert learn(full_of_ties(), sections.Vocab(size=1000, allow_any_size=True)).vocab.size == 1000


def test_too_small_for_its_alphabet() -> None:
    with pytest.raises(RecipeInvalid, match="lower vocab"):
        learn(full_of_ties(), sections.Vocab(size=64))


def test_scaled_counts_learn_the_same_for_any_order() -> None:
    counts = full_of_ties()
    learned = learn(counts, sections.Vocab(size=1024, alphabet=64), fed=2000)
    assert learned.statistics["words_scaled_away"] > 0
    order = np.random.default_rng(0).permutation(len(counts))
    assert learn(counts.take(order), sections.Vocab(size=1024, alphabet=64), fed=2000).vocab == learned.vocab


def test_slices_of_the_word_list_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = learn(full_of_ties(), sections.Vocab(size=1024, alphabet=20))
    monkeypatch.setattr("corpusforge.tokens.wordpiece._SLICE_WORDS", 7)
    assert learn(full_of_ties(), sections.Vocab(size=1024, alphabet=20)) == whole
