from __future__ import annotations

import json
import random

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from corpusforge import sections
from corpusforge.errors import RecipeInvalid
from corpusforge.sections import Vocab
from corpusforge.tokens import byte_bpe, families
from corpusforge.tokens.byte_bpe import learn
from corpusforge.tokens.counts import COUNTS, count_words
from corpusforge.tokens.gpt2_split import GPT2


def table(words: dict[str, int]) -> pa.Table:
    return pa.table([sorted(words), [words[w] for w in sorted(words)]], COUNTS)


def full_of_ties(n: int = 3000) -> pa.Table:
    rng = random.Random(3)
    letters = " abcdefghijklmnopqrstuvwxyzäöüß東京\n"
    return table({"".join(rng.choices(letters, k=rng.randint(2, 9))): rng.randint(2, 4) for _ in range(n)})


def learned_by_the_library(texts: list[str], size: int) -> list[tuple[str, str]]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=1, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return [(left, right) for left, right in json.loads(tokenizer.to_str())["model"]["merges"]]


def test_the_same_in_every_run_and_for_any_order() -> None:
    counts = full_of_ties()
    digests = {learn(counts, sections.Vocab(size=1024, unused=0)).vocab.digest for _ in range(4)}
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(counts))
        digests.add(learn(counts.take(order), sections.Vocab(size=1024, unused=0)).vocab.digest)
    assert len(digests) == 1


def test_the_library_learns_the_same_from_the_text_directly() -> None:
    rng = random.Random(5)
    words = ["it's", "we'll", "naïve", "東京", "12", "...", "the", "lowest", "newer", "\n", "\t"]
    texts = [" ".join(rng.choices(words, k=30)) + "\n" for _ in range(50)]
    vocab = learn(count_words(pa.array(texts), GPT2), sections.Vocab(size=320, unused=3)).vocab
    assert list(vocab.family.merges) == learned_by_the_library(texts, 320 - 5 - 3)


def test_size_and_slots() -> None:
    vocab = learn(full_of_ties(), sections.Vocab(size=1024, unused=39)).vocab
    assert (vocab.size, len(vocab.unused)) == (1024, 39)
    assert vocab.tokens[1024 - 40 :][:2] == ("<mask>", "[unused0]")
    assert learn(full_of_ties(), sections.Vocab(size=1000, allow_any_size=True, unused=0)).vocab.size == 1000
    with pytest.raises(RecipeInvalid, match="30,464 or 30,528"):
        learn(full_of_ties(), sections.Vocab(size=30_522, unused=0))
    with pytest.raises(RecipeInvalid, match="less than the 361"):
        learn(full_of_ties(), sections.Vocab(size=320, unused=100))


def test_a_small_corpus_is_filled_with_slots() -> None:
    learned = learn(table({" the": 10, " cat": 4}), sections.Vocab(size=320, unused=0))
    assert {"Ġthe", "Ġcat"} <= set(learned.vocab.tokens)
    assert learned.statistics["merges"] == 6
    assert learned.statistics["unused"] == 320 - 261 - 6
    assert learn(COUNTS.empty_table(), sections.Vocab(size=320, unused=0)).statistics["unused"] == 320 - 261


def test_very_long_words_teach_nothing() -> None:
    learned = learn(table({" the": 10, "-" * 2000: 4}), sections.Vocab(size=320, unused=0))
    assert learned.statistics["words_too_long"] == 1
    assert "--" not in learned.vocab.tokens


def test_scaled_counts_learn_the_same_for_any_order() -> None:
    counts = full_of_ties()
    learned = learn(counts, sections.Vocab(size=1024, unused=0), fed=2000)
    assert learned.statistics["words_scaled_away"] > 0
    order = np.random.default_rng(0).permutation(len(counts))
    assert learn(counts.take(order), sections.Vocab(size=1024, unused=0), fed=2000).vocab == learned.vocab


def test_pair_counts_stay_within_31_bits() -> None:
    assert 5 <= byte_bpe._bound(table({"ab": 5}), 1000) <= 1000
    assert byte_bpe._bound(table({"a" * 1000: 2**40, "b": 1}), 2**40) <= 2**30 / 1000 + 1


def test_the_section_of_a_recipe_says_which_family() -> None:
    section = Vocab(model="bpe", size=320, unused=3)
    assert families.segmentation_of(section) == GPT2
    counts = count_words(pa.array(["the lowest newer "] * 9), families.segmentation_of(section))
    assert families.learn(counts, section).vocab == learn(counts, sections.Vocab(size=320, unused=3)).vocab
