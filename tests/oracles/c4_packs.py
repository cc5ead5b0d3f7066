"""Any pack of the kind "c4", one page and one line at a time: the slow, obvious oracle of `corpusforge.clean.c4`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from tests.oracles.c4_tfds import Verdict


def clean_page(text: str, rules: Any, count_sentences: Callable[[str], int], badwords: Iterable[str] = ()) -> Verdict:
    """The result for one page."""
    whole = whole_reason(text, rules)
    if whole:
        return Verdict(None, whole, [])
    if not rules.judges_lines:
        return Verdict(text, None, [])
    kept, dropped = [], []
    for number, line in enumerate(text.splitlines()):
        reason, rest = line_reason(line.strip(), rules, badwords)
        if reason is None:
            kept.append(rest)
        elif reason.startswith("page:"):
            return Verdict(None, reason, [])
        else:
            dropped.append((number, reason))
    if rules.min_sentences and not kept:
        return Verdict(None, "page:no-lines", [])
    if sum(count_sentences(line) for line in kept) < rules.min_sentences:
        return Verdict(None, "page:few-sentences", [])
    return Verdict("\n".join(kept).strip(), None, dropped)


def whole_reason(text: str, rules: Any) -> str | None:
    """Why a page is dropped before its lines are judged."""
    paragraphs = [line for line in text.split("\n") if len(line) >= rules.min_paragraph_characters]
    if rules.max_page_characters and len(text) > rules.max_page_characters:
        return "page:too-long"
    if len(paragraphs) < rules.min_paragraphs:
        return "page:few-paragraphs"
    if rules.phrases_anywhere and any(p in text.lower() for p in rules.lorem_ipsum):
        return "page:lorem-ipsum"
    if rules.phrases_anywhere and any(p in text for p in rules.curly_brace):
        return "page:curly-brace"
    return None


def line_reason(line: str, rules: Any, badwords: Iterable[str]) -> tuple[str | None, str]:
    """The reason that drops a stripped line or its page, and the line without its citations."""
    if not line:
        return "line:blank", line
    words = line.split()
    if rules.max_word_characters and any(len(word) > rules.max_word_characters for word in words):
        return "line:long-word", line
    citations = [re.escape(text) for text in rules.citations] + ([r"\[\d*\]"] if rules.numbered_citations else [])
    if citations:
        line = re.sub("|".join(citations), "", line)
    if not rules.words_with_citations:
        words = line.split()
    lower, anywhere = line.lower(), rules.phrases_anywhere
    no_mark = (rules.end_marks and not line.endswith(rules.end_marks)) or line.endswith(rules.no_end_marks)
    flanked = any(re.search(f"[^a-z]{re.escape(entry)}[^a-z]", lower) for entry in badwords)
    checks = [
        ("line:no-terminal-punctuation", no_mark),
        ("line:few-words", len(words) < rules.min_words),
        ("line:few-characters", sum(not c.isspace() for c in line) < rules.min_characters),
        ("line:blank", not line.strip()),
        ("page:lorem-ipsum", not anywhere and any(p in lower for p in rules.lorem_ipsum)),
        ("line:javascript", any(p in lower for p in rules.javascript)),
        ("page:curly-brace", not anywhere and any(p in line for p in rules.curly_brace)),
        ("line:policy", any(p in lower for p in rules.policy)),
        ("page:badword", rules.badwords_in_lines and flanked),
    ]
    return next((reason for reason, applies in checks if applies), None), line
