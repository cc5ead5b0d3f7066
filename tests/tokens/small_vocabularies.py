"""A small vocabulary of every family, learned from a made-up text."""

from __future__ import annotations

import functools
import random

import pyarrow as pa

from corpusforge import sections
from corpusforge.tokens.counts import count_words
from corpusforge.tokens.families import learn, segmentation_of
from corpusforge.tokens.vocab import Vocab


@functools.cache
def made_up_text() -> pa.StringArray:
    """Sixty documents of a language of 400 words."""
    rng = random.Random(5)
    words = ["".join(rng.choices("abdeiknorstü", k=rng.randint(1, 7))) for _ in range(400)]
    return pa.array([" ".join(rng.choices(words, k=40)) + "." for _ in range(60)])


@functools.cache
def of_family(name: str) -> Vocab:
    """A vocabulary learned from `made_up_text`."""
    size = 512 if name == "bpe" else 256
    settings = sections.Vocab(model=name, size=size, unused=0 if name == "bpe" else 3, min_pair=5)
    return learn(count_words(made_up_text(), segmentation_of(settings)), settings).vocab
