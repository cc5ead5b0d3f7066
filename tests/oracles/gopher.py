"""The rules of Gopher, page by page and word by word: the oracle of `corpusforge.clean.gopher`.

Written from Rae et al. 2021 (arXiv 2112.11446), appendix A.1.1 and table A1; where the paper leaves things open, as the
fields of `GopherRules` say.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any


def first_broken(text: str, rules: Any) -> str:
    """The reason why a page is dropped, or "kept"."""
    return quality(text, rules) or repetition(text, rules) or "kept"


def quality(text: str, rules: Any) -> str | None:
    """The first rule of quality that a page breaks."""
    words = text.split()
    counted = [word for word in words if any(c not in rules.uncounted_characters for c in word)]
    if rules.min_words and len(counted) < rules.min_words:
        return "page:few-words"
    if rules.max_words and len(counted) > rules.max_words:
        return "page:many-words"
    mean = sum(len(word) for word in counted) / len(counted) if counted else 0
    if rules.min_mean_word_characters and mean < rules.min_mean_word_characters:
        return "page:short-words"
    if rules.max_mean_word_characters and mean > rules.max_mean_word_characters:
        return "page:long-words"
    for reason, symbols in (("page:hash-marks", rules.hash_marks), ("page:ellipses", rules.ellipses)):
        occurrences = sum(text.count(symbol) for symbol in symbols)
        if rules.max_symbols_a_word and occurrences / max(len(words), 1) > rules.max_symbols_a_word:
            return reason
    return _lines(text, rules) or _words(words, rules)


def _lines(text: str, rules: Any) -> str | None:
    lines = [line.strip() for line in text.splitlines()]
    bullets = sum(line.startswith(rules.bullets) for line in lines)
    if rules.max_bullet_lines and bullets / max(len(lines), 1) > rules.max_bullet_lines:
        return "page:bullet-lines"
    ellipses = sum(line.endswith(rules.ellipses) for line in lines)
    if rules.max_ellipsis_lines and ellipses / max(len(lines), 1) > rules.max_ellipsis_lines:
        return "page:ellipsis-lines"
    return None


def _words(words: list[str], rules: Any) -> str | None:
    alphabetic = sum(any(c.isalpha() for c in word) for word in words)
    if rules.min_alphabetic_words and alphabetic / max(len(words), 1) < rules.min_alphabetic_words:
        return "page:few-alphabetic-words"
    if rules.stop_words_any_case:
        words = [word.lower() for word in words]
    if rules.min_stop_words and len(set(rules.stop_words) & set(words)) < rules.min_stop_words:
        return "page:few-stop-words"
    return None


def repetition(text: str, rules: Any) -> str | None:
    """The first rule of repetition that a page breaks."""
    characters = max(len(text), 1)
    paragraphs, lines = re.split("\n{2,}", text.strip()), re.split("\n+", text)
    for unit, pieces in (("paragraph", paragraphs), ("line", lines)):
        again = duplicates(pieces)
        limit = getattr(rules, f"max_duplicate_{unit}s")
        if limit and len(again) / len(pieces) > limit:
            return f"page:duplicate-{unit}s"
        limit = getattr(rules, f"max_duplicate_{unit}_characters")
        if limit and sum(map(len, again)) / characters > limit:
            return f"page:duplicate-{unit}-characters"
    words = text.split()
    for n in (2, 3, 4):
        limit = getattr(rules, f"max_top_{n}_gram")
        if limit and top_characters(words, n) / characters > limit:
            return f"page:top-{n}-gram"
    of_duplicates = characters_in_turn if rules.duplicate_ngrams_in_turn else covered_characters
    for n in range(5, 11):
        limit = getattr(rules, f"max_duplicate_{n}_grams")
        if limit and of_duplicates(words, n) / characters > limit:
            return f"page:duplicate-{n}-grams"
    return None


def duplicates(pieces: list[str]) -> list[str]:
    """The ones equal to an earlier one."""
    seen: set[str] = set()
    found = []
    for piece in pieces:
        if piece in seen:
            found.append(piece)
        seen.add(piece)
    return found


def ngrams(words: list[str], n: int) -> list[tuple[str, ...]]:
    """All runs of n words."""
    return [tuple(words[k : k + n]) for k in range(len(words) - n + 1)]


def top_characters(words: list[str], n: int) -> int:
    """Characters of all occurrences of the most frequent n-gram, spaces inside included; of equals the earliest."""
    counts = Counter(ngrams(words, n))
    if not counts:
        return 0
    gram, count = max(counts.items(), key=lambda item: item[1])  # the first of equals: insertion order
    return count * len(" ".join(gram))


def covered_characters(words: list[str], n: int) -> int:
    """Characters of the words in any n-gram equal to an earlier one, each word once."""
    seen: set[tuple[str, ...]] = set()
    covered: set[int] = set()
    for place, gram in enumerate(ngrams(words, n)):
        if gram in seen:
            covered.update(range(place, place + n))
        seen.add(gram)
    return sum(len(words[k]) for k in covered)


def characters_in_turn(words: list[str], n: int) -> int:
    """The same, but after a duplicate n-gram reading continues at its end."""
    seen: set[tuple[str, ...]] = set()
    place = total = 0
    while place + n <= len(words):
        gram = tuple(words[place : place + n])
        if gram in seen:
            total += sum(map(len, gram))
            place += n
        else:
            seen.add(gram)
            place += 1
    return total
