"""Passages of text with a word or two changed, and how they are signed."""

from __future__ import annotations

import random
from pathlib import Path

from corpusforge.dedupe.lsh import bands_for
from corpusforge.dedupe.minhash import Signer
from corpusforge.dedupe.signed_units import Signing
from corpusforge.seeds import document_keys

WORDS = [f"word{i}" for i in range(400)]

SPANS = Signing(Signer(), bands_for(0.8, 64), 3)

WHOLE = Signing(Signer(), bands_for(0.8, 64), 0)


def passage(dice: random.Random, sentences: int = 3) -> list[str]:
    return [" ".join(dice.choices(WORDS, k=14)).capitalize() + "." for _ in range(sentences)]


def edited(sentences: list[str], word: int = 4) -> list[str]:
    """One word of the second sentence replaced."""
    words = sentences[1].split(" ")
    words[word] = "changed"
    return [sentences[0], " ".join(words), *sentences[2:]]


def ordered_ids(count: int) -> list[str]:
    names = [f"d{i}" for i in range(count)]
    keys = document_keys(names)
    return sorted(names, key=lambda name: keys[names.index(name)])


def files(folder: Path) -> dict[str, bytes]:
    paths = folder.rglob("*")
    return {str(p.relative_to(folder)): p.read_bytes() for p in paths if p.is_file() and "scratch" not in p.parts}
