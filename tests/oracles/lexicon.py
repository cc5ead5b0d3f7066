"""Greedy longest match of phrases, one row and one word at a time."""

from __future__ import annotations


def joined(rows, phrases):
    """For each word of each row, whether it continues the phrase of the one before; ``phrases``: tuples of words."""
    found = []
    for words in rows:
        flags, at = [], 0
        while at < len(words):
            lengths = [len(p) for p in phrases if p and tuple(words[at : at + len(p)]) == p]
            longest = max(lengths, default=1)
            flags += [False] + [True] * (longest - 1)
            at += longest
        found.append(flags)
    return found
