"""SQuAD's figures one step at a time: what its scripts compute, written plainly."""

from __future__ import annotations

import itertools

PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def words(text: str) -> list[str]:
    """Lower case; without punctuation; then without the words a, an, the."""
    letters = "".join(character for character in text.lower() if character not in PUNCTUATION)
    found, word = [], ""
    for character in letters + " ":
        if character.isspace():
            found += [word] if word else []
            word = ""
        else:
            word += character
    return [word for word in found if word not in ("a", "an", "the")]


def exact(said: str, right: list[str]) -> float:
    return float(any(words(said) == words(other) for other in _real(right)))


def f1(said: str, right: list[str]) -> float:
    return max(_f1_of(words(said), words(other)) for other in _real(right))


def _real(right: list[str]) -> list[str]:
    return [other for other in right if words(other)] or [""]


def _f1_of(said: list[str], right: list[str]) -> float:
    if not said or not right:
        return float(said == right)
    left, both = list(right), 0
    for word in said:
        if word in left:
            left.remove(word)
            both += 1
    if not both:
        return 0.0
    precision, recall = both / len(said), both / len(right)
    return 2 * precision * recall / (precision + recall)


def best_span(first: list[float], last: list[float], longest: int) -> float:
    """The highest sum of any span of at most ``longest`` tokens."""
    pairs = itertools.product(range(len(first)), range(len(last)))
    return max(first[i] + last[j] for i, j in pairs if 0 <= j - i < longest)


def best_mean(raw: list[float], null: list[float], has_answer: list[bool]) -> float:
    """The best mean of any threshold: a question whose ``null`` is above it counts as having no answer."""
    means = []
    for threshold in [min(null) - 1, *null]:
        counted = [float(not has) if n > threshold else r for r, n, has in zip(raw, null, has_answer, strict=True)]
        means.append(sum(counted) / len(counted))
    return max(means)
