"""Contamination by sets of tuples of words: the oracle of `clean.contamination`."""

from __future__ import annotations

import unicodedata

from corpusforge.clean.ngrams import ALONE


def words(text: str) -> list[str]:
    """Runs of letters, marks and numbers in lower case; ideographs and kana each alone."""
    spaced = []
    text = unicodedata.normalize("NFC", text)
    for c in text:
        in_word = unicodedata.category(c)[0] in "LMN" if ord(c) < 0x10000 else not 0x1F000 <= ord(c) < 0x20000
        if ord(c) < 0x80:
            in_word = c.isalnum()
        low = c.lower()[0] if ord(c) < 0x10000 else c
        kept = low if len(low.encode()) == len(c.encode()) else c
        if not in_word:
            kept = " "
        elif any(ord(c) in codes for codes in ALONE):
            kept = f" {c} "
        spaced.append(kept)
    return [word for word in "".join(spaced).split(" ") if word]


def contaminated(text: str, evaluation: list[str], length: int) -> bool:
    """Whether a text contains ``length`` consecutive words of a longer text, or all words of one of at least eight."""
    known = set()
    for other in evaluation:
        found = words(other)
        size = min(length, len(found))
        if size >= 8:
            known |= {tuple(found[i : i + size]) for i in range(len(found) - size + 1)}
    own = words(text)
    return any(tuple(own[i : i + size]) in known for size in range(8, length + 1) for i in range(len(own) - size + 1))
