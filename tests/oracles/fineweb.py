"""The rules of FineWeb, page by page: the oracle of `corpusforge.clean.fineweb`.

Written from Penedo et al. 2024 (arXiv 2406.17557), section 3.6, and the meaning of the fields of `FinewebRules`.
"""

from __future__ import annotations

from typing import Any

from tests.oracles.gopher import duplicates


def first_broken(text: str, rules: Any) -> str:
    """The reason why a page is dropped, or "kept"."""
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        return "page:no-lines"
    ended = sum(line.endswith(rules.end_characters) for line in lines)
    if rules.min_ended_lines and ended / len(lines) < rules.min_ended_lines:
        return "page:few-line-ends"
    short = sum(len(line) <= rules.short_line_characters for line in lines)
    if rules.max_short_lines and rules.short_line_characters and short / len(lines) > rules.max_short_lines:
        return "page:short-lines"
    again = sum(map(len, duplicates(lines)))
    limit = rules.max_duplicate_line_characters
    if limit and again / len(text.replace("\n", "")) > limit:
        return "page:duplicate-line-characters"
    limit = rules.max_line_breaks_a_word
    if limit and text.count("\n") / len(text.split()) > limit:
        return "page:list"
    return "kept"
