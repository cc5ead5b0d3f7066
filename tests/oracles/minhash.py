"""The slow, obvious MinHash: Python strings, sets and integers; one shingle and one permutation after the other.

Shares with the real one only the normal form of a sentence (its own oracle), the multipliers and xxHash.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import xxhash

from tests.oracles.spans import words_of

WORD = 2**64 - 1
MULTIPLIER = 0x9E3779B97F4A7C15
BASE = 0xD6E8FEB86659FD93
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "MYANMAR", "KHMER")


def split_words(sentence: str, fold_numbers: bool = False) -> list[str]:
    """Words of the normal form; characters of scripts without spaces are words of their own."""
    found = []
    for word in words_of(sentence, fold_numbers):
        run = ""
        for character in word:
            if is_unspaced(character):
                found += [run, character]
                run = ""
            else:
                run += character
        found.append(run)
    return [word for word in found if word]


def is_unspaced(character: str) -> bool:
    """By the name of the character's block, as far as the tests draw from them."""
    code = ord(character)
    if code < 0x0E00:
        return False
    blocks = [(0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x31F0, 0x31FF)]
    blocks += [(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)]
    inside = any(low <= code <= high for low, high in blocks)
    named = unicodedata.name(character, "").startswith(UNSPACED)
    assert inside or not named or code in range(0x2E80, 0x3040) or code > 0x3100, hex(code)
    return inside


def hash_word(word: str) -> int:
    """Eight bytes at a time; words of more than 64 bytes by xxh3-64."""
    data = word.encode()
    if len(data) > 64:
        return xxhash.xxh3_64_intdigest(data)
    found = 0
    for start in range(0, len(data), 8):
        found = ((found ^ int.from_bytes(data[start : start + 8], "little")) * MULTIPLIER) & WORD
        found ^= found >> 29
    return found


def hash_shingle(words: Sequence[str]) -> int:
    """32 bits, odd."""
    found = 0
    for word in words:
        found = (found * BASE + hash_word(word)) & WORD
    return split_mix(found) >> 32 | 1


def split_mix(word: int) -> int:
    """SplitMix64's finaliser."""
    word = (word + MULTIPLIER) & WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
    return word ^ (word >> 31)


def shingles(words: Sequence[str], length: int) -> set[tuple[str, ...]]:
    """The set of runs of ``length`` words, or the one of all words."""
    if len(words) < length:
        return {tuple(words)} if words else set()
    return {tuple(words[i : i + length]) for i in range(len(words) - length + 1)}


def jaccard(left: set[tuple[str, ...]], right: set[tuple[str, ...]]) -> float:
    """Shared shingles by all shingles."""
    return len(left & right) / len(left | right)


def sign(found: set[tuple[str, ...]], multipliers: Sequence[int]) -> list[int]:
    """The minimum of all shingles under each permutation."""
    hashes = [hash_shingle(shingle) for shingle in found]
    return [min(h * m % 2**32 for h in hashes) for m in multipliers]
