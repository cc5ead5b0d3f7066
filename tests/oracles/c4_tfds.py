"""The pack `c4-tfds-3.1` one page and one line at a time: the slow, obvious oracle of `corpusforge.clean`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

CITATION = re.compile(r"\[(?:\d*|edit|citation needed)\]")
POLICY = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")
LONGEST_PAGE, LONGEST_WORD, FEWEST_WORDS, FEWEST_SENTENCES = 190_000, 1_000, 5, 3


class Verdict(NamedTuple):
    """``text``: what the cleaner yields, None if it drops the page. ``lines``: ``(number, reason)`` of dropped
    lines, of kept pages only."""

    text: str | None
    page: str | None
    lines: list[tuple[int, str]]


def line_reason(line: str) -> tuple[str | None, str]:
    """The reason that drops a stripped line or its page, and the line without its citations."""
    if not line:
        return "line:blank", line
    if any(len(word) > LONGEST_WORD for word in line.split()):
        return "line:long-word", line
    line = CITATION.sub("", line)
    lower = line.lower()
    checks = [
        ("line:no-terminal-punctuation", line[-1:] not in {".", "?", "!", '"'} or line.endswith("...")),
        ("line:few-words", len(line.split()) < FEWEST_WORDS),
        ("page:lorem-ipsum", "lorem ipsum" in lower),
        ("line:javascript", "javascript" in lower),
        ("page:curly-brace", "{" in line),
        ("line:policy", any(phrase in lower for phrase in POLICY)),
    ]
    return next((reason for reason, applies in checks if applies), None), line


def clean_page(text: str, count_sentences: Callable[[str], int]) -> Verdict:
    """The result for one page."""
    if len(text) > LONGEST_PAGE:
        return Verdict(None, "page:too-long", [])
    kept, dropped = [], []
    for number, line in enumerate(text.splitlines()):
        reason, rest = line_reason(line.strip())
        if reason is None:
            kept.append(rest)
        elif reason.startswith("page:"):
            return Verdict(None, reason, [])
        else:
            dropped.append((number, reason))
    if not kept:
        return Verdict(None, "page:no-lines", [])
    if sum(count_sentences(line) for line in kept) < FEWEST_SENTENCES:
        return Verdict(None, "page:few-sentences", [])
    return Verdict("\n".join(kept).strip(), None, dropped)


def bad_word(text: str, entries: Iterable[str], *, edges: bool) -> bool:
    """Whether a text contains a bad word."""
    either = "|".join(re.escape(entry) for entry in entries)
    pattern = rf"(?:\W|^)({either})(?:\W|$)" if edges else either
    return re.search(pattern, text.lower()) is not None
