"""A small vocabulary of every family, learned from a made-up text."""

from __future__ import annotations

import functools
import random

import pyarrow as pa

from corpusforge import sections
from corpusforge.tokens import byte_bpe, likelihood, sentencepiece_family, wordpiece
from corpusforge.tokens.counts import count_words
from corpusforge.tokens.gpt2_split import GPT2
from corpusforge.tokens.sentencepiece_split import SentencePieceSegmentation
from corpusforge.tokens.vocab import Vocab

FAMILIES = ("wordpiece", "wordpiece-likelihood", "bpe", "unigram", "sentencepiece-bpe")


@functools.cache
def made_up_text() -> pa.StringArray:
    """Sixty documents of a language of 400 words."""
    rng = random.Random(5)
    words = ["".join(rng.choices("abdeiknorstü", k=rng.randint(1, 7))) for _ in range(400)]
    return pa.array([" ".join(rng.choices(words, k=40)) + "." for _ in range(60)])


@functools.cache
def of_family(name: str) -> Vocab:
    """A vocabulary learned from `made_up_text`."""
    text = made_up_text()
    if name == "bpe":
        return byte_bpe.learn(count_words(text, GPT2), sections.Vocab(size=512, unused=0)).vocab
    if name in ("unigram", "sentencepiece-bpe"):
        counts = count_words(text, SentencePieceSegmentation())
        return sentencepiece_family.learn(counts, sections.Vocab(model=name, size=256, unused=3)).vocab
    if name == "wordpiece-likelihood":
        return likelihood.learn(count_words(text), sections.Vocab(size=256, unused=3, min_pair=5)).vocab
    return wordpiece.learn(count_words(text), sections.Vocab(size=256, unused=3)).vocab
